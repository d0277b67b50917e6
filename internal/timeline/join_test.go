package timeline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"braid/inline"
)

// identity is a clock on which a tick is a nanosecond.
func identity(t testing.TB) *Clock {
	t.Helper()
	c, err := NewClock([]ClockSample{{1e9, 1e9, 1e9}, {3e9, 3e9, 3e9}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func one(segments ...*Segment) Segments {
	return func(yield func(*Segment, error) bool) {
		for _, s := range segments {
			if !yield(s, nil) {
				return
			}
		}
	}
}

const start = uint64(2e9) // when the programs of these tests begin

// records writes methods by letters, as "A100 B200 )300 )400": entries with their times after start, and exits.
func records(text ...any) *Segment {
	s := &Segment{Segment: inline.Segment{Complete: true, Begin: start}}
	for i := 0; i < len(text); i += 2 {
		at := start + uint64(text[i+1].(int))
		switch m := text[i].(string); {
		case m == ")":
			s.Slots = inline.AppendExit(s.Slots, at)
		case m[0] == '^': // control comes back into the method
			s.Slots = inline.AppendResumed(s.Slots, at, uint64(m[1])*16)
		default:
			s.Slots = inline.AppendEntry(s.Slots, at, uint64(m[0])*16)
		}
		s.End = at
	}
	return s
}

// activityOf makes intervals from states and their ends after start, and requests of 1000 bytes issued at times.
func activityOf(states []State, ends []int, issues ...int) *Activity {
	a := &Activity{}
	from := int64(start)
	for i, st := range states {
		a.Intervals = append(a.Intervals, Interval{Start: from, End: int64(start) + int64(ends[i]), State: st})
		from = int64(start) + int64(ends[i])
	}
	for _, at := range issues {
		a.Spans = append(a.Spans, Span{Start: int64(start) + int64(at), End: int64(start) + int64(at) + 5, Kind: SpanWrite, Bytes: 1000})
	}
	markIOWait(a.Intervals, a.Spans)
	return a
}

type flat struct {
	Method      string
	Begin, End  int
	Flags       SliceFlags
	Self, Total Split
}

func newJoiner(t testing.TB) *Joiner {
	return &Joiner{Clock: identity(t), Methods: inline.NewMethods(0)}
}

func (j *Joiner) flat(t *testing.T, segs Segments, a *Activity) []flat {
	t.Helper()
	var out []flat
	err := j.Slices(segs, a, func(batch []Slice) error {
		for _, s := range batch {
			out = append(out, flat{j.letter(s.Method), int(s.Begin - int64(start)), int(s.End - int64(start)), s.Flags, s.Self, s.Total})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (j *Joiner) letter(m uint32) string {
	if m == inline.Unknown {
		return "?"
	}
	return string(rune(j.Methods.Row(m).Addr / 16))
}

func split(running, runnable, sleeping, blocked, ioWait, bytes int64) Split {
	return Split{Ns: [NumStates]int64{0, running, runnable, sleeping, blocked}, IOWaitNs: ioWait, IOBytes: bytes}
}

func TestJoinStates(t *testing.T) {
	j := newJoiner(t)
	segs := one(records("A", 100, "B", 200, ")", 600, "C", 650, ")", 700, ")", 1000))
	a := activityOf([]State{Running, Sleeping, Runnable, Running, Blocked, Running}, []int{300, 400, 450, 800, 900, 2000}, 250, 790, 300)
	a.Spans[1], a.Spans[2] = a.Spans[2], a.Spans[1]
	a.Spans[2].End = int64(start) + 850
	markIOWait(a.Intervals, a.Spans)
	want := []flat{
		{"B", 200, 600, 0, split(250, 50, 100, 0, 0, 2000), split(250, 50, 100, 0, 0, 2000)},
		{"C", 650, 700, 0, split(50, 0, 0, 0, 0, 0), split(50, 0, 0, 0, 0, 0)},
		{"A", 100, 1000, 0, split(100+50+100+100, 0, 0, 100, 100, 1000), split(650, 50, 100, 100, 100, 3000)},
	}
	if diff := cmp.Diff(want, j.flat(t, segs, a)); diff != "" {
		t.Error(diff)
	}
}

// TestJoinRecursion: total counts the outermost call only, self and calls count all.
func TestJoinRecursion(t *testing.T) {
	j := newJoiner(t)
	var table MethodTable
	segs := one(records("A", 0, "B", 100, "A", 200, ")", 300, ")", 400, ")", 500))
	a := activityOf([]State{Running}, []int{1000})
	if err := j.Sum(segs, a, &table); err != nil {
		t.Fatal(err)
	}
	got := map[string][3]int64{}
	for i, r := range table.Rows {
		got[j.letter(uint32(i))] = [3]int64{int64(r.Calls), r.Self.Ns[Running], r.Total.WallNs()}
	}
	want := map[string][3]int64{"?": {}, "A": {2, 300, 500}, "B": {1, 200, 300}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestJoinSegments: methods go on into the next segment if it continues, and are cut if not.
func TestJoinSegments(t *testing.T) {
	first := records("A", 100, "B", 200)
	first.End = start + 250
	second := records(")", 300, "C", 400, ")", 500, ")", 600)
	second.Begin = start + 260
	third := records(")", 700, "D", 800)
	third.Begin, third.End = start+650, start+900
	a := activityOf([]State{Running}, []int{1000})
	r := func(self, total int64) (Split, Split) { return split(self, 0, 0, 0, 0, 0), split(total, 0, 0, 0, 0, 0) }
	mk := func(m string, b, e int, f SliceFlags, self, total int64) flat {
		s, tt := r(self, total)
		return flat{m, b, e, f, s, tt}
	}

	second.Continues = true
	j := newJoiner(t)
	got := j.flat(t, one(first, second, third), a)
	want := []flat{
		mk("B", 200, 300, 0, 100, 100),
		mk("C", 400, 500, 0, 100, 100),
		mk("A", 100, 600, 0, 300, 500),
		mk("?", 650, 700, inline.CutStart, 50, 50),
		mk("D", 800, 900, inline.CutEnd, 100, 100),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("continuing:", diff)
	}

	second.Continues = false
	got = newJoiner(t).flat(t, one(first, second), a)
	want = []flat{
		mk("B", 200, 250, inline.CutEnd, 50, 50),
		mk("A", 100, 250, inline.CutEnd, 100, 150),
		mk("?", 260, 300, inline.CutStart, 40, 40),
		mk("C", 400, 500, 0, 100, 100),
		mk("?", 260, 600, inline.CutStart, 200, 340),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("apart:", diff)
	}

	// The second segment shows that one more method was open all the time.
	second.Slots = inline.AppendExit(second.Slots, start+640)
	second.Continues, second.End = true, start+640
	got = newJoiner(t).flat(t, one(first, second), a)
	want = []flat{
		mk("B", 200, 260, inline.CutEnd, 60, 60),
		mk("A", 100, 260, inline.CutEnd, 100, 160),
		mk("B", 260, 300, inline.CutStart, 40, 40),
		mk("C", 400, 500, 0, 100, 100),
		mk("A", 260, 600, inline.CutStart, 200, 340),
		mk("?", 260, 640, inline.CutStart, 40, 380),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("orphan below:", diff)
	}
}

// What was open when a thread was killed ends with the thread, not when its recorder found out.
func TestJoinEnded(t *testing.T) {
	j := &Joiner{Clock: identity(t), Methods: inline.NewMethods(1)}
	seg := records("A", 100, "B", 200)
	seg.End, seg.Ended = start+10_000, int64(start)+300
	var got [][2]int64
	err := j.Slices(one(seg), &Activity{}, func(batch []Slice) error {
		for _, s := range batch {
			got = append(got, [2]int64{s.Begin - int64(start), s.End - int64(start)})
		}
		return nil
	})
	if want := [][2]int64{{200, 300}, {100, 300}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("slices %v, want %v (%v)", got, want, err)
	}
}

// A thread none of whose segments could be read has no calls.
func TestJoinNoSegment(t *testing.T) {
	j := &Joiner{Clock: identity(t), Methods: inline.NewMethods(1)}
	if err := j.Sum(one(), &Activity{}, new(MethodTable)); err != nil {
		t.Error(err)
	}
	if err := j.Edges(one(), func([]Edge) error { t.Error("edges"); return nil }); err != nil {
		t.Error(err)
	}
}

// TestJoinModel compares random programs on random states with a model that looks at every nanosecond.
func TestJoinModel(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		const length = 600
		var text []any
		depth := 0
		for at := rng.IntN(5); at < length-20; at += rng.IntN(9) {
			if depth == 0 || depth < 8 && rng.IntN(2) == 0 {
				text = append(text, string(rune('A'+rng.IntN(5))), at)
				depth++
			} else {
				text = append(text, ")", at)
				depth--
			}
		}
		seg := records(text...)
		seg.End = start + length

		a := &Activity{}
		at := rng.Int64N(50)
		for at < length {
			end := at + 1 + rng.Int64N(30)
			iv := Interval{Start: int64(start) + at, End: int64(start) + end, State: State(rng.IntN(int(NumStates)))}
			if iv.State >= Sleeping && rng.IntN(2) == 0 {
				iv.Flags = IOWait
			}
			a.Intervals = append(a.Intervals, iv)
			at = end
			if rng.IntN(5) == 0 {
				at += rng.Int64N(20)
			}
		}
		for at := int64(0); at < length; at += rng.Int64N(40) {
			a.Spans = append(a.Spans, Span{Start: int64(start) + at, End: int64(start) + at + 9, Kind: SpanRead, Bytes: uint32(1 + rng.IntN(100))})
		}

		// The model: what each nanosecond is, and how many bytes were issued up to it.
		var state [length]State
		var wait [length]bool
		var bytes [length + 1]int64
		for _, iv := range a.Intervals {
			for n := iv.Start - int64(start); n < iv.End-int64(start) && n < length; n++ {
				state[n], wait[n] = iv.State, iv.Flags&IOWait != 0
			}
		}
		for _, s := range a.Spans {
			for n := s.Start - int64(start); n <= length; n++ {
				bytes[n] += int64(s.Bytes)
			}
		}
		between := func(from, to int) (s Split) {
			for n := from; n < to; n++ {
				s.Ns[state[n]]++
				if wait[n] {
					s.IOWaitNs++
				}
			}
			s.IOBytes = bytes[to] - bytes[from]
			return s
		}

		j := newJoiner(t)
		got := j.flat(t, one(seg), a)
		var want, stack []flat
		var outer []bool // want's slices that are not within recursion
		done := func(f flat) {
			want = append(want, f)
			outer = append(outer, !slices.ContainsFunc(stack, func(g flat) bool { return g.Method == f.Method }))
		}
		last := 0
		for i := 0; i < len(text); i += 2 {
			at := text[i+1].(int)
			if n := len(stack); n > 0 {
				part := between(last, at)
				stack[n-1].Self.Add(&part)
			}
			last = at
			if m := text[i].(string); m != ")" {
				stack = append(stack, flat{Method: m, Begin: at})
				continue
			}
			f := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			f.End, f.Total = at, between(f.Begin, at)
			done(f)
		}
		if n := len(stack); n > 0 {
			part := between(last, length)
			stack[n-1].Self.Add(&part)
		}
		for n := len(stack) - 1; n >= 0; n-- {
			f := stack[n]
			f.End, f.Total, f.Flags = length, between(f.Begin, length), inline.CutEnd
			stack = stack[:n]
			done(f)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		sums := map[string]*MethodTotals{}
		for i, f := range want {
			if sums[f.Method] == nil {
				sums[f.Method] = &MethodTotals{}
			}
			sums[f.Method].Calls++
			sums[f.Method].Self.Add(&f.Self)
			if outer[i] {
				sums[f.Method].Total.Add(&f.Total)
			}
		}

		var table MethodTable
		if err := j.Sum(one(seg), a, &table); err != nil {
			t.Fatal(err)
		}
		for m, r := range table.Rows {
			if want := sums[j.letter(uint32(m))]; want != nil && (want.Calls != r.Calls || want.Self != r.Self || want.Total.Ns != r.Total.Ns) {
				t.Fatalf("seed %d: method %s: got %+v, want %+v", seed, j.letter(uint32(m)), r, want)
			}
			if r.active != 0 {
				t.Fatalf("seed %d: method %s is left open", seed, j.letter(uint32(m)))
			}
		}
		checkEdges(t, j, one(seg), got)
	}
}

// checkEdges compares the edges with the slices.
func checkEdges(t *testing.T, j *Joiner, segs Segments, all []flat) {
	t.Helper()
	var stack []Edge
	last := int64(0)
	var got []flat
	err := j.Edges(segs, func(edges []Edge) error {
		for _, e := range edges {
			if e.Ns < last {
				t.Fatalf("edge %+v goes back from %d", e, last)
			}
			last = e.Ns
			if e.Begin {
				stack = append(stack, e)
				continue
			}
			b := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if b.Method != e.Method {
				t.Fatalf("%+v ends %+v", e, b)
			}
			got = append(got, flat{Method: j.letter(e.Method), Begin: int(b.Ns - int64(start)), End: int(e.Ns - int64(start)), Flags: e.Flags})
		}
		return nil
	})
	if err != nil || len(stack) != 0 {
		t.Fatal(err, stack)
	}
	for i, f := range all {
		f.Self, f.Total = Split{}, Split{}
		if f != got[i] {
			t.Fatalf("slice %d is %+v, its edges %+v", i, f, got[i])
		}
	}
}
