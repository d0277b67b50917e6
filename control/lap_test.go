package control

import (
	"encoding/binary"
	"errors"
	"testing"

	"braid/inline/runtime"
	"braid/internal/counter"
)

// write stores slots from index at on in a thread's ring: records of method 16, one tick apart, from time on.
func (t *Thread) write(tt *testing.T, at, n, time uint64) {
	tt.Helper()
	for i := range n {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], (time+i)<<32|16)
		if _, err := t.area.mem.f.WriteAt(b[:], t.cur.off+int64((at+i)%t.cur.slots()*8)); err != nil {
			tt.Fatal(err)
		}
	}
}

// move sets a thread's cursor and done to slots.
func (t *Thread) move(cursor, done uint64) {
	t.block.Cursor = t.cur.addr + cursor*8 | runtime.CursorOn
	t.block.Done = t.cur.addr + done*8 | runtime.CursorOn
}

// TestUnansweredNearTheEnd copies the ring of a thread that has not answered and is near the ring's end: what it may still
// write goes over the end, to where the copy begins.
func TestUnansweredNearTheEnd(t *testing.T) {
	for _, c := range []struct {
		at, done       uint64
		slots, dropped int
	}{{508, 507, 508, 0}, {509, 508, 508, 1}, {510, 509, 508, 2}, {511, 510, 508, 3}, {510, 511, 508, 2}} {
		a := fake(t, 1<<20+3*8192)
		th := a.Threads()[0]
		th.write(t, 0, c.at, 1000)
		th.move(c.at, c.done)
		s, err := th.Collect(nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Slots) != c.slots || s.Dropped != c.dropped || s.Complete != (c.dropped == 0) || s.Exact ||
			s.Slots[0]>>32 != 1000+uint64(c.dropped) || s.DroppedNewest != 0 {
			t.Errorf("at %d: %d slots from %d on, %d dropped, complete %v", c.at, len(s.Slots), s.Slots[0]>>32, s.Dropped, s.Complete)
		}
		a.Close()
	}
}

// TestDoneAheadOfTheCursor copies the ring of a thread whose record was written just after its cursor was seen.
func TestDoneAheadOfTheCursor(t *testing.T) {
	a := fake(t, 1<<20+3*8192)
	defer a.Close()
	th := a.Threads()[0]
	th.write(t, 0, 102, 1000)
	th.move(100, 101)
	if s, err := th.Collect(nil); err != nil || len(s.Slots) != 100 || !s.Complete || s.Dropped+s.DroppedNewest != 0 {
		t.Errorf("%d slots, complete %v, %d and %d left out, %v", len(s.Slots), s.Complete, s.Dropped, s.DroppedNewest, err)
	}
}

// TestExactlyOneLap has a thread come round while its ring is copied, to where it was: its last slot is reserved and still
// holds what it held.
func TestExactlyOneLap(t *testing.T) {
	a := fake(t, 1<<20+3*8192)
	defer a.Close()
	th := a.Threads()[0]
	n, now := th.cur.slots(), counter.Now()
	th.write(t, 101, n, uint64(uint32(now))-1000-n)
	th.move(101, 100)
	s := th.see(th.block.Cursor)
	left := uint64(0)
	if weak { // as many may have been overwritten, unseen
		left = unordered
	}
	if slots, dropped, err := th.copyRunning(th.cur.ring, s, n, nil); err != nil || uint64(len(slots)) != n-left || dropped != left {
		t.Fatalf("a thread that rests: %d slots, %d dropped, %v", len(slots), dropped, err)
	}
	th.write(t, 101, n-1, uint64(uint32(counter.Now())))
	th.move(101, 99)
	if _, _, err := th.copyRunning(th.cur.ring, s, n, nil); !errors.Is(err, ErrLapped) {
		t.Errorf("a thread that has come round exactly once: %v", err)
	}
}

// TestLate tells slots that are not written from those of a thread that has rested.
func TestLate(t *testing.T) {
	slots := func(times ...uint64) (out []uint64) {
		for _, v := range times {
			out = append(out, v<<32|16)
		}
		return out
	}
	zero := slots(1000, 2000, 3000, 4000)
	zero[2] = 0
	for _, c := range []struct {
		what    string
		slots   []uint64
		wrapped bool
		want    int
	}{
		{"in order", slots(1000, 2000, 3000, 4000), true, -1},
		{"zero", zero, false, 2},
		{"of a lap before", slots(1000, 2000, 900, 4000), true, 2},
		{"rested for half of 2^32 ticks", slots(1000, 2000, 2000+1<<31+5, 2000+1<<31+9), true, -1},
		{"rested, first lap", slots(1000, 2000, 2000+1<<31+5, 2000+1<<31+9), false, -1},
		{"rested until the low half was 0 again", slots(1<<31, 1<<31+5, 10, 20), true, -1},
	} {
		if got := late(c.slots, c.wrapped); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}
