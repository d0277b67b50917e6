package render

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"braid/compare/estimate"
	"braid/compare/result"
)

func TestDiff(t *testing.T) {
	a, b := server, server
	b.seed, b.change, b.without = 11, map[string]float64{"stub-on": 0.7, "perf": 1.2}, []string{"jvm-baseline", "jvmti", "uftrace"}
	for name, pair := range map[string][2]model{"diff-versions.txt": {a, b}, "diff-devices.txt": {a, phone}} {
		sa, sb := pair[0].study(), pair[1].study()
		var out bytes.Buffer
		if err := Diff(&out, sa, sketch(sa), sb, sketch(sb)); err != nil {
			t.Fatal(err)
		}
		checkWidth(t, name, out.String())
		golden(t, name, out.String())
	}
}

// TestDiffFindsWhatChanged changes two arms and expects those two to differ, and nothing else.
func TestDiffFindsWhatChanged(t *testing.T) {
	a, b := server, server
	b.seed, b.change = 11, map[string]float64{"stub-on": 0.9, "perf": 1.1}
	sa, sb := a.study(), b.study()
	var out bytes.Buffer
	if err := DiffJSON(&out, sa, sketch(sa), sb, sketch(sb)); err != nil {
		t.Fatal(err)
	}
	var c Comparison
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range c.Differences {
		if d.Quantity == QuantityPoint && d.Significant {
			got[d.Arm] = moreOrLess(d.Change.Median)
		}
	}
	if len(got) != 2 || got["stub-on"] != "less" || got["perf"] != "more" {
		t.Errorf("significant: %v, want stub-on less and perf more", got)
	}
}

func TestDiffWithItself(t *testing.T) {
	s := phone.study()
	c := Compare(s, sketch(s), s, sketch(s))
	for _, d := range c.Differences {
		if d.Significant || d.Change.Median != 0 || d.P < 0.999 {
			t.Errorf("%s differs from itself: %+v", d.Title, d)
		}
	}
	if len(c.Differences) == 0 || len(c.OnlyA)+len(c.OnlyB) > 0 {
		t.Errorf("%d differences, only in A %v, only in B %v", len(c.Differences), c.OnlyA, c.OnlyB)
	}
}

// TestWelch compares 10 observations with mean 20 and standard deviation 1 to 20 with mean 22 and standard deviation 4.
func TestWelch(t *testing.T) {
	value := func(mean, sd float64, n int, quantile float64) estimate.Value {
		h := quantile * sd / math.Sqrt(float64(n))
		return estimate.Value{Median: mean, Low: mean - h, High: mean + h, OK: true}
	}
	d := welch(value(20, 1, 10, 2.262157), value(22, 4, 20, 2.093024), 10, 20, 0.95, 0.95)
	// t = 2/sqrt(0.1+0.8) = 2.1082, df = 0.81/(0.01/9+0.64/19) = 23.279
	if math.Abs(d.P-0.0460) > 0.0005 || math.Abs(d.Change.Low-(2-2.0673*math.Sqrt(0.9))) > 0.01 {
		t.Errorf("P %.5f, change %+v", d.P, d.Change)
	}
}

func TestHolm(t *testing.T) {
	c := Comparison{Confidence: 0.95}
	for _, p := range []float64{0.01, 0.04, 0.03, 0.005} {
		c.Differences = append(c.Differences, Difference{P: p})
	}
	c.correct()
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} { // 4 * 0.005, 3 * 0.01, 2 * 0.03, and no less than the one before
		if d := c.Differences[i]; math.Abs(d.Corrected-want) > 1e-9 || d.Significant != (want < 0.05) {
			t.Errorf("P %g: corrected %g, want %g", d.P, d.Corrected, want)
		}
	}
}

func TestDiffOfNothing(t *testing.T) {
	a, b := server.study(), server.study()
	b.Arms, b.Series = []result.Arm{}, nil
	var out bytes.Buffer
	if err := Diff(&out, a, sketch(a), b, sketch(b)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "nothing to compare") || !strings.Contains(out.String(), "Only in A: baseline;") {
		t.Errorf("%s", out.String())
	}
}
