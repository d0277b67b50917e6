package render

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"braid/compare/estimate"
	"braid/compare/result"
)

// Comparison is two studies side by side: of two devices, or of two versions on the same.
type Comparison struct {
	A           Side         `json:"a"`
	B           Side         `json:"b"`
	Confidence  float64      `json:"confidence"`
	Differences []Difference `json:"differences"` // in the order of A's arms, costs of trace points first
	OnlyA       []string     `json:"only_a"`      // titles of arms with figures only in A
	OnlyB       []string     `json:"only_b"`
	Untold      int          `json:"untold"` // pairs with too few launches to tell
}

// Side is what tells one study from the other.
type Side struct {
	Machine  string           `json:"machine"`
	Arch     string           `json:"arch"`
	Kernel   string           `json:"kernel"`
	Version  string           `json:"version"`
	Started  time.Time        `json:"started"`
	Quick    bool             `json:"quick"`
	Warnings []result.Warning `json:"warnings"`
}

// Interval is a figure with its interval.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Quantities that are compared.
const (
	QuantityPoint    = "point"    // ns for each trace point, in a method without work
	QuantityOverhead = "overhead" // of a whole workload, as a share: 0.03 is 3 %
	QuantityCall     = "call"     // ns for a call without tracing: how fast the machines are
)

// Difference is an arm in both studies.
//
// It is tested with Welch's t test for different variances. The standard errors are those that the intervals of the medians
// stand for: intervals come from a bootstrap with as wide tails as a t distribution has for the number of launches. P values
// are corrected for their number with Holm's method, over all differences of a comparison.
type Difference struct {
	Arm         string   `json:"arm"`
	Title       string   `json:"title"`
	Class       string   `json:"class,omitempty"` // of the probed instruction, in A
	Workload    string   `json:"workload"`
	Parameter   int64    `json:"parameter"`
	ClusterA    string   `json:"cluster_a"`
	ClusterB    string   `json:"cluster_b"`
	Quantity    string   `json:"quantity"`
	A           Interval `json:"a"`
	B           Interval `json:"b"`
	Change      Interval `json:"change"`          // B less A
	Ratio       float64  `json:"ratio,omitempty"` // B by A; 0 if A is not above 0
	P           float64  `json:"p"`
	Corrected   float64  `json:"p_corrected"`
	Significant bool     `json:"significant"` // Corrected is below 1 - Confidence
}

// Compare compares two studies: what a trace point costs, what whole workloads without a parameter take longer, and how long
// calls take without tracing. Clusters are compared by their names; if no name is in both, the strongest ones are.
func Compare(a *result.Study, ae *estimate.Study, b *result.Study, be *estimate.Study) *Comparison {
	va, vb := newView(a, ae), newView(b, be)
	c := &Comparison{A: va.side(), B: vb.side(), Confidence: ae.Confidence, OnlyA: va.without(vb), OnlyB: vb.without(va)}
	for _, pair := range clusterPairs(va.clusters(), vb.clusters()) {
		c.cluster(va, vb, pair[0], pair[1])
	}
	c.correct()
	return c
}

func (v *view) side() Side {
	m := v.r.Machine
	return Side{Machine: m.Name, Arch: m.Arch, Kernel: m.Kernel, Version: v.r.Version, Started: v.r.Started, Quick: v.r.Method.Quick, Warnings: v.warnings()}
}

// without are arms that have figures here and not there.
func (v *view) without(o *view) []string {
	titles := []string{}
	has := func(v *view, arm string) bool {
		return slices.ContainsFunc(v.e.Rows, func(r estimate.Row) bool { return r.Arm == arm && r.Failure == "" })
	}
	for _, a := range v.r.Arms {
		if has(v, a.Name) && !has(o, a.Name) {
			titles = append(titles, armTitle(a))
		}
	}
	return titles
}

