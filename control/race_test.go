package control

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"braid/inline/runtime"
)

// races are ways to let a recorder and the threads of testdata/race.c come between each other's steps.
var races = []struct {
	name  string
	bin   string
	ends  int  // threads end after about so many calls; 0: never
	dies  bool // the recorder is killed at its numbered points, and another takes over
	turns int  // how often threads are started
}{
	{"stops", "race", 0, false, 5000},
	{"traps", "race-trapped", 0, false, 1000},
	{"recorder dies", "race", 0, true, 2000},
	{"threads end", "race", 3000, false, 1000},
	{"both", "race", 3000, true, 1000},
}

// TestRaces starts, swaps, copies and stops six threads for each processor while both sides wait at numbered points of
// their code, for lengths that a seed chooses. Each thread says at which record it was turned on and off. All records
// between, and no other, must be there. BRAID_TEST_SEEDS=FROM-TO has it go through these seeds instead of the first one.
func TestRaces(t *testing.T) {
	from, to := uint64(1), uint64(1)
	if seeds := os.Getenv("BRAID_TEST_SEEDS"); seeds != "" {
		if _, err := fmt.Sscanf(seeds, "%d-%d", &from, &to); err != nil {
			t.Fatalf("BRAID_TEST_SEEDS=%s: %v", seeds, err)
		}
	}
	bins := map[string]string{}
	for _, c := range races {
		if bins[c.bin] == "" {
			bins[c.bin] = build(t, c.bin, "-no-pie")
		}
		if weak {
			c.turns /= 10 // a barrier takes longer than most of them
		}
		t.Run(c.name, func(t *testing.T) {
			bin := bins[c.bin]
			calls := callsOf(t, bin)
			for seed := from; seed <= to; seed++ {
				r := &race{T: t, calls: calls, rnd: rand.New(rand.NewPCG(seed, uint64(len(c.name)))), actors: map[int]*actor{}, ends: c.ends > 0}
				r.run(bin, c.ends, c.dies, repeats(t, c.turns))
				if t.Failed() {
					t.Fatalf("with seed %d", seed)
				}
			}
		})
	}
}

// race is one recording of one program.
type race struct {
	*testing.T
	rnd     *rand.Rand
	p       *program
	a       *Area
	policy  uint32
	ring    uint64
	truths  *truths
	calls   calls
	actors  map[int]*actor
	ends    bool
	buf     []uint64
	starts  int // threads that were turned on and found to have stopped or ended, with all their records
	records int
	swaps   int
	deaths  int
	mortal  bool // at present
}

type state int

const (
	off      state = iota // nothing is in the ring
	asked                 // to start
	stopping              // asked to stop
)

// actor is a thread as the recorder left it.
type actor struct {
	*Thread
	says   *truth
	state  state
	seen   uint32 // stops that were looked at
	pieces []piece
	copies [][]uint64 // made while it ran
	whole  bool       // pieces begin with the first record since it was turned on
	given  []ring     // given back: nothing may be written there
	empty  bool       // given back or about to be
}

// died is what a recorder panics with.
type died struct{}

func (r *race) run(bin string, ends int, dies bool, turns int) {
	threads := 6 * goruntime.NumCPU()
	r.ring = []uint64{4096, 64 << 10, 1 << 20}[r.rnd.IntN(3)]
	r.policy = runtime.PolicyNone
	if r.ends {
		r.policy = runtime.PolicyAll
	}
	r.buf = make([]uint64, r.ring/8)
	var path string
	r.truths, path = newTruths(r.T)
	spin, slow := []int{0, 100, 500}[r.rnd.IntN(3)], r.rnd.Uint64()&r.rnd.Uint64()
	r.p = start(r.T, bin, "", path, strconv.Itoa(threads), strconv.Itoa(ends), strconv.Itoa(spin), strconv.FormatUint(r.rnd.Uint64()>>1, 10), strconv.FormatUint(slow, 10))
	r.a = attach(r.T, r.p, r.policy, r.ring, threads/2)
	mine := r.rnd.Uint64() & r.rnd.Uint64()
	inject = func(n int) {
		switch v := r.rnd.Uint32(); {
		case dies && r.mortal && v%2048 == 0:
			panic(died{})
		case mine>>(n-100)&1 != 0 && v%64 == 1:
			time.Sleep(time.Duration(r.rnd.Uint32N(1 << 18)))
		case v%8 == 2:
			for k := range v >> 3 % 2000 {
				fence.Store(k)
			}
		case v%32 == 3:
			goruntime.Gosched()
		}
	}
	defer func() { inject = nil }()
	begun := time.Now()
	for r.starts < turns && !r.Failed() {
		if r.step() {
			r.takeOver()
		}
	}
	inject = nil
	r.stopAll()
	for _, t := range r.actors {
		r.act(t)
	}
	r.progress()
	r.kill()
	r.Logf("%v: ring %d, spin %d: %d starts, %d records, %d swaps, %d recorders died", time.Since(begun).Round(time.Millisecond), r.ring, spin,
		r.starts, r.records, r.swaps, r.deaths)
}

