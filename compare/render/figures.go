package render

import (
	"fmt"
	"maps"
	"slices"

	"braid/compare/estimate"
	"braid/compare/result"
	"braid/compare/workload"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// classShapes tell probes on different instructions apart.
var classShapes = []shape{diamond, hollow, cross, plus}

// costFigure shows what a trace point costs with each arm.
func (v *view) costFigure(rows []*estimate.Row, id string) *figure {
	var known []*estimate.Row
	for _, r := range rows {
		if r.Point.OK {
			known = append(known, r)
		}
	}
	if len(known) == 0 {
		return nil
	}
	f := dotFigure{id: id, title: "Cost of a trace point", axis: "ns for each trace point, logarithmic"}
	cs := classes(known)
	shapes := map[string]shape{}
	fig := &figure{}
	for i, c := range cs {
		shapes[c] = classShapes[i%len(classShapes)]
		fig.Legend = append(fig.Legend, legend{legendMark(shapes[c], "g-probe"), "probe on: " + c})
	}
	least, most := known[0], known[0]
	for _, fam := range families(known) {
		row := dotRow{label: cut(fam.title, 36), group: fam.group}
		for _, r := range fam.rows {
			s := groupShape(r.Group)
			if r.Class != "" {
				s = shapes[r.Class]
			}
			row.dots = append(row.dots, dot{r.Point, s, hint(full(r), r.Point, "ns")})
			if r.Point.Median < least.Point.Median {
				least = r
			}
			if r.Point.Median > most.Point.Median {
				most = r
			}
		}
		f.rows = append(f.rows, row)
	}
	for _, r := range known {
		if r.Arm == armClock {
			f.mark, f.markLabel = r.Point.Median, "clock read"
		}
	}
	f.desc = fmt.Sprintf("%d arms on a logarithmic axis, from %s at %s ns to %s at %s ns. The table below holds the same figures.",
		len(known), full(least), nanoseconds(least.Point.Median), full(most), nanoseconds(most.Point.Median))
	fig.Wide, fig.Narrow = f.draw(false), f.draw(true)
	return fig
}

// chosen are arms whose lines are named in a figure of many: all that run in the program, and the ends of the others.
func chosen(rows []*estimate.Row) map[string]bool {
	names := ends(rows)
	for _, r := range rows {
		if r.Point.OK && r.Group != result.GroupProbe && r.Group != result.GroupExternal {
			names[r.Arm] = true
		}
	}
	return names
}

// ends are the cheapest and the dearest arms of groups.
func ends(rows []*estimate.Row) map[string]bool {
	low, high := map[string]*estimate.Row{}, map[string]*estimate.Row{}
	for _, r := range rows {
		if !r.Point.OK {
			continue
		}
		if l := low[r.Group]; l == nil || r.Point.Median < l.Point.Median {
			low[r.Group] = r
		}
		if h := high[r.Group]; h == nil || r.Point.Median > h.Point.Median {
			high[r.Group] = r
		}
	}
	names := map[string]bool{}
	for g := range low {
		names[low[g].Arm], names[high[g].Arm] = true, true
	}
	return names
}

// overheads are the arms' lines over a parameter.
func (v *view) overheads(name string, ps []int64, cluster string, named func(a result.Arm) (named, shown bool)) []line {
	var lines []line
	nth := map[string]int{}
	for _, a := range v.r.Arms {
		isNamed, isShown := named(a)
		if !isShown || v.isBaseline(a.Name) {
			continue
		}
		l := line{label: armTitle(a), group: a.Group, faint: !isNamed}
		any := false
		for _, p := range ps {
			var value estimate.Value
			if r := v.e.Find(a.Name, name, p, cluster); r != nil && r.Failure == "" {
				value = r.Overhead
			}
			any = any || value.OK
			l.points = append(l.points, value)
		}
		if !any {
			continue
		}
		if isNamed {
			l.nth = nth[a.Group]
			nth[a.Group]++
		}
		lines = append(lines, l)
	}
	return lines
}

// curve shows how work in a method makes the cost of its trace points small.
func (v *view) curve(c result.Cluster, ps []int64, id string) *figure {
	names := chosen(v.rows(workload.Listing, ps[0], c.Name))
	f := lineFigure{id: id, title: "Overhead by the work of a method", x: "steps of work in each call, logarithmic", log: true, broken: ps[0] == 0,
		lines: v.overheads(workload.Listing, ps, c.Name, func(a result.Arm) (bool, bool) { return names[a.Name], a.Points > 0 })}
	return v.lineFigure(&f, workload.Listing, ps, c, "Overhead by the work of a method, on "+on(c), "work")
}

// cacheFigure shows how tracing and the caches get along: only arms that run in the program, others are in the table.
func (v *view) cacheFigure(c result.Cluster, ps []int64, id string) *figure {
	f := lineFigure{id: id, title: "Overhead by the size of tiles", x: "side of a tile, elements of four bytes",
		lines: v.overheads(workload.Matrix, ps, c.Name, func(a result.Arm) (bool, bool) {
			in := a.Points > 0 && a.Group != result.GroupProbe && a.Group != result.GroupExternal
			return in, in
		})}
	return v.lineFigure(&f, workload.Matrix, ps, c, "Overhead of a matrix multiplication by the side of its tiles, on "+on(c), "tile")
}

func (v *view) lineFigure(f *lineFigure, name string, ps []int64, c result.Cluster, caption, corner string) *figure {
	for _, p := range ps {
		f.columns = append(f.columns, number(float64(p), 0))
	}
	f.desc = fmt.Sprintf("Lines for %d arms over %d values. The table below holds all figures.", len(f.lines), len(ps))
	fig := &figure{}
	if g := v.overGrid(name, ps, c, caption, corner); g != nil {
		fig.Tables = append(fig.Tables, g)
	} else {
		return nil
	}
	if name == workload.Matrix {
		fig.Tables = append(fig.Tables, v.memory(name, ps, c, corner)...)
	}
	for _, l := range f.lines {
		if !l.faint {
			fig.Legend = append(fig.Legend, legend{legendLine(l), l.label})
		}
	}
	if len(f.lines) > 0 {
		fig.Wide, fig.Narrow = f.draw(false), f.draw(true)
	}
	return fig
}

// overGrid holds overheads over a parameter.
func (v *view) overGrid(name string, ps []int64, c result.Cluster, caption, corner string) *grid {
	return v.grid(name, ps, c, caption+": median in percent", corner, func(r *estimate.Row) (gridCell, bool) {
		return gridCell{percent(r.Overhead.Median), shares(r.Overhead), r.IsNotInferior}, v.compared(r)
	})
}

// memory are tables of what a workload moved through memory and of cache misses, where they were measured.
func (v *view) memory(name string, ps []int64, c result.Cluster, corner string) []*grid {
	var gs []*grid
	for _, of := range []struct {
		what   string
		figure func(*estimate.Row) float64
	}{
		{"Data read from memory and caches, GB/s", func(r *estimate.Row) float64 { return r.BytesPerNS }},
		{"Cache misses in each call", func(r *estimate.Row) float64 { return r.CacheMisses }},
	} {
		g := v.grid(name, ps, c, of.what+", by the side of tiles, on "+on(c), corner, func(r *estimate.Row) (gridCell, bool) {
			x := of.figure(r)
			return gridCell{Value: number(x, decimals(x, 2))}, r.Failure == "" && x > 0
		})
		if g != nil {
			gs = append(gs, g)
		}
	}
	return gs
}

// grid is a table of arms over a parameter, nil if there is nothing in it.
func (v *view) grid(name string, ps []int64, c result.Cluster, caption, corner string, cellOf func(*estimate.Row) (gridCell, bool)) *grid {
	g := &grid{Caption: caption, Corner: corner}
	for _, p := range ps {
		g.Head = append(g.Head, number(float64(p), 0))
	}
	for _, a := range byClass(v.r.Arms, armClass) {
		row, any := gridRow{Name: or(a.Title, a.Name), Probe: a.Class, Class: groupClass(a.Group)}, false
		for _, p := range ps {
			cell := gridCell{Value: "-"}
			if r := v.e.Find(a.Name, name, p, c.Name); r != nil {
				if x, ok := cellOf(r); ok {
					cell, any = x, true
				}
			}
			g.Marked = g.Marked || cell.Fine
			row.Cells = append(row.Cells, cell)
		}
		if any {
			g.Rows = append(g.Rows, row)
		}
	}
	if len(g.Rows) == 0 {
		return nil
	}
	return g
}

// nearBy is how many times as slow as the baseline an arm may be to stand in a figure of its own scale.
const nearBy = 1.5

// whole is a workload without a parameter: box plots, and a table.
func (v *view) whole(c result.Cluster, name string, parameter int64, rows []*estimate.Row, id string) whole {
	scale, takes := v.unitOf(name, parameter, c.Name)
	w := whole{Title: upperFirst(workloadTitle(name)), Takes: upperFirst(takes)}
	base, most := 0.0, 0.0
	for _, r := range rows {
		if r.Arm == armBaseline && r.Call.OK {
			base = r.Box.Median * scale
		}
		most = max(most, r.Box.High*scale)
		verdict, mood := v.mood(r)
		w.Rows = append(w.Rows, wholeRow{Name: full(r), Class: groupClass(r.Group), Takes: shown(r.Call, func(x float64) string { return long(x * scale) }),
			Overhead: shown(v.overhead(r), percent), Interval: shares(v.overhead(r)), P: v.chance(r), Effect: v.effect(r), Verdict: verdict, Mood: mood,
			N: fmt.Sprintf("%s in %s", count(r.Samples), plural(r.Launches, "launch"))})
	}
	if base == 0 {
		return w
	}
	near := boxFigure{id: id + "-near", title: w.Title, mark: base}
	far := boxFigure{id: id + "-far", title: w.Title + ", slower arms", mark: base, log: true}
	unit := ""
	near.unit, unit = unitFor(base)
	far.unit = near.unit
	near.axis, far.axis = takes+", "+unit, takes+", "+unit+", logarithmic"
	for _, r := range rows {
		if r.Box.N == 0 {
			continue
		}
		b := box{label: cut(full(r), 40), group: r.Group, Box: scaled(r.Box, scale), hint: boxHint(full(r), r.Box, scale)}
		if b.Median > base*nearBy {
			far.boxes = append(far.boxes, b)
		} else {
			near.boxes = append(near.boxes, b)
		}
	}
	w.Near, w.Far = near.figure(), far.figure()
	return w
}

func (f *boxFigure) figure() *figure {
	if len(f.boxes) == 0 {
		return nil
	}
	f.desc = fmt.Sprintf("Box plots of %d arms: median, middle half, the furthest samples within 1.5 times that, and those beyond as circles.", len(f.boxes))
	return &figure{Wide: f.draw(false), Narrow: f.draw(true)}
}

func scaled(b estimate.Box, f float64) estimate.Box {
	o := make([]float64, len(b.Outliers))
	for i, x := range b.Outliers {
		o[i] = x * f
	}
	return estimate.Box{Low: b.Low * f, Q1: b.Q1 * f, Median: b.Median * f, Q3: b.Q3 * f, High: b.High * f, Outliers: o, N: b.N}
}

func boxHint(name string, b estimate.Box, f float64) string {
	return fmt.Sprintf("%s: median %s, middle half %s to %s, of %s", name, long(b.Median*f), long(b.Q1*f), long(b.Q3*f), plural(b.N, "sample"))
}

// unitFor is the unit of an axis that holds a time.
func unitFor(ns float64) (float64, string) {
	switch {
	case ns < 1e3:
		return 1, "ns"
	case ns < 1e6:
		return 1e3, "µs"
	case ns < 1e9:
		return 1e6, "ms"
	}
	return 1e9, "s"
}