func clusterPairs(a, b []result.Cluster) [][2]string {
	var pairs [][2]string
	for _, c := range a {
		if slices.ContainsFunc(b, func(o result.Cluster) bool { return o.Name == c.Name }) {
			pairs = append(pairs, [2]string{c.Name, c.Name})
		}
	}
	if len(pairs) == 0 && len(a) > 0 && len(b) > 0 {
		by := func(x, y result.Cluster) int { return cmp.Compare(x.Capacity, y.Capacity) }
		pairs = append(pairs, [2]string{slices.MaxFunc(a, by).Name, slices.MaxFunc(b, by).Name})
	}
	return pairs
}

func (c *Comparison) cluster(va, vb *view, ca, cb string) {
	add := func(quantity, name string, parameter int64, of func(*estimate.Row) estimate.Value) {
		for _, ra := range va.rows(name, parameter, ca) {
			rb := vb.e.Find(ra.Arm, name, parameter, cb)
			if rb == nil || rb.Failure != "" || (quantity == QuantityCall) != va.isBaseline(ra.Arm) {
				continue
			}
			a, b := of(ra), of(rb)
			if !a.OK || !b.OK || ra.Launches < 2 || rb.Launches < 2 {
				if quantity != QuantityPoint || va.arm(ra.Arm).Points > 0 {
					c.Untold++
				}
				continue
			}
			d := welch(a, b, ra.Launches, rb.Launches, va.e.Confidence, vb.e.Confidence)
			d.Arm, d.Title, d.Class, d.Workload, d.Parameter, d.ClusterA, d.ClusterB, d.Quantity = ra.Arm, title(ra), ra.Class, name, parameter, ca, cb, quantity
			c.Differences = append(c.Differences, d)
		}
	}
	for i, name := range va.costed(ca) {
		p := va.parameters(name, ca)[0]
		if i == 0 {
			add(QuantityCall, name, p, func(r *estimate.Row) estimate.Value { return r.Call })
		}
		add(QuantityPoint, name, p, func(r *estimate.Row) estimate.Value { return r.Point })
	}
	for _, name := range va.others(ca) {
		for _, p := range va.parameters(name, ca) {
			add(QuantityOverhead, name, p, func(r *estimate.Row) estimate.Value { return r.Overhead })
		}
	}
}

// welch compares two medians that were observed na and nb times.
func welch(a, b estimate.Value, na, nb int, confidenceA, confidenceB float64) Difference {
	quantile := func(df, confidence float64) float64 {
		return distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(1 - (1-confidence)/2)
	}
	fa, fb := float64(na-1), float64(nb-1)
	sa, sb := (a.High-a.Low)/2/quantile(fa, confidenceA), (b.High-b.Low)/2/quantile(fb, confidenceB)
	d := Difference{A: Interval{a.Median, a.Low, a.High}, B: Interval{b.Median, b.Low, b.High}}
	change := b.Median - a.Median
	d.Change = Interval{change, change, change}
	if a.Median > 0 {
		d.Ratio = b.Median / a.Median
	}
	variance := sa*sa + sb*sb
	switch {
	case variance > 0:
		df := variance * variance / (sa*sa*sa*sa/fa + sb*sb*sb*sb/fb)
		se := math.Sqrt(variance)
		d.P = 2 * distuv.StudentsT{Sigma: 1, Nu: df}.Survival(math.Abs(change)/se)
		d.Change.Low, d.Change.High = change-quantile(df, confidenceA)*se, change+quantile(df, confidenceA)*se
	case change == 0:
		d.P = 1
	}
	return d
}

// correct applies Holm's method.
func (c *Comparison) correct() {
	order := make([]int, len(c.Differences))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(c.Differences[i].P, c.Differences[j].P) })
	least := 0.0
	for rank, i := range order {
		d := &c.Differences[i]
		least = max(least, min(1, d.P*float64(len(order)-rank)))
		d.Corrected = least
		d.Significant = least < 1-c.Confidence
	}
}
