package control

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"braid/inline"
	"braid/inline/runtime"
	"braid/internal/counter"
)

// ErrLapped says that a thread filled its ring faster than it could be copied.
var ErrLapped = errors.New("the thread overwrote its ring while it was copied")

// unordered is how many slots a processor may have written while an earlier store of its own, the cursor's, is not visible
// yet. A record is three stores or more and up to two slots; no store buffer holds three hundred stores.
const unordered = 256

// skew is how many ticks the counter may be read apart by two processors, or before the instruction that it stands behind.
const skew = 32

// seen is a look at a thread that runs: all records before slot end were written at that counter, those behind may be.
type seen struct {
	end   uint64
	at    uint64 // counter
	still bool   // the thread is not on: it writes no more
	sure  bool   // the control block says that all up to end is written
}

// see looks where a thread is in its ring. The end is behind the slot that was written last, which is a record's end.
func (t *Thread) see(c uint64) seen {
	pos, _ := t.cur.slot(c)
	s := seen{end: pos, sure: true, still: c&runtime.CursorTag != runtime.CursorOn}
	at, ok, none := t.done(t.cur.ring, c)
	switch {
	case ok && (pos+t.cur.slots()-1-at)%t.cur.slots() <= 2 || ok && !s.still:
		s.end = (at + 1) % t.cur.slots()
	case none && !s.still && !t.onIn(t.cur.ring):
		s.sure = false // nothing is written in the ring that it has gone on to, or is about to
	case none:
		s.end = 0
	case !ok:
		s.sure = false
	}
	s.at = counter.Now()
	return s
}

// onIn reports whether the thread records into a ring at this moment.
func (t *Thread) onIn(r ring) bool {
	c := atomic.LoadUint64(&t.block.Cursor)
	return r.holds(c) && c&runtime.CursorTag == runtime.CursorOn
}

// copyRunning copies the size slots before s.end of the ring where the thread was then, while it may write on. The oldest
// that it may have overwritten meanwhile are left out and counted (C12).
func (t *Thread) copyRunning(r ring, s seen, size uint64, buf []uint64) (slots []uint64, dropped uint64, err error) {
	n := r.slots()
	slots = fit(buf, size)
	if size == 0 {
		return slots, 0, nil
	}
	point(150)
	if err := t.area.mem.read(r, s.end+n-size, slots); err != nil {
		return nil, 0, err
	}
	point(151)
	ordered()
	now := counter.Now()
	c := atomic.LoadUint64(&t.block.Cursor)
	pos, ok := r.slot(c)
	if !ok { // it went on to the next ring
		if pos, ok = r.slot(atomic.LoadUint64(&t.block.PrevCursor)); !ok {
			return nil, 0, ErrLapped
		}
	}
	point(152)
	// The record before s.end: if it is still there, and was there then, the thread has not come round.
	newest, err := t.area.mem.readSlot(r, s.end+n-1)
	if err != nil {
		return nil, 0, err
	}
	behind, err := t.area.mem.readSlot(r, s.end)
	if err != nil {
		return nil, 0, err
	}
	if inline.Double(uint32(behind)) && uint32(now)-uint32(behind>>32)+skew < uint32(min(now-s.at, 1<<32-1)) && !s.still {
		return nil, 0, ErrLapped // what is there is the first half of a later record, which has no time
	}
	age := uint32(now) - uint32(newest>>32)
	// If all but that record was overwritten, done is a little behind it.
	limit := uint64(3)
	if weak {
		limit += unordered
	}
	if at, ok, _ := t.done(r, c); ok && !s.still {
		if back := (s.end + 2*n - 1 - at) % n; back >= 1 && back <= limit {
			return nil, 0, ErrLapped
		}
	}
	if !s.still && (newest != slots[size-1] || now-s.at >= 1<<32 || uint64(age)+skew < now-s.at) {
		return nil, 0, ErrLapped
	}
	ahead := (pos + n - s.end) % n
	if weak && !s.still {
		ahead += unordered
	}
	if room := n - size; ahead > room {
		dropped = min(ahead-room, size)
	}
	return slots[dropped:], dropped, nil
}

// pass waits until what a thread wrote before it was seen is visible, where stores are not kept in order: until it has
// written so much more that it can't be held back, or for as long as that takes at most. A barrier for all processors
// takes longer than many a ring lasts.
func (t *Thread) pass(r ring, s seen) {
	for begun := time.Now(); time.Since(begun) < visible; {
		pos, ok := r.slot(atomic.LoadUint64(&t.block.Cursor))
		if !ok || (pos+r.slots()-s.end)%r.slots() >= unordered {
			return // in the next ring: the slow path's system calls have come between
		}
	}
}

// ordered keeps loads before it before loads behind it: a store with release order, and a load with acquire order that
// can't come before it.
func ordered() {
	fence.Store(1)
	fence.Load()
}

var fence atomic.Uint32

// Snapshot copies what a thread that runs has in its ring, without stopping it and without a gap in its recording. The
// segment ends where the thread was when the copy began. The oldest slots, which the thread may have overwritten
// meanwhile, are left out and counted. A thread that is off is copied as by Collect. ErrLapped is returned if the thread
// is too fast for its ring, several times in a row: use a larger ring, or swap rings. buf is used for the slots if it is
// large enough.
func (t *Thread) Snapshot(buf []uint64) (Segment, error) {
	for range 8 {
		c, ok := t.follow()
		if !ok || c&runtime.CursorTag != runtime.CursorOn || t.Gone() {
			return t.Collect(buf)
		}
		r := t.cur.ring
		s := t.see(c)
		if weak {
			t.pass(r, s)
		}
		wrapped, err := t.wrapped(r, c)
		if err != nil {
			return Segment{}, err
		}
		size := s.end
		if wrapped {
			size = r.slots()
		}
		slots, dropped, err := t.copyRunning(r, s, size, buf)
		if errors.Is(err, ErrLapped) || err == nil && dropped > 0 && len(slots) == 0 {
			continue
		}
		if err != nil {
			return Segment{}, err
		}
		slots, _ = t.cur.trim(slots)
		out := Segment{Dropped: int(dropped)}
		out.Slots, out.Complete = slots, !wrapped && dropped == 0
		out.Begin, out.End = t.cur.start, max(t.cur.start, s.at)
		from := (s.end + r.slots() - uint64(len(slots))) % r.slots()
		out.Anchors = r.place(t.cur.anchors, from, uint64(len(slots)), !out.Complete)
		return out, nil
	}
	return Segment{}, fmt.Errorf("thread %d: %w", t.Tid, ErrLapped)
}
