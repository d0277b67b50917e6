package render

import (
	"cmp"
	"math"
	"slices"

	"braid/compare/estimate"
	"braid/compare/result"
)

// sketch estimates simply, so that goldens of this package change only when this package does: means of launches, with two
// standard errors around them.
func sketch(s *result.Study) *estimate.Study {
	arms := map[string]result.Arm{}
	for _, a := range s.Arms {
		arms[a.Name] = a
	}
	type place struct {
		arm, workload, cluster string
		parameter              int64
	}
	series := map[place]result.Series{}
	for _, sr := range s.Series {
		series[place{sr.Arm, sr.Workload, sr.Cluster, sr.Parameter}] = sr
	}
	e := &estimate.Study{Confidence: s.Method.Confidence, Margin: s.Method.Margin}
	for _, sr := range s.Series {
		find := func(arm string) []float64 { return calls(series[place{arm, sr.Workload, sr.Cluster, sr.Parameter}]) }
		a := arms[sr.Arm]
		r := estimate.Row{Arm: a.Name, Title: a.Title, Group: a.Group, Class: a.Class, Workload: sr.Workload, Parameter: sr.Parameter,
			Cluster: sr.Cluster, Failure: sr.Failure, Launches: len(sr.Samples), Samples: len(sr.Samples), Wall: sr.Workload == "schedule" || sr.Workload == "io"}
		mine, base := calls(sr), find("baseline")
		if r.Failure == "" && len(mine) > 1 && len(base) > 1 {
			fill(&r, a, mine, base, find, s.Method.Margin)
		}
		if x := sr.Samples[0]; x.Bytes > 0 {
			r.BytesPerNS, r.CacheMisses = float64(x.Bytes)/float64(x.WallNS), float64(x.CacheMisses)/float64(x.Calls)
		}
		e.Rows = append(e.Rows, r)
	}
	return e
}

func fill(r *estimate.Row, a result.Arm, mine, base []float64, find func(string) []float64, margin float64) {
	zero := make([]float64, len(base))
	b, _ := mean(base)
	r.Call, r.Box = difference(mine, zero, 1), boxOf(mine)
	if a.Name == "baseline" {
		return
	}
	points := max(a.Points, 1)
	r.Added, r.Overhead = difference(mine, base, 1), difference(mine, base, b)
	r.Noise = difference(find("baseline2"), base, points)
	r.AboveNoise = r.Added.Median > r.Noise.High*points
	_, r.SD = mean(mine)
	r.SD /= points
	r.Q1, r.Q3 = r.Added.Median/points-0.67*r.SD, r.Added.Median/points+0.67*r.SD
	if a.Points > 0 {
		r.Point = difference(mine, base, a.Points)
		if c := find("clock"); len(c) > 0 && a.Name != "clock" {
			m, _ := mean(c)
			r.ToClock = difference(mine, base, a.Points*(m-b)/2)
		}
		if c := find("stub-on"); len(c) > 0 && a.Name != "stub-on" {
			m, _ := mean(c)
			r.ToStub = difference(mine, base, a.Points*(m-b)/2)
		}
	}
	se := max((r.Overhead.High-r.Overhead.Low)/4, 1e-12)
	p := func(t float64) estimate.Test {
		return estimate.Test{T: t, DF: float64(r.Launches - 1), P: 0.5 * math.Erfc(t/math.Sqrt2), OK: true}
	}
	r.Slower, r.NotInferior = p(r.Overhead.Median/se), p((margin-r.Overhead.Median)/se)
	r.IsSlower, r.IsNotInferior = r.Slower.P < 0.05, r.NotInferior.P < 0.05
	r.Effect = r.Overhead.Median / (se * math.Sqrt(float64(r.Launches)))
	for _, al := range []int{0, 16, 32, 48} {
		r.Aligns = append(r.Aligns, estimate.Align{Align: al, Median: r.Point.Median * (1 + float64(al)/2000), Count: r.Launches})
	}
}

func calls(s result.Series) (ns []float64) {
	for _, x := range s.Samples {
		if x.Discarded == "" {
			ns = append(ns, float64(x.CPUNS)/float64(x.Calls))
		}
	}
	return ns
}

func mean(v []float64) (m, sd float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - m) * (x - m) / float64(len(v)-1)
	}
	return m, math.Sqrt(sd)
}

func difference(a, b []float64, by float64) estimate.Value {
	n := min(len(a), len(b))
	if n < 2 {
		return estimate.Value{}
	}
	d := make([]float64, n)
	for i := range d {
		d[i] = (a[i] - b[i]) / by
	}
	m, sd := mean(d)
	se := 2 * sd / math.Sqrt(float64(n))
	return estimate.Value{Median: m, Low: m - se, High: m + se, OK: true}
}

func boxOf(v []float64) estimate.Box {
	v = slices.SortedFunc(slices.Values(v), cmp.Compare[float64])
	at := func(q float64) float64 { return v[int(q*float64(len(v)-1)+0.5)] }
	b := estimate.Box{Q1: at(0.25), Median: at(0.5), Q3: at(0.75), N: len(v), Low: math.Inf(1), High: math.Inf(-1)}
	reach := 1.5 * (b.Q3 - b.Q1)
	for _, x := range v {
		if x < b.Q1-reach || x > b.Q3+reach {
			b.Outliers = append(b.Outliers, x)
			continue
		}
		b.Low, b.High = min(b.Low, x), max(b.High, x)
	}
	return b
}
