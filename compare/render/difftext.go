package render

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"braid/compare/estimate"
	"braid/compare/result"
	"braid/compare/workload"
	"braid/internal/wording"
)

// Diff writes what differs between two studies for a terminal, in at most 100 columns.
func Diff(w io.Writer, a *result.Study, ae *estimate.Study, b *result.Study, be *estimate.Study) error {
	c := Compare(a, ae, b, be)
	out := bufio.NewWriter(w)
	t := &texter{newView(a, ae), out}
	t.wrap("A: " + c.A.describe())
	t.wrap("B: " + c.B.describe())
	for _, s := range []struct {
		name string
		side Side
	}{{"A", c.A}, {"B", c.B}} {
		for _, x := range s.side.Warnings {
			t.wrap("WARNING on " + s.name + ": " + x.Text)
		}
	}
	if c.A.Quick != c.B.Quick {
		t.wrap("WARNING: one of them is a quick study, with wider intervals.")
	}
	t.say("")
	for _, s := range c.Findings() {
		t.wrap("- " + s)
	}
	c.table(t, QuantityPoint, "Cost of a trace point, ns", nanoseconds, func(v Interval) string { return span(v.Low, v.High, 2) })
	c.table(t, QuantityOverhead, "Overhead of a whole workload, %", percent, func(v Interval) string { return percents(v.Low, v.High) })
	for _, only := range []struct {
		name string
		arms []string
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		if len(only.arms) > 0 {
			t.wrap("\nOnly in " + only.name + ": " + strings.Join(only.arms, "; ") + ".")
		}
	}
	t.wrap(fmt.Sprintf("\np is that of Welch's t test, corrected with Holm's method for %s; changes are called significant below %s %%.",
		plural(len(c.Differences), "comparison"), tickLabel((1-c.Confidence)*100)))
	return out.Flush()
}

// DiffJSON writes the same for programs.
func DiffJSON(w io.Writer, a *result.Study, ae *estimate.Study, b *result.Study, be *estimate.Study) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(Compare(a, ae, b, be))
}

func (s Side) describe() string {
	return strings.Join(nonEmpty(or(s.Machine, "a machine without a name"), s.Arch, prefixed("kernel ", s.Kernel), prefixed("braid ", s.Version),
		s.Started.UTC().Format("2 January 2006 15:04 UTC")), " · ")
}

// Findings are what differs, in plain words. Only what is significant is called a difference.
func (c *Comparison) Findings() []string {
	var fs []string
	clusters := map[string]bool{}
	changed := map[string]int{}
	tested := map[string]int{}
	for _, d := range c.Differences {
		clusters[d.ClusterA] = true
	}
	for _, d := range c.Differences {
		where := ""
		if len(clusters) > 1 {
			where = " on " + d.ClusterA + " CPUs"
		}
		call := "A call without tracing"
		if d.Arm != armBaseline {
			call += " (" + d.Title + ")"
		}
		point := "An inlined trace point"
		if d.Workload == workload.Call {
			point += " in a tight loop"
		}
		tested[d.Quantity]++
		if d.Significant {
			changed[d.Quantity]++
		}
		switch {
		case d.Quantity == QuantityCall && d.Significant:
			fs = append(fs, fmt.Sprintf("%s takes %s in B, %s in A%s: %s ×.", call, long(d.B.Median), long(d.A.Median), where, ratio(d.Ratio)))
		case d.Quantity == QuantityCall:
			fs = append(fs, fmt.Sprintf("%s takes as long in both%s, as far as can be told.", call, where))
		case d.Arm == armOn && d.Quantity == QuantityPoint && d.Significant:
			fs = append(fs, fmt.Sprintf("%s costs %s ns in B, %s ns in A%s: %s ns %s.", point, nanoseconds(d.B.Median), nanoseconds(d.A.Median),
				where, nanoseconds(abs(d.Change.Median)), moreOrLess(d.Change.Median)))
		case d.Arm == armOn && d.Quantity == QuantityPoint:
			fs = append(fs, fmt.Sprintf("%s costs as much in both%s, as far as can be told: B less A is %s ns.", point, where,
				span(d.Change.Low, d.Change.High, 2)))
		}
	}
	if n := tested[QuantityPoint]; n > 0 {
		fs = append(fs, fmt.Sprintf("Of %d costs of trace points %d differ significantly.", n, changed[QuantityPoint]))
	}
	if n := tested[QuantityOverhead]; n > 0 {
		fs = append(fs, fmt.Sprintf("Of %d overheads of whole workloads %d differ significantly.", n, changed[QuantityOverhead]))
	}
	if c.Untold > 0 {
		fs = append(fs, fmt.Sprintf("%s could not be tested: there were too few launches.", plural(c.Untold, "pair")))
	}
	if len(c.Differences) == 0 {
		fs = append(fs, "There is nothing to compare: no arm has figures in both.")
	}
	return fs
}

func abs(v float64) float64 { return max(v, -v) }

func moreOrLess(v float64) string {
	if v < 0 {
		return "less"
	}
	return "more"
}

func (c *Comparison) table(t *texter, quantity, heading string, figure func(float64) string, interval func(Interval) string) {
	var tab columns
	last, class := "", ""
	flush := func() {
		if len(tab.rows) > 1 {
			tab.write(t.w, textWide)
		}
	}
	for _, d := range byClass(c.Differences, func(d Difference) string { return d.Class }) {
		if d.Quantity != quantity {
			continue
		}
		clusters := d.ClusterA
		if d.ClusterA != d.ClusterB {
			clusters += " and " + d.ClusterB
		}
		where := place(d.Workload, d.Parameter) + ", CPUs: " + clusters
		if where != last {
			flush()
			last, class = where, ""
			t.wrap("\n" + heading + " (" + where + ")")
			tab = columns{texts: 1}
			tab.add("", "A", "B", "B less A", tickLabel(c.Confidence*100)+" % interval", "B/A", "p", "")
		}
		verdict := ""
		if d.Significant {
			verdict = moreOrLess(d.Change.Median)
		}
		name := d.Title
		if class = tab.heading(class, d.Class); class != "" {
			name = "  " + name
		}
		tab.add(wording.Printable(name), figure(d.A.Median), figure(d.B.Median), signed(d.Change.Median, figure), interval(d.Change), ratioOf(d), pValue(d.Corrected), verdict)
	}
	flush()
}

// signed is a change: "+0.31".
func signed(v float64, figure func(float64) string) string {
	s := figure(v)
	if v > 0 && strings.Trim(s, "0.") != "" {
		return "+" + s
	}
	return s
}

// ratioOf is B by A, for costs; the ratio of two overheads near zero says nothing.
func ratioOf(d Difference) string {
	if d.Ratio <= 0 || d.A.Low <= 0 {
		return ""
	}
	return ratio(d.Ratio)
}
