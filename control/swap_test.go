package control

import (
	"errors"
	"testing"
	"time"

	"braid/inline/runtime"
)

// takeOld collects what a thread has left, and checks it.
func takeOld(t *testing.T, th *Thread, c *chain, buf []uint64) Segment {
	t.Helper()
	var s Segment
	until(t, "signal handlers return", func() bool {
		var err error
		if s, err = th.CollectOld(buf); err != nil {
			t.Fatal(err)
		}
		return !s.Late || s.Gone
	})
	if !s.Exact || s.DroppedNewest != 0 && !s.Gone {
		t.Fatalf("the ring that a thread has left: exact %v, %d slots left out", s.Exact, s.DroppedNewest)
	}
	if err := c.follow(&s); err != nil {
		t.Fatalf("left ring of thread %d: %v", th.Tid, err)
	}
	th.ReleaseOld()
	return s
}

// takeRest collects what a thread that has stopped or ended has left, and where it is.
func takeRest(t *testing.T, th *Thread, c *chain, buf []uint64) Segment {
	t.Helper()
	if th.Swapped() {
		takeOld(t, th, c, buf)
	}
	var s Segment
	until(t, "signal handlers return", func() bool {
		var err error
		if s, err = th.Collect(buf); err != nil {
			t.Fatal(err)
		}
		return !s.Late && s.DroppedNewest == 0 || s.Gone // it may have lost its processor within the stub
	})
	if err := c.follow(&s); err != nil {
		t.Fatalf("last ring of thread %d: %v", th.Tid, err)
	}
	return s
}

// TestNothingIsLostBetweenRings has busy threads change rings thousands of times. Over all of a thread's segments not one
// record is missing, not between the last of a ring and the first of the next either.
func TestNothingIsLostBetweenRings(t *testing.T) {
	for name, c := range map[string]struct {
		ring                 uint64
		threads, spin, swaps int
		mode                 string
	}{
		"small rings": {4096, 1, 3000, 3001, ""},
		"busy":        {512 << 10, 2, 40, 601, ""},
		"signals":     {512 << 10, 1, 40, 601, "signals"},
	} {
		t.Run(name, func(t *testing.T) {
			if weak {
				c.spin *= 20 // a barrier takes as long as many calls
			}
			p := run(t, "", c.threads, c.spin, 0, 1, c.mode)
			a := attach(t, p, runtime.PolicyAll, c.ring, c.threads)
			chains := map[*Thread]*chain{}
			swaps, joined, anew := repeats(t, c.swaps), 0, 0
			buf := make([]uint64, c.ring/8)
			for joined < swaps {
				for _, th := range a.Threads() {
					if chains[th] == nil {
						chains[th] = newChain(p.names)
					}
					if err := th.RequestSwap(); err != nil {
						t.Fatal(err)
					}
					if !th.Swapped() {
						continue
					}
					if s := takeOld(t, th, chains[th], buf); s.Complete {
						joined++
					} else if anew++; anew > 10*swaps {
						t.Fatal("rings fill faster than they are read")
					}
				}
			}
			if n := StopAll([]*Area{a}, 10*time.Second); n != 0 {
				t.Fatalf("%d threads did not stop", n)
			}
			blocks := 0
			for _, th := range a.Threads() {
				s := takeRest(t, th, chains[th], buf)
				if !s.Exact || s.DroppedNewest != 0 {
					t.Errorf("the end is exact %v, %d slots left out", s.Exact, s.DroppedNewest)
				}
				blocks += chains[th].blocks
				th.Release()
			}
			t.Logf("%d rings joined, %d times the oldest records were overwritten, %d blocks behind that", joined, anew, blocks)
			if blocks == 0 {
				t.Error("no blocks")
			}
		})
	}
}

// TestStopOvertakesSwap asks for a stop right behind a swap. Whichever the thread answers, it stops, and no record is lost.
func TestStopOvertakesSwap(t *testing.T) {
	p := run(t, "", 2, 0, 0, 1, "yield")
	a := attach(t, p, runtime.PolicyNone, 1<<20, 2)
	cycles, swapped := repeats(t, 700), 0
	buf := make([]uint64, 1<<17)
	for cycle := range cycles {
		for _, th := range a.Threads() {
			th.Start()
		}
		for _, th := range a.Threads() {
			until(t, "a thread is on", th.On)
			for range cycle % 50 * 10 {
				th.Position()
			}
			if err := th.RequestSwap(); err != nil {
				t.Fatal(err)
			}
			for range cycle % 30 * 100 {
				th.Position()
			}
			th.RequestStop()
		}
		for _, th := range a.Threads() {
			until(t, "a thread has stopped", th.Stopped)
			if th.Swapped() {
				swapped++
			}
			c := newChain(p.names)
			if s := takeRest(t, th, c, buf); !s.Exact {
				t.Fatal("a stop is not exact")
			}
			again, err := th.Collect(buf)
			if err != nil {
				t.Fatal(err)
			}
			if err := th.RequestSwap(); !errors.Is(err, ErrNotRecording) {
				t.Fatalf("asking a thread that is off: %v", err)
			}
			if !th.Stopped() || again.Gone {
				t.Fatal("a thread that had stopped did not stay so")
			}
			th.Release()
		}
	}
	t.Logf("%d of %d swaps came before the stop", swapped, 2*cycles)
}

