package timeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"braid/inline"
	"braid/internal/cpus"
	"braid/internal/kevent"
)

// bigLittle has CPUs 0 and 1 little at 1 GHz, 2 big at 2 GHz.
func bigLittle() *Machine {
	return NewMachine([]cpus.CPU{
		{ID: 0, Capacity: 400, KHz: 1_000_000}, {ID: 1, Capacity: 400, KHz: 1_000_000}, {ID: 2, Capacity: 1024, KHz: 2_000_000},
	})
}

// placeScript is script with these lines too:
//
//	TIME idle CPU,CPU      or -
//	TIME allow A CPU,CPU
//	TIME freq CPU KHZ
//	TIME woken A on CPU [behind]
//	TIME move A to CPU [behind]
func placeScript(text string) (chunk []byte) {
	word := func(list string) (w uint64) {
		for n := range strings.SplitSeq(list, ",") {
			if n != "-" {
				w |= 1 << num(n)
			}
		}
		return w
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		h := kevent.Header{Time: num(f[0])}
		if f[len(f)-1] == "behind" {
			h.Flags = kevent.FlagBehind
		}
		switch f[1] {
		case "idle":
			chunk = kevent.AppendIdle(chunk, h, kevent.Idle{Idle: word(f[2])})
		case "allow":
			h.Tid = uint32(num(f[2]))
			chunk = kevent.AppendAffinity(chunk, h, kevent.Affinity{Allowed: word(f[3])})
		case "freq":
			chunk = kevent.AppendFreq(chunk, h, kevent.Freq{CPU: uint32(num(f[2])), KHz: uint32(num(f[3]))})
		case "woken":
			h.Tid = uint32(num(f[2]))
			chunk = kevent.AppendWaking(chunk, h, kevent.Waking{Tgid: 10, TargetCPU: uint32(num(f[4]))})
		case "move":
			h.Tid = uint32(num(f[2]))
			chunk = kevent.AppendMigrate(chunk, h, kevent.Migrate{ToCPU: uint32(num(f[4]))})
		default:
			c, _ := script(line)
			chunk = append(chunk, c...)
		}
	}
	return chunk
}

