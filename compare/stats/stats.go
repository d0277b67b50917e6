// Package stats holds the statistics of a study: medians, bootstrap intervals, paired tests. Everything is deterministic: what is
// drawn at random is drawn from a fixed seed.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Quantile returns the value below which a share p of the values lies, between neighbours in proportion (the usual definition 7
// of Hyndman and Fan). It is NaN for no values. The values are not changed.
func Quantile(v []float64, p float64) float64 {
	return quantileSorted(sorted(v), p)
}

// Median is Quantile of 0.5.
func Median(v []float64) float64 { return Quantile(v, 0.5) }

func sorted(v []float64) []float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s
}

func quantileSorted(s []float64, p float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	x := p * float64(len(s)-1)
	i := int(math.Floor(x))
	if i >= len(s)-1 {
		return s[len(s)-1]
	}
	return s[i] + (x-float64(i))*(s[i+1]-s[i])
}

// Mean and SD are the sample's mean and standard deviation (of n-1), 0 where there are too few values.
func Mean(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return stat.Mean(v, nil)
}

// SD is the standard deviation with n-1 degrees of freedom, 0 for fewer than two values.
func SD(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	return stat.StdDev(v, nil)
}

// MAD is the median distance from the median, scaled so that it estimates the standard deviation of a normal distribution.
func MAD(v []float64) float64 {
	m := Median(v)
	d := make([]float64, len(v))
	for i, x := range v {
		d[i] = math.Abs(x - m)
	}
	return 1.4826 * Median(d)
}

// MinUnits is the least number of observations that an interval is computed from.
const MinUnits = 3

// Resamples is how often a bootstrap draws.
const Resamples = 2000

// Interval is a bootstrap interval of a statistic over n independent observations. of computes the statistic from the indices
// of drawn observations; NaN and infinities are left out. Bounds are percentiles of the drawn statistics, at tails that are
// widened for small n as a t distribution is against a normal one (Hesterberg's expanded percentile interval): without that,
// intervals of ten observations hold the truth some 90 times in 100 rather than 95. ok is false with fewer than MinUnits
// observations, or if hardly any draw had a value.
func Interval(n int, confidence float64, seed uint64, of func(draw []int) float64) (low, high float64, ok bool) {
	if n < MinUnits {
		return 0, 0, false
	}
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	draw := make([]int, n)
	got := make([]float64, 0, Resamples)
	for range Resamples {
		for i := range draw {
			draw[i] = rng.IntN(n)
		}
		if x := of(draw); !math.IsNaN(x) && !math.IsInf(x, 0) {
			got = append(got, x)
		}
	}
	if len(got) < Resamples/2 {
		return 0, 0, false
	}
	slices.Sort(got)
	tail := expandedTail(n, confidence)
	return quantileSorted(got, tail), quantileSorted(got, 1-tail), true
}

// expandedTail is the share that each end of a percentile interval leaves out.
func expandedTail(n int, confidence float64) float64 {
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile((1 - confidence) / 2)
	return distuv.UnitNormal.CDF(t * math.Sqrt(float64(n)/float64(n-1)))
}

// MedianInterval is the interval of the values' median.
func MedianInterval(v []float64, confidence float64, seed uint64) (low, high float64, ok bool) {
	buf := make([]float64, len(v))
	return Interval(len(v), confidence, seed, func(draw []int) float64 {
		for i, j := range draw {
			buf[i] = v[j]
		}
		return medianOf(buf)
	})
}

// RatioInterval is the interval of median(v)/median(w), where v[i] and w[i] were observed together.
func RatioInterval(v, w []float64, confidence float64, seed uint64) (low, high float64, ok bool) {
	a, b := make([]float64, len(v)), make([]float64, len(v))
	return Interval(len(v), confidence, seed, func(draw []int) float64 {
		for i, j := range draw {
			a[i], b[i] = v[j], w[j]
		}
		return medianOf(a) / medianOf(b)
	})
}

// medianOf is the median; it sorts its argument.
func medianOf(v []float64) float64 {
	slices.Sort(v)
	return quantileSorted(v, 0.5)
}

// Test is the outcome of a one-sided test: a small P speaks against its null hypothesis.
type Test struct {
	T, DF, P float64
}

// Greater is the paired one-sided t test of differences d against "their mean is at most bound". ok is false for fewer than two.
// If all differences are equal, P is 0, 0.5 or 1.
func Greater(d []float64, bound float64) (t Test, ok bool) {
	if len(d) < 2 {
		return Test{}, false
	}
	mean, sd := stat.MeanStdDev(d, nil)
	t.DF = float64(len(d) - 1)
	se := stat.StdErr(sd, float64(len(d)))
	if se == 0 {
		switch {
		case mean > bound:
			return Test{DF: t.DF, P: 0, T: math.MaxFloat64}, true
		case mean < bound:
			return Test{DF: t.DF, P: 1, T: -math.MaxFloat64}, true
		}
		return Test{DF: t.DF, P: 0.5}, true
	}
	t.T = (mean - bound) / se
	t.P = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: t.DF}.Survival(t.T)
	return t, true
}

// Slower tests whether the arm is slower than its baseline, in pairs: the null hypothesis is that it is not.
func Slower(arm, base []float64) (Test, bool) { return Greater(differences(arm, base, 0), 0) }

// NotInferior tests whether the arm is by less than margin (a share) slower than its baseline, in pairs: the null hypothesis is
// that it is slower by margin or more.
func NotInferior(arm, base []float64, margin float64) (Test, bool) {
	d := differences(arm, base, margin)
	for i := range d {
		d[i] = -d[i]
	}
	return Greater(d, 0)
}

func differences(arm, base []float64, margin float64) []float64 {
	d := make([]float64, len(arm))
	for i := range d {
		d[i] = arm[i] - base[i]*(1+margin)
	}
	return d
}

// Effect is the standardised mean of paired differences (Cohen's d of pairs), corrected for few of them (Hedges). 0 for fewer
// than two; it is bounded by 1e6 where all differences are equal.
func Effect(d []float64) float64 {
	if len(d) < 2 {
		return 0
	}
	const most = 1e6
	mean, sd := stat.MeanStdDev(d, nil)
	if sd == 0 {
		switch {
		case mean > 0:
			return most
		case mean < 0:
			return -most
		}
		return 0
	}
	correction := 1 - 3/(4*float64(len(d)-1)-1)
	return max(-most, min(most, mean/sd*correction))
}
