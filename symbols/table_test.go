package symbols

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// place is an image at a bias.
type place struct {
	img          *Image
	bias         uint64
	name         string
	instrumented bool
}

// newTable makes a table without files.
func newTable(places ...place) *Table {
	t := &Table{}
	for _, p := range places {
		m := ModuleInfo{Image: p.img}
		m.Path, m.Bias, m.Known, m.Instrumented = "/lib/"+p.name, p.bias, true, p.instrumented
		m.Ranges = p.img.ranges(p.bias)
		t.mods = append(t.mods, m)
	}
	t.placeModules()
	t.low = newLowIndex(t.mods)
	return t
}

func tableOf(img *Image, bias uint64) *Table {
	return newTable(place{img, bias, "m", true})
}

func TestLookupAndStats(t *testing.T) {
	a := base(fn("a1", 0x1000, 16), fn("_ZN1a2a2Ev", 0x1010, 16)).image(t)
	b := base(fn("b1", 0x1000, 16)).image(t)
	table := newTable(place{a, 0x7f0000000000, "liba.so", true}, place{b, 0x560000000000, "prog", false})
	for _, c := range []struct {
		addr uint64
		want Symbol
		ok   bool
	}{
		{0x7f0000001000, Symbol{0x7f0000001000, 16, "a1", "a1", 0}, true},
		{0x7f0000001015, Symbol{0x7f0000001010, 16, "a::a2()", "_ZN1a2a2Ev", 0}, true},
		{0x56000000100f, Symbol{0x560000001000, 16, "b1", "b1", 1}, true},
		{0x560000001010, Symbol{0x560000001010, 0, "prog+0x1010", "", 1}, false},
		{0x560000003000, Symbol{0x560000003000, 0, "[unknown]+0x560000003000", "", -1}, false},
		{0, Symbol{0, 0, "[unknown]+0x0", "", -1}, false},
	} {
		got, ok := table.Lookup(c.addr)
		if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
			t.Errorf("%#x: %v %s", c.addr, ok, diff)
		}
	}
	if got, want := table.Stats(), (Stats{3, 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, ok := table.Resolve32(0x1000); !ok {
		t.Error("Resolve32 of an instrumented module's function")
	}
	if s, ok := table.Resolve32(0x1008); ok {
		t.Errorf("Resolve32 of an address inside a function: %+v", s)
	}
	if got, want := table.Stats(), (Stats{4, 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestSelect(t *testing.T) {
	a := base(fn("a1", 0x1000, 16), fn("a2", 0x1010, 16)).image(t)
	b := base(fn("b1", 0x1000, 16)).image(t)
	table := newTable(place{a, 0x7f0000000000, "liba.so", true}, place{b, 0x560000002000, "prog", true})
	got := table.Select([]uint64{0x7f0000001010, 0x7f0000001004, 0x7f0000001000, 0x55, 0x7f0000001010})
	want := []Symbol{
		{0x55, 0, "[unknown]+0x55", "", -1},
		{0x7f0000001000, 16, "a1", "a1", 0},
		{0x7f0000001010, 16, "a2", "a2", 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = table.Select32([]uint32{0x1010, 0x1010, 0x1000, 0x3000, 0x3500, 0x77})
	want = []Symbol{
		{0x77, 0, "[unknown]+0x77", "", -1},
		{0x560000003000, 16, "b1", "b1", 1},
		{0x560000003500, 0, "prog+0x1500", "", 1},
		{0x7f0000001000, 16, "a1", "a1", 0},
		{0x7f0000001010, 16, "a2", "a2", 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var names []string
	for s := range table.Functions() {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a1", "a2", "b1"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestCollisions(t *testing.T) {
	a := base(fn("a1", 0x1000, 16), fn("a2", 0x1100, 16)).image(t)
	b := base(fn("b1", 0x1000, 16), fn("b2", 0x1200, 16)).image(t)
	table := newTable(
		place{a, 0x7f0000000000, "a", true},
		place{b, 0x560000000000, "b", true},       // the same low bits as a
		place{b, 0x560000000800, "half", true},    // half over a and b, no function of b twice
		place{b, 0x550000000000, "quiet", false},  // not instrumented
		place{b, 0x5500_f000_0000, "alone", true}, // elsewhere
		place{b, 0x5500_ffff_e800, "wraps", true}, // from 0xfffff800 over 0 to 0x7ff
		place{b, 0x5400_ffff_eb00, "too", true},   // from 0xfffffb00 over 0 to 0xaff
	)
	want := []Collision{
		{A: 0, B: 1, Start: 0x1000, End: 0x2000, Shared: 1},
		{A: 0, B: 2, Start: 0x1800, End: 0x2000},
		{A: 1, B: 2, Start: 0x1800, End: 0x2000},
		{A: 5, B: 6, Start: 0, End: 0x800},
		{A: 5, B: 6, Start: 0xfffffb00, End: 1 << 32},
	}
	if diff := cmp.Diff(want, table.Collisions()); diff != "" {
		t.Error(diff)
	}
	if s, ok := table.Resolve32(0x1000); ok || s.Name != "[ambiguous]+0x1000" {
		t.Errorf("ambiguous, but resolved to %+v", s)
	}
	if s, ok := table.Resolve32(0x1900); ok || s.Name != "[unknown]+0x1900" {
		t.Errorf("no function, in three modules, but resolved to %+v", s)
	}
	if got := table.Select32([]uint32{0x1000}); len(got) != 2 || got[0].Name != "b1" || got[1].Name != "a1" {
		t.Errorf("Select32 of ambiguous bits: %+v", got)
	}
	var names []string
	for _, s := range table.Candidates32(0x1000) {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a1", "b1"}, names); diff != "" {
		t.Error(diff)
	}
	for low, want := range map[uint32]string{0x1100: "a2", 0x1200: "b2", 0x1800: "b1", 0xfffff800: "b1", 0xfffffa00: "b2"} {
		if s, ok := table.Resolve32(low); !ok || s.Name != want {
			t.Errorf("Resolve32(%#x) = %+v, %v, want %s", low, s, ok, want)
		}
	}
	// A module that was loaded twice at the same place collides with itself, harmlessly.
	twice := newTable(place{a, 0x1000, "a", true}, place{a, 0x1000, "a", true})
	if s, ok := twice.Resolve32(0x2000); !ok || s.Name != "a1" {
		t.Errorf("%+v, %v", s, ok)
	}
}

// TestNestingAgainstScan compares with the obvious loop, for ranges that overlap in every way.
func TestNestingAgainstScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := rng.IntN(12)
		starts, ends := make([]uint64, n), make([]uint64, n)
		at := uint64(0)
		for i := range n {
			at += rng.Uint64N(6)
			starts[i], ends[i] = at, at+rng.Uint64N(30)
		}
		nest := newNesting(starts, ends)
		for addr := range at + 40 {
			var got, want []int
			for i := range nest.containing(addr) {
				got = append(got, i)
			}
			for i := n - 1; i >= 0; i-- {
				if addr >= starts[i] && addr < ends[i] {
					want = append(want, i)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%v %v at %d: %s", starts, ends, addr, diff)
			}
		}
	}
}

// TestConcurrentUse is for the race detector; all goroutines must get the same.
func TestConcurrentUse(t *testing.T) {
	var syms []syntheticSym
	for i := range uint64(100) {
		syms = append(syms, fn("_ZN1a2f"+string(rune('0'+i%10))+"Ev", 0x1000+i*16, 16))
	}
	table := tableOf(base(syms...).image(t), 0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range uint64(100) {
				want := "a::f" + string(rune('0'+i%10)) + "()"
				a, _ := table.Lookup(0x1000 + i*16)
				b, _ := table.Resolve32(uint32(0x1000 + i*16))
				if a != b || a.Name != want {
					t.Errorf("%+v, %+v, want %s", a, b, want)
				}
			}
		})
	}
	wg.Wait()
	if got := table.Stats(); got != (Stats{800, 0}) {
		t.Errorf("%+v", got)
	}
}
