// Package probe puts the kernel's probes into a measured program: breakpoints at functions' entries, at their returns, and at
// static probe sites, with eBPF programs behind them that count, or write records of 16 bytes to a ring buffer.
//
// What a probe costs depends on the instruction it sits on: the kernel turns some into calls, acts for others itself, and
// steps the rest one at a time. Classify reads that from the instruction, and Look sees what the kernel made of it.
//
// Probes need root, Linux 5.8 or newer, and a kernel with CONFIG_UPROBE_EVENTS. They are put into one process alone. A
// Tracer is used by one goroutine at a time. Addresses are those that a file's symbols have, offsets those in the file.
package probe
