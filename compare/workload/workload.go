// Package workload holds the programs that a study measures, built for amd64, arm64 and arm and embedded, and runs them.
package workload

// Names of workloads.
const (
	Listing  = "listing"  // Hubble (OSDI '22), Listing 1: ten nested calls with some work in each; Parameter is the work
	Matrix   = "matrix"   // Hubble section 8.2: matrix multiplication in tiles, a call for each step; Parameter is the tile's side
	Startup  = "startup"  // a real program from its start to its end
	Schedule = "schedule" // two threads that wake each other: for the kernel side
	IO       = "io"       // small writes and syncs: for the kernel side
	Command  = "command"  // the user's own
)

// Variant is how the traced functions of a workload were built.
type Variant string

// Variants.
const (
	Plain   Variant = "plain"   // nothing at entries and returns
	Stub    Variant = "stub"    // braid's stubs
	Clock   Variant = "clock"   // a bare read of the counter in the same places
	Handler Variant = "handler" // -finstrument-functions with the smallest handler that keeps (function, counter)
	GetTime Variant = "gettime" // the same handler, with clock_gettime in place of the counter
	USDT    Variant = "usdt"    // a static probe site (SDT note, one nop) at entry and return
	Nop5    Variant = "nop5"    // a function that begins with a nop of five bytes (amd64), a nop (arm64, arm)
	Push    Variant = "push"    // begins with push (amd64), stp with writeback (arm64), push (arm)
	Other   Variant = "other"   // begins with an instruction that the kernel has to step singly
)

// Request is one measurement.
type Request struct {
	Parameter int64
	Align     int
	Calls     int64 // of the traced function, roughly: workloads round up to what they can do
}

// Reply is what a workload answers. Times of the measured part alone.
type Reply struct {
	Calls       int64  // of the traced function, exactly
	WallNS      int64  // CLOCK_MONOTONIC
	CPUNS       int64  // CLOCK_THREAD_CPUTIME_ID of the measured thread (of the process and its children for Startup)
	CacheMisses uint64 // where the PMU counts them
	Bytes       uint64
}

// Set is the programs, unpacked into a folder.
type Set struct{ dir string }
