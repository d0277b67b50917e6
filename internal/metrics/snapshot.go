package metrics

// Source gives what is served. It is called once for each scrape, by several goroutines at the same time if several
// servers scrape; what it returns is not changed afterwards by either side.
type Source interface {
	Metrics() (*Snapshot, error)
}

// Snapshot is the daemon's counts at one moment. Counters are since the daemon started, or since it found the target, and
// never go down. A nil map or a nil *Histogram is left out.
type Snapshot struct {
	Targets    []Target
	Lost       map[string]uint64  // losses that belong to no target, by name
	Triggers   map[string]Trigger // by the trigger's name
	KeptTraces int                // traces in the folder
	KeptBytes  int64              // their size
	Refused    map[string]uint64  // traces that were not kept, by reason
	Removed    map[string]uint64  // traces that were removed, by reason
	Hooks      map[string]bool    // kernel hooks by name: whether this kernel has it
}

// Trigger is how often one trigger fired, or would have but for its own limit.
type Trigger struct {
	Fired, Suppressed uint64
}

// Target is one traced process.
type Target struct {
	Program     string // the name that --name chose it by, or its comm
	PID         int
	Threads     int    // with a trace point reached
	ThreadsOn   int    // of them, recording now
	Records     uint64 // slots written by all threads; approximate while threads run
	Wraps       uint64 // rings that began anew
	Swaps       uint64 // rings that were exchanged for a flush
	Starts      uint64 // threads asked to record
	Stops       uint64 // threads asked to stop
	RingBytes   uint64
	Flushes     map[string]uint64 // traces written, by trigger
	Lost        map[string]uint64 // by name
	MajorFaults uint64
	RunQueue    *Histogram            // runnable, until switched in
	OffCPU      map[string]*Histogram // by cause, as package bpf names them
	BlockIO     map[string]*Histogram // by operation
	Fsync       *Histogram            // fsync family of calls
	Reclaim     *Histogram            // direct reclaim
}

// Histogram is a kernel histogram: bucket i counts values from 2^i up to, but not including, 2^(i+1) ns; bucket 0 also
// counts 0.
type Histogram struct {
	Buckets []uint64
	Sum     uint64 // ns
	Count   uint64
}
