package inline

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func decode(t *testing.T, m *Methods, s *Segment) Decoded {
	t.Helper()
	d := &Decoder{Methods: m}
	out, err := d.Decode(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sliced(d *Decoded, s *Segment) []Slice {
	var out []Slice
	d.Slices(s.Begin, s.End, func(s *Slice) bool { out = append(out, *s); return true })
	return out
}

// randomRun writes a program with wide entries, unwinding, and gaps of up to 1000 wraps of the counter's low half
// during which the recorder was awake.
func randomRun(rng *rand.Rand, records int) *writer {
	w := &writer{methods: NewMethods(0), now: 1<<33 + rng.Uint64N(1<<44)}
	w.begin = w.now
	for len(w.want) < records {
		switch rng.IntN(40) {
		case 0:
			w.idle(rng.Uint64N(1000 << 32))
		case 1:
			w.idle(1<<32 + rng.Uint64N(1<<21) - 1<<20)
		case 2:
			w.now += rng.Uint64N(1 << 31) // unseen, but short enough
		default:
			w.now += rng.Uint64N(400)
		}
		switch d := len(w.stack); {
		case d > 2 && rng.IntN(20) == 0:
			w.resumed(rng.IntN(d))
		case d > 0 && d < 30 && rng.IntN(6) == 0:
			w.framed(0x2000 + 16*rng.Uint64N(9))
		case d == 0 || d < 30 && rng.IntN(2) == 0:
			w.entry(0x1000+16*rng.Uint64N(50), rng.IntN(4) == 0)
		default:
			w.exit()
		}
	}
	w.now += rng.Uint64N(1 << 31)
	return w
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := randomRun(rng, 1+rng.IntN(600))
		s := w.ring(len(w.slots), w.begin)
		got := decode(t, w.methods, s)
		if diff := cmp.Diff(w.want, got.Events); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if st := got.Stats; st.Damaged+st.Ambiguous+st.BackSteps+st.StaleAnchors+st.LostResumes != 0 || len(got.Open) != 0 {
			t.Fatalf("seed %d: %+v, open %v", seed, st, got.Open)
		}
	}
}

// TestWrapEverywhere cuts the ring at every slot. What is left must decode to the end of the full decode, the cut
// record aside, and every slice that began and ended in it must be the same.
func TestWrapEverywhere(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := randomRun(rng, 300)
		begin := w.begin
		fullSeg := w.ring(len(w.slots), begin)
		full := decode(t, w.methods, fullSeg)
		fullSlices := sliced(&full, fullSeg)
		for n := range w.slots {
			s := w.ring(n, begin)
			got := decode(t, w.methods, s)
			events := recorded(got.Events)
			if got.Stats.Damaged == 1 && len(events) > 0 && events[0].Method == Unknown {
				events = events[1:] // a wide entry without its pointer
			}
			if got.Stats.Damaged > 1 || got.Stats.Ambiguous != 0 {
				t.Fatalf("seed %d, newest %d: %+v", seed, n, got.Stats)
			}
			want := recorded(full.Events)
			want = want[len(want)-len(events):]
			if len(events) > 0 && !cmp.Equal(want, events) {
				t.Fatalf("seed %d, newest %d: %s", seed, n, cmp.Diff(want, events))
			}
			checkNewest(t, fullSlices, sliced(&got, s))
		}
	}
}

// recorded is the events that are records.
func recorded(events []Event) (out []Event) {
	for _, e := range events {
		if e.Kind <= KindResumed {
			out = append(out, e)
		}
	}
	return out
}

// checkNewest compares what a shorter ring gives with the slices of a full one. Both come in the order in which slices
// end; the depths below a lost resume are not known.
func checkNewest(t *testing.T, full, got []Slice) {
	t.Helper()
	var whole []Slice
	for _, s := range got {
		if s.Flags&CutStart == 0 && s.Method != Unknown {
			s.Depth = 0
			whole = append(whole, s)
		}
	}
	j := len(full) - 1
	for i := len(whole) - 1; i >= 0; i-- {
		for ; j >= 0; j-- {
			f := full[j]
			f.Depth = 0
			if f == whole[i] {
				break
			}
		}
		if j < 0 {
			t.Fatalf("slice %+v is not in the full decode", whole[i])
		}
		j--
	}
}

