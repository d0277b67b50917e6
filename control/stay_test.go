package control

import (
	"sync/atomic"
	"testing"

	"braid/inline/runtime"
)

// TestThreadStaysInADrainedRing has a thread answer a swap, its ring be collected and released, and the thread go on in the
// same ring, as one does that can't open the next one. What it records there is all there, and another swap can be asked for.
func TestThreadStaysInADrainedRing(t *testing.T) {
	for _, more := range []uint64{30, 480} { // up to the ring's end, and round
		a := fake(t, 1<<20+9*8192)
		th := a.Threads()[0]
		n := th.cur.slots()
		th.write(t, 0, 100, 1000)
		th.move(100, 99)
		if err := th.RequestSwap(); err != nil {
			t.Fatal(err)
		}
		next := th.block.NextAddr
		th.block.Cursor = th.block.Cursor&^runtime.CursorTag | runtime.CursorAttend
		if s, err := th.CollectOld(nil); err != nil || len(s.Slots) != 100 {
			t.Fatalf("%d slots, %v", len(s.Slots), err)
		}
		th.ReleaseOld()
		atomic.OrUint64(&th.block.Mask, runtime.MaskStop)
		th.write(t, 100, more, 2000)
		th.move((100+more)%n, (99+more)%n)
		for _, stopped := range []bool{false, true} {
			if stopped {
				th.block.Cursor &^= runtime.CursorTag
			}
			s, err := th.Snapshot(nil)
			if err != nil || uint64(len(s.Slots)) != more || s.Slots[0]>>32 != 2000 || stopped && !s.Complete {
				t.Errorf("stopped %v: %d slots of %d, complete %v, %v", stopped, len(s.Slots), more, s.Complete, err)
			}
		}
		th.block.Cursor |= runtime.CursorOn
		if err := th.RequestSwap(); err != nil || th.Swapped() || th.block.NextAddr != next || th.block.Mask&runtime.MaskSwap != 0 {
			t.Errorf("another swap: %v, swapped %v, next ring %#x, mask %#x", err, th.Swapped(), th.block.NextAddr, th.block.Mask)
		}
		a.Close()
	}
}

// TestDoneOfAnEarlierFilling asks whether a thread that was started anew has written its first record, where it once left the
// same ring behind as many.
func TestDoneOfAnEarlierFilling(t *testing.T) {
	a := fake(t, 1<<20+3*8192)
	defer a.Close()
	th := a.Threads()[0]
	th.move(2, 1)
	th.block.PrevCursor, th.block.PrevDone, th.block.PrevStart = th.cur.addr+16, th.block.Done, th.block.Start
	th.block.Done = 0
	if n, _ := th.missing(th.cur.ring, th.block.Cursor); n != 0 {
		t.Errorf("about to leave the ring: %d slots are missing", n)
	}
	th.block.Start = 3
	if n, _ := th.missing(th.cur.ring, th.block.Cursor); n != 2 {
		t.Errorf("started anew: %d slots are missing, want 2", n)
	}
}

// TestLastSlotInterrupted copies a ring whose last slot is reserved and not written, by a stub that a signal handler has
// interrupted, whose records are at the ring's beginning.
func TestLastSlotInterrupted(t *testing.T) {
	a := fake(t, 1<<20+3*8192)
	defer a.Close()
	th := a.Threads()[0]
	th.swap = swap{} // its ring was empty when it was seen first
	th.write(t, 0, 511, 1000)
	th.write(t, 0, 3, 2000)
	th.move(3, 2)
	th.block.Cursor &^= runtime.CursorTag
	if s, err := th.Collect(nil); err != nil || len(s.Slots) != 512 || s.Complete || !s.Late || s.Slots[511]>>32 != 2002 {
		t.Errorf("%d slots, complete %v, late %v, %v", len(s.Slots), s.Complete, s.Late, err)
	}
}

// TestSwapWaitsForTheOneBefore asks a thread that is in its next ring already, and has not named it in its block yet.
func TestSwapWaitsForTheOneBefore(t *testing.T) {
	a := fake(t, 1<<20+9*8192)
	defer a.Close()
	th := a.Threads()[0]
	if err := th.RequestSwap(); err != nil {
		t.Fatal(err)
	}
	b := th.block
	next := b.NextAddr
	b.PrevAddr, b.PrevBytes, b.PrevOff, b.PrevCursor, b.PrevDone = b.RingAddr, b.RingBytes, b.RingOff, b.Cursor&^runtime.CursorTag, b.Done
	b.Mask, b.PrevEnd, b.Cursor = ^uint64(4096), 3, next|runtime.CursorOn
	if !th.Swapped() {
		t.Fatal("it has not left its ring")
	}
	th.ReleaseOld()
	if err := th.RequestSwap(); err != nil || th.Swapped() || b.NextAddr != next || b.Mask&runtime.MaskSwap == 0 {
		t.Errorf("asked while it is busy: %v, next ring %#x, mask %#x", err, b.NextAddr, b.Mask)
	}
	b.RingAddr, b.RingOff, b.NextAddr = next, b.NextOff, 0
	if th.Swapped() || b.NextAddr != b.PrevAddr || b.Mask&runtime.MaskSwap != 0 {
		t.Errorf("asked once it is not: next ring %#x of %#x, mask %#x", b.NextAddr, b.PrevAddr, b.Mask)
	}
}
