package control

import (
	"fmt"
	"sync/atomic"
	"time"

	"braid/inline"
	"braid/inline/runtime"
	"braid/internal/counter"
)

// Segment is what a thread recorded, oldest first.
type Segment struct {
	inline.Segment
	// Exact says that the end is where the thread stopped, went on to another ring, or died. Otherwise it did not answer
	// (it waits somewhere outside instrumented code) and the segment ends where it was seen.
	Exact bool
	// Dropped counts the oldest slots that were left out because a thread that was on may have written there (C4, C12).
	Dropped int
	// DroppedNewest counts the newest slots that were left out because they are reserved but not written (C2).
	DroppedNewest int
	// Late says that the newest slots hold one that is reserved and not written: a signal handler interrupted its stub, has
	// recorded, and has not returned. Once it has, the same copy made again has the record (of a ring that was left, until
	// ReleaseOld); the decoder leaves such slots out.
	Late bool
	// Gone says that the thread has ended.
	Gone bool
}

// settling (a variable for tests of areas that hold anything) is how long a thread that has stopped, or is about to, may take to write the record that it has a slot for.
var settling = 5 * time.Millisecond

// look is how often a record that is to be written soon is looked for.
const look = 20 * time.Microsecond

// done returns the index of the slot of a ring that the thread wrote last, where c is its cursor in that ring, as far as
// the control block says. Where it does not say, either nothing is written yet (none), or a stub that a signal handler
// had interrupted while the handler went on to another ring has come back, and has stored that it wrote its slot in the
// ring before (C10).
func (t *Thread) done(r ring, c uint64) (at uint64, ok, none bool) {
	current := atomic.LoadUint64(&t.block.Done)
	if at, ok = r.slot(current); ok {
		return at, true, false
	}
	// It has left the ring, or was about to; not at its end of an earlier filling of the same ring.
	if atomic.LoadUint64(&t.block.PrevCursor) == c&^runtime.CursorTag &&
		!(r.holds(atomic.LoadUint64(&t.block.Cursor)) && atomic.LoadUint64(&t.block.PrevStart) != atomic.LoadUint64(&t.block.Start)) {
		if at, ok = r.slot(atomic.LoadUint64(&t.block.PrevDone)); ok {
			return at, true, false
		}
	}
	return 0, false, current == 0
}

// missing returns how many slots before a cursor are reserved and not written, and whether that is known.
func (t *Thread) missing(r ring, c uint64) (slots uint64, known bool) {
	pos, _ := r.slot(c)
	at, ok, none := t.done(r, c)
	if !ok {
		return min(pos, 2), none
	}
	// The record has at most two slots; where more are missing, a signal handler has recorded within a stub, and what is
	// behind done is written.
	n := r.slots()
	if slots = (pos + n - 1 - at) % n; slots > 2 {
		slots = 0
	}
	return slots, true
}

// unwritten returns how many slots before the cursor's are reserved and not written: none, by the deadline, unless the
// thread was killed or has lost its processor just there.
func (t *Thread) unwritten(r ring, c uint64, deadline time.Time) uint64 {
	for ; ; time.Sleep(look) {
		n, known := t.missing(r, c)
		if n == 0 {
			return 0
		}
		if t.Gone() || time.Now().After(deadline) {
			if !known {
				return 0 // left to the decoder, which sees what an earlier lap left
			}
			return n
		}
	}
}

// Collect copies what the thread recorded into the ring where it is. Ask it to stop first, and give it a moment: for a
// thread that has stopped or ended the copy is exact. What it left behind at a swap is CollectOld's. buf is used for the
// slots if it is large enough.
func (t *Thread) Collect(buf []uint64) (Segment, error) {
	c, ok := t.follow()
	if !ok {
		if !t.cur.there() {
			return Segment{}, fmt.Errorf("%w: thread %d has no ring", ErrArena, t.Tid)
		}
		return Segment{}, fmt.Errorf("%w: cursor %#x of thread %d is outside its ring", ErrArena, c, t.Tid)
	}
	point(130)
	gone := t.Gone()
	if gone {
		c, _ = t.follow() // it may have gone on before it ended
	}
	if t.swap.drained {
		return t.nothing(), nil
	}
	if weak && !gone && t.area.over == 0 && c&runtime.CursorTag == runtime.CursorOn {
		// What is seen of the cursor may be older than the request to stop, and then says nothing of how far it can get (C4).
		t.settle(t.place(t.cur.ring, c), false)
		c, _ = t.follow()
	}
	exact := gone || t.area.over != 0 || c&runtime.CursorTag != runtime.CursorOn
	s, err := t.copy(&t.cur, c, exact, 0, buf)
	if !t.has() { // it has ended without a ring: what was seen is its successor's (C15)
		return Segment{}, fmt.Errorf("%w: the block of thread %d is another's by now", ErrArena, t.Tid)
	}
	return s, err
}

// nothing is the segment of a thread that has reached no trace point since what it recorded was taken.
func (t *Thread) nothing() Segment {
	now := counter.Now()
	return Segment{Segment: inline.Segment{Complete: true, Begin: now, End: now}, Exact: true, Gone: t.Gone()}
}