func TestBackSteps(t *testing.T) {
	m := NewMethods(0)
	const base = uint64(5) << 32
	var s []uint64
	// A handler's records (110 to 5000) lie between the stub's read of the counter (100) and its write.
	s = AppendEntry(s, base+50, 0x1000)
	s = AppendEntry(s, base+110, 0x2000)
	s = AppendExit(s, base+5000)
	s = AppendEntry(s, base+100, 0x3000)
	s = AppendExit(s, base+6000)
	s = AppendExit(s, base-BackStep) // more than a step back: the counter has wrapped
	seg := &Segment{Slots: s, Complete: true, Begin: base, End: base + 1<<32 - BackStep + 100}
	got := decode(t, m, seg)
	var times []uint64
	for _, e := range got.Events {
		times = append(times, e.Counter-base)
	}
	want := []uint64{50, 110, 5000, 5000, 6000, 1<<32 - BackStep}
	if diff := cmp.Diff(want, times); diff != "" || got.Stats.BackSteps != 1 || got.Stats.Ambiguous != 0 {
		t.Fatalf("%s %+v", diff, got.Stats)
	}
}

func TestStaleAnchors(t *testing.T) {
	w := &writer{methods: NewMethods(0), now: 1<<40 + 5}
	w.entry(0x1000, false)
	w.idle(1 << 35)
	w.exit()
	s := w.ring(2, 1<<40)
	good := s.Anchors[0]
	bad := []Anchor{
		{Slot: 2, Last: 7, First: good.First, Until: good.Until},                  // the place was overwritten since
		{Slot: 3, Last: good.Last, First: good.First, Until: good.Until},          // beyond the ring
		{Slot: 1 << 63, Last: good.Last, First: good.First, Until: good.Until},    // far beyond
		{Slot: 1, Last: good.Last, First: good.Until, Until: good.First},          // ends before it begins
		{Slot: 1, Last: good.Last, First: good.First, Until: 1 << 60},             // after the end
		{Slot: 1, Last: good.Last, First: 5, Until: 6},                            // before the beginning
		{Slot: 2, Last: s.Slots[1], First: good.First - 100, Until: good.First},   // newer place, older time
		{Slot: 0, Last: 0, First: good.Until + 100, Until: good.Until + (1 << 4)}, // older place, newer time
	}
	for i, a := range bad {
		anchors := []Anchor{a, good}
		if i == len(bad)-1 {
			anchors = []Anchor{good, {Slot: 0, First: 1, Until: 2}}
		}
		got := decode(t, w.methods, &Segment{Slots: s.Slots, Complete: true, Begin: s.Begin, End: s.End, Anchors: anchors})
		if diff := cmp.Diff(w.want, got.Events); diff != "" || got.Stats.StaleAnchors != 1 {
			t.Errorf("anchor %d: %+v\n%s", i, got.Stats, diff)
		}
	}
}

// TestPreempted: a thread that is preempted after it has read the counter is seen where it was before. The record that it
// writes later keeps its time.
func TestPreempted(t *testing.T) {
	const base = uint64(9) << 32
	for _, preempted := range []uint64{1, Slack, 10 * Slack, BackStep - Slack} {
		for _, tail := range [][]uint64{AppendEntry(nil, base+100, 0x2000), AppendEntryWide(nil, base+100, 0x2000), AppendResumed(nil, base+100, 0x1000)} {
			slots := AppendExit(append(AppendEntry(nil, base, 0x1000), tail...), base+100+preempted+50)
			anchor := Anchor{Slot: 1, Last: slots[0], First: base + 110, Until: base + 100 + preempted}
			anchor.First = min(anchor.First, anchor.Until)
			seg := Segment{Slots: slots, Complete: true, Begin: base, End: base + 1<<31, Anchors: []Anchor{anchor}}
			got := decode(t, NewMethods(0), &seg)
			check(t, &seg, &got)
			var times []uint64
			for _, e := range got.Events {
				times = append(times, e.Counter-base)
			}
			if s := got.Stats; !cmp.Equal(times, []uint64{0, 100, 150 + preempted}) || s.Ambiguous+s.BackSteps+s.StaleAnchors > 0 {
				t.Errorf("preempted for %d: times %v, %+v", preempted, times, s)
			}
		}
	}
}

