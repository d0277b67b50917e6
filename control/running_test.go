package control

import (
	"errors"
	"testing"
	"time"

	"braid/inline"
	"braid/inline/runtime"
)

// TestTailWhileItRuns reads a thread's records while it writes them, over swaps. Where none is said to be skipped, none
// is missing.
func TestTailWhileItRuns(t *testing.T) {
	p := run(t, "", 1, 300, 0, 1, "")
	a := attach(t, p, runtime.PolicyAll, 1<<20, 1)
	th := a.Threads()[0]
	until(t, "the thread is on", th.On)
	c := newChain(p.names)
	buf := make([]uint64, 1<<16)
	var blocks, pieces, left, swaps int
	var written, missed uint64
	for want := repeats(t, 20000); blocks < want || pieces < 10; {
		slots, skipped, span, err := th.Tail(len(buf), buf)
		if err != nil {
			t.Fatal(err)
		}
		if skipped > 0 {
			left++
		}
		missed += skipped
		if len(slots) == 0 { // slots that are gone may be said before the next ones are there
			continue
		}
		pieces++
		before := c.blocks
		var s Segment
		s.Slots, s.Complete = slots, missed == 0
		missed = 0
		if !s.Complete {
			before = 0
		}
		if err := c.follow(&s); err != nil {
			t.Fatalf("piece %d, %d skipped: %v", pieces, skipped, err)
		}
		blocks += c.blocks - before
		if newest := uint32(slots[len(slots)-1] >> 32); span.End < span.Begin || uint32(span.End)+inline.Slack-newest > 1<<31 {
			t.Fatalf("from %d to %d, the newest at %d", span.Begin, span.End, newest)
		}
		bytes, _ := th.Position()
		if bytes < written {
			t.Fatalf("%d bytes were written after %d", bytes, written)
		}
		written = bytes
		if th.old.there() && (th.tail.start == th.cur.own || pieces%11 == 0) { // sometimes before Tail has seen it
			th.ReleaseOld()
		}
		if pieces%5 == 0 {
			swaps++
			if err := th.RequestSwap(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left > pieces/2 || written == 0 {
		t.Errorf("%d pieces, %d with slots skipped, %d bytes", pieces, left, written)
	}
	t.Logf("%d blocks in %d pieces, %d times slots were skipped, %d swaps asked for", blocks, pieces, left, swaps)
}

// TestTailOfATinyRing reads less than is written, and is told so.
func TestTailOfATinyRing(t *testing.T) {
	p := run(t, "", 1, 0, 0, 1, "")
	a := attach(t, p, runtime.PolicyAll, 4096, 1)
	th := a.Threads()[0]
	until(t, "the thread is on", th.On)
	var buf [512]uint64
	left := uint64(0)
	for calls := 0; left < 10000; calls++ {
		time.Sleep(100 * time.Microsecond)
		slots, skipped, _, err := th.Tail(64, buf[:])
		if err != nil || len(slots) > 64 {
			t.Fatalf("%d slots: %v", len(slots), err)
		}
		left += skipped
		s := Segment{}
		s.Slots = slots
		if err := newChain(p.names).follow(&s); err != nil {
			t.Fatalf("%d slots: %v", len(slots), err)
		}
	}
}

// TestSnapshotWhileItRuns copies rings that are being written. What it returns is whole.
func TestSnapshotWhileItRuns(t *testing.T) {
	for ring, times := range map[uint64]int{4096: 300, 64 << 10: 100, 4 << 20: 20} {
		p := run(t, "", 1, 20, 0, 1, "")
		a := attach(t, p, runtime.PolicyAll, ring, 1)
		th := a.Threads()[0]
		until(t, "the thread is on", th.On)
		buf := make([]uint64, ring/8)
		var whole, blocks, dropped, lapped int
		for range repeats(t, times) {
			s, err := th.Snapshot(buf)
			if errors.Is(err, ErrLapped) {
				lapped++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			c := newChain(p.names)
			if err := c.follow(&s); err != nil {
				t.Fatalf("ring of %d, %d slots dropped: %v", ring, s.Dropped, err)
			}
			if s.Exact || !s.Complete && uint64(len(s.Slots)+s.Dropped) > ring/8 {
				t.Fatalf("exact %v, %d slots and %d dropped of %d", s.Exact, len(s.Slots), s.Dropped, ring/8)
			}
			for i := 1; i < len(s.Slots); i++ {
				if int32(uint32(s.Slots[i]>>32)-uint32(s.Slots[i-1]>>32)) < -256 {
					t.Fatalf("slot %d of %d is older than the one before", i, len(s.Slots))
				}
			}
			whole++
			blocks += c.blocks
			dropped += s.Dropped
			time.Sleep(100 * time.Microsecond)
		}
		if ring > 4096 && (whole == 0 || blocks == 0) {
			t.Errorf("ring of %d: %d snapshots of %d blocks, %d times lapped", ring, whole, blocks, lapped)
		}
		t.Logf("ring of %d: %d snapshots, %d blocks, %d slots dropped, %d times lapped", ring, whole, blocks, dropped, lapped)
		if n := StopAll([]*Area{a}, 10*time.Second); n != 0 {
			t.Errorf("%d threads did not stop", n)
		}
		p.end()
	}
}
