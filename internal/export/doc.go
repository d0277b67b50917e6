// Package export makes other tools' files of a trace on the timeline.
//
// Perfetto: one track a thread with its methods as slices, above it Perfetto's own thread states and wake-ups, from the
// scheduler's events; tracks of a thread's fsync calls, major faults and direct reclaim; lanes of block requests, by
// device; marks where something was lost or cut. It is written as it is read: one ring and one run of kernel events are
// in memory at a time.
//
// SVG: a picture of the same for people, whose size depends on its width and not on the trace's length.
package export