// TestContradiction: records that can not lie between the bounds that the recorder knew are counted.
func TestContradiction(t *testing.T) {
	const base = uint64(9)<<32 + 7
	for _, c := range []struct {
		name      string
		seg       Segment
		ambiguous uint64
	}{
		{"before begin", Segment{Slots: []uint64{Pack(base+500, 0), Pack(base+400, 0)}, Begin: base + 300 + Slack + 500, End: base + 2*Slack}, 2},
		{"just after end", Segment{Slots: []uint64{Pack(base+100+Slack+1, 0)}, Begin: base - 1<<33, End: base + 100}, 1},
		{"before anchor", Segment{
			Slots: []uint64{Pack(base, 0), Pack(base+BackStep*2, 0)}, Begin: base, End: base + 1<<31,
			Anchors: []Anchor{{Slot: 1, Last: Pack(base, 0), First: base, Until: base + BackStep*3 + Slack + 1}},
		}, 1},
		{"second behind anchor", Segment{
			Slots: []uint64{Pack(base, 0), Pack(base+100, 0), Pack(base+200, 0)}, Begin: base, End: base + 1<<31,
			Anchors: []Anchor{{Slot: 1, Last: Pack(base, 0), First: base, Until: base + 200 + Slack + 1}},
		}, 1},
	} {
		got := decode(t, NewMethods(0), &c.seg)
		if got.Stats.Ambiguous != c.ambiguous {
			t.Errorf("%s: %+v", c.name, got.Stats)
		}
		check(t, &c.seg, &got)
	}
}

func TestBadSegments(t *testing.T) {
	d := &Decoder{Methods: NewMethods(0)}
	if _, err := d.Decode(&Segment{Begin: 2, End: 1}, nil); !errors.Is(err, ErrBounds) {
		t.Error(err)
	}
}

// TestContinued decodes a run in two segments, cut at every record. The second one goes on with what the first one left
// open, and comes back to what it left.
func TestContinued(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, w := range []*writer{randomRun(rng, 200), coroutines(rng, 200)} {
		slot := 0
		for cut := range w.ends {
			from := 0
			if cut > 0 {
				slot, from = w.ends[cut-1], w.marks[cut-1]
			}
			whole := w.ring(len(w.slots), w.begin)
			first, second := *whole, *whole
			first.Slots, second.Slots = whole.Slots[:slot], whole.Slots[slot:]
			first.Anchors, second.Anchors = nil, nil
			first.End = w.begin
			if from > 0 {
				first.End = w.want[from-1].Counter
			}
			second.Begin = w.want[from].Counter
			for _, a := range w.anchors {
				if a.Slot <= uint64(slot) && a.Until <= first.End {
					first.Anchors = append(first.Anchors, a)
				}
				if a.Slot >= uint64(slot) {
					a.Slot -= uint64(slot)
					second.Anchors = append(second.Anchors, a)
				}
			}
			d := &Decoder{Methods: w.methods}
			one, err := d.Decode(&first, nil)
			if err != nil {
				t.Fatal(err)
			}
			events := append([]Event{}, one.Events...)
			open := end(one.Open, events)
			two, err := d.Decode(&second, &one)
			if err != nil {
				t.Fatal(err)
			}
			check(t, &second, &two)
			events = append(events, two.Events...)
			if diff := cmp.Diff(unwound(w.want), unwound(events)); diff != "" {
				t.Fatalf("cut at record %d: %s", cut, diff)
			}
			if two.Orphans != 0 || !cmp.Equal(open, append([]uint32{}, two.Open...)) {
				t.Fatalf("cut at record %d: open %v, left open %v", cut, two.Open, open)
			}
			if _, err := d.Decode(&second, &one); !errors.Is(err, ErrNotLast) {
				t.Fatal(err)
			}
		}
	}
}

// end is what is open after the events.
func end(open []uint32, events []Event) []uint32 {
	open = append([]uint32{}, open...)
	for _, e := range events {
		switch e.Kind {
		case KindEntry, KindReentered:
			open = append(open, e.Method)
		case KindExit, KindUnwound, KindSuspended:
			open = open[:len(open)-1]
		}
	}
	return open
}

// unwound takes suspended methods for unwound ones, as a segment does that ends before they go on.
func unwound(events []Event) (out []Event) {
	for _, e := range events {
		if e.Kind == KindSuspended {
			e.Kind = KindUnwound
		}
		out = append(out, e)
	}
	return out
}
