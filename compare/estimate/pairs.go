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
	launches  []int
	arm, base []float64
	added     []float64 // median of differences, not the difference of medians
	aligns    []alignPairs
	samples   int // of the arm that have a partner
}

type alignPairs struct {
	align, count int
	median       float64 // of differences
}

// What an observation is of.
type quantity int

const (
	armTime quantity = iota
	baseTime
	difference
)

func (p *pairs) of(q quantity) []float64 { return [][]float64{p.arm, p.base, p.added}[q] }

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

// triple is what the rounds of one launch at one alignment say.
type triple struct{ arm, base, added []float64 }

func observe(arm, base *result.Series, wall bool) *pairs {
	partner := map[place]float64{}
	for _, x := range base.Samples {
		if usable(x) {
			partner[place{x.Launch, x.Round, x.Align}] = perCall(x, wall)
		}
	}
	p := &pairs{}
	byLaunch := map[int]map[int]*triple{}
	for _, x := range arm.Samples {
		b, ok := partner[place{x.Launch, x.Round, x.Align}]
		if !usable(x) || !ok {
			continue
		}
		p.samples++
		if byLaunch[x.Launch] == nil {
			byLaunch[x.Launch] = map[int]*triple{}
		}
		t := byLaunch[x.Launch][x.Align]
		if t == nil {
			t = &triple{}
			byLaunch[x.Launch][x.Align] = t
		}
		a := perCall(x, wall)
		t.arm, t.base, t.added = append(t.arm, a), append(t.base, b), append(t.added, a-b)
	}
	// A launch that was broken off lacks alignments. As they differ, it would differ too.
	most := 0
	for _, l := range byLaunch {
		most = max(most, len(l))
	}
	at := map[int][]float64{}
	for _, launch := range slices.Sorted(maps.Keys(byLaunch)) {
		l := byLaunch[launch]
		if len(l) < most {
			for _, t := range l {
				p.samples -= len(t.arm)
			}
			continue
		}
		var a, b, d []float64
		for _, align := range slices.Sorted(maps.Keys(l)) {
			t := l[align]
			a, b, d = append(a, stats.Median(t.arm)), append(b, stats.Median(t.base)), append(d, stats.Median(t.added))
			at[align] = append(at[align], d[len(d)-1])
		}
		p.launches = append(p.launches, launch)
		p.arm, p.base, p.added = append(p.arm, stats.Mean(a)), append(p.base, stats.Mean(b)), append(p.added, stats.Mean(d))
	}
	for _, align := range slices.Sorted(maps.Keys(at)) {
		p.aligns = append(p.aligns, alignPairs{align, len(at[align]), stats.Median(at[align])})
	}
	return p
}

// common returns the differences of two arms in the launches that both were in.
func common(p, q *pairs) (mine, theirs []float64) {
	at := map[int]float64{}
	for i, l := range q.launches {
		at[l] = q.added[i]
	}
	for i, l := range p.launches {
		if d, ok := at[l]; ok {
			mine, theirs = append(mine, p.added[i]), append(theirs, d)
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