// step does something with one thread, or with all, and reports whether the recorder died.
func (r *race) step() (dead bool) {
	defer func() {
		r.mortal = false
		if v := recover(); v != nil {
			if _, dead = v.(died); !dead {
				panic(v)
			}
		}
	}()
	r.mortal = true
	if r.rnd.IntN(400) == 0 {
		r.stopAll()
		return false
	}
	for _, th := range r.a.Threads() {
		if t := r.actor(th); t != nil {
			r.act(t)
		}
	}
	return false
}

// actor returns what is known of a thread, or nil if it has said nothing yet.
func (r *race) actor(th *Thread) *actor {
	t := r.actors[th.Tid]
	if t != nil && t.Thread == th {
		return t
	}
	if t != nil && t.Thread.uses == th.uses && t.Thread.index == th.index { // this recorder has taken it over
		t.Thread = th
		t.forgotten(t.state)
		t.given = nil
		switch c := atomic.LoadUint64(&th.block.Cursor); {
		case th.On() || c == runtime.CursorAttend:
			t.state, t.empty = asked, false
		case t.empty:
			until(r.T, "a thread sees that it is off", func() bool {
				return atomic.LoadUint32(&t.says.offs) == atomic.LoadUint32(&t.says.starts) || r.ends && t.Gone()
			})
			t.seen = t.says.starts
			t.Release()
			t.state, t.empty = off, false
		case t.state != off:
			t.state = stopping
		}
		return t
	}
	u := r.truths.of(th.Tid)
	if u == nil {
		return nil
	}
	t = &actor{Thread: th, says: u}
	if r.policy == runtime.PolicyAll { // it has started by itself
		t.state, t.whole = asked, true
	}
	r.actors[th.Tid] = t
	return t
}

func (r *race) act(t *actor) {
	if r.ends && t.Gone() {
		r.finish(t)
		return
	}
	switch what := r.rnd.IntN(12); t.state {
	case off:
		r.untouched(t)
		if what > 3 {
			return
		}
		t.empty, t.given = true, nil
		t.Start()
		if what == 0 { // it may be about to answer that
			t.RequestStop()
			r.await(t, "a thread that was hardly started has stopped", t.Stopped)
			if atomic.LoadUint64(&t.block.Cursor)&^runtime.CursorTag != 0 {
				t.state = stopping // it was started
				t.empty, t.whole = false, true
				return
			}
			t.Start()
			r.await(t, "a thread that was stopped and started again is on", t.On)
		}
		t.empty, t.state, t.whole = false, asked, true
	case asked:
		r.running(t, what)
	case stopping:
		if t.Stopped() {
			r.finish(t)
		}
	}
}

