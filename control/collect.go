package control

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"braid/inline"
	"braid/inline/runtime"
	"braid/internal/counter"
)

// Segment is what a thread recorded, oldest first.
type Segment struct {
	inline.Segment
	// Exact says that the end is where the thread stopped or died. Otherwise it did not answer (it waits somewhere
	// outside instrumented code) and the segment ends where it was seen.
	Exact bool
	// Dropped counts the oldest slots that were left out because an unanswered thread may be writing there (C4).
	Dropped int
	// DroppedNewest counts the newest slots that were left out because they are reserved but not written (C2).
	DroppedNewest int
	// Gone says that the thread has ended.
	Gone bool
}

// settling is how long a thread that has stopped, or is about to, may take to write the record that it has a slot for.
const settling = 5 * time.Millisecond

// unwritten returns how many slots before the cursor's are reserved and not written: none, by the deadline, unless the
// thread was killed or has lost its processor just there. The record has at most two slots; where more are missing, a
// signal handler has recorded within a stub, and what is behind done is written.
func (t *Thread) unwritten(r ring, pos uint64, deadline time.Time) uint64 {
	n := r.bytes / 8
	for ; ; time.Sleep(20 * time.Microsecond) {
		missing := min(pos, 2) // nothing is written yet
		if done := atomic.LoadUint64(&t.block.Done); done != 0 {
			at, ok := r.slot(done)
			if !ok {
				return 0
			}
			missing = (pos + n - 1 - at) % n
		}
		if missing == 0 || missing > 2 {
			return 0
		}
		if t.Gone() || time.Now().After(deadline) {
			return missing
		}
	}
}

// Collect copies what the thread recorded. Ask it to stop first, and give it a moment: for a thread that has stopped or
// ended the copy is exact. buf is used for the slots if it is large enough.
func (t *Thread) Collect(buf []uint64) (Segment, error) {
	var s Segment
	r, ok := t.ring()
	if !ok {
		return s, fmt.Errorf("%w: thread %d has no ring", ErrArena, t.Tid)
	}
	s.Gone = t.Gone()
	c := atomic.LoadUint64(&t.block.Cursor)
	s.Exact = s.Gone || t.area.over != 0 || c&runtime.CursorTag == runtime.CursorOff
	pos, ok := r.slot(c)
	if !ok {
		return s, fmt.Errorf("%w: cursor %#x of thread %d is outside its ring", ErrArena, c, t.Tid)
	}
	n := r.bytes / 8
	missing := t.unwritten(r, pos, time.Now().Add(settling)) // before anything is copied
	t.settle(place{c, atomic.LoadUint64(&t.block.Done)}, s.Gone || t.area.over != 0)
	var end [8]byte
	if _, err := t.area.mem.f.ReadAt(end[:], r.off+int64(n-1)*8); err != nil {
		return s, fmt.Errorf("reading a ring: %w", err)
	}
	done, ok := r.slot(atomic.LoadUint64(&t.block.Done))
	wrapped := end != [8]byte{} || ok && done >= pos
	size, from := pos, uint64(0)
	if wrapped {
		size, from = n, pos
		if !s.Exact {
			s.Dropped = 4
			size, from = n-4, pos+4
		}
	}
	missing = min(missing, size)
	size -= missing
	s.DroppedNewest = int(missing)
	if uint64(cap(buf)) < size {
		buf = make([]uint64, size)
	}
	s.Slots = buf[:size]
	for done := uint64(0); done < size; {
		at := (from + done) % n
		k := min(size-done, n-at)
		b := unsafe.Slice((*byte)(unsafe.Pointer(&s.Slots[done])), k*8)
		if _, err := t.area.mem.f.ReadAt(b, r.off+int64(at)*8); err != nil {
			return s, fmt.Errorf("reading a ring: %w", err)
		}
		done += k
	}
	s.Complete = !wrapped
	s.Begin, s.End = t.block.Start, counter.Now()
	if t.area.over != 0 {
		s.End = max(s.Begin, t.area.over)
	}
	for _, a := range t.anchors {
		i := (a.Slot + n - from) % n
		if !wrapped {
			i = a.Slot
		}
		if i == 0 && wrapped {
			i = n // the boundary at the very end
		}
		if i > size || i == 0 {
			continue
		}
		a.Slot = i
		s.Anchors = append(s.Anchors, a)
	}
	return s, nil
}
