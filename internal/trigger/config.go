package trigger

import "time"

// Config is a file's content with defaults filled in. It does not change, and may be used by many goroutines.
type Config struct {
	Version  int
	Programs []Program
	Kernel   Kernel
	Output   Output
	Metrics  Metrics
	Rules    []*Rule // "triggers" in the file
}

// Program says which processes are watched, and how. A process must meet all criteria that are given.
type Program struct {
	Name    string // pattern of the comm or of the executable's last path element; "" any
	Package string // pattern of the Android package, which is the first argument of the command line; "" any
	Cgroup  string // path of a cgroup v2, which the process is in or below; "" any
	UID     int    // effective user; -1 any
	Pid     int    // 0 any

	Threads Threads
	Rings   int   // at most so many threads of the program have a ring at a time
	Ring    int64 // bytes of a ring, a power of two
}

// Threads chooses threads of a program.
type Threads struct {
	All   bool
	Main  bool     // the process's first thread
	Names []string // patterns of comm; with them Main is what the list says
}

// Kernel says what is kept of the kernel's events.
type Kernel struct {
	Sched, IO, Wait bool          // units of eBPF programs
	Keep            time.Duration // "seconds" in the file: how far back events are kept
	Buffer          int64         // bytes of the buffer between kernel and recorder
}

// Output says where traces go and what is kept of them.
type Output struct {
	Dir      string
	Quota    int64         // bytes of all traces together
	Age      time.Duration // traces that are older are removed
	Limits   Limits
	Keep     Keep
	Campaign string // traces are filed under this name, and counted apart from others'; "" none
	Summary  Summary
}

// Limits bound how many traces are kept of the last seven days. 0 is no limit.
type Limits struct {
	PerWeek    int // in all
	PerProgram int
	PerTrigger int
}

// Keep says which traces stay where a limit is reached.
type Keep string

// What Keep can be.
const (
	KeepFirst Keep = "first" // those that came first
	KeepWorst Keep = "worst" // those of the highest severity
)

// Summary says what leaves the recorder.
type Summary string

// What Summary can be.
const (
	SummaryWithTrace Summary = "with-trace"
	SummaryOnly      Summary = "only" // no trace is written, only what an analysis of it found
)

// Metrics says where Prometheus metrics are served.
type Metrics struct {
	Address string // host:port; "" nowhere
}

// Rule is one entry of "triggers".
type Rule struct {
	Name     string
	Severity int           // 1 to 5; 5 is the most severe
	Cooldown time.Duration // after it has fired, it does not fire again for the same target for this long
	Settle   time.Duration // recording goes on for this long after it has fired
	Programs []string      // patterns of the names of programs that it is for; empty: all
	When     *Condition
	Line     int // in the file, from 1
}

// Defaults of a file's entries.
const (
	DefaultRings    = 2
	DefaultRing     = 32 << 20
	DefaultKeep     = 10 * time.Second
	DefaultBuffer   = 8 << 20
	DefaultDir      = "/var/lib/braid"
	DefaultQuota    = 1 << 30
	DefaultAge      = 14 * 24 * time.Hour
	DefaultPerWeek  = 50
	DefaultProgram  = 20
	DefaultTrigger  = 10
	DefaultSeverity = 3
	DefaultCooldown = time.Minute
	DefaultSettle   = 0
)
