package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"braid/compare/estimate"
	"braid/compare/result"
	"braid/compare/workload"
	"braid/internal/wording"
)

// textWide is how many columns a terminal table may take.
const textWide = 100

// Text writes a study for a terminal, in at most 100 columns: what makes it hard to trust, what it found, then the tables.
// What comes from the result is printable when it is written, whatever it holds. The same result gives the same text.
func Text(w io.Writer, r *result.Study, e *estimate.Study) error {
	b := bufio.NewWriter(w)
	t := &texter{newView(r, e), b}
	t.head()
	for _, x := range t.warnings() {
		t.wrap("WARNING: " + x.Text)
	}
	if fs := findings(t.view); len(fs) > 0 {
		t.say("\nFindings")
		for _, f := range fs {
			t.wrap("- " + f.Sentence())
		}
	}
	clusters := t.clusters()
	for _, c := range clusters {
		for _, name := range costed {
			t.costs(c, name)
		}
		t.over(t.overGrid(workload.Listing, t.parameters(workload.Listing, c.Name), c, "Overhead by the work of a method, on "+on(c), "work"))
		tiles := t.parameters(workload.Matrix, c.Name)
		t.over(t.overGrid(workload.Matrix, tiles, c, "Overhead of a matrix multiplication by the side of its tiles, on "+on(c), "tile"))
		for _, g := range t.memory(workload.Matrix, tiles, c, "tile") {
			t.over(g)
		}
		for _, name := range t.others(c.Name) {
			t.whole(c, name)
		}
	}
	if len(clusters) > 0 {
		t.wrap("\n* no more than " + t.margin() + " slower than the baseline, as a paired t test says (" + tickLabel(t.e.Confidence*100) + " % sure).")
	}
	t.missing()
	t.method()
	return b.Flush()
}

type texter struct {
	*view
	w *bufio.Writer
}

func (t *texter) say(format string, args ...any) { fmt.Fprintf(t.w, format+"\n", args...) }

// held stands for a space between a number and its unit while lines are broken: it is not one of those that lines break at.
const held = "\ue000"

var units = strings.NewReplacer(" %", held+"%", " CPU", held+"CPU", " ns", held+"ns", " ×", held+"×")

// wrap writes foreign text in lines.
func (t *texter) wrap(s string) {
	if rest, ok := strings.CutPrefix(s, "\n"); ok {
		t.say("")
		s = rest
	}
	var b strings.Builder
	s = units.Replace(wording.Printable(s))
	wording.Wrap(&b, s, textWide)
	t.say("%s", strings.ReplaceAll(strings.TrimRight(b.String(), "\n"), held, " "))
}

func (t *texter) head() {
	m := t.r.Machine
	t.wrap(strings.Join(nonEmpty("What tracing costs on "+or(m.Name, "this machine"), m.Arch, m.OS, prefixed("kernel ", m.Kernel), plural(m.CPUs, "CPU"), prefixed("braid ", t.r.Version)), " · "))
}

// costs is the table of what one trace point costs.
func (t *texter) costs(c result.Cluster, name string) {
	ps := t.parameters(name, c.Name)
	if len(ps) == 0 {
		return
	}
	t.wrap(fmt.Sprintf("\nCost of a trace point in a method with %s, on %s", place(name, ps[0]), on(c)))
	tab := columns{texts: 1}
	tab.add("", "ns", tickLabel(t.e.Confidence*100)+" % interval", "spread", "× clock", "× stub", "over, %", "verdict")
	site := ""
	for _, r := range byClass(t.rows(name, ps[0], c.Name), rowClass) {
		a := t.arm(r.Arm)
		site = tab.heading(site, seat(a))
		name := title(r)
		if site != "" {
			name = "  " + name
		}
		if a.Estimated {
			name += " (estimated)"
		}
		tab.add(wording.Printable(name), shown(r.Point, nanoseconds), interval(r.Point, 2), strings.TrimPrefix(spreadOf(r), "± "), shown(r.ToClock, ratio), shown(r.ToStub, ratio),
			shown(t.overhead(r), percent), t.verdict(r))
	}
	tab.write(t.w, textWide)
}

// over is a table over a workload's parameter.
func (t *texter) over(g *grid) {
	if g == nil {
		return
	}
	t.wrap("\n" + g.Caption)
	tab := columns{}
	head := []string{g.Corner}
	for _, h := range g.Head {
		head = append(head, h+" ")
	}
	tab.add(head...)
	class := ""
	for _, r := range g.Rows {
		name := r.Name
		if class = tab.heading(class, r.Probe); class != "" {
			name = "  " + name
		}
		cells := []string{wording.Printable(name)}
		for _, c := range r.Cells {
			mark := " "
			if c.Fine {
				mark = "*"
			}
			cells = append(cells, c.Value+mark)
		}
		tab.add(cells...)
	}
	tab.write(t.w, textWide)
}