// TestAskedWhileItSleeps asks a thread that waits in the kernel, where it reaches no trace point.
func TestAskedWhileItSleeps(t *testing.T) {
	p := run(t, "", 1, 0, 0, 1, "rest")
	a := attach(t, p, runtime.PolicyAll, 4<<20, 0)
	buf := make([]uint64, 1<<19)
	if _, err := p.in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	th := a.Threads()[0]
	c := newChain(p.names)
	for round := range 20 {
		if err := th.RequestSwap(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		if th.Swapped() {
			t.Fatal("a thread that sleeps has gone on")
		}
		if _, err := th.CollectOld(buf); !errors.Is(err, ErrNotSwapped) {
			t.Fatalf("collecting what was not left: %v", err)
		}
		s, err := th.Collect(buf)
		if err != nil {
			t.Fatal(err)
		}
		if s.Exact || !s.Complete || len(s.Slots) < 4000*18 || newChain(p.names).follow(&s) != nil {
			t.Fatalf("round %d: %d slots of a thread that sleeps, exact %v, complete %v", round, len(s.Slots), s.Exact, s.Complete)
		}
		if _, err := p.in.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		until(t, "a thread that wakes goes on", th.Swapped)
		old := takeOld(t, th, c, buf)
		if len(old.Slots) < len(s.Slots) || !old.Complete {
			t.Fatalf("round %d: %d slots, then %d", round, len(s.Slots), len(old.Slots))
		}
		p.wait(t)
	}
	if c.blocks < 20*4000 {
		t.Errorf("%d blocks", c.blocks)
	}
}

// TestThreadsEndWhileSwapped changes the rings of threads that end soon, all recorded from their first trace point on.
func TestThreadsEndWhileSwapped(t *testing.T) {
	s, err := NewSession(runtime.PolicyAll, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rounds := repeats(t, 50)
	p := run(t, s.Env(), 4, 50, 2048, rounds)
	over := make(chan error, 1)
	go func() { over <- p.Wait() }()
	type story struct {
		*chain
		rings int
		whole bool
	}
	stories := map[*Thread]*story{}
	var done []*story
	var areas []*Area
	buf := make([]uint64, 1<<17)
	for ended := false; ; {
		select {
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
			ended = true
		default:
		}
		more, err := s.Areas()
		if err != nil {
			t.Fatal(err)
		}
		areas = append(areas, more...)
		for _, a := range areas {
			for _, th := range a.Threads() {
				if !th.Recorded() {
					continue
				}
				st := stories[th]
				if st == nil {
					st = &story{chain: newChain(p.names), whole: true}
					stories[th] = st
				}
				if th.Gone() {
					if th.Swapped() {
						st.whole = takeOld(t, th, st.chain, buf).Complete && st.whole
						st.rings++
					}
					last := takeRest(t, th, st.chain, buf)
					if !last.Gone || !last.Exact {
						t.Fatalf("a thread that has ended: gone %v, exact %v", last.Gone, last.Exact)
					}
					st.whole = last.Complete && st.whole
					done = append(done, st)
					delete(stories, th)
					th.Release()
					continue
				}
				if th.RequestSwap() == nil && th.Swapped() {
					st.whole = takeOld(t, th, st.chain, buf).Complete && st.whole
					st.rings++
				}
			}
		}
		if ended {
			break
		}
	}
	rings, whole := 0, 0
	for _, st := range done {
		rings += st.rings
		if st.whole {
			whole++
			if st.blocks != 2047 || !st.ended { // the last block has none behind it
				t.Fatalf("%d blocks, ended %v", st.blocks, st.ended)
			}
		}
	}
	if len(done) != 4*rounds || whole < len(done)/2 || rings == 0 {
		t.Errorf("%d threads, want %d; %d whole, %d rings", len(done), 4*rounds, whole, rings)
	}
	t.Logf("%d threads, %d of them whole, %d rings left", len(done), whole, rings)
	for _, a := range areas {
		a.Discard()
	}
}

// TestKilledWhileSwapped kills programs at random moments of a swap.
func TestKilledWhileSwapped(t *testing.T) {
	left := 0
	bin := build(t, "swaps", "-no-pie")
	names := methods(t, bin)
	for round := range 17 {
		p := start(t, bin, "", "2", "0", "0", "1")
		a := attach(t, p, runtime.PolicyAll, 256<<10, 2)
		chains := map[*Thread]*chain{}
		buf := make([]uint64, 1<<15)
		for _, th := range a.Threads() {
			chains[th] = newChain(names)
		}
		for range 20 + 13*round {
			for _, th := range a.Threads() {
				if err := th.RequestSwap(); err != nil {
					t.Fatal(err)
				}
				if th.Swapped() && round%2 == 0 {
					takeOld(t, th, chains[th], buf)
				}
			}
		}
		p.Process.Kill()
		p.Wait()
		for _, th := range a.Threads() {
			if !th.Gone() {
				t.Fatal("a killed thread is there")
			}
			if th.Swapped() {
				left++
			}
			s := takeRest(t, th, chains[th], buf)
			if !s.Exact || s.DroppedNewest > 2 {
				t.Fatalf("exact %v, %d left out", s.Exact, s.DroppedNewest)
			}
			th.Release()
		}
	}
	t.Logf("%d rings were left and not collected when their program was killed", left)
}
