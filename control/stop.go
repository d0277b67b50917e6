package control

import (
	"time"

	"braid/inline/runtime"
)

// StopAll asks every recording thread of the areas to stop and waits until all have answered or patience is over. It
// returns how many did not answer. Threads that were killed need not.
func StopAll(areas []*Area, patience time.Duration) int {
	var asked, wait []*Thread
	for _, a := range areas {
		a.Disarm()
		point(140)
		for _, t := range a.Threads() {
			on := t.On()
			point(141)
			t.RequestStop()
			if on {
				asked = append(asked, t)
			}
			if !t.Stopped() {
				wait = append(wait, t)
			}
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Microsecond) {
		rest := wait[:0]
		for _, t := range wait {
			if !t.Stopped() && !t.Gone() {
				rest = append(rest, t)
			}
		}
		wait = rest
		if len(wait) == 0 || time.Now().After(deadline) {
			break
		}
	}
	settleAll(asked)
	return len(wait)
}

// place is where a thread was in a ring: its cursor without the tag, and the index of the slot that it wrote last.
type place struct{ cursor, done uint64 }

func (t *Thread) place(r ring, c uint64) place {
	at, _, _ := t.done(r, c)
	return place{c &^ runtime.CursorTag, at}
}

// settle makes what a thread wrote before it came to a place visible, if it was not yet (C8). It is called after the
// place was seen and before the ring is read. A thread that is gone needs nothing: the kernel has ordered what it wrote
// before its end, and its end before what this package sees of it in /proc.
func (t *Thread) settle(at place, gone bool) {
	if weak && !gone && t.settled != at {
		barrier()
		t.settled = at
	}
}

// settleAll is settle for threads that have been asked to stop: one barrier for all, then a moment for their last records,
// and another one if there were any.
func settleAll(asked []*Thread) {
	if !weak || len(asked) == 0 {
		return
	}
	note := func(t *Thread) (moved bool) {
		if c, ok := t.follow(); ok {
			before := t.settled
			t.settled = t.place(t.cur.ring, c)
			return t.settled != before
		}
		return false
	}
	for _, t := range asked {
		note(t)
	}
	barrier() // or done could be older than what the cursor says, and be taken for that of a stub that was interrupted
	deadline := time.Now().Add(settling)
	moved := false
	for _, t := range asked {
		if c, ok := t.follow(); ok {
			t.unwritten(t.cur.ring, c, deadline)
		}
		moved = note(t) || moved
	}
	if moved {
		barrier()
	}
}

// settleSwapped is settleAll for threads that have gone on to another ring: for the rings that they have left.
func settleSwapped(swapped []*Thread) {
	if !weak || len(swapped) == 0 {
		return
	}
	for _, t := range swapped {
		if l, c, _ := t.ended(); l != nil {
			t.settled = t.place(l.ring, c)
		}
	}
	barrier()
}
