package stacks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// text makes lines of names: methods in capitals, native functions in small letters, "?" a method that is not known,
// a name with "!" begins a thread.
func text(names string) (lines []line) {
	for _, n := range strings.Fields(names) {
		id := uint64(0)
		for _, r := range strings.TrimSuffix(n, "!") {
			id = id*1000 + uint64(r)
		}
		l := line{fn: FuncID(id), key: id, entry: strings.HasSuffix(n, "!")}
		l.method = n == "?" || n[0] >= 'A' && n[0] <= 'Z'
		l.any = n == "?"
		lines = append(lines, l)
	}
	return lines
}

// show is the opposite: what both sides know has a "+", what only the ring knows a "*".
func show(ring, frames string, pairs []pair) string {
	r, f := strings.Fields(ring), strings.Fields(frames)
	var out []string
	for _, p := range pairs {
		switch {
		case p.ring < 0:
			out = append(out, f[p.frame])
		case p.frame < 0:
			out = append(out, r[p.ring]+"*")
		default:
			out = append(out, f[p.frame]+"+")
		}
	}
	return strings.Join(out, " ")
}

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		what, ring, frames, calls, want string
		complete                        bool
		supplied, contradictions        int
	}{
		{"nothing", "", "", "", "", true, 0, 0},
		{"no ring", "", "_start! M a", "", "_start! M a", true, 0, 0},
		{"no frames", "M A", "", "", "M* A*", false, 2, 0},
		{"whole", "M A", "_start! M A memcpy", "", "_start! M+ A+ memcpy", true, 0, 0},
		{"natives among methods", "M C", "_start! M qsort C strcmp", "", "_start! M+ qsort C+ strcmp", true, 0, 0},
		{"the caller of a native function is lost", "M A", "_start! M memcpy", "", "_start! M+ A* memcpy", false, 1, 0},
		{"outer frames are cut off", "M A B", "A B x", "", "M* A+ B+ x", false, 1, 0},
		{"main is lost below what began the thread", "M C", "_start! qsort C", "", "_start! M* qsort C+", false, 1, 0},
		{"two are lost", "M C", "_start! qsort memcmp", "", "_start! M* C* qsort memcmp", false, 2, 0},
		{"two are lost, and one is known to be called back", "M C", "_start! qsort memcmp", "qsort>C", "_start! M* qsort C* memcmp", false, 2, 0},
		{"recursion of callbacks", "M C C", "_start! qsort qsort memcmp", "qsort>C", "_start! M* qsort C* qsort C* memcmp", false, 3, 0},
		{"a native function that calls itself", "M C", "sort sort sort x", "sort>C", "M* sort sort sort C* x", false, 2, 0},
		{"recursion", "M F F F", "_start! M F F F", "", "_start! M+ F+ F+ F+", true, 0, 0},
		{"recursion of which the outer part is lost", "M F F F F", "F F x", "", "M* F* F* F+ F+ x", false, 3, 0},
		{"mutual recursion with a hole", "M A B A B", "_start! M B A B", "", "_start! M+ A* B+ A+ B+", false, 1, 0},
		{"not known which", "? ? G", "M A B G", "", "M A+ B+ G+", true, 0, 0},
		{"known is better than not known which", "? A", "M A x", "", "M+ A+ x", true, 0, 0},
		{"not known which, and none of the known agrees", "? A", "B", "", "?* A* B", false, 2, 1},
		{"not known which, and more than there are", "? ?", "A x", "", "?* A+ x", false, 1, 0},
		{"not known which, and lost", "? G", "x G", "", "?* x G+", false, 1, 0},
		{"entered, but the record is not there yet", "M", "_start! M A", "", "_start! M+ A", true, 0, 1},
		{"left, but the exit is not there yet", "M A", "_start! M", "", "_start! M+ A*", true, 1, 1},
		{"the same, unwound by frame pointers: the innermost frame is certain", "M A", "_start! M", "", "_start! M+ A*", false, 1, 1},
		{"a native function, unwound by frame pointers: nothing is certain", "M A", "_start! M x", "", "_start! M+ A* x", false, 1, 0},
		{"one of two", "M A B", "_start! M A C", "", "_start! M+ A+ B* C", true, 1, 2},
		{"the innermost is a method that the ring does not have", "", "_start! A", "", "_start! A", true, 0, 1},
		{"order that contradicts", "A B", "B A", "", "B A+ B*", false, 1, 1},
		{"another stack below", "M R Y", "co_start Y x", "", "M* R* co_start Y+ x", true, 2, 0},
	} {
		m := merger{calls: map[call]struct{}{}}
		for e := range strings.FieldsSeq(c.calls) {
			a, b, _ := strings.Cut(e, ">")
			m.calls[call{text(a)[0].fn, text(b)[0].fn}] = struct{}{}
		}
		pairs, v := m.merge(nil, text(c.ring), text(c.frames), c.complete, c.frames != "")
		if got := show(c.ring, c.frames, pairs); got != c.want || v.supplied != c.supplied || v.contradictions() != c.contradictions {
			t.Errorf("%s: %q, %+v, want %q, %d supplied, %d contradictions", c.what, got, v, c.want, c.supplied, c.contradictions)
		}
	}
}

