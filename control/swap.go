package control

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"braid/inline/runtime"
	"braid/internal/counter"
)

// ErrNotRecording is returned by RequestSwap for a thread that is off.
var ErrNotRecording = errors.New("the thread is not recording")

// ErrNotSwapped is returned by CollectOld if no ring was left.
var ErrNotSwapped = errors.New("the thread has not gone on to another ring")

// swap is what this recorder knows of a thread's way from one ring to the next.
type swap struct {
	asked     bool   // the thread was asked to leave cur, and was not yet seen in the next one
	unsaid    bool   // not yet in the control block, where the thread is still busy with the swap before
	to        ring   // the next one
	inherited bool   // by a recorder before this one
	drained   bool   // the thread has answered but not gone on, and what cur holds was collected and released
	empty     bool   // asked again while drained: there is nothing new
	end, when uint64 // drained: the slot where the ring ended, and the counter
}

// follow sees where the thread is, and takes note if that is another ring than before. It returns the cursor, and whether
// that points into a ring, which is cur then.
func (t *Thread) follow() (uint64, bool) {
	c := atomic.LoadUint64(&t.block.Cursor)
	if c&^runtime.CursorTag == 0 {
		return c, false
	}
	point(120)
	if start := atomic.LoadUint64(&t.block.Start); t.cur.holds(c) && start > t.cur.own &&
		start != atomic.LoadUint64(&t.block.PrevEnd) && atomic.LoadUint64(&t.block.Cursor) == c { // and it is not in the next ring
		// The program has turned the thread off and on again: it is at the ring's beginning, or was.
		t.cur = lane{ring: t.cur.ring, start: start, own: start}
		t.swap.asked, t.swap.drained, t.tail = false, false, tail{gone: 1}
	}
	if t.cur.holds(c) {
		if t.swap.drained && c&runtime.CursorTag == runtime.CursorOn { // it could not open the next ring, and went on in this one
			t.cur.begin, t.cur.start = t.swap.end, t.swap.when
			t.swap = swap{}
		}
		if c&runtime.CursorTag == runtime.CursorOff {
			t.swap.asked = false // a stop came before the answer
		}
		return c, true
	}
	if t.swap.asked && t.swap.to.holds(c) {
		t.left()
		return c, true
	}
	for _, r := range t.named() {
		if r.holds(c) {
			start := atomic.LoadUint64(&t.block.Start)
			t.cur = lane{ring: r, start: max(start, t.begun), own: start}
			t.swap, t.tail = swap{}, tail{}
			t.own(r)
			return c, true
		}
	}
	return c, false
}

// left goes on to the next ring as the thread has done.
func (t *Thread) left() {
	if t.swap.drained {
		t.area.mem.clear(t.cur.ring)
	} else {
		t.old = t.cur
	}
	point(121)
	t.meter.leave(t.cur.ring, atomic.LoadUint64(&t.block.PrevCursor))
	start := atomic.LoadUint64(&t.block.PrevEnd) // what start is, or will be in a moment
	t.cur = lane{ring: t.swap.to, start: start, own: start}
	t.swap.asked, t.swap.drained = false, false
}

