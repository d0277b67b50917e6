package analysis

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Quantiles are within SketchError of the exact ones, of whatever values.
func TestSketch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		next func() int64
	}{
		{"zeros", func() int64 { return 0 }},
		{"small", func() int64 { return rng.Int64N(50) }},
		{"wide", func() int64 { return 1 << rng.IntN(62) }},
		{"narrow", func() int64 { return 14_000_000 + rng.Int64N(1000) }},
		{"mostly zero", func() int64 { return max(0, rng.Int64N(1000)-900) }},
		{"logarithmic", func() int64 { return int64(rng.ExpFloat64() * 1e7) }},
	} {
		for _, n := range []int{1, 2, 100, 5000} {
			var s Sketch
			var all []int64
			for range n {
				v := c.next()
				all = append(all, v)
				s.Add(v)
			}
			slices.Sort(all)
			if s.N() != uint64(n) {
				t.Errorf("%s: %d of %d", c.name, s.N(), n)
			}
			for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.99, 1} {
				want, got := all[int(q*float64(n-1))], s.Quantile(q)
				if float64(abs(got-want)) > SketchError*float64(want)+0.5 {
					t.Errorf("%s: quantile %v of %d: got %d, want %d", c.name, q, n, got, want)
				}
			}
			median := all[(n-1)/2]
			var off []int64
			for _, v := range all {
				off = append(off, abs(v-median))
			}
			slices.Sort(off)
			// A distance has the error of the value, which may be much larger than the distance.
			if want, got := off[(n-1)/2], s.MAD(s.Quantile(0.5)); float64(abs(got-want)) > 2*SketchError*float64(median+want)+1 {
				t.Errorf("%s: MAD of %d: got %d, want %d", c.name, n, got, want)
			}
		}
	}
}

func TestSketchZeros(t *testing.T) {
	var s Sketch
	s.Add(100)
	s.Add(-5) // counts as 0
	s.AddZeros(3)
	if s.N() != 5 || s.Quantile(0.5) != 0 || s.Quantile(1) == 0 || (&Sketch{}).Quantile(0.5) != 0 {
		t.Errorf("%+v", s)
	}
}

func BenchmarkSketch(b *testing.B) {
	var s Sketch
	v := int64(1000)
	for b.Loop() {
		s.Add(v)
		v = v*6364136223846793005>>40&0xfffff + 100
	}
}
