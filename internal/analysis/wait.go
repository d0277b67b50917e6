package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"braid/internal/timeline"
)

// idle reports whether a thread may sleep because there is nothing to do. In a binder call somebody works for it.
func (c Cause) idle() bool { return c >= Sleeping && c <= Timer && c != Binder }

// idle sums such sleeps.
func (s *Split) idle() (ns int64) {
	for c := Sleeping; c <= Timer; c++ {
		if c.idle() {
			ns += s[c]
		}
	}
	return ns
}

// sleepOf is the cause of a sleep within a wait, which may be nil.
func sleepOf(w *timeline.Wait) Cause {
	if w == nil {
		return Sleeping
	}
	switch w.Class() {
	case timeline.WaitLock:
		return Lock
	case timeline.WaitBinder:
		return Binder
	case timeline.WaitPoll:
		return Poll
	case timeline.WaitStream:
		return Stream
	case timeline.WaitTimer:
		return Timer
	}
	return Sleeping
}

// nesting goes through a thread's waits, in step with its intervals.
type nesting struct {
	waits []timeline.Wait
	next  int
	open  []*timeline.Wait
}

// around is the innermost wait that holds all of a sleep; nil: none is known. Intervals come in order of time.
func (n *nesting) around(iv *timeline.Interval) *timeline.Wait {
	if iv.State != timeline.Sleeping {
		return nil
	}
	for ; n.next < len(n.waits) && n.waits[n.next].Start <= iv.Start; n.next++ {
		n.open = append(n.open, &n.waits[n.next])
	}
	n.open = slices.DeleteFunc(n.open, func(w *timeline.Wait) bool { return w.End <= iv.Start })
	for i := len(n.open) - 1; i >= 0; i-- {
		if n.open[i].End >= iv.End {
			return n.open[i]
		}
	}
	return nil
}

// Waited is a thing that a thread waited for.
type Waited struct {
	// What is the system call and its file ("futex_wait", "read pipe"), or "binder call".
	What string `json:"what"`
	// Address is a futex's, in hexadecimal.
	Address string `json:"address,omitempty"`
	Ns      int64  `json:"ns"` // asleep
	Waits   uint64 `json:"waits"`
	// TimedOut is how many waits for a futex ended without its release.
	TimedOut uint64  `json:"timed_out,omitempty"`
	Binder   *Called `json:"binder,omitempty"`
	// Who released the futex, or woke the thread.
	Who []Who `json:"who,omitempty"`
}

// thing is what a wait was for, so that those for the same can be summed.
type thing struct {
	cause  Cause
	what   string
	object uint64
	pid    uint32 // binder: the callee's
	code   uint32
}

func thingOf(c Cause, w *timeline.Wait) thing {
	t := thing{cause: c}
	if w == nil {
		return t
	}
	t.what = w.What()
	switch c {
	case Lock:
		t.object = w.Object
	case Binder:
		t.pid, t.code = w.Binder.ToPid, w.Binder.Code
	}
	return t
}

// sleeper sums the sleeps for one thing.
type sleeper struct {
	ns       int64
	waits    uint64
	timedOut uint64
	wakers   map[uint32]wake
	last     *timeline.Wait
	calls    []*timeline.Transaction
}

// slept adds a part of a sleep.
func (s *sleeper) slept(from, to int64, st *stretch) {
	s.ns += to - from
	waker := st.waker
	if w := st.wait; w != s.last || w == nil {
		s.last = w
		s.waits++
		if w != nil {
			s.count(w)
		}
	}
	if w := st.wait; w != nil && st.cause == Lock && w.WokenAt != 0 {
		waker = w.Waker
	}
	if s.wakers == nil {
		s.wakers = make(map[uint32]wake)
	}
	s.wakers[waker] = s.wakers[waker].and(wake{to - from, to - from, to})
}

func (s *sleeper) count(w *timeline.Wait) {
	if w.TimedOut() {
		s.timedOut++
	}
	if w.Binder != nil {
		s.calls = append(s.calls, w.Binder)
	}
}

func (s *sleeper) merge(o *sleeper) {
	s.ns, s.waits, s.timedOut = s.ns+o.ns, s.waits+o.waits, s.timedOut+o.timedOut
	if s.wakers == nil {
		s.wakers = make(map[uint32]wake)
	}
	for tid, w := range o.wakers {
		s.wakers[tid] = s.wakers[tid].and(w)
	}
	s.calls = append(s.calls, o.calls...)
}

const mostWaited = 3

// waited fills in what a method slept for in a cause.
func (a *analyzer) waited(f *Finding, c *cpus, all map[thing]*sleeper) error {
	wakers := make(map[uint32]wake)
	var things []thing
	for t, s := range all {
		if t.cause != f.cause {
			continue
		}
		for tid, w := range s.wakers {
			wakers[tid] = wakers[tid].and(w)
		}
		if t.what != "" {
			things = append(things, t)
		}
	}
	var err error
	if f.Who, err = a.wokenBy(c, wakers); err != nil {
		return err
	}
	slices.SortFunc(things, func(x, y thing) int {
		return cmp.Or(cmp.Compare(all[y].ns, all[x].ns), cmp.Compare(x.what, y.what), cmp.Compare(x.object, y.object),
			cmp.Compare(x.pid, y.pid), cmp.Compare(x.code, y.code))
	})
	for _, t := range things[:min(len(things), mostWaited)] {
		s := all[t]
		w := Waited{What: t.what, Ns: s.ns, Waits: s.waits, TimedOut: s.timedOut}
		if t.cause == Lock {
			w.Address = fmt.Sprintf("%#x", t.object)
		}
		if t.cause == Binder {
			w.Binder = a.called(s.calls, c, mostNested)
		}
		if w.Who, err = a.wokenBy(c, s.wakers); err != nil {
			return err
		}
		f.Waits = append(f.Waits, w)
	}
	return nil
}
