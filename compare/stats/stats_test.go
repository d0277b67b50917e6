package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{9, 1, 4, 2}
	for p, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 3, 0.75: 5.25, 1: 9} {
		near(t, "quantile", Quantile(v, p), want, 1e-12)
	}
	if v[0] != 9 {
		t.Error("the values were sorted in place")
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("the median of nothing is a number")
	}
	near(t, "MAD", MAD([]float64{1, 2, 3, 4, 100}), 1.4826, 1e-9)
}

// The sleep data of Student (1908), whose paired t test every textbook has: t = 4.0621, p = 0.002833 two-sided.
func TestStudentsOwnData(t *testing.T) {
	a := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	b := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	got, ok := Slower(a, b)
	if !ok {
		t.Fatal("no test")
	}
	near(t, "t", got.T, 4.0621, 5e-5)
	near(t, "p", got.P, 0.002833/2, 5e-7)
	near(t, "df", got.DF, 9, 0)
	if back, _ := Slower(b, a); math.Abs(back.P-(1-got.P)) > 1e-12 {
		t.Errorf("the other side has p = %v", back.P)
	}
	near(t, "effect", Effect(differences(a, b, 0)), 4.0621/math.Sqrt(10)*(1-3.0/35), 1e-4)
}

func TestNotInferior(t *testing.T) {
	base := []float64{100, 101, 99, 100, 102}
	arm := []float64{101, 102, 100.2, 100.9, 103} // one part in a hundred slower
	if r, _ := NotInferior(arm, base, 0.03); r.P > 0.001 {
		t.Errorf("1 %% slower is not shown to be less than 3 %% slower: p = %v", r.P)
	}
	if r, _ := NotInferior(arm, base, 0.005); r.P < 0.99 {
		t.Errorf("1 %% slower is shown to be less than 0.5 %% slower: p = %v", r.P)
	}
	for _, c := range []struct{ d, p float64 }{{1, 0}, {0, 0.5}, {-1, 1}} {
		if r, ok := Greater([]float64{c.d, c.d, c.d}, 0); !ok || r.P != c.p {
			t.Errorf("differences that are all %v: p = %v", c.d, r.P)
		}
	}
	if _, ok := Greater([]float64{1}, 0); ok {
		t.Error("a test of one pair")
	}
}

// coverage is how often intervals of n values hold the median of what they were drawn from.
func coverage(n int, draw func(*rand.Rand) float64, truth float64) float64 {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	const studies = 300
	hit := 0
	for s := range studies {
		v := make([]float64, n)
		for i := range v {
			v[i] = draw(rng)
		}
		if low, high, ok := MedianInterval(v, 0.95, uint64(s)); ok && low <= truth && truth <= high {
			hit++
		}
	}
	return float64(hit) / studies
}

func TestIntervalCovers(t *testing.T) {
	for name, draw := range map[string]func(*rand.Rand) float64{
		"normal":  func(r *rand.Rand) float64 { return r.NormFloat64() },
		"skewed":  func(r *rand.Rand) float64 { return r.ExpFloat64() - math.Ln2 },
		"outlier": func(r *rand.Rand) float64 { return r.NormFloat64() * math.Exp(3*r.NormFloat64()) },
	} {
		for _, n := range []int{6, 8, 12, 25} {
			c := coverage(n, draw, 0)
			t.Logf("%s, %d values: %.3f", name, n, c)
			if c < 0.92 || c > 0.999 {
				t.Errorf("%s: %.1f %% of the intervals of %d values hold the truth, want about 95 %%", name, c*100, n)
			}
		}
	}
	if _, _, ok := MedianInterval([]float64{1, 2}, 0.95, 1); ok {
		t.Error("an interval of two values")
	}
}

func TestRatioInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var v, w []float64
	for range 40 {
		speed := 1 + 0.2*rng.NormFloat64() // both halves of a pair drift together
		w = append(w, 10*speed)
		v = append(v, 30*speed*(1+0.001*rng.NormFloat64()))
	}
	low, high, ok := RatioInterval(v, w, 0.95, 3)
	if !ok || low > 3 || high < 3 || high-low > 0.05 {
		t.Errorf("the ratio lies in %v to %v, want close around 3: the drift is in both", low, high)
	}
	again, _, _ := RatioInterval(v, w, 0.95, 3)
	if again != low {
		t.Error("the same values gave another interval")
	}
	if _, _, ok := RatioInterval(v, make([]float64, len(v)), 0.95, 3); ok {
		t.Error("an interval of a ratio to nothing")
	}
}