// running does something with a thread that is on, or will be soon.
func (r *race) running(t *actor, what int) {
	keep := func(slots []uint64, err error) {
		if err == nil && len(slots) > 0 && len(t.copies) < 8 {
			t.copies = append(t.copies, append([]uint64(nil), slots...))
		} else if err != nil && t.On() && !errors.Is(err, ErrLapped) {
			r.Fatal(err)
		}
	}
	switch what {
	case 0:
		if t.On() {
			s, err := t.Snapshot(r.buf)
			keep(s.Slots, err)
		}
	case 1:
		slots, _, _, err := t.Tail(int(r.ring)/8, r.buf)
		keep(slots, err)
	case 2:
		t.Note()
		t.Position()
	case 3, 4, 5:
		if err := t.RequestSwap(); err != nil && !errors.Is(err, ErrNotRecording) {
			r.Fatal(err)
		}
		fallthrough
	case 6, 7:
		if t.Swapped() {
			r.takeOld(t)
		}
	case 8:
		if t.whole { // otherwise a recorder that has died may have been about to stop it
			r.await(t, "a thread that was started is on", t.On)
		}
	case 9:
		t.RequestStop()
		if s, err := t.Collect(r.buf); err == nil && s.DroppedNewest == 0 && !s.Late { // whether it has answered or not
			keep(s.Slots, nil)
		}
		t.state = stopping
	case 10:
		t.RequestStop()
		t.state = stopping
	}
}

// await waits for what a thread must do, unless it ends.
func (r *race) await(t *actor, what string, is func() bool) {
	r.Helper()
	until(r.T, what, func() bool { return is() || r.ends && t.Gone() })
}

func (r *race) takeOld(t *actor) {
	var s Segment
	// Late is a guess: a thread that had no processor for 1.7 s seems to be. What is really missing is found below.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Microsecond) {
		var err error
		if s, err = t.CollectOld(r.buf); err != nil {
			r.Fatal(err)
		}
		if !s.Late && s.DroppedNewest == 0 || s.Gone {
			break
		}
		if time.Now().After(deadline) {
			r.Logf("thread %d has left a ring with %d slots, late %v, %d left out", t.Tid, len(s.Slots), s.Late, s.DroppedNewest)
			break
		}
	}
	if !s.Exact || s.Dropped != 0 {
		r.Fatalf("the ring that a thread has left: exact %v, %d slots left out", s.Exact, s.Dropped)
	}
	r.add(t, &s)
	left := t.old.ring
	t.ReleaseOld()
	r.swaps++
	r.hole(t, left, "the ring that was left")
}

// stopAll stops all threads at once. Those that are about to register must not stay on either.
func (r *race) stopAll() {
	if n := StopAll([]*Area{r.a}, time.Minute); n != 0 {
		r.Fatalf("%d threads have not stopped", n)
	}
	if r.ends {
		r.progress() // all that were registering have done so
	}
	for _, th := range r.a.Threads() {
		if th.On() && !th.Gone() {
			r.Fatalf("thread %d is on behind a stop", th.Tid)
		}
		if t := r.actor(th); t != nil && t.state == asked {
			t.state = stopping
		}
	}
	r.a.Arm(r.policy, r.ring)
}

// progress waits until every thread has come to more trace points, or has ended.
func (r *race) progress() {
	type mark struct {
		*truth
		serial uint32
		at     uint64
	}
	var wait []mark
	for i := range min(atomic.LoadUint32(&r.truths.used), uint32(len(r.truths.truth))) {
		if u := &r.truths.truth[i]; u.ended == 0 && u.tid != 0 {
			wait = append(wait, mark{u, u.serial, atomic.LoadUint64(&u.at)})
		}
	}
	for _, w := range wait {
		until(r.T, "a thread gets on", func() bool {
			return atomic.LoadUint32(&w.ended) != 0 || w.truth.serial != w.serial || atomic.LoadUint64(&w.truth.at) > w.at+3
		})
	}
}

// takeOver begins a new recorder in the place of one that has died.
func (r *race) takeOver() {
	r.deaths++
	r.a.Close() // as the kernel does
	areas, err := Attach(r.p.Process.Pid)
	if err != nil {
		r.Fatal(err)
	}
	r.a = areas[0]
	r.Cleanup(r.a.Close)
	r.a.Arm(r.policy, r.ring)
}

// kill starts all threads, kills the program, and looks at what they have left.
func (r *race) kill() {
	for range 20 + r.rnd.IntN(200) {
		for _, th := range r.a.Threads() {
			if t := r.actor(th); t != nil {
				r.act(t)
			}
		}
	}
	r.p.Process.Kill()
	r.p.Wait()
	for _, th := range r.a.Threads() {
		if t := r.actor(th); t != nil {
			r.finish(t)
		}
	}
}
