package analysis

import (
	"cmp"
	"slices"

	"braid/internal/timeline"
)

// Cause is what a thread's time went into: its state, and what it waited for where the kernel's events say so.
type Cause uint8

// The causes.
const (
	Unknown    Cause = iota // the kernel events say nothing
	Running                 // on a CPU
	Runnable                // could run, and waited for a CPU
	Sleeping                // waited for what a signal could interrupt; for what is not known, or none of the next five
	Lock                    // slept until a futex was released: a lock, a condition
	Binder                  // slept until a binder call was answered
	Poll                    // slept until one of several files was ready
	Stream                  // slept until a pipe, socket, terminal or the like could be read or written
	Timer                   // slept for the time that it had asked for
	Fsync                   // blocked or asleep within a call of the fsync family
	MajorFault              // blocked or asleep within a major fault
	Reclaim                 // within direct reclaim, running or not
	Read                    // blocked while a read of its own was on its way to a block device and back
	Write                   // the same for other requests: writes, flushes, discards
	OtherIO                 // blocked for I/O, as the scheduler says, without a request that is known to be its own
	Blocked                 // blocked for something else, or nobody knows what
	numCauses
)

var causeNames = [...]string{"unknown", "running", "runnable", "sleeping", "lock", "binder", "poll", "stream", "timer", "fsync", "major_fault", "reclaim", "read", "write", "other_io", "blocked"}

// String is the cause's name in JSON and in signatures.
func (c Cause) String() string { return causeNames[c] }

// Split is a time by cause, in ns.
type Split [numCauses]int64

// Wall is the sum.
func (s *Split) Wall() (ns int64) {
	for _, v := range s {
		ns += v
	}
	return ns
}

func (s *Split) add(o *Split) {
	for i := range s {
		s[i] += o[i]
	}
}

func (s *Split) sub(o *Split) (d Split) {
	for i := range s {
		d[i] = s[i] - o[i]
	}
	return d
}

// byName is the causes that took time, for JSON.
func (s Split) byName() map[string]int64 {
	m := make(map[string]int64, 4)
	for i, ns := range s {
		if ns != 0 {
			m[Cause(i).String()] = ns
		}
	}
	return m
}

// stretch is a time with one cause, up to the next one's start. The last one has no end.
type stretch struct {
	start  int64
	before Split // sums up to start
	cause  Cause
	waker  uint32 // thread that ended the wait; 0: none seen
	cpu    uint16 // runnable: where it was queued
	// wait is what the thread slept in; nil: not known. It is the activity's.
	wait *timeline.Wait
}

// at is the sums until time t within the stretch.
func (s *stretch) at(t int64) Split {
	sum := s.before
	sum[s.cause] += t - s.start
	return sum
}

// stretches cuts a thread's time at its intervals' borders and, where it waits, at its spans' ends. dst is reused.
func stretches(dst []stretch, a *timeline.Activity) []stretch {
	dst = append(dst[:0], stretch{start: minTime})
	if a == nil {
		return dst
	}
	put := func(t int64, cause Cause, iv *timeline.Interval, wait *timeline.Wait) {
		last := &dst[len(dst)-1]
		t = max(t, last.start)
		st := stretch{start: t, cause: cause, wait: wait}
		if iv != nil {
			st.waker, st.cpu = iv.Waker, iv.CPU
		}
		switch {
		case t == last.start:
			st.before = last.before
			*last = st
		case last.cause != cause || last.waker != st.waker || last.cpu != st.cpu || last.wait != wait:
			st.before = last.at(t)
			dst = append(dst, st)
		}
	}
	var open []*timeline.Span // those that may reach into the interval
	var cuts []int64
	next, covered := 0, int64(minTime)
	waits := nesting{waits: a.Waits}
	for i := range a.Intervals {
		iv := &a.Intervals[i]
		if iv.Start > covered && covered != minTime {
			put(covered, Unknown, nil, nil)
		}
		covered = max(covered, iv.End)
		open = slices.DeleteFunc(open, func(s *timeline.Span) bool { return s.End <= iv.Start })
		for ; next < len(a.Spans) && a.Spans[next].Start < iv.End; next++ {
			if s := &a.Spans[next]; s.End > iv.Start && s.End > s.Start {
				open = append(open, s)
			}
		}
		cuts = append(cuts[:0], iv.Start)
		for _, s := range open {
			if s.Start > iv.Start {
				cuts = append(cuts, s.Start)
			}
			if s.End < iv.End {
				cuts = append(cuts, s.End)
			}
		}
		slices.SortFunc(cuts, cmp.Compare)
		wait := waits.around(iv)
		for _, t := range slices.Compact(cuts) {
			put(t, causeAt(t, iv, open, wait), iv, wait)
		}
	}
	put(covered, Unknown, nil, nil)
	return dst
}

// causeAt is why a thread was in an interval's state from time t on. What lies deepest in the kernel counts: a fault
// within a reclaim, a read within a fault.
func causeAt(t int64, iv *timeline.Interval, open []*timeline.Span, wait *timeline.Wait) Cause {
	var inside [16]bool
	for _, s := range open {
		if s.Start <= t && t < s.End {
			inside[s.Kind] = true
		}
	}
	waits := iv.State == timeline.Sleeping || iv.State == timeline.Blocked
	switch {
	case iv.State == timeline.Unknown:
		return Unknown
	case iv.State == timeline.Runnable:
		return Runnable
	case inside[timeline.SpanReclaim]:
		return Reclaim
	case iv.State == timeline.Running:
		return Running
	case waits && inside[timeline.SpanMajorFault]:
		return MajorFault
	case waits && inside[timeline.SpanFsync]:
		return Fsync
	case iv.State == timeline.Sleeping:
		return sleepOf(wait)
	case inside[timeline.SpanRead]:
		return Read
	case inside[timeline.SpanWrite], inside[timeline.SpanFlush], inside[timeline.SpanDiscard], inside[timeline.SpanOtherRequest]:
		return Write
	case iv.Flags&timeline.IOWait != 0:
		return OtherIO
	}
	return Blocked
}