// check reports what is wrong with a merge, whatever the sides were.
func check(ring, frames []line, pairs []pair) error {
	var r, f []int
	for _, p := range pairs {
		if p.ring >= 0 {
			r = append(r, p.ring)
		}
		if p.frame >= 0 {
			f = append(f, p.frame)
		}
		switch {
		case p.ring < 0 && p.frame < 0:
			return fmt.Errorf("a line of neither")
		case p.ring >= 0 && p.frame >= 0 && (!frames[p.frame].method || !ring[p.ring].any && ring[p.ring].key != frames[p.frame].key):
			return fmt.Errorf("%v are not the same method", p)
		}
	}
	for side, got := range map[string][]int{"ring": r, "stack": f} {
		n := len(ring)
		if side == "stack" {
			n = len(frames)
		}
		if len(got) != n || !slices.IsSorted(got) || len(slices.Compact(got)) != n {
			return fmt.Errorf("of the %d lines of the %s it has %v", n, side, got)
		}
	}
	return nil
}

// TestMergeProperties: whatever is lost, the result has all lines of both sides in their order, and what both know
// once. If the stack is whole, the result is the true stack.
func TestMergeProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	m := merger{calls: map[call]struct{}{}}
	for round := range 50_000 {
		var truth, ring, frames []line
		depth, names := rnd.IntN(14), 1+rnd.IntN(5) // few names: much recursion
		loss, known := rnd.IntN(3)*30, rnd.IntN(3)  // percent of frames; outermost methods of which only the end is known
		clear(m.calls)
		common := 0
		for range depth {
			id := uint64(1 + rnd.IntN(names))
			l := line{fn: FuncID(id), key: id, method: id%2 == 1}
			truth = append(truth, l)
			switch {
			case l.method && known > 0:
				known--
				ring = append(ring, line{method: true, any: true})
			case l.method:
				ring = append(ring, l)
			}
			if rnd.IntN(100) >= loss {
				frames = append(frames, l)
				if l.method {
					common++
				}
			}
			if rnd.IntN(2) == 0 {
				m.calls[call{FuncID(1 + rnd.IntN(names)), FuncID(1 + rnd.IntN(names))}] = struct{}{}
			}
		}
		pairs, v := m.merge(nil, ring, frames, loss == 0, rnd.IntN(2) == 0)
		if err := check(ring, frames, pairs); err != nil {
			t.Fatalf("round %d: %v\nring %v\nframes %v\npairs %v", round, err, ring, frames, pairs)
		}
		exacts := !slices.ContainsFunc(ring, func(l line) bool { return l.any })
		if exacts && v.both < common {
			t.Fatalf("round %d: %d pairs, %d are common\nring %v\nframes %v", round, v.both, common, ring, frames)
		}
		if loss == 0 && exacts {
			if len(pairs) != len(truth) || v.supplied != 0 || v.contradictions() != 0 {
				t.Fatalf("round %d: %d lines for %d calls, %+v", round, len(pairs), len(truth), v)
			}
			for i, p := range pairs {
				if p.frame != i || truth[i].method != (p.ring >= 0) {
					t.Fatalf("round %d: line %d is %v", round, i, p)
				}
			}
		}
		// What contradicts, too, is only put in order.
		ring = slices.DeleteFunc(ring, func(l line) bool { return l.any })
		rnd.Shuffle(len(ring), func(i, k int) { ring[i], ring[k] = ring[k], ring[i] })
		pairs, _ = m.merge(nil, ring, frames, true, true)
		if err := check(ring, frames, pairs); err != nil {
			t.Fatalf("round %d, shuffled: %v", round, err)
		}
	}
}

// TestMergeDeep: recursion deeper than what is compared is kept.
func TestMergeDeep(t *testing.T) {
	var m merger
	ring, frames := text(strings.Repeat("F G ", 20_000)), text("H "+strings.Repeat("F x G ", 1000)+"F")
	pairs, v := m.merge(nil, ring, frames, false, true)
	if err := check(ring, frames, pairs); err != nil {
		t.Fatal(err)
	}
	if v.both < maxFrameDepth/2 {
		t.Errorf("%+v", v)
	}
}

func BenchmarkMerge(b *testing.B) {
	var m merger
	ring, frames := text("M A B C D E F G"), text("_start! init M A x y B C q D E w F z G memcpy")
	lost := text("_start! init M A x y C q E w F z memcpy")
	var dst []pair
	for b.Loop() {
		dst, _ = m.merge(dst[:0], ring, frames, true, true)
		dst, _ = m.merge(dst[:0], ring, lost, false, true)
	}
}
