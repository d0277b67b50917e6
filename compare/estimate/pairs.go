package estimate

import (
	"maps"
	"slices"

	"braid/compare/result"
	"braid/compare/stats"
)

// place says which samples of two arms belong together.
type place struct{ launch, round, align int }

type pairKey struct {
	arm, base *result.Series
	wall      bool
}

// pairs are an arm's observations beside its baseline's, one for each launch, in ns a call.
type pairs struct {
	launches []int
	values   []values // of launches
	aligns   []alignPairs
	samples  int // of the arm that have a partner
}

type alignPairs struct {
	align, count int
	median       float64 // of differences
}

// What an observation is of. The difference has its own medians: they are not the difference of medians.
type quantity int

const (
	armTime quantity = iota
	baseTime
	difference
)

// values are an observation of each quantity.
type values [difference + 1]float64

// over applies a statistic to each quantity.
func over(list []values, statistic func([]float64) float64) (out values) {
	for q := range out {
		out[q] = statistic(column(list, quantity(q)))
	}
	return out
}

func column(list []values, q quantity) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = v[q]
	}
	return out
}

func (p *pairs) of(q quantity) []float64 { return column(p.values, q) }

// perCall is a sample's time in ns a call.
func perCall(x result.Sample, wall bool) float64 {
	t := x.CPUNS
	if wall {
		t = x.WallNS
	}
	return float64(t) / float64(x.Calls)
}

// usable says whether a sample is a figure.
func usable(x result.Sample) bool { return x.Discarded == "" && x.Calls > 0 }

// pairs observes an arm beside its baseline, which may be itself.
func (c *cells) pairs(arm, base *result.Series, wall bool) *pairs {
	key := pairKey{arm, base, wall}
	if p := c.seen[key]; p != nil {
		return p
	}
	p := observe(arm, base, wall)
	c.seen[key] = p
	return p
}

func observe(arm, base *result.Series, wall bool) *pairs {
	partner := map[place]float64{}
	for _, x := range base.Samples {
		if usable(x) {
			partner[place{x.Launch, x.Round, x.Align}] = perCall(x, wall)
		}
	}
	rounds := map[int]map[int][]values{} // by launch and alignment
	for _, x := range arm.Samples {
		b, ok := partner[place{x.Launch, x.Round, x.Align}]
		if !usable(x) || !ok {
			continue
		}
		if rounds[x.Launch] == nil {
			rounds[x.Launch] = map[int][]values{}
		}
		a := perCall(x, wall)
		rounds[x.Launch][x.Align] = append(rounds[x.Launch][x.Align], values{a, b, a - b})
	}
	return collect(rounds)
}

// collect makes an observation of each launch. One that lacks alignments (it was broken off, samples were discarded) is moved by
// what those that it has usually differ from all of them, because alignments may differ more than launches do. If it lacks more
// than half of them it is left out.
func collect(rounds map[int]map[int][]values) *pairs {
	p := &pairs{}
	most := 0
	medians := map[int]map[int]values{}
	at := map[int][]values{} // launches, by alignment
	for _, launch := range slices.Sorted(maps.Keys(rounds)) {
		most = max(most, len(rounds[launch]))
		medians[launch] = map[int]values{}
		for align, list := range rounds[launch] {
			m := over(list, stats.Median)
			medians[launch][align] = m
			at[align] = append(at[align], m)
		}
	}
	usual := map[int]values{}
	var all []values
	for _, align := range slices.Sorted(maps.Keys(at)) {
		m := over(at[align], stats.Median)
		usual[align], all = m, append(all, m)
		p.aligns = append(p.aligns, alignPairs{align, len(at[align]), m[difference]})
	}
	centre := over(all, stats.Mean)
	for _, launch := range slices.Sorted(maps.Keys(rounds)) {
		l := medians[launch]
		if 2*len(l) < most {
			continue
		}
		var have, expected []values
		for _, align := range slices.Sorted(maps.Keys(l)) {
			have, expected = append(have, l[align]), append(expected, usual[align])
			p.samples += len(rounds[launch][align])
		}
		v := over(have, stats.Mean)
		if len(l) < most {
			e := over(expected, stats.Mean)
			for q := range v {
				v[q] += centre[q] - e[q]
			}
		}
		p.launches, p.values = append(p.launches, launch), append(p.values, v)
	}
	return p
}

// common returns the differences of two arms in the launches that both were in.
func common(p, q *pairs) (mine, theirs []float64) {
	at := map[int]float64{}
	for i, l := range q.launches {
		at[l] = q.values[i][difference]
	}
	for i, l := range p.launches {
		if d, ok := at[l]; ok {
			mine, theirs = append(mine, p.values[i][difference]), append(theirs, d)
		}
	}
	return mine, theirs
}

// describe fills in what is said of samples themselves.
func (row *Row) describe(r *result.Series) {
	var times, misses, rates []float64
	for _, x := range r.Samples {
		if !usable(x) {
			continue
		}
		times = append(times, perCall(x, row.Wall))
		if x.CacheMisses > 0 {
			misses = append(misses, float64(x.CacheMisses)/float64(x.Calls))
		}
		if x.Bytes > 0 && x.WallNS > 0 {
			rates = append(rates, float64(x.Bytes)/float64(x.WallNS))
		}
	}
	row.Box = boxOf(times)
	if len(misses) > 0 {
		row.CacheMisses = stats.Median(misses)
	}
	if len(rates) > 0 {
		row.BytesPerNS = stats.Median(rates)
	}
}

// boxOf describes values as Tukey's box plot does.
func boxOf(v []float64) Box {
	if len(v) == 0 {
		return Box{}
	}
	s := slices.Clone(v)
	slices.Sort(s)
	b := Box{Q1: stats.Quantile(s, 0.25), Median: stats.Median(s), Q3: stats.Quantile(s, 0.75), N: len(s)}
	reach := 1.5 * (b.Q3 - b.Q1)
	b.Low, b.High = b.Q1, b.Q3
	for _, x := range s {
		if x < b.Q1-reach || x > b.Q3+reach {
			b.Outliers = append(b.Outliers, x)
			continue
		}
		b.Low, b.High = min(b.Low, x), max(b.High, x)
	}
	return b
}
