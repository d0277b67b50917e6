package live

import (
	"math/bits"

	"braid/inline"
	"braid/internal/trigger"
)

// maxDepth bounds the open calls that are kept of a thread. Calls below are counted alone.
const maxDepth = 1 << 16

// frame is an open call.
type frame struct {
	start  uint64 // counter
	state  uint64
	told   uint64 // bits of state that need no report any more
	method uint32
}

// thread is what is known of one thread.
type thread struct {
	p       *Process
	tid     int
	main    bool
	decoder inline.Decoder
	last    inline.Decoded
	follows bool // last is what the thread did right before
	stack   []frame
	deeper  int // calls beyond maxDepth

	inLoop  uint64     // bits of loops that the innermost call is one of
	left    uint64     // bits of loops that it was in before, and is not
	late    uint64     // those of left that were reported
	outside [64]uint64 // by bit: counter when it was left
}

// forget says that the open calls are not known.
func (t *thread) forget() {
	t.stack, t.deeper, t.follows = t.stack[:0], 0, false
	t.inLoop, t.left, t.late = 0, 0, 0
}

// take follows what the thread has written.
func (t *thread) take(s *inline.Segment) error {
	var before *inline.Decoded
	if t.follows {
		before = &t.last
	}
	d, err := t.decoder.Decode(s, before)
	if err != nil {
		t.forget()
		return err
	}
	t.last, t.follows = d, true
	t.p.widen()
	masks, a := t.p.masks, &t.p.automaton
	top := uint64(0)
	if n := len(t.stack); n > 0 {
		top = t.stack[n-1].state
	}
	for i := range d.Events {
		e := &d.Events[i]
		switch e.Kind {
		case inline.KindEntry, inline.KindReentered:
			if len(t.stack) == maxDepth {
				t.deeper++
				continue
			}
			top = a.next(top, masks[e.Method])
			f := frame{start: e.Counter, state: top, method: e.Method}
			if e.Kind == inline.KindReentered {
				f.told = ^uint64(0) // since when it is open is not known
			} else if top&a.entry != 0 {
				t.p.begun(t, &f)
			}
			t.stack = append(t.stack, f)
		case inline.KindExit, inline.KindUnwound, inline.KindSuspended:
			n := len(t.stack) - 1
			if t.deeper > 0 {
				t.deeper--
				continue
			}
			if n < 0 {
				continue
			}
			f := &t.stack[n]
			if f.state&a.exit != 0 && e.Kind != inline.KindSuspended {
				t.p.ended(t, f, e.Counter)
			}
			t.stack = t.stack[:n]
			top = 0
			if n > 0 {
				top = t.stack[n-1].state
			}
		}
		if now := top & a.loop; now != t.inLoop && t.main {
			t.loop(now, e.Counter)
		}
	}
	return nil
}

// loop notes that the innermost call is another one: of the given loops.
func (t *thread) loop(now, at uint64) {
	for back := now & t.left; back != 0; back &= back - 1 {
		t.overdue(back&-back, at) // it was away for long between two polls
	}
	t.left, t.late = t.left&^now, t.late&^now
	for gone := t.inLoop &^ now; gone != 0; gone &= gone - 1 {
		t.outside[bits.TrailingZeros64(gone)] = at
	}
	t.left |= t.inLoop &^ now
	t.inLoop = now
}

// overdue reports a loop that the thread has not been in for too long.
func (t *thread) overdue(bit, at uint64) {
	k := bits.TrailingZeros64(bit)
	w := t.p.automaton.of[k]
	if away := int64(at - t.outside[k]); t.late&bit == 0 && away >= int64(w.limit) {
		t.late |= bit
		t.p.report(w, t.tid, w.c.Method, t.outside[k], at)
	}
}

// look reports what is open for too long.
func (t *thread) look(now uint64) {
	for left := t.left; left != 0; left &= left - 1 {
		t.overdue(left&-left, now)
	}
	a := &t.p.automaton
	for i := range t.stack {
		f := &t.stack[i]
		a.each(f.state&a.open&^f.told, func(bit uint64, w *watch) {
			limit := w.limit
			if w.c.Kind == trigger.Frame && w.frozen != 0 {
				limit = w.frozen
			}
			if int64(now-f.start) >= int64(limit) {
				f.told |= bit
				t.p.report(w, t.tid, t.p.name(f.method), f.start, now)
			}
		})
	}
}
