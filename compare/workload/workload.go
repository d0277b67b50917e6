// Package workload holds the programs that a study measures, built for amd64, arm64 and arm and embedded, and runs them.
//
// There is one static executable for each processor with every workload, whose traced functions are in it once for each
// variant and alignment: same source, same compiler, other trace points. Only the start-up workload has other programs, one
// for each variant, which the first one starts, so that a run is a whole process.
//
// A process answers requests, one line each, on its standard input and output. It pins itself to its CPU before it begins.
package workload

//go:generate ./generate.sh

// Names of workloads.
const (
	Listing  = "listing"  // Hubble (OSDI '22), Listing 1: ten nested calls with some work in each; Parameter is the work
	Call     = "call"     // Listing's function without nesting, in a loop: what micro-benchmarks of tracers do; Parameter is the work
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
	Parameter int64 // Listing, Call: work, 0 to 1000000; Matrix: side of a tile, a divisor of 2048; IO: bytes of a write, 0 for 512
	Align     int
	// Calls are those of the traced function, roughly: workloads round up to what they can do, Startup to whole processes.
	// For Command they are its processes.
	Calls int64
	// Skip, for Matrix, are the steps to leave out before. A request for 2N steps does what two requests for N steps do, the
	// second of which skips N, if N is a multiple of 2048.
	Skip int64
}

// Reply is what a workload answers. Times of the measured part alone.
type Reply struct {
	Calls       int64  // of the traced function, exactly
	WallNS      int64  // CLOCK_MONOTONIC
	CPUNS       int64  // CLOCK_THREAD_CPUTIME_ID of the measured thread (of the process and its children for Startup)
	CacheMisses uint64 // of the measured thread in user mode, where the PMU counts them; 0 otherwise
	Bytes       uint64 // Matrix: read from the two factors; IO: written
	Recorded    uint64 // entries and returns that the handler kept (Handler, GetTime); 0 for other variants
}

// Start says what to start.
type Start struct {
	Workload string
	Variant  Variant // empty: Plain
	CPU      int     // that the process is pinned to; negative: none
	Aligns   []int   // that will be asked for; nil: all
	Env      []string
	// Wrap is a command that runs the program, a tracer's: the program and its arguments are put behind it. For Startup and
	// Command it wraps each single run, and Env is for these alone.
	Wrap []string
	// Path is another executable than the embedded one, built from Source; for Startup another Lua.
	Path string
	// Command is what Command measures, from its start to its end. It runs in this process's working directory.
	Command []string
	// Instead puts files into others' places, by absolute paths, for the process and what it starts alone. Only root can. Nobody else
	// runs those files, so nobody else meets what is put into them.
	Instead map[string]string
}

// Aligns are the alignments that the embedded programs have: bytes from the start of a cache line to a traced function.
func Aligns() []int { return []int{0, 16, 32, 48} }
