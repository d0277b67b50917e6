package timeline

import (
	"math/rand/v2"
	"testing"

	"braid/internal/kevent"
)

// machine simulates threads on CPUs and writes the events that a kernel would, with the true intervals.
func machine(rng *rand.Rand, threads, cpus, steps int) (events [][]byte, truth map[uint32][NumStates]int64, end int64) {
	type th struct {
		state State
		since int64
	}
	ts := make([]th, threads+1)
	truth = make(map[uint32][NumStates]int64)
	for i := range ts {
		ts[i] = th{state: Sleeping}
	}
	on := make([]int, cpus)
	now := int64(0)
	change := func(i int, to State) {
		sums := truth[uint32(i)]
		sums[ts[i].state] += now - ts[i].since
		truth[uint32(i)] = sums
		ts[i].state, ts[i].since = to, now
	}
	for range steps {
		now += 1 + rng.Int64N(1000)
		if i := 1 + rng.IntN(threads); ts[i].state == Sleeping || ts[i].state == Blocked {
			events = append(events, kevent.AppendWaking(nil, kevent.Header{Time: uint64(now), Tid: uint32(i), CPU: 0}, kevent.Waking{Tgid: 10}))
			change(i, Runnable)
			continue
		}
		c := rng.IntN(cpus)
		next := 0
		for i := range threads {
			if i = 1 + (i+c)%threads; ts[i].state == Runnable {
				next = i
				break
			}
		}
		if next == 0 && on[c] == 0 {
			continue
		}
		h := kevent.Header{Time: uint64(now), CPU: uint16(c), Tid: uint32(on[c])}
		e := kevent.Switch{NextTid: uint32(next)}
		if next != 0 {
			h.Flags |= kevent.FlagNextTarget
			e.NextTgid = 10
		}
		if on[c] != 0 {
			h.Flags |= kevent.FlagPrevTarget
			switch rng.IntN(3) {
			case 0:
				change(on[c], Runnable)
				h.Flags |= kevent.FlagPreempted
			case 1:
				change(on[c], Sleeping)
				e.PrevState = kevent.StateSleeping
			case 2:
				change(on[c], Blocked)
				e.PrevState = kevent.StateBlocked
			}
		}
		events = append(events, kevent.AppendSwitch(nil, h, e))
		if next != 0 {
			change(next, Running)
		}
		on[c] = next
	}
	for i := 1; i <= threads; i++ {
		change(i, ts[i].state)
	}
	return events, truth, now
}

// TestMachine compares the states' sums with a simulation's, with events in order, shuffled within the window, and
// with some lost: then no more than the time around the losses may be in the wrong state.
func TestMachine(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		events, truth, end := machine(rng, 7, 3, 20000)
		var initial []InitialThread
		for i := range uint32(7) {
			initial = append(initial, InitialThread{Tid: i + 1, Tgid: 10, State: Sleeping, At: 0})
		}
		run := func(events [][]byte) *Kernel {
			k := NewKernel(KernelOptions{End: end, WindowNs: 100_000}, initial)
			for _, e := range events {
				if err := k.Push(e); err != nil {
					t.Fatal(err)
				}
			}
			k.Finish()
			for _, a := range k.Threads() {
				checkActivity(t, a)
			}
			return k
		}
		compare := func(k *Kernel, what string) {
			for tid, want := range truth {
				if got := k.Thread(tid).States; tid != 0 && got != want {
					t.Fatalf("seed %d, %s: thread %d: got %v, want %v", seed, what, tid, got, want)
				}
			}
		}
		k := run(events)
		compare(k, "in order")
		if st := k.Stats(); st.StateStats != (StateStats{}) || st.Unsorted != 0 {
			t.Fatalf("%+v", st)
		}

		mixed := append([][]byte{}, events...)
		for i := 0; i+60 < len(mixed); i += 60 { // 60 events last at most 60 us
			part := mixed[i : i+60]
			rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		}
		k = run(mixed)
		compare(k, "shuffled")

		var holed [][]byte
		for _, e := range events {
			if rng.IntN(100) != 0 {
				holed = append(holed, e)
			}
		}
		k = run(holed)
		if k.Stats().Repaired == 0 || k.Stats().MissedWakeups == 0 {
			t.Fatalf("seed %d: losses were not noticed: %+v", seed, k.Stats())
		}
		for tid, want := range truth {
			if tid == 0 {
				continue
			}
			got := k.Thread(tid).States
			var wrong, sum int64
			for s := range got {
				wrong += max(0, got[s]-want[s])
				sum += got[s]
			}
			if sum != end {
				t.Fatalf("seed %d: thread %d has %d ns of %d", seed, tid, sum, end)
			}
			if wrong-got[Unknown] > end/20 {
				t.Errorf("seed %d: thread %d: got %v, want %v", seed, tid, got, want)
			}
		}
	}
}
