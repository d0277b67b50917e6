package estimate

import (
	"hash/fnv"
	"strconv"

	"braid/compare/result"
	"braid/compare/stats"
	"braid/compare/workload"
)

// Names of arms that figures refer to.
const (
	Baseline = "baseline"
	Again    = "baseline2" // a second baseline: what differs is noise
	Clock    = "clock"
	StubOn   = "stub-on"
)

// Of computes everything about a result. It takes some milliseconds for each series, and does not change the result.
func Of(s *result.Study) *Study {
	e := &Study{Confidence: s.Method.Confidence, Margin: s.Method.Margin}
	c := newCells(s)
	for i := range s.Series {
		r := &s.Series[i]
		if a, ok := c.arms[r.Arm]; ok {
			e.Rows = append(e.Rows, c.row(e, a, r))
		}
	}
	return e
}

// OnWallTime says whether a workload's figures are wall time, because the measured thread's own time is not all of its cost.
func OnWallTime(name string) bool {
	return name == workload.Startup || name == workload.Schedule || name == workload.IO || name == workload.Command
}

type cellKey struct {
	arm, workload, cluster string
	parameter              int64
}

// cells finds series by what they are of.
type cells struct {
	arms   map[string]*result.Arm
	series map[cellKey]*result.Series
	seen   map[pairKey]*pairs
}

func newCells(s *result.Study) *cells {
	c := &cells{arms: map[string]*result.Arm{}, series: map[cellKey]*result.Series{}, seen: map[pairKey]*pairs{}}
	for i := range s.Arms {
		c.arms[s.Arms[i].Name] = &s.Arms[i]
	}
	for i := range s.Series {
		r := &s.Series[i]
		c.series[cellKey{r.Arm, r.Workload, r.Cluster, r.Parameter}] = r
	}
	return c
}

// like returns the series of another arm in the same place, or nil; a failed one is none.
func (c *cells) like(r *result.Series, arm string) *result.Series {
	o := c.series[cellKey{arm, r.Workload, r.Cluster, r.Parameter}]
	if o == nil || o.Failure != "" {
		return nil
	}
	return o
}

// seed makes draws differ between series, and not between runs.
func seed(r *result.Series, what string) uint64 {
	h := fnv.New64a()
	for _, s := range []string{r.Arm, r.Workload, strconv.FormatInt(r.Parameter, 10), r.Cluster, what} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

func (c *cells) row(e *Study, a *result.Arm, r *result.Series) Row {
	row := Row{Arm: a.Name, Title: a.Title, Group: a.Group, Class: a.Class, Workload: r.Workload, Parameter: r.Parameter,
		Cluster: r.Cluster, Failure: r.Failure, Wall: OnWallTime(r.Workload)}
	if r.Failure != "" {
		return row
	}
	base := c.like(r, baselineOf(a))
	if base == nil {
		row.Failure = "the baseline has no figures"
		return row
	}
	p := c.pairs(r, base, row.Wall)
	row.Launches, row.Samples, row.Dropped = len(p.launches), p.samples, len(r.Samples)-p.samples
	if len(p.launches) == 0 {
		row.Failure = "no sample could be used"
		return row
	}
	row.Call = e.median(p.of(armTime), seed(r, "call"))
	w := c.pairs(r, base, true)
	row.WallCall = e.median(w.of(armTime), seed(r, "wall call"))
	row.describe(r)
	if r.Arm == base.Arm {
		return row
	}
	row.WallOver = e.ratio(w.of(difference), w.of(baseTime), seed(r, "wall overhead"))
	c.costs(e, &row, a, r, p)
	return row
}

// costs fills in what compares the arm with its baseline.
func (c *cells) costs(e *Study, row *Row, a *result.Arm, r *result.Series, p *pairs) {
	added, base, arm := p.of(difference), p.of(baseTime), p.of(armTime)
	row.Added = e.median(added, seed(r, "added"))
	row.Overhead = e.ratio(added, base, seed(r, "overhead"))
	points := pointsOf(a, r)
	if points > 0 {
		row.Point = row.Added.by(points)
	} else {
		points = 1
	}
	row.SD = stats.SD(added) / points
	row.Q1, row.Q3 = stats.Quantile(added, 0.25)/points, stats.Quantile(added, 0.75)/points
	for _, al := range p.aligns {
		row.Aligns = append(row.Aligns, Align{Align: al.align, Median: al.median / points, Count: al.count})
	}
	row.Slower = test(stats.Slower(arm, base))
	row.IsSlower = row.Slower.OK && row.Slower.P < 1-e.Confidence
	row.NotInferior = test(stats.NotInferior(arm, base, e.Margin))
	row.IsNotInferior = row.NotInferior.OK && row.NotInferior.P < 1-e.Confidence
	row.Effect = stats.Effect(added)
	if again := c.like(r, Again); again != nil && baselineOf(a) == Baseline {
		if b := c.like(r, Baseline); b != nil {
			row.Noise = e.median(c.pairs(again, b, row.Wall).of(difference), seed(again, "added")).by(points)
			row.AboveNoise = row.Added.OK && row.Noise.OK && row.Added.Low/points > max(row.Noise.High, -row.Noise.Low)
		}
	}
	if a.Points > 0 && r.Workload != workload.Command {
		row.ToClock = c.against(e, row, a, r, p, Clock)
		row.ToStub = c.against(e, row, a, r, p, StubOn)
	}
}

// pointsOf is how many trace points a call has, or 0. A call of the user's own program is a whole run of it: its trace points are
// what was recorded.
func pointsOf(a *result.Arm, r *result.Series) float64 {
	if r.Workload != workload.Command {
		return a.Points
	}
	var events []float64
	for _, x := range r.Samples {
		if usable(x) && a.Points > 0 {
			events = append(events, float64(x.Recorded)/float64(x.Calls))
		}
	}
	if len(events) == 0 {
		return 0
	}
	return stats.Median(events)
}

// against is the cost of a point as a multiple of another arm's, over the launches that both have.
func (c *cells) against(e *Study, row *Row, a *result.Arm, r *result.Series, p *pairs, other string) Value {
	o, oa := c.like(r, other), c.arms[other]
	if o == nil || oa.Points == 0 || other == a.Name {
		return Value{}
	}
	ob := c.like(r, baselineOf(oa))
	if ob == nil {
		return Value{}
	}
	mine, theirs := common(p, c.pairs(o, ob, row.Wall))
	v := e.ratio(mine, theirs, seed(r, "to "+other))
	return v.by(a.Points / oa.Points)
}

func baselineOf(a *result.Arm) string {
	if a.Baseline == "" {
		return Baseline
	}
	return a.Baseline
}

func (e *Study) median(v []float64, seed uint64) Value {
	low, high, ok := stats.MedianInterval(v, e.Confidence, seed)
	if !ok {
		return Value{}
	}
	return Value{stats.Median(v), low, high, true}
}

func (e *Study) ratio(v, w []float64, seed uint64) Value {
	low, high, ok := stats.RatioInterval(v, w, e.Confidence, seed)
	if !ok {
		return Value{}
	}
	return Value{stats.Median(v) / stats.Median(w), low, high, true}
}

// by divides a value.
func (v Value) by(d float64) Value {
	return Value{v.Median / d, v.Low / d, v.High / d, v.OK}
}

func test(t stats.Test, ok bool) Test {
	if !ok {
		return Test{}
	}
	return Test{t.T, t.DF, t.P, true}
}
