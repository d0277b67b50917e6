package timeline

import "braid/internal/kevent"

// State is what a thread does.
type State uint8

// The states. Their names are the field's: runnable is waiting for a CPU, sleeping waits for something that a signal
// could interrupt (locks, timers, sockets, and being stopped, traced or parked), blocked waits uninterruptibly, for
// I/O as a rule.
const (
	Unknown State = iota // before the first event of a thread, or where events were lost
	Running
	Runnable
	Sleeping
	Blocked
	NumStates

	// queued is a thread that /proc showed as R: running or runnable. Its first event tells, and it never gets out.
	queued State = NumStates
)

var stateNames = [...]string{"unknown", "running", "runnable", "sleeping", "blocked", "queued"}

// String is the state's name in reports.
func (s State) String() string { return stateNames[s] }

// StateOfProc is the state for a letter of /proc/PID/stat (proc_pid_stat(5)), to give Kernel.Initial.
func StateOfProc(letter byte) State {
	switch letter {
	case 'R':
		return queued
	case 'S', 'T', 't', 'I', 'P', 'W':
		return Sleeping
	case 'D', 'K':
		return Blocked
	}
	return Unknown
}

// stateAfter is the state of a thread that was switched out. TASK_IDLE, which is blocked without load, is a sleep.
// TASK_RTLOCK_WAIT (0x1000) waits for a spin lock of a PREEMPT_RT kernel.
func stateAfter(flags uint8, prev uint32) State {
	const rtlockWait = 0x1000
	switch {
	case flags&kevent.FlagPreempted != 0 || prev == 0:
		return Runnable
	case prev&kevent.StateBlocked != 0 && prev&kevent.StateNoLoad == 0, prev&rtlockWait != 0:
		return Blocked
	}
	return Sleeping
}

// IntervalFlags say more about an interval.
type IntervalFlags uint8

// The flags of an interval.
const (
	// IOWait: the thread did not run, because it waited for I/O: the kernel says so (task_struct.in_iowait), or the
	// interval overlaps one of the thread's Spans.
	IOWait IntervalFlags = 1 << iota
	// Woken: a runnable interval that began with a wake-up, not with losing the CPU.
	Woken
)

// Interval is a time that a thread spent in one state.
type Interval struct {
	Start, End int64 // CLOCK_BOOTTIME ns
	// Waker is the thread whose wake-up ended a sleeping or blocked interval and began a runnable one; 0 if none.
	Waker uint32
	CPU   uint16 // running: where; runnable: where it is queued; otherwise where it ran last
	State State
	Flags IntervalFlags
}