// copy copies a ring from its oldest slot to the cursor's. end is a counter that no record is later than, or 0 if the
// records may be of just now.
func (t *Thread) copy(l *lane, c uint64, exact bool, end uint64, buf []uint64) (Segment, error) {
	s := Segment{Exact: exact, Gone: t.Gone()}
	pos, ok := l.slot(c)
	if !ok {
		return s, fmt.Errorf("%w: cursor %#x of thread %d is outside its ring", ErrArena, c, t.Tid)
	}
	deadline := time.Now().Add(settling)
	missing := uint64(0)
	over := s.Gone || t.area.over != 0
	point(131)
	t.settle(t.place(l.ring, c), over) // done as well may be older than what the cursor says
	if l == &t.cur {                   // of what was left, only a stub that a signal handler interrupted can be missing: see await
		missing = t.unwritten(l.ring, c, deadline) // before anything is copied
	}
	point(132)
	t.settle(t.place(l.ring, c), over)
	point(133)
	wrapped, err := t.wrapped(l.ring, c)
	if err == nil && exact && !wrapped {
		wrapped, err = t.area.mem.beyond(l.ring, pos)
	}
	if err != nil {
		return s, err
	}
	size, from := pos, uint64(0)
	if wrapped {
		size, from = l.slots(), pos
		if !exact {
			s.Dropped = 4
			size, from = size-4, pos+4
		}
	} else if beyond := pos + 4; !exact && beyond > l.slots() { // what it may still write goes over the end (C4)
		from = beyond - l.slots()
		size, s.Dropped = size-from, int(from)
	}
	point(134)
	s.Slots = fit(buf, size)
	if err := t.area.mem.read(l.ring, from, s.Slots); err != nil {
		return s, err
	}
	point(135)
	released := uint64(0)
	s.Slots, released = l.trim(s.Slots)
	from, size = (from+released)%l.slots(), size-released
	// A stub that a signal handler interrupted may have stored its done behind the handler's: then they are written.
	if n := len(s.Slots); missing > 0 && (s.Gone || n == 0 || late(s.Slots, wrapped) >= 0 || inline.Double(uint32(s.Slots[n-1]))) {
		missing = min(missing, size)
		size -= missing
		s.Slots, s.DroppedNewest = s.Slots[:size], int(missing)
	}
	if exact {
		if s.Late, err = t.await(l.ring, from, s.Slots, wrapped, deadline); err != nil {
			return s, err
		}
	}
	if end == 0 {
		end = counter.Now()
		if t.area.over != 0 {
			end = t.area.over
		}
	}
	s.Complete = (!wrapped || released > 0) && s.Dropped == 0
	s.Begin, s.End = l.start, max(l.start, end)
	s.Anchors = l.place(l.anchors, from, size, wrapped)
	return s, nil
}

// fit returns buf with a length of size, or a new one.
func fit(buf []uint64, size uint64) []uint64 {
	if uint64(cap(buf)) < size {
		return make([]uint64, size)
	}
	return buf[:size]
}

// wrapped reports whether a ring has been filled to its end. Rings are zero when they are first used, and a record is not.
func (t *Thread) wrapped(r ring, c uint64) (bool, error) {
	last, err := t.area.mem.readSlot(r, r.slots()-1)
	if err != nil {
		return false, err
	}
	pos, _ := r.slot(c)
	done, ok, _ := t.done(r, c)
	justBehind := ok && (pos+r.slots()-1-done)%r.slots() <= 2 // and not far ahead of a cursor that was seen before
	return last != 0 || justBehind && done >= pos, nil
}

// beyond reports whether something is written near a ring's end, behind the cursor of a thread that writes no more: the last
// slots may be those of a stub that a signal handler has interrupted, whose own records are at the ring's beginning.
func (m *memory) beyond(r ring, pos uint64) (bool, error) {
	var slots [8]uint64
	end := slots[:min(8, r.slots()-pos)]
	err := m.read(r, r.slots()-uint64(len(end)), end)
	return slots != [8]uint64{}, err
}

// await looks at the newest slots for one that a stub has reserved and not written because a signal handler interrupted
// it, though the handler's own records are there; it reads them
// again until the stub has come back, or the deadline is over. It reports whether there is still one.
func (t *Thread) await(r ring, from uint64, slots []uint64, wrapped bool, deadline time.Time) (bool, error) {
	for {
		i := late(slots, wrapped)
		if i < 0 || t.Gone() || time.Now().After(deadline) {
			return i >= 0, nil
		}
		time.Sleep(look)
		k := max(i-1, 0) // a record may have two slots
		if err := t.area.mem.read(r, from+uint64(k), slots[k:]); err != nil {
			return false, err
		}
	}
}

// late returns the index of the newest slot that does not seem to be written: it is zero, or in a ring that has wrapped it
// holds what an earlier lap left. That is older than the record before it, and than the oldest record by less than a
// moment: a thread that has rested for half of 2^32 ticks seems to go back as well, but not to there. late looks at no
// more than 1024 slots, and returns -1 if all seem to be written.
func late(slots []uint64, wrapped bool) int {
	const step = 256 // ticks that a record may claim to be earlier than the one before: reads of the counter are not in order
	for i := len(slots) - 1; i >= 0 && i >= len(slots)-1024; {
		before := i - 1
		if inline.Double(uint32(slots[i])) {
			before--
		}
		if slots[i] == 0 {
			return i
		}
		at := uint32(slots[i] >> 32)
		if wrapped && before >= 0 && int32(uint32(slots[before]>>32)-at) > step && lapBefore(slots[:i], at) {
			return i
		}
		i = before
	}
	return -1
}

// lapBefore reports whether a time is shortly before that of the oldest record. The first slots may be half a record, with
// no time.
func lapBefore(slots []uint64, at uint32) bool {
	const moment = 1 << 28 // ticks: 0.1 s, of 1.7 s that can be told apart
	for _, v := range slots[:min(4, len(slots))] {
		if uint32(v>>32)-at < moment {
			return true
		}
	}
	return false
}
