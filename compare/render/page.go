package render

import (
	"fmt"
	"html/template"
	"strings"

	"braid/compare/estimate"
	"braid/compare/result"
	"braid/compare/workload"
)

// page is what the HTML template shows. All strings in it are escaped by the template; only figures are not, which escape
// theirs when they are drawn.
type page struct {
	Title, Subtitle string
	Style           template.CSS
	Policy          string
	Warnings        []result.Warning
	Tiles           []tile
	Findings        []findingGroup
	Sections        []section
	Confidence      string
	Margin          string
	Missing         []missing
	Excluded        []string
	Proofs          []proof
	Method          []string
	Machine         []pair
	Version         string
	Schema          int
}

// findingGroup is what was found on one cluster; without a name, on the only one.
type findingGroup struct {
	Cluster  string
	Findings []Finding
}

func groups(fs []Finding) []findingGroup {
	var gs []findingGroup
	for _, f := range fs {
		if n := len(gs); n == 0 || gs[n-1].Cluster != f.Cluster {
			gs = append(gs, findingGroup{Cluster: f.Cluster})
		}
		g := &gs[len(gs)-1]
		g.Findings = append(g.Findings, f)
	}
	return gs
}

// tile is a figure that stands out.
type tile struct{ Value, Unit, Text, Note, Class string }

// section is what was measured on one cluster.
type section struct {
	ID, Title  string
	One        bool         // the only one
	Costs      []*costTable // the first is drawn too
	CostFigure *figure
	Curve      *figure
	Cache      *figure
	Wholes     []whole
}

// figure is a drawing for wide pages, and one for narrow ones, with its figures as a table.
type figure struct {
	Wide, Narrow template.HTML
	Legend       []legend
	Tables       []*grid
}

type legend struct {
	Mark template.HTML
	Text string
}

// grid is a table over a parameter.
type grid struct {
	Caption, Corner string
	Head            []string
	Rows            []gridRow
	Marked          bool // there are cells that are Fine
}

type gridRow struct {
	Name  string
	Probe string // class of the probed instruction
	Class string
	Cells []gridCell
}

type gridCell struct {
	Value, Interval string
	Fine            bool // not inferior
}

// costTable is what a trace point costs, by groups of arms.
type costTable struct {
	Caption string
	Groups  []costGroup
}

type costGroup struct {
	Title, Class string
	Seats        []costSeat
}

// costSeat is rows of probes on the same instruction; or of arms that are none, without a class.
type costSeat struct {
	Class, Site string
	Rows        []costRow
}

type costRow struct {
	Name, Point, Interval, Spread, Clock, Stub, Overhead, Verdict, Mood string
	Estimated                                                           bool
}

// whole is a workload without a parameter.
type whole struct {
	Title, Takes string
	Near, Far    *figure
	Rows         []wholeRow
}

type wholeRow struct {
	Name, Class, Takes, Overhead, Interval, P, Effect, Verdict, Mood string
	N                                                                string
}

type missing struct{ Name, Why, Next string }

// proof says how many events an arm recorded, over all workloads.
type proof struct {
	Name, Class, Expected, Recorded, Says, Mood string
	Facts                                       []pair
}

func (v *view) page() *page {
	m := v.r.Machine
	p := &page{
		Title: "What tracing costs on " + or(m.Name, "this machine"),
		Subtitle: strings.Join(nonEmpty(v.r.Started.UTC().Format("2 January 2006"), m.Arch, m.OS, prefixed("kernel ", m.Kernel), plural(m.CPUs, "CPU"),
			prefixed("braid ", v.r.Version)), " · "),
		Warnings: v.warnings(), Findings: groups(findings(v)), Confidence: tickLabel(v.e.Confidence*100) + " %", Margin: v.margin(),
		Excluded: v.excluded(), Method: v.methodLines(), Machine: v.machineFacts(), Version: v.r.Version, Schema: v.r.Schema,
	}
	clusters := v.clusters()
	for i, c := range clusters {
		p.Sections = append(p.Sections, v.section(c, fmt.Sprintf("c%d", i), len(clusters) == 1))
	}
	p.Tiles = v.tiles(clusters)
	p.Missing = v.missed()
	p.Proofs = v.proofs()
	return p
}

func (v *view) section(c result.Cluster, id string, one bool) section {
	s := section{ID: id, Title: "On " + on(c), One: one}
	for _, name := range v.costed(c.Name) {
		if rows := v.rows(name, v.parameters(name, c.Name)[0], c.Name); len(rows) > 0 {
			s.Costs = append(s.Costs, v.costTable(rows, name, c))
			if s.CostFigure == nil {
				s.CostFigure = v.costFigure(rows, id+"-cost")
			}
		}
	}
	if ps := v.parameters(workload.Listing, c.Name); len(ps) > 1 {
		s.Curve = v.curve(c, ps, id+"-work")
	}
	if ps := v.parameters(workload.Matrix, c.Name); len(ps) > 0 {
		s.Cache = v.cacheFigure(c, ps, id+"-cache")
	}
	for _, name := range v.others(c.Name) {
		for i, p := range v.parameters(name, c.Name) {
			if rows := v.rows(name, p, c.Name); len(rows) > 0 {
				s.Wholes = append(s.Wholes, v.whole(c, name, p, rows, fmt.Sprintf("%s-%s%d", id, slug(name), i)))
			}
		}
	}
	return s
}

