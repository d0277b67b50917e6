// Package recorder makes one recording: it launches or attaches to a process, lets its threads record, lets the kernel
// side record beside them, and writes what both wrote, undecoded, into a trace file.
//
// One goroutine (Run) owns the areas, another reads kernel events, a third waits for the target; only the trace file is
// shared, behind a lock. A look at the target's rings every poll period notes where quiet threads are (the anchors of
// package inline) and empties the rings of threads that have ended.
package recorder
