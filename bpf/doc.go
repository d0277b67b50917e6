// Package bpf is the kernel side of braid: eBPF programs that record what the kernel did to the threads of chosen
// processes, and the Go that loads, feeds and reads them.
//
// Programs come in units: "sched" (context switches, wake-ups, migration, CPU frequency) and "io" (block requests, the
// fsync family, major faults, direct reclaim). Births, names and deaths of processes are always recorded. All filter
// by process in the kernel before any other work. All write into one BPF ring buffer, or perf buffers where the kernel has
// none; events have the layout of events.h and internal/kevent, and nothing here decodes them.
//
// Nothing is pinned: Close, or the end of the process however it comes, detaches everything.
//
// # What a caller has to know
//
//   - Events carry ids of the initial pid namespace and CLOCK_BOOTTIME. Load fails in another pid namespace.
//   - Each CPU's events are in order of time; events of different CPUs may be swapped in the ring by as long as a
//     program runs (microseconds, unless interrupted).
//   - AddTarget on a running process emits nothing. Its threads appear with their first event; what each did until then
//     is for the caller to read from /proc/PID/task/TID/stat, after AddTarget.
//   - A thread that another CPU runs while the hooks are being attached or detached may appear with a switch out and no
//     switch in, or the reverse.
//   - fsync through io_uring is no system call and is not seen.
package bpf