// tiles are the figures of the strongest CPUs.
func (v *view) tiles(clusters []result.Cluster) []tile {
	if len(clusters) == 0 || v.r.Machine.Emulated {
		return nil
	}
	c := clusters[0]
	for _, o := range clusters {
		if o.Capacity > c.Capacity {
			c = o
		}
	}
	f := finder{view: v, cluster: c.Name}
	f.costs = v.costRows(c.Name)
	var ts []tile
	if r := f.cost(armOn); r != nil {
		ts = append(ts, tile{nanoseconds(r.Point.Median), "ns", "an inlined trace point", span(r.Point.Low, r.Point.High, 2) + " ns", "g-inline"})
		if r.ToClock.OK {
			ts = append(ts, tile{ratio(r.ToClock.Median), "×", "the bare clock read", span(r.ToClock.Low, r.ToClock.High, 2) + " ×", "g-inline"})
		}
	}
	if rows := f.of(result.GroupProbe); len(rows) > 0 {
		r := cheapest(rows)[0]
		ts = append(ts, tile{nanoseconds(r.Point.Median), "ns", "the cheapest probe", full(r), "g-probe"})
		if r.ToStub.OK {
			ts = append(ts, tile{ratio(r.ToStub.Median), "×", "from an inlined trace point to it", span(r.ToStub.Low, r.ToStub.High, 2) + " ×", "g-probe"})
		}
	}
	if r := v.e.Find(armOn, workload.Startup, 0, c.Name); r != nil && r.Failure == "" && r.Overhead.OK {
		ts = append(ts, tile{percent(r.Overhead.Median), "%", "longer start of a real program, traced inline", shares(r.Overhead) + " %, " + v.verdict(r), "g-inline"})
	}
	return ts
}

func (v *view) costTable(rows []*estimate.Row, name string, c result.Cluster) *costTable {
	t := &costTable{Caption: fmt.Sprintf("Cost of a single trace point in %s, on %s", workloadTitle(name), on(c))}
	for _, r := range byClass(rows, rowClass) {
		if n := len(t.Groups); n == 0 || t.Groups[n-1].Class != groupClass(r.Group) {
			t.Groups = append(t.Groups, costGroup{Title: groupTitle(r.Group), Class: groupClass(r.Group)})
		}
		g := &t.Groups[len(t.Groups)-1]
		a := v.arm(r.Arm)
		if n := len(g.Seats); n == 0 || g.Seats[n-1].Class != a.Class || g.Seats[n-1].Site != a.Site {
			g.Seats = append(g.Seats, costSeat{Class: a.Class, Site: a.Site})
		}
		seat := &g.Seats[len(g.Seats)-1]
		verdict, mood := v.mood(r)
		seat.Rows = append(seat.Rows, costRow{Name: title(r), Point: shown(r.Point, nanoseconds), Interval: interval(r.Point, 2), Spread: spreadOf(r),
			Clock: shown(r.ToClock, ratio), Stub: shown(r.ToStub, ratio), Overhead: shown(v.overhead(r), percent),
			Verdict: verdict, Mood: mood, Estimated: a.Estimated})
	}
	return t
}

// mood is a verdict with the class of its mark.
func (v *view) mood(r *estimate.Row) (verdict, class string) {
	switch verdict = v.verdict(r); {
	case verdict == "":
		return "", ""
	case r.IsNotInferior:
		return verdict, "good"
	case isSlower(r):
		return verdict, "bad"
	}
	return verdict, "open"
}

func groupTitle(group string) string {
	switch group {
	case result.GroupFloor:
		return "Floor"
	case result.GroupInline:
		return "Inline"
	case result.GroupCompiled:
		return "Called by compiled code"
	case result.GroupProbe:
		return "Probes of the kernel"
	case result.GroupExternal:
		return "Other tracers"
	}
	return group
}

func (v *view) proofs() []proof {
	var ps []proof
	for _, a := range v.r.Arms {
		if !a.Ran {
			continue
		}
		var expected, recorded uint64
		for _, s := range v.r.Series {
			if s.Arm == a.Name {
				expected += s.Expected
				recorded += s.Recorded
			}
		}
		p := proof{Name: armTitle(a), Class: groupClass(a.Group), Expected: number(float64(expected), 0), Recorded: number(float64(recorded), 0), Says: "all", Mood: "good"}
		switch {
		case expected == 0 && recorded == 0:
			p.Expected, p.Recorded, p.Says, p.Mood = "", "", "records nothing by design", ""
		case a.Estimated:
			p.Says, p.Mood = "estimated", "open"
		case expected != recorded:
			p.Says, p.Mood = "not all", "bad"
		}
		for _, k := range sortedKeys(a.Facts) {
			p.Facts = append(p.Facts, pair{k, a.Facts[k]})
		}
		ps = append(ps, p)
	}
	return ps
}

// slug makes a name fit to be a part of an id.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}
