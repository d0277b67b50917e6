// Package timeline puts method records and kernel events on one axis, CLOCK_BOOTTIME in nanoseconds.
//
// Three parts do it. Clock converts the processor's counter. Kernel turns the stream of kernel events into each
// thread's intervals of state and its I/O. Joiner decodes a thread's rings and sweeps over its method records and
// intervals at the same time, which gives each call its time by state, for itself and with its callees.
//
// Memory is bounded by one ring being decoded, the intervals of the threads that have rings, within the time that
// their rings cover, and a window in which kernel events are sorted; not by the length of the recording.
//
// Nothing here may be used by two goroutines at once, except a Clock, which does not change.
package timeline
