package control

import (
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"braid/inline/runtime"
)

// TestStopWhileThreadsTurnThemselvesOn stops threads that turn themselves on and off all the time. What each has recorded
// since it was turned on last is there. Once all have stopped, none may write, nor believe that it is on, whatever it had
// begun before.
func TestStopWhileThreadsTurnThemselvesOn(t *testing.T) {
	const size = 64 << 10
	bin := build(t, "race", "-no-pie")
	r := &race{T: t, calls: callsOf(t, bin), rnd: rand.New(rand.NewPCG(1, 4)), actors: map[int]*actor{}, buf: make([]uint64, size/8)}
	var path string
	r.truths, path = newTruths(t)
	threads := 6 * goruntime.NumCPU()
	const slow = 1<<11 | 1<<12 | 1<<13 | 1<<31 | 1<<32 // the points of a thread that turns itself on
	r.p = start(t, bin, "", path, strconv.Itoa(threads), "0", "100", "4", strconv.Itoa(slow), "ask")
	r.a = attach(t, r.p, runtime.PolicyNone, size, threads/2)
	kept := 0
	for range repeats(t, 200) {
		r.a.Arm(runtime.PolicyNone, size)
		for _, th := range r.a.Threads() {
			if th.Stopped() && r.rnd.IntN(4) != 0 {
				th.Start() // otherwise it may not turn itself on
			}
		}
		r.progress()
		if n := StopAll([]*Area{r.a}, time.Minute); n != 0 {
			t.Fatalf("%d threads have not stopped", n)
		}
		for _, th := range r.a.Threads() {
			says := r.truths.of(th.Tid)
			until(t, "a thread sees that it is off", func() bool { return atomic.LoadUint32(&says.offs) == atomic.LoadUint32(&says.starts) })
			a := &actor{Thread: th, says: says, seen: says.starts}
			if th.Recorded() {
				r.takeLast(a, false)
				if first, err := endsAt(a.pieces, says.last); err != nil || first != says.first && complete(a.pieces) {
					r.fail(a, fmt.Errorf("the first record is %d, not %d, %w", first, says.first, err))
				}
				kept++
			}
			th.Release()
			a.given = append([]ring(nil), th.rings...)
			r.actors[th.Tid] = a
		}
		r.progress() // also through the calls that turn threads on
		for _, a := range r.actors {
			if c := atomic.LoadUint64(&a.block.Cursor); c&runtime.CursorTag == runtime.CursorOn || atomic.LoadUint32(&a.says.starts) != a.seen {
				t.Fatalf("thread %d has turned itself on behind a stop: cursor %#x", a.Tid, c)
			}
			for _, given := range a.given { // it may have memory: the thread looks whether the kernel has given it back
				if err := r.a.mem.read(given, 0, r.buf); err != nil || slices.ContainsFunc(r.buf, func(v uint64) bool { return v != 0 }) {
					t.Fatalf("thread %d has written into a ring that was given back: cursor %#x, %v", a.Tid, a.block.Cursor, err)
				}
			}
		}
	}
	if kept == 0 {
		t.Error("no thread was on when it was stopped")
	}
	t.Logf("%d records of %d stopped threads", r.records, kept)
}
