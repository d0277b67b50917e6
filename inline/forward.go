package inline

import "slices"

// maxStack is how large a stack may be, in bytes: two calls on one stack are not further apart.
const maxStack = 64 << 20

// forward is the second pass. It finds out what each resumed record did, writes that as events, and keeps the open calls.
//
// Events are read from buf[r:] and written to buf[:w], in place: each record of two slots has left a place free.
type forward struct {
	*calls
	buf   []Event
	w, r  int
	sps   []uint32 // of the framed records in buf[r:], the last one first
	stats *Stats
	// below lists the orphans that were found so far, innermost first.
	below []uint32
	// budget bounds the work: calls that may still be compared for nothing, or reentered.
	budget int
}

// run goes through the events of a segment of so many slots.
func (f *forward) run(slots int) {
	f.budget = 8*slots + 1<<16
	f.settled = true
	for f.r < len(f.buf) {
		e := f.buf[f.r]
		f.r++
		switch e.Kind {
		case KindEntry:
			f.stack = append(f.stack, frame{method: e.Method})
		case kindEntryFramed:
			e.Kind = KindEntry
			sp := f.sp()
			f.left.forget(e.Method, sp)
			f.stack = append(f.stack, frame{method: e.Method, sp: sp, framed: true})
		case KindExit:
			if n := len(f.stack); n > 0 {
				f.stack = f.stack[:n-1]
			} else {
				f.below = append(f.below, Unknown)
			}
		case KindResumed:
			if n := f.findBare(e.Method); n > 0 {
				f.leave(n, e.Counter)
			} else {
				f.lost(e, frame{method: e.Method})
			}
		case kindResumedFramed:
			e.Kind = KindResumed
			sp := f.sp()
			n, was := f.find(e.Method, sp, &f.budget)
			switch {
			case n > 0:
				f.leave(n, e.Counter)
			case was != noLeft:
				f.reenter(was, e.Counter)
			default:
				f.lost(e, frame{method: e.Method, sp: sp + f.left.of(e.Method).reach, framed: true, guessed: true})
			}
		}
		f.buf[f.w] = e
		f.w++
	}
}

func (f *forward) sp() uint32 {
	sp := f.sps[len(f.sps)-1]
	f.sps = f.sps[:len(f.sps)-1]
	return sp
}

// emit writes an event that is no record.
func (f *forward) emit(e Event) {
	if f.w == f.r-1 { // the record that was read last is still to be written
		wider := make([]Event, 2*len(f.buf)+64)
		copy(wider, f.buf[:f.w])
		n := copy(wider[len(wider)-(len(f.buf)-f.r):], f.buf[f.r:])
		f.buf, f.r = wider, len(wider)-n
	}
	f.buf[f.w] = e
	f.w++
}

// leave ends all open calls but the first n. Control may come back into them, if they are on another stack.
func (f *forward) leave(n int, counter uint64) {
	above := f.stack[n:]
	first := f.w
	for i := len(above) - 1; i >= 0; i-- {
		f.emit(Event{counter, above[i].method, KindUnwound})
	}
	f.stats.Unwound += uint64(len(above))
	f.left.add(above, first)
	f.stack = f.stack[:n]
}

// lost is control coming back into a call of which no entry was seen. It was open at the segment's beginning, and what
// is open was above it.
func (f *forward) lost(e Event, call frame) {
	f.leave(0, e.Counter)
	f.stats.LostResumes++
	f.below = append(f.below, e.Method)
	f.stack = append(f.stack, call)
}

// reenter goes on with a call that was left, and with what is below it on its stack: as far down as a stack is known to
// begin, or as a stack pointer is not one of the same stack.
func (f *forward) reenter(id leftID, counter uint64) {
	n := len(f.stack)
	sp := f.left.calls[id].sp
	for id != noLeft {
		c := &f.left.calls[id]
		if c.framed && c.sp-sp > maxStack || len(f.stack) > n && f.budget < 0 {
			break
		}
		if c.framed {
			sp = c.sp
		}
		was, below := f.left.take(id)
		if was.event >= 0 {
			f.buf[was.event].Kind = KindSuspended
			f.stats.Unwound--
		}
		f.stack = append(f.stack, was.frame)
		f.budget--
		if id = below; was.base {
			break
		}
	}
	chain := f.stack[n:]
	slices.Reverse(chain)
	chain[0].base = true
	for i := range chain {
		f.emit(Event{counter, chain[i].method, KindReentered})
	}
	f.stats.Reentered += uint64(len(chain))
}
