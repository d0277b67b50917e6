package control

import (
	"errors"
	"fmt"
	"sync/atomic"

	"braid/inline/runtime"

	"golang.org/x/sys/unix"
)

// add keeps what was copied.
func (r *race) add(t *actor, s *Segment) {
	kinds, half, err := r.calls.parse(s.Slots)
	if err != nil {
		r.Logf("exact %v, gone %v, late %v, %d and %d left out", s.Exact, s.Gone, s.Late, s.Dropped, s.DroppedNewest)
		r.fail(t, err)
	}
	t.pieces = append(t.pieces, piece{kinds, half, s.Complete, append([]uint64(nil), s.Slots...)})
	r.records += len(kinds)
}

// finish compares what a thread that has stopped or ended has recorded with what it says.
func (r *race) finish(t *actor) {
	gone, says := t.Gone(), t.says
	if !gone {
		if atomic.LoadUint64(&t.block.Cursor)&^runtime.CursorTag == 0 { // stopped before it had started
			t.forgotten(off)
			return
		}
		until(r.T, "a thread sees that it is off", t.seesOff)
	}
	if says.starts > t.seen {
		if t.Swapped() {
			r.takeOld(t)
		}
		r.takeLast(t, gone)
		last := []uint64{says.last}
		if gone && says.ended == 0 && says.starts > says.offs { // killed: it may have written one more, and not have said so
			last = []uint64{says.at - 1, says.at}
		}
		first, err := endsAt(t.pieces, last[0])
		if err != nil && len(last) > 1 {
			first, err = endsAt(t.pieces, last[1])
		}
		if err != nil {
			r.fail(t, err)
		}
		if begins := t.whole && complete(t.pieces); first < says.first || begins && first != says.first {
			r.fail(t, fmt.Errorf("the first record is %d, not %d", first, says.first))
		}
		for _, c := range t.copies {
			if err := within(c, t.pieces); err != nil && t.whole {
				r.fail(t, fmt.Errorf("a copy made while it ran: %w", err))
			}
		}
		r.starts++
	}
	t.seen = says.starts
	if gone || r.rnd.IntN(4) != 0 { // otherwise Start forgets what is there
		t.empty = true
		t.Release()
		t.given = append([]ring(nil), t.rings...)
	}
	t.forgotten(off)
	if gone {
		delete(r.actors, t.Tid)
	}
}

// takeLast copies what a thread has in the ring where it is.
func (r *race) takeLast(t *actor, gone bool) {
	var s Segment
	until(r.T, "a thread that was stopped has written its last record", func() bool {
		var err error
		if s, err = t.Collect(r.buf); err != nil {
			r.fail(t, err)
		}
		return !s.Late && s.DroppedNewest == 0 || s.Gone
	})
	if !s.Exact || s.Dropped != 0 || gone && !s.Gone || s.DroppedNewest != 0 && t.says.ended != 0 {
		r.fail(t, fmt.Errorf("exact %v, gone %v, %d and %d left out", s.Exact, s.Gone, s.Dropped, s.DroppedNewest))
	}
	r.add(t, &s)
	n := len(s.Slots)
	newest := s.Slots[max(0, n-1):]
	again, err := t.Collect(nil)
	if err != nil || len(again.Slots) != n || n > 0 && again.Slots[n-1] != newest[0] {
		r.Fatalf("%d slots, then %d of a thread that has stopped: %v", n, len(again.Slots), err)
	}
}

func (r *race) fail(t *actor, err error) {
	r.Helper()
	for _, p := range t.pieces {
		r.Logf("a piece of %d records, %d slots, complete %v", len(p.kinds), len(p.slots), p.complete)
	}
	for _, c := range t.copies {
		r.Logf("copy of %d slots, the newest %#x", len(c), c[max(0, len(c)-3):])
	}
	r.Fatalf("thread %d, cursor %#x, %+v: %v\n%+v\n%+v", t.Tid, t.block.Cursor, *t.says, err, *t.block, t.Thread)
}

func complete(pieces []piece) bool {
	for _, p := range pieces {
		if !p.complete {
			return false
		}
	}
	return true
}

// forgotten says that nothing is known of what the thread will record next.
func (t *actor) forgotten(s state) {
	t.state, t.pieces, t.copies, t.whole = s, nil, nil, false
}

// seesOff reports whether the thread has found that it was turned off since that was looked at.
func (t *actor) seesOff() bool {
	offs := atomic.LoadUint32(&t.says.offs)
	return offs > t.seen && offs == atomic.LoadUint32(&t.says.starts) || atomic.LoadUint32(&t.says.ended) != 0
}

// untouched checks that nothing was written into rings since they were given back.
func (r *race) untouched(t *actor) {
	for _, g := range t.given {
		r.hole(t, g, "a ring that was given back")
	}
}

// hole checks that a ring has no memory: whoever writes into it gives it some.
func (r *race) hole(t *actor, g ring, what string) {
	at, err := unix.Seek(int(r.a.mem.f.Fd()), g.off, unix.SEEK_DATA)
	if err == nil && at < g.off+int64(g.bytes) || err != nil && !errors.Is(err, unix.ENXIO) {
		r.Fatalf("thread %d has written into %s: at %#x of %#x, cursor %#x, %v", t.Tid, what, at-g.off, g.bytes, t.block.Cursor, err)
	}
}