// whole is the table of a workload that has no parameter.
func (t *texter) whole(c result.Cluster, name string) {
	for _, p := range t.parameters(name, c.Name) {
		rows := t.rows(name, p, c.Name)
		if len(rows) == 0 {
			continue
		}
		t.wrap(fmt.Sprintf("\nThe whole of a workload: %s, on %s", workloadTitle(name), on(c)))
		tab := columns{texts: 1}
		scale, takes := t.unitOf(name, p, c.Name)
		tab.add("", takes, "overhead %", tickLabel(t.e.Confidence*100)+" % interval", "p slower", "effect", "verdict")
		class := ""
		for _, r := range byClass(rows, rowClass) {
			class = tab.heading(class, r.Class)
			name := title(r)
			if class != "" {
				name = "  " + name
			}
			tab.add(wording.Printable(name), shown(r.Call, func(v float64) string { return long(v * scale) }), shown(t.overhead(r), percent), shares(t.overhead(r)), t.chance(r), t.effect(r), t.verdict(r))
		}
		tab.write(t.w, textWide)
	}
}

// missing says which arms there are no figures of.
func (t *texter) missing() {
	for i, m := range t.missed() {
		if i == 0 {
			t.say("\nArms that did not run")
		}
		s := "- " + m.Name + ": " + m.Why
		if m.Next != "" {
			s += "; next: " + m.Next
		}
		t.wrap(s)
	}
	if ex := t.excluded(); len(ex) > 0 {
		t.say("\nWithout a figure")
		for _, s := range ex {
			t.wrap("- " + s)
		}
	}
}

func (t *texter) method() {
	t.say("\nMethod")
	for _, s := range t.methodLines() {
		t.wrap("- " + s)
	}
}

// byClass brings probes on instructions of the same class together; everything else stays where it is.
func byClass[T any](all []T, class func(T) string) []T {
	var sorted, probes []T
	flush := func() {
		var seen []string
		for _, p := range probes {
			if !slices.Contains(seen, class(p)) {
				seen = append(seen, class(p))
			}
		}
		slices.SortStableFunc(probes, func(a, b T) int { return cmp.Compare(slices.Index(seen, class(a)), slices.Index(seen, class(b))) })
		sorted = append(sorted, probes...)
		probes = nil
	}
	for _, x := range all {
		if class(x) != "" {
			probes = append(probes, x)
			continue
		}
		flush()
		sorted = append(sorted, x)
	}
	flush()
	return sorted
}

func rowClass(r *estimate.Row) string { return r.Class }

func armClass(a result.Arm) string { return a.Class }

// seat is the instruction that a probe sits on, with its class.
func seat(a result.Arm) string {
	switch {
	case a.Site != "" && a.Class != "":
		return a.Site + " (" + a.Class + ")"
	case a.Class != "":
		return a.Class
	}
	return a.Site
}

func armTitle(a result.Arm) string {
	t := or(a.Title, a.Name)
	if a.Class != "" && !strings.Contains(t, a.Class) {
		t += ", " + a.Class
	}
	return t
}

func shown(v estimate.Value, f func(float64) string) string {
	if !v.OK {
		return "-"
	}
	return f(v.Median)
}

func interval(v estimate.Value, most int) string {
	if !v.OK {
		return ""
	}
	return span(v.Low, v.High, most)
}

func shares(v estimate.Value) string {
	if !v.OK {
		return ""
	}
	return percents(v.Low, v.High)
}

func spreadOf(r *estimate.Row) string {
	if !r.Point.OK {
		return ""
	}
	return "± " + nanoseconds(r.SD)
}

// chance is the p value for being slower.
func (v *view) chance(r *estimate.Row) string {
	if !v.compared(r) || !r.Slower.OK {
		return ""
	}
	return pValue(r.Slower.P)
}

func (v *view) effect(r *estimate.Row) string {
	if !v.compared(r) || !r.Slower.OK {
		return ""
	}
	return number(r.Effect, 2)
}

func pValue(p float64) string {
	if p < 0.0001 {
		return "< 0.0001"
	}
	return number(p, 4)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func nonEmpty(s ...string) []string {
	var kept []string
	for _, x := range s {
		if x != "" {
			kept = append(kept, x)
		}
	}
	return kept
}
