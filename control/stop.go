package control

import (
	"sync/atomic"
	"time"
)

// StopAll asks every recording thread of the areas to stop and waits until all have answered or patience is over. It
// returns how many did not answer. Threads that were killed need not.
func StopAll(areas []*Area, patience time.Duration) int {
	var asked, wait []*Thread
	for _, a := range areas {
		a.Disarm()
		for _, t := range a.Threads() {
			on := t.On()
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

// place is what the hot words of a control block said: where the thread was.
type place struct{ cursor, done uint64 }

func (t *Thread) place() place {
	return place{atomic.LoadUint64(&t.block.Cursor), atomic.LoadUint64(&t.block.Done)}
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

// settleAll is settle for threads that have been asked to stop, with one barrier, after a moment for their last records.
func settleAll(asked []*Thread) {
	if !weak || len(asked) == 0 {
		return
	}
	deadline := time.Now().Add(settling)
	for _, t := range asked {
		if r, ok := t.ring(); ok {
			if pos, ok := r.slot(atomic.LoadUint64(&t.block.Cursor)); ok {
				t.unwritten(r, pos, deadline)
			}
		}
		t.settled = t.place()
	}
	barrier()
}