func placesText(a *Activity) string {
	var b strings.Builder
	for _, p := range a.Places {
		fmt.Fprintf(&b, "%d-%d cpu %d rank %d", p.Start, p.End, p.CPU, p.Rank)
		if p.KHz != 0 {
			fmt.Fprintf(&b, " %d MHz", p.KHz/1000)
		}
		for i, name := range []string{"waits", "better", "allowed", "moved", "cluster"} {
			if p.Flags>>i&1 != 0 {
				b.WriteString(" " + name)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func placesOf(t *testing.T, m *Machine, text string) *Kernel {
	t.Helper()
	k := NewKernel(KernelOptions{Begin: 1, End: 100_000, Machine: m}, nil)
	if err := k.Push(placeScript(text)); err != nil {
		t.Fatal(err)
	}
	k.Finish()
	return k
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		machine            *Machine
	}{
		{"runs on little while big becomes idle and busy", `
			100 idle -
			100 cpu 0: - -> 7
			140 idle 2
			150 idle 2,1
			200 idle 1
			300 cpu 0: 7 -> - S
			310 woken 7 on 2
			320 cpu 2: - -> 7
			400 cpu 2: 7 -> - S`, `
			100-140 cpu 0 rank 1 1000 MHz
			140-200 cpu 0 rank 1 1000 MHz better allowed
			200-300 cpu 0 rank 1 1000 MHz
			320-400 cpu 2 rank 0 2000 MHz moved cluster
			`, bigLittle()},
		{"may not use the big one", `
			90 idle 2
			95 allow 7 0,1
			100 cpu 0: - -> 7
			200 allow 7 0,1,2
			300 cpu 0: 7 -> - S
			310 woken 7 on 1
			320 cpu 1: - -> 7
			330 cpu 1: 7 -> - S`, `
			100-200 cpu 0 rank 1 1000 MHz better
			200-300 cpu 0 rank 1 1000 MHz better allowed
			320-330 cpu 1 rank 1 1000 MHz better allowed moved
			`, bigLittle()},
		{"the frequency changes", `
			100 cpu 0: - -> 7
			150 freq 0 500000
			160 freq 1 700000
			160 freq 0 500000
			200 cpu 0: 7 -> - S
			300 woken 7 on 1
			310 cpu 1: - -> 7
			320 cpu 1: 7 -> - S`, `
			100-150 cpu 0 rank 1 1000 MHz
			150-200 cpu 0 rank 1 500 MHz
			310-320 cpu 1 rank 1 700 MHz moved
			`, bigLittle()},
		{"waits behind others while others are idle", `
			100 cpu 0: - -> 7
			200 idle 1
			200 cpu 0: 7 -> - R
			250 idle -
			300 idle 2
			350 allow 7 0
			400 cpu 0: - -> 7
			500 cpu 0: 7 -> - S
			600 idle 1,2
			600 woken 7 on 1
			700 cpu 1: - -> 7
			800 cpu 1: 7 -> - S
			900 woken 7 on 0 behind
			901 move 7 to 2
			950 cpu 2: - -> 7
			960 cpu 2: 7 -> - S
			1000 woken 7 on 0
			1010 idle 2
			1010 move 7 to 1 behind
			1050 cpu 1: - -> 7
			1060 cpu 1: 7 -> - S`, `
			200-250 cpu 0 rank 0 waits better allowed
			300-350 cpu 0 rank 0 waits better allowed
			350-400 cpu 0 rank 0 waits better
			900-901 cpu 0 rank 0 waits better
			1010-1050 cpu 1 rank 0 waits better
			`, NewMachine(nil)},
		{"what events contradict is dropped", `
			90 idle 2
			100 cpu 0: - -> 7
			200 cpu 1: - -> 7
			300 cpu 1: 7 -> - S`, `
			200-300 cpu 1 rank 1 1000 MHz better allowed moved
			`, bigLittle()},
		{"from exec on", `
			90 idle 2
			100 exec 7 from 7
			200 cpu 0: 7 -> - S`, `
			100-200 cpu 0 rank 1 1000 MHz better allowed
			`, bigLittle()},
		{"unknown before its first event", `
			200 cpu 0: 7 -> - S`, "", bigLittle()},
	} {
		k := placesOf(t, c.machine, c.script)
		got, want := placesText(k.Thread(7)), strings.TrimLeft(strings.ReplaceAll(c.want, "\t", ""), "\n")
		if got != want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, want)
		}
	}
}

// TestPlacesFromBefore: a thread that ran when recording began is on its processor, whose frequency is known if it did not
// change meanwhile. Who was idle is not known.
func TestPlacesFromBefore(t *testing.T) {
	for events, want := range map[string]string{
		"100 idle 2\n200 cpu 0: 7 -> - S":                    "1-200 cpu 0 rank 1 1000 MHz\n",
		"100 freq 0 1000000\n200 cpu 0: 7 -> - S":            "1-200 cpu 0 rank 1 1000 MHz\n",
		"100 freq 0 500000\n200 cpu 0: 7 -> - S":             "1-200 cpu 0 rank 1\n",
		"100 freq 1 500000\n200 cpu 2: 7 -> - S\n300 idle 1": "1-200 cpu 2 rank 0 2000 MHz\n",
	} {
		k := NewKernel(KernelOptions{Begin: 1, End: 1000, Machine: bigLittle()},
			[]InitialThread{{Tid: 7, Tgid: 10, State: StateOfProc('R'), At: 2}})
		if err := k.Push(placeScript(events)); err != nil {
			t.Fatal(err)
		}
		k.Finish()
		if got := placesText(k.Thread(7)); got != want {
			t.Errorf("%q: got %q, want %q", events, got, want)
		}
	}
}

func TestPlacedSums(t *testing.T) {
	k := placesOf(t, bigLittle(), `
		100 idle -
		100 cpu 0: - -> 7
		140 idle 2
		200 freq 0 500000
		300 idle 2
		300 cpu 0: 7 -> - R
		340 cpu 2: - -> 7
		440 allow 7 0
		440 cpu 2: 7 -> - R
		460 cpu 0: - -> 7
		500 cpu 0: 7 -> - S`)
	a := k.Thread(7)
	want := Placed{
		Ns: [MaxClusters]int64{100, 240}, Weak: [MaxClusters]int64{0, 200}, Free: [MaxClusters]int64{0, 160},
		WaitNs: 40, WaitFreeNs: 40, KnownNs: 340, Cycles: 0, Moves: 2, ClusterMoves: 2,
	}
	got := a.Placed
	got.Cycles = 0 // of some ns
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// From 150 to 450: 50 at 1 GHz and 100 at 0.5 on little, 100 on big.
	if p := a.PlacedIn(150, 450); p.Ns != [MaxClusters]int64{100, 150} || p.WeakNs() != 150 || p.Moves != 1 || p.WaitNs != 40 {
		t.Errorf("%+v", p)
	}
	p := Placed{}
	for _, at := range []Place{{Start: 0, End: 1e9, KHz: 1_000_000}, {Start: 1e9, End: 4e9, KHz: 2_000_000}, {Start: 4e9, End: 5e9}} {
		p.add(&at, 0, 5e9)
	}
	if p.MeanKHz() != 1_750_000 || p.RunningNs() != 5e9 || p.KnownNs != 4e9 {
		t.Errorf("%+v has mean %d", p, p.MeanKHz())
	}
}

// TestSumPlaces: outer runs 100-500, and calls inner 200-300 and itself 350-400.
func TestSumPlaces(t *testing.T) {
	const ms = 1_000_000
	at := func(n int64) uint64 { return uint64(n) * ms }
	var s []uint64
	s = inline.AppendEntry(s, at(100), 0x100)
	s = inline.AppendEntry(s, at(200), 0x200)
	s = inline.AppendExit(s, at(300))
	s = inline.AppendEntry(s, at(350), 0x100)
	s = inline.AppendExit(s, at(400))
	s = inline.AppendExit(s, at(500))
	j := &Joiner{Clock: identity(t), Methods: inline.NewMethods(0)}
	segment := &Segment{Segment: inline.Segment{Slots: s, Begin: at(50), End: at(600)}}
	segments := func(yield func(*Segment, error) bool) { yield(segment, nil) }
	a := &Activity{Places: []Place{
		{Start: 50 * ms, End: 250 * ms, Rank: 1, KHz: 1_000_000, Flags: BetterIdle},
		{Start: 260 * ms, End: 360 * ms, CPU: 2, KHz: 2_000_000, Flags: Moved | MovedCluster},
		{Start: 380 * ms, End: 390 * ms, Flags: Waits | BetterIdle | BetterAllowed},
		{Start: 400 * ms, End: 550 * ms, Rank: 1, Flags: BetterIdle | BetterAllowed | Moved | MovedCluster},
	}}
	var table PlaceTable
	if err := j.SumPlaces(segments, a, &table); err != nil {
		t.Fatal(err)
	}
	rows := map[uint32]MethodPlaces{}
	for i, row := range table.Rows {
		if row.Total != (Placed{}) {
			rows[uint32(j.Methods.Row(uint32(i)).Addr)] = row
		}
	}
	outer, inner := rows[0x100], rows[0x200]
	for name, c := range map[string]struct{ got, want Placed }{
		"outer self": {outer.Self, Placed{Ns: [4]int64{60 * ms, 200 * ms}, Weak: [4]int64{0, 200 * ms}, Free: [4]int64{0, 100 * ms},
			WaitNs: 10 * ms, WaitFreeNs: 10 * ms, KnownNs: 160 * ms, Cycles: 220e6, Moves: 1, ClusterMoves: 1}},
		"outer total": {outer.Total, Placed{Ns: [4]int64{100 * ms, 250 * ms}, Weak: [4]int64{0, 250 * ms}, Free: [4]int64{0, 100 * ms},
			WaitNs: 10 * ms, WaitFreeNs: 10 * ms, KnownNs: 250 * ms, Cycles: 350e6, Moves: 2, ClusterMoves: 2}},
		"inner": {inner.Total, Placed{Ns: [4]int64{40 * ms, 50 * ms}, Weak: [4]int64{0, 50 * ms}, KnownNs: 90 * ms, Cycles: 130e6, Moves: 1, ClusterMoves: 1}},
	} {
		if c.got != c.want {
			t.Errorf("%s: got\n%+v, want\n%+v", name, c.got, c.want)
		}
	}
	if len(rows) != 2 || inner.Self != inner.Total {
		t.Errorf("%d methods, inner %+v", len(rows), inner)
	}
}

// TestPlacesAgreeWithStates: whatever happens, a thread runs for as long in its places as in its states, and places do not
// overlap; where events are missing, it may be for shorter. Events are a simulated machine's, with idle words, frequencies
// and affinities put in at random.
func TestPlacesAgreeWithStates(t *testing.T) {
	for seed := range uint64(50) {
		rng, lossy := rand.New(rand.NewPCG(seed, 1)), seed%2 == 1
		events, truth, end := machine(rng, 5, 3, 2000)
		k := NewKernel(KernelOptions{Begin: 0, End: end, Machine: bigLittle()}, nil)
		for _, e := range events {
			h, _, _, err := kevent.Next(e)
			if err != nil {
				t.Fatal(err)
			}
			h = kevent.Header{Time: h.Time}
			var noise []byte
			switch rng.IntN(4) {
			case 0:
				noise = kevent.AppendIdle(nil, h, kevent.Idle{Idle: rng.Uint64N(8)})
			case 1:
				noise = kevent.AppendFreq(nil, h, kevent.Freq{CPU: rng.Uint32N(3), KHz: 500_000 * (1 + rng.Uint32N(3))})
			case 2:
				h.Tid = 1 + rng.Uint32N(5)
				noise = kevent.AppendAffinity(nil, h, kevent.Affinity{Allowed: rng.Uint64N(8)})
			}
			if rng.IntN(2) == 0 {
				e, noise = noise, e
			}
			if lossy && rng.IntN(20) == 0 {
				continue
			}
			if err := k.Push(slices.Concat(e, noise)); err != nil {
				t.Fatal(err)
			}
		}
		k.Finish()
		for tid := range truth {
			a := k.Thread(tid)
			if got, want := a.Placed.RunningNs(), a.States[Running]; got != want && !lossy || got > want {
				t.Fatalf("seed %d, thread %d ran %d ns in its places, %d in its states", seed, tid, got, want)
			}
			if a.Placed.WaitNs > a.States[Runnable] || a.Placed.FreeNs() > a.Placed.WeakNs() || a.Placed.WeakNs() > a.Placed.Ns[1] {
				t.Fatalf("seed %d, thread %d: %+v of %v", seed, tid, a.Placed, a.States)
			}
			last := int64(0)
			for _, p := range a.Places {
				if p.Start < last || p.End <= p.Start {
					t.Fatalf("seed %d, thread %d: %+v begins before %d, where the place before it ends", seed, tid, p, last)
				}
				last = p.End
			}
		}
	}
}
