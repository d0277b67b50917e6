package inline

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func decode(t *testing.T, m *Methods, s *Segment, carried []uint32) Decoded {
	t.Helper()
	d := &Decoder{Methods: m}
	out, err := d.Decode(s, carried)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func slices(d *Decoded, s *Segment) []Slice {
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
			w.now += rng.Uint64N(1<<32 - BackStep) // unseen, but short enough
		default:
			w.now += rng.Uint64N(400)
		}
		switch d := len(w.stack); {
		case d > 2 && rng.IntN(20) == 0:
			w.resumed(rng.IntN(d))
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
		got := decode(t, w.methods, s, nil)
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
		full := decode(t, w.methods, fullSeg, nil)
		fullSlices := slices(&full, fullSeg)
		for n := range w.slots {
			s := w.ring(n, begin)
			got := decode(t, w.methods, s, nil)
			events := got.Events
			if got.Stats.Damaged == 1 && len(events) > 0 && events[0].Method == Unknown {
				events = events[1:] // a wide entry without its pointer
			}
			if got.Stats.Damaged > 1 || got.Stats.Ambiguous != 0 {
				t.Fatalf("seed %d, newest %d: %+v", seed, n, got.Stats)
			}
			want := full.Events[len(full.Events)-len(events):]
			if len(events) > 0 && !cmp.Equal(want, events) {
				t.Fatalf("seed %d, newest %d: %s", seed, n, cmp.Diff(want, events))
			}
			checkNewest(t, fullSlices, slices(&got, s))
		}
	}
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
	seg := &Segment{Slots: s, Complete: true, Begin: base, End: base + 1<<32}
	got := decode(t, m, seg, nil)
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
	w := &writer{methods: NewMethods(0), now: 1 << 40}
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
		got := decode(t, w.methods, &Segment{Slots: s.Slots, Complete: true, Begin: s.Begin, End: s.End, Anchors: anchors}, nil)
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
			got := decode(t, NewMethods(0), &seg, nil)
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
	const base = uint64(9) << 32
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
		got := decode(t, NewMethods(0), &c.seg, nil)
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

// TestCarried decodes a run in two segments, cut at every record. With the stack carried over, the slices are those of
// the whole run, but for each slice that is open at the cut, which comes in two parts.
func TestCarried(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	w := randomRun(rng, 200)
	var stack []uint32
	slot := 0
	for cut, e := range w.want {
		rest := &Segment{Slots: w.slots[slot:], Complete: true, Begin: e.Counter, End: w.now}
		for _, a := range w.anchors {
			if a.Slot >= uint64(slot) {
				a.Slot -= uint64(slot)
				rest.Anchors = append(rest.Anchors, a)
			}
		}
		got := decode(t, w.methods, rest, stack)
		if diff := cmp.Diff(w.want[cut:], got.Events); diff != "" {
			t.Fatal(diff)
		}
		if got.Orphans != 0 || !cmp.Equal(append([]uint32{}, stack...), append([]uint32{}, got.Open...)) {
			t.Fatalf("cut %d: open %v, carried %v", cut, got.Open, stack)
		}
		alone := decode(t, w.methods, rest, nil)
		if len(alone.Open) > len(stack) {
			t.Fatalf("cut %d: %d orphans of %d", cut, len(alone.Open), len(stack))
		}
		for i, m := range alone.Open {
			if known := stack[len(stack)-len(alone.Open)+i]; alone.Stats.LostResumes == 0 && m != Unknown && m != known {
				t.Fatalf("cut %d: orphan %d is called %d, is %d", cut, i, m, known)
			}
		}
		switch e.Kind {
		case KindEntry:
			stack = append(stack, e.Method)
		case KindExit:
			stack = stack[:len(stack)-1]
		case KindResumed:
			for stack[len(stack)-1] != e.Method {
				stack = stack[:len(stack)-1]
			}
		}
		slot = w.ends[cut]
	}
}