// named returns the rings that the control block names: where the thread records, where it did before, where it is to
// go on. Those that can't be are left out.
func (t *Thread) named() []ring {
	b := t.block
	var out []ring
	for _, w := range [3][3]*uint64{{&b.RingAddr, &b.RingBytes, &b.RingOff}, {&b.PrevAddr, &b.PrevBytes, &b.PrevOff},
		{&b.NextAddr, &b.NextBytes, &b.NextOff}} {
		if r, ok := t.area.check(atomic.LoadUint64(w[0]), atomic.LoadUint64(w[1]), atomic.LoadUint64(w[2])); ok && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// maxRings bounds how many rings of a thread are remembered. There are two, and others of an earlier size.
const maxRings = 4

// own remembers a ring as the thread's own.
func (t *Thread) own(r ring) {
	if slices.Contains(t.rings, r) {
		return
	}
	for i := 0; len(t.rings) >= maxRings && i < len(t.rings); i++ {
		if q := t.rings[i]; q != t.cur.ring && q != t.old.ring && q != t.swap.to {
			t.area.mem.clear(q)
			t.rings = slices.Delete(t.rings, i, i+1)
		}
	}
	t.rings = append(t.rings, r)
}

// spare returns a ring of the thread's own that is as large as the one where it is and holds nothing.
func (t *Thread) spare() (ring, error) {
	for _, r := range t.rings {
		if r.bytes == t.cur.bytes && r != t.cur.ring && r != t.old.ring {
			t.area.mem.clear(r) // a stub may have come back to it late (C10)
			return r, nil
		}
	}
	r, err := t.area.newRing(t.cur.bytes)
	if err == nil {
		t.own(r)
	}
	return r, err
}

// adopt finds out how a thread that this recorder sees for the first time was left by the one before, if there was one. A
// thread that is on goes on. A swap that the other had asked for is completed. A ring that the thread has left, and that
// still holds records, can be collected; it is released if a swap is asked for instead.
func (t *Thread) adopt() {
	c, ok := t.follow()
	if !ok {
		return
	}
	for _, r := range t.named() {
		t.own(r)
	}
	b := t.block
	mask := atomic.LoadUint64(&b.Mask)
	on := c&runtime.CursorTag == runtime.CursorOn
	if t.punched(c) { // collected and released, but the thread had not gone on, or its block was not released
		t.drain(c)
	}
	if answered(c) || on && mask&runtime.CursorTag == runtime.CursorTag&^runtime.MaskSwap {
		for _, w := range [2][3]uint64{{atomic.LoadUint64(&b.NextAddr), atomic.LoadUint64(&b.NextBytes), atomic.LoadUint64(&b.NextOff)},
			{atomic.LoadUint64(&b.RingAddr), atomic.LoadUint64(&b.RingBytes), atomic.LoadUint64(&b.RingOff)}} { // or in the middle of it
			if r, ok := t.area.check(w[0], w[1], w[2]); ok && r != t.cur.ring {
				t.swap = swap{asked: true, to: r, inherited: true, drained: t.swap.drained, end: t.swap.end, when: t.swap.when}
				return
			}
		}
		return
	}
	prev, ok := t.area.check(atomic.LoadUint64(&b.PrevAddr), atomic.LoadUint64(&b.PrevBytes), atomic.LoadUint64(&b.PrevOff))
	if !ok || prev == t.cur.ring {
		return
	}
	end, ok := prev.slot(atomic.LoadUint64(&b.PrevCursor))
	if !ok {
		return
	}
	if v, err := t.area.mem.readSlot(prev, end+prev.slots()-1); err == nil && v != 0 {
		t.old = lane{ring: prev, start: atomic.LoadUint64(&b.PrevStart)}
		t.swap.inherited = true
	}
}

// drain notes that what the ring holds up to the cursor was collected and released.
func (t *Thread) drain(c uint64) {
	t.cur.anchors, t.swap.drained, t.swap.when = nil, true, counter.Now()
	t.swap.end, _ = t.cur.slot(c)
}

// punched reports whether the ring's memory was given back although the thread has recorded in it.
func (t *Thread) punched(c uint64) bool {
	var slots [8]uint64
	pos, _ := t.cur.slot(c)
	n := t.cur.slots()
	last, err := t.area.mem.readSlot(t.cur.ring, n-1)
	newest := slots[:min(pos, 8)]
	on := c&runtime.CursorTag == runtime.CursorOn // then a slot or two may be about to be written
	if err != nil || last != 0 || len(newest) == 0 || on && len(newest) < 8 || t.area.mem.read(t.cur.ring, pos-uint64(len(newest)), newest) != nil {
		return false
	}
	return slots == [8]uint64{}
}

// answered reports whether a cursor is that of a thread that has come to the end of its ring as it was asked to, and has
// reached no trace point since.
func answered(c uint64) bool {
	return c&runtime.CursorTag == runtime.CursorAttend && c&^runtime.CursorTag != 0
}

// RequestSwap asks a thread that is on to go on in its second ring, which is made if there is none. It does not wait: poll
// Swapped, then call CollectOld and ReleaseOld. No trace point is lost between the two rings. While a swap is pending, or
// the ring that was left is not released, nothing is asked, and nil is returned. Errors: ErrNotRecording, ErrNoRoom.
func (t *Thread) RequestSwap() error {
	c, ok := t.follow()
	if t.old.there() && t.swap.inherited {
		t.ReleaseOld() // left by another recorder; its end may be long ago
	}
	on := ok && c&runtime.CursorTag == runtime.CursorOn
	switch {
	case t.old.there() || t.swap.empty:
		return nil
	case t.swap.asked && t.swap.drained:
		t.swap.empty = true
		return nil
	case t.swap.asked && (!on || t.swap.unsaid || !t.refused(c)):
		t.say()
		t.swap.inherited = false
		return nil
	case !on:
		return ErrNotRecording
	}
	to, err := t.spare()
	if err != nil {
		return fmt.Errorf("a second ring for thread %d: %w", t.Tid, err)
	}
	t.swap = swap{asked: true, unsaid: true, to: to}
	t.say()
	return nil
}

// say writes a request into the control block. A thread that has just gone on to another ring may still have to write that
// ring's name, and take it out of next_*: until then it waits, or nobody could tell whose that ring is (C14).
func (t *Thread) say() {
	if !t.swap.asked || !t.swap.unsaid || atomic.LoadUint64(&t.block.NextAddr) == t.cur.addr {
		return
	}
	t.swap.unsaid = false
	point(122)
	atomic.StoreUint64(&t.block.NextBytes, t.swap.to.bytes)
	atomic.StoreUint64(&t.block.NextOff, uint64(t.swap.to.off-t.area.off))
	point(123)
	atomic.StoreUint64(&t.block.NextAddr, t.swap.to.addr)
	point(124)
	atomic.AndUint64(&t.block.Mask, ^runtime.MaskSwap) // C9: after the three
}

// refused reports whether a thread that is on in the ring that it was asked to leave has taken the request and stayed, as
// one does that finds no next ring.
func (t *Thread) refused(c uint64) bool {
	return atomic.LoadUint64(&t.block.Mask)&runtime.MaskSwap != 0 && atomic.LoadUint64(&t.block.Cursor) == c
}

// Swapped reports whether the thread has left a ring, which is complete then and waits for CollectOld. It is false for a
// thread that has reached no trace point since it was asked, and for one that was stopped before it answered: Collect has
// the records of both.
func (t *Thread) Swapped() bool {
	l, _, _ := t.ended()
	return t.swap.empty || l != nil
}

// ended returns the ring that the thread has left, or is about to, and its cursor at the end of it. There is none if l is
// nil. end is a counter that no record in it is later than, or 0 if that was just now.
func (t *Thread) ended() (l *lane, c, end uint64) {
	c, ok := t.follow()
	t.say()
	point(125)
	switch {
	case t.old.there():
		return &t.old, atomic.LoadUint64(&t.block.PrevCursor), max(1, min(atomic.LoadUint64(&t.block.PrevEnd), counter.Now()))
	case ok && t.swap.asked && !t.swap.drained && answered(c):
		if n, _ := t.missing(t.cur.ring, c); n == 0 || t.Gone() {
			return &t.cur, c, 0
		}
	}
	return nil, 0, 0 // or its last record is still being written
}

// CollectOld copies what the thread recorded into the ring that it has left, up to its last record there. The first
// record of what Collect, CollectOld or Snapshot return next is the one after it, if that segment is complete. It may be
// called again until ReleaseOld. buf is used for the slots if it is large enough. ErrNotSwapped: see Swapped.
func (t *Thread) CollectOld(buf []uint64) (Segment, error) {
	l, c, end := t.ended()
	switch {
	case t.swap.empty:
		return t.nothing(), nil
	case l == nil:
		return Segment{}, fmt.Errorf("thread %d: %w", t.Tid, ErrNotSwapped)
	}
	return t.copy(l, c, true, end, buf)
}

// ReleaseOld gives the memory of the ring that was left back, and keeps its place for the next swap.
func (t *Thread) ReleaseOld() {
	l, c, _ := t.ended()
	if t.swap.empty || l == nil {
		t.swap.empty = false
		return
	}
	point(126)
	t.area.mem.clear(l.ring)
	point(127)
	t.tail.released(l, c)
	if l == &t.cur {
		t.drain(c)
		return
	}
	t.old, t.swap.inherited = lane{}, false
}

// SwapAll asks every one of the threads that is on to go on in its second ring, and waits until all have answered or
// patience is over. It returns those that have: call CollectOld and ReleaseOld for each. The others keep the request. A
// thread for which there is no room is left out. All threads must belong to areas of the caller's goroutine.
func SwapAll(threads []*Thread, patience time.Duration) []*Thread {
	var wait, out []*Thread
	for _, t := range threads {
		if t.RequestSwap() == nil {
			wait = append(wait, t)
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(look) {
		rest := wait[:0]
		for _, t := range wait {
			if t.Swapped() {
				out = append(out, t)
			} else if !t.Gone() && t.On() {
				rest = append(rest, t)
			}
		}
		if wait = rest; len(wait) == 0 || time.Now().After(deadline) {
			break
		}
	}
	settleSwapped(out)
	return out
}
