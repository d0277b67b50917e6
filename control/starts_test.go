package control

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"braid/inline/runtime"
)

// TestStopWhileThreadsRegister stops a program that makes threads all the time. One that is about to register when the
// others are listed must not stay on.
func TestStopWhileThreadsRegister(t *testing.T) {
	p := start(t, build(t, "starts"), "")
	a := attach(t, p, runtime.PolicyAll, 4096, 1)
	stopped := 0
	for round := range repeats(t, 400) {
		a.Arm(runtime.PolicyAll, 4096)
		until(t, "a thread is on", func() bool {
			for _, th := range a.Threads() {
				if th.On() {
					return true
				}
			}
			return false
		})
		if n := StopAll([]*Area{a}, 60*time.Second); n != 0 {
			t.Fatalf("round %d: %d threads have not stopped", round, n)
		}
		time.Sleep(time.Millisecond) // those that were registering have done so, or will see that nobody is there
		for _, th := range a.Threads() {
			if th.On() && !th.Gone() {
				t.Fatalf("round %d: thread %d is on behind a stop", round, th.Tid)
			}
			if th.Recorded() {
				stopped++
			}
			th.Release()
		}
	}
	if stopped == 0 {
		t.Error("no thread was stopped")
	}
}

// TestReleaseOfABlockThatHasAnotherThread calls what changes a block by a handle of the thread before.
func TestReleaseOfABlockThatHasAnotherThread(t *testing.T) {
	for name, call := range map[string]func(*Thread){"Release": (*Thread).Release, "Start": (*Thread).Start} {
		for _, cursor := range []uint64{runtime.CursorOff, runtime.CursorOn} {
			a := fake(t, 1<<20+3*8192)
			th := a.Threads()[0]
			ring := th.cur.ring
			if _, err := a.mem.f.WriteAt([]byte{1}, ring.off); err != nil {
				t.Fatal(err)
			}
			a.over = 1 // the thread has ended
			atomic.AddUint32(&th.block.Uses, 1)
			th.block.Cursor = th.block.Cursor&^runtime.CursorTag | cursor
			before := *th.block
			call(th)
			if *th.block != before {
				t.Errorf("%s has changed the block of a later thread, cursor %d: %+v became %+v", name, cursor, before, *th.block)
			}
			if v, err := a.mem.readSlot(ring, 0); err != nil || v != 1 {
				t.Errorf("%s has cleared the ring of a later thread: %d, %v", name, v, err)
			}
			a.Close()
		}
	}
}

// TestReleaseLetsABlockGo releases a thread that lives, then one that has ended.
func TestReleaseLetsABlockGo(t *testing.T) {
	a := fake(t, 1<<20+3*8192)
	defer a.Close()
	th := a.Threads()[0]
	th.block.Cursor &^= runtime.CursorTag
	th.block.Tid, th.Tid = uint32(os.Getpid()), os.Getpid()
	th.Release()
	if th.block.State != runtime.StateReady || th.block.Start != 0 {
		t.Errorf("released: state %d, start %d", th.block.State, th.block.Start)
	}
	a.over = 1
	th.block.State = runtime.StateExiting
	th.Release()
	if th.block.State != runtime.StateFree || th.block.Cursor != 0 {
		t.Errorf("ended: state %d, cursor %#x", th.block.State, th.block.Cursor)
	}
}
