package render

import (
	"math"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	for _, c := range [][2]string{
		{nanoseconds(9.7249), "9.72"}, {nanoseconds(0), "0.00"}, {nanoseconds(0.0082), "0.008"}, {nanoseconds(99.96), "100"}, {nanoseconds(-1234.5), "-1,234"},
		{number(1234567, 0), "1,234,567"}, {number(-0.001, 2), "0.00"}, {number(math.NaN(), 1), "?"}, {ratio(32.14), "32.1"},
		{percent(0.0281), "2.81"}, {percent(9206.1234), "920,612"}, {percent(-0.0004), "-0.04"},
		{span(9.7, 9.74, 2), "9.70 to 9.74"}, {span(0.3971, 0.4049, 2), "0.397 to 0.405"}, {span(311.6, 312.4, 2), "311.6 to 312.4"}, {span(-1.2, 120, 2), "-1 to 120"},
		{percents(-0.0105, 0.0059), "-1.05 to 0.59"}, {long(0.4), "0.40 ns"}, {long(241_900_000), "242 ms"}, {long(5240), "5.24 µs"}, {long(1.08e9), "1.08 s"},
		{plural(1, "launch"), "1 launch"}, {plural(1200, "launch"), "1,200 launches"}, {cpuList([]int{0, 1, 2, 3, 6}), "0-3,6"},
		{minus("-1.05 to -0.59, stub-on"), "−1.05 to −0.59, stub-on"}, {minus("-"), "–"}, {pValue(0.00001), "< 0.0001"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}

func labels(s *scale) string {
	var l []string
	for _, t := range s.ticks {
		if t.label != "" {
			l = append(l, t.label)
		}
	}
	return strings.Join(l, " ")
}

func TestScales(t *testing.T) {
	for _, c := range []struct {
		s    *scale
		want string
	}{
		{logarithmic(0.4, 22_000, 0, 100, 8), "1 10 100 1,000 10,000"},
		{logarithmic(0.4, 22_000, 0, 100, 3), "1 1,000"},
		{logarithmic(230, 1100, 0, 100, 8), "200 500 1,000 2,000"},
		{logarithmic(7, 7, 0, 100, 8), "5 10"},
		{linear(-2, 320, 0, 100, 7), "0 100 200 300"},
		{linear(0, 0.7, 0, 100, 6), "0 0.2 0.4 0.6"},
		{linear(5, 5, 0, 100, 6), "5 5.2 5.4 5.6 5.8 6"},
	} {
		if got := labels(c.s); got != c.want {
			t.Errorf("%+v to %+v: labels %q, want %q", c.s.low, c.s.high, got, c.want)
		}
		last := math.Inf(-1)
		for _, k := range c.s.ticks {
			x, inside := c.s.place(k.at)
			if !inside && k.at != c.s.low && k.at != c.s.high || x < -1e-9 || x > 100+1e-9 || x <= last {
				t.Errorf("%s: tick %g at %g after %g", c.want, k.at, x, last)
			}
			last = x
		}
	}
	s := logarithmic(1, 100, 0, 100, 8)
	if x, inside := s.place(10); math.Abs(x-50) > 1e-9 || !inside {
		t.Errorf("10 of 1 to 100 is at %g", x)
	}
	if x, inside := s.place(-3); x != 0 || inside {
		t.Errorf("what has no logarithm is at %g, inside %t", x, inside)
	}
}

func TestSpreadKeepsLabelsApart(t *testing.T) {
	ys := []float64{10, 11, 12, 90, 99, 99.5}
	spread(ys, 10, 0, 100)
	for i := range ys {
		if ys[i] < 0 || ys[i] > 100 || i > 0 && ys[i]-ys[i-1] < 10-1e-9 {
			t.Errorf("%v", ys)
		}
	}
}

func TestFamilies(t *testing.T) {
	for _, c := range [][3]string{
		{"uprobe, count, on push", "uprobe, count, on nop", "uprobe, count"},
		{"uprobe (push)", "uprobe (nop)", "uprobe"},
		{"same", "same", "same"},
		{"abc", "xyz", "abc"},
	} {
		if got := common(c[0], c[1]); got != c[2] {
			t.Errorf("%q and %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
