package trigger

import (
	"syscall"
	"time"
)

// Kind is the kind of a condition, by its name in the file.
type Kind string

// The kinds of conditions.
const (
	Method       Kind = "method"        // a call of a method took longer
	Unresponsive Kind = "unresponsive"  // the main thread has not been back in its loop for longer
	Frame        Kind = "frame"         // calls of a frame method were slow, or one was frozen
	Response     Kind = "response"      // from the beginning of one method until the end of another
	RunQueue     Kind = "run_queue"     // a thread waited for a processor
	OffCPU       Kind = "off_cpu"       // a thread did not run
	Fsync        Kind = "fsync"         // a call of the fsync family
	BlockIO      Kind = "block_io"      // a block request
	Reclaim      Kind = "reclaim"       // a thread reclaimed memory itself
	MajorFaults  Kind = "major_faults"  // major faults of a process in a second
	Pressure     Kind = "pressure"      // PSI
	Thermal      Kind = "thermal"       // the temperature of a thermal zone
	CPUFrequency Kind = "cpu_frequency" // the cap of a processor's frequency
	Crash        Kind = "crash"         // a fatal signal
	Stack        Kind = "stack"         // mean time of calls with a pattern of callers
	Signal       Kind = "signal"        // a signal to the daemon
	Socket       Kind = "socket"        // a line on the control socket
	ProgramAsks  Kind = "program"       // the program called braid_trigger
	All          Kind = "all"
	Any          Kind = "any"
)

// Via says how calls of a method are seen.
type Via string

// What Via can be.
const (
	ViaAuto  Via = "auto" // ring, as long as nothing better is known
	ViaRing  Via = "ring"
	ViaProbe Via = "probe" // a breakpoint: for methods that are called rarely
)

// Condition is a leaf, or a combination of Members. Which fields count follows from Kind; the others are zero.
type Condition struct {
	ID   int // number among all conditions of the file, from 1
	Kind Kind

	For     time.Duration // it must hold for this long without a break; 0: at once
	Within  time.Duration // what it is made of (Members, or its own occurrences) counts for this long afterwards
	Members []*Condition  // All, Any

	Method string // pattern; Method, Frame; Response: from; Unresponsive: the loop
	To     string // pattern; Response
	Path   []string
	Via    Via // Method

	// Longer is the limit; for Stack that of the mean.
	Longer time.Duration
	Slow   time.Duration // Frame; 0: slow frames do not count
	Frozen time.Duration // Frame; 0: frozen frames do not count
	Count  int           // Frame: slow frames in a row; Stack: calls that the mean is taken over

	PerSecond int // MajorFaults

	Resource string // Pressure: cpu, memory, io
	Full     bool   // Pressure: all tasks that are not idle stalled at the same time, not only some
	Stall    time.Duration
	Window   time.Duration

	Zone  string         // Thermal: pattern of the zone's type or name
	Above float64        // Thermal: °C
	Below float64        // CPUFrequency: percent of the processor's highest frequency
	Sig   syscall.Signal // Signal
	Why   string         // pattern; Program, Socket

	Line, Column int // in the file, from 1
}

// Leaves calls f for all leaves of a condition, in the order of the file.
func (c *Condition) Leaves(f func(*Condition)) {
	if len(c.Members) == 0 {
		f(c)
		return
	}
	for _, m := range c.Members {
		m.Leaves(f)
	}
}

// ByRing reports whether calls are seen in the ring of a thread: package live decides such conditions.
func (c *Condition) ByRing() bool {
	switch c.Kind {
	case Method:
		return c.Via != ViaProbe
	case Unresponsive, Frame, Response, Stack:
		return true
	}
	return false
}

// Limit returns what a value is compared with, in the unit of Observation.Value. below says that the condition is met
// below it, and not at or above it. A kind without a limit is met by each observation.
func (c *Condition) Limit() (limit float64, below bool) {
	switch c.Kind {
	case Method, Unresponsive, Response, RunQueue, OffCPU, Fsync, BlockIO, Reclaim, Stack:
		return float64(c.Longer), false
	case Frame:
		if c.Slow == 0 {
			return float64(c.Frozen), false
		}
		return float64(c.Slow), false
	case MajorFaults:
		return float64(c.PerSecond), false
	case Pressure:
		return float64(c.Stall), false
	case Thermal:
		return c.Above, false
	case CPUFrequency:
		return c.Below, true
	}
	return 0, false
}

// level reports whether the condition is a state that lasts until it is seen to be over, and not an occurrence.
func (c *Condition) level() bool { return c.Kind == Thermal || c.Kind == CPUFrequency }

// lasting is for how long one occurrence counts by itself.
func (c *Condition) lasting() time.Duration {
	switch c.Kind {
	case Pressure: // the kernel tells of it once in a window
		return c.Window
	case MajorFaults:
		return time.Second
	}
	return 0
}
