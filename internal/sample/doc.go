// Package sample records where the threads of chosen processes are, many times a second, with their stacks.
//
// The kernel's perf events do it, one for each thread and CPU, which children inherit. A thread is interrupted only
// while it runs, and no other process ever is. That needs no eBPF, and without privileges it works on one's own processes.
// Kernel frames, and user frames by frame pointers, come from the kernel. For stacks by unwind tables the kernel copies
// the thread's registers and the newest part of its stack, and package unwind reads them here, a few milliseconds later.
// What was mapped where comes in the same records, with its time, so that programs that ended are known too.
package sample
