// Package unwind finds the callers of an address from a thread's registers and a copy of its stack, as the unwind tables
// of its programs and libraries say (.eh_frame and .debug_frame: DWARF 5 section 6.4, and LSB 5.0 core section 10.6).
//
// The tables are read by code of its own, because the Go libraries at hand are made for debuggers: package frame of Delve
// panics on tables that make no sense, does not know signal frames, and makes maps for each frame. Here files and stacks
// are hostile input, and a frame must cost no more than a microsecond.
//
// Only 64-bit amd64 and arm64 are known.
package unwind
