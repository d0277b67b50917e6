package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"braid/compare/estimate"
	"braid/compare/result"
	"braid/compare/workload"
)

// Names of arms that sentences and figures single out. A study without them is shown all the same.
const (
	armBaseline   = "baseline"
	armClock      = "clock"
	armOff        = "stub-off"
	armOn         = "stub-on"
	armWithKernel = "stub-on-kernel"
	armHandler    = "handler"
	armGetTime    = "gettime"
)

// view is a result with its estimates, as tables and figures need them.
type view struct {
	r    *result.Study
	e    *estimate.Study
	arms map[string]int // place in r.Arms
}

func newView(r *result.Study, e *estimate.Study) *view {
	v := &view{r: r, e: e, arms: map[string]int{}}
	for i, a := range r.Arms {
		v.arms[a.Name] = i
	}
	return v
}

// arm is what the result says about a row's arm.
func (v *view) arm(name string) result.Arm {
	if i, ok := v.arms[name]; ok {
		return v.r.Arms[i]
	}
	return result.Arm{Name: name, Title: name}
}

// isBaseline says whether an arm is what others are compared with. It is not compared itself: a program in another language
// than the first baseline is no slower tracer.
func (v *view) isBaseline(name string) bool {
	return name == armBaseline || slices.ContainsFunc(v.r.Arms, func(a result.Arm) bool { return a.Baseline == name })
}

// compared says whether there is an overhead to show.
func (v *view) compared(r *estimate.Row) bool {
	return r.Failure == "" && r.Overhead.OK && !v.isBaseline(r.Arm)
}

// overhead is that of a row, as far as it is compared.
func (v *view) overhead(r *estimate.Row) estimate.Value {
	if !v.compared(r) {
		return estimate.Value{}
	}
	return r.Overhead
}

// title is an arm's name for people.
func title(r *estimate.Row) string {
	if r.Title == "" {
		return r.Arm
	}
	return r.Title
}

// full is the title with the class of the probed instruction, if the title does not say it itself.
func full(r *estimate.Row) string {
	t := title(r)
	if r.Class == "" || strings.Contains(t, r.Class) {
		return t
	}
	return t + ", " + r.Class
}

// rows are the arms on a workload, in the order in which arms are shown; without those that failed.
func (v *view) rows(workload string, parameter int64, cluster string) []*estimate.Row {
	var rows []*estimate.Row
	for i := range v.e.Rows {
		r := &v.e.Rows[i]
		if r.Workload == workload && r.Parameter == parameter && r.Cluster == cluster && r.Failure == "" {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *estimate.Row) int { return cmp.Compare(v.arms[a.Arm], v.arms[b.Arm]) })
	return rows
}

// parameters of a workload on a cluster, ascending.
func (v *view) parameters(workload, cluster string) []int64 {
	var ps []int64
	for _, r := range v.e.Rows {
		if r.Workload == workload && r.Cluster == cluster && !slices.Contains(ps, r.Parameter) {
			ps = append(ps, r.Parameter)
		}
	}
	slices.Sort(ps)
	return ps
}

// costed are the workloads whose methods without work tell what a trace point costs, the one that tells most first.
var costed = []string{workload.Listing, workload.Call}

// costRows are the arms' rows in a method without work, of the first such workload that was run on a cluster. There are none if none
// was.
func (v *view) costRows(cluster string) []*estimate.Row {
	names := v.costed(cluster)
	if len(names) == 0 {
		return nil
	}
	return v.rows(names[0], v.parameters(names[0], cluster)[0], cluster)
}

// costed are those of the workloads that tell what a trace point costs that were run on a cluster.
func (v *view) costed(cluster string) []string {
	return slices.DeleteFunc(slices.Clone(costed), func(name string) bool { return len(v.parameters(name, cluster)) == 0 })
}

// others are the workloads that have neither a table nor a figure of their own kind: those of one figure each.
func (v *view) others(cluster string) []string {
	var names []string
	for _, r := range v.e.Rows {
		if r.Cluster == cluster && r.Workload != workload.Matrix && !slices.Contains(costed, r.Workload) && !slices.Contains(names, r.Workload) {
			names = append(names, r.Workload)
		}
	}
	known := []string{workload.Startup, workload.Schedule, workload.IO, workload.Command}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(slices.Index(known, a), slices.Index(known, b)) })
	return names
}

// unitOf is what times of a call are multiplied with so that they say something about a workload, and what they are then: whole
// runs for programs that run from start to end, which make the same calls each time.
func (v *view) unitOf(name string, parameter int64, cluster string) (float64, string) {
	if name != workload.Startup && name != workload.Command {
		return 1, "a call takes"
	}
	for _, s := range v.r.Series {
		if s.Workload == name && s.Parameter == parameter && s.Cluster == cluster && len(s.Samples) > 0 && s.Samples[0].Calls > 0 {
			return float64(s.Samples[0].Calls), "a run takes"
		}
	}
	return 1, "a call takes"
}

// clusters that were measured, in the machine's order.
func (v *view) clusters() []result.Cluster {
	var cs []result.Cluster
	seen := map[string]bool{}
	for _, c := range v.r.Machine.Clusters {
		seen[c.Name] = true
		if slices.ContainsFunc(v.e.Rows, func(r estimate.Row) bool { return r.Cluster == c.Name }) {
			cs = append(cs, c)
		}
	}
	for _, r := range v.e.Rows {
		if !seen[r.Cluster] {
			seen[r.Cluster] = true
			cs = append(cs, result.Cluster{Name: r.Cluster, PinnedTo: -1})
		}
	}
	return cs
}

// on says where a cluster was measured: "CPU 3 (big, Cortex-X1)".
func on(c result.Cluster) string {
	var about []string
	for _, s := range []string{c.Name, c.Model} {
		if s != "" && s != "all" {
			about = append(about, s)
		}
	}
	s := fmt.Sprintf("CPU %d", c.PinnedTo)
	if c.PinnedTo < 0 {
		s = "CPUs"
	}
	if len(about) > 0 {
		s += " (" + strings.Join(about, ", ") + ")"
	}
	return s
}

// margin is that of non-inferiority: "3 %".
func (v *view) margin() string { return tickLabel(v.e.Margin*100) + " %" }

// verdict says in two words whether an arm is slower than its baseline.
func (v *view) verdict(r *estimate.Row) string {
	switch {
	case !v.compared(r) || !r.Slower.OK || !r.NotInferior.OK:
		return ""
	case r.IsNotInferior:
		return "within " + v.margin()
	case isSlower(r):
		return "slower"
	}
	return "undecided"
}

// isSlower needs the interval of the median to agree with the t test, which is about means and can follow a few samples.
func isSlower(r *estimate.Row) bool { return r.IsSlower && r.Overhead.Low > 0 }

// missed says which arms did not run. Those that are called the same, as they differ only in the instruction that they would have sat on,
// are named once.
func (v *view) missed() (out []missing) {
	var same grouping
	for _, a := range v.r.Arms {
		if !a.Ran {
			same.add(armTitle(a)+"\x00"+or(a.WhyNot, "no reason is known")+"\x00"+a.NextStep, a.Name)
		}
	}
	for _, k := range same.keys {
		f := strings.SplitN(k, "\x00", 3)
		if n := len(same.of[k]); n > 1 {
			f[0] += fmt.Sprintf(" (%d arms)", n)
		}
		out = append(out, missing{f[0], f[1], f[2]})
	}
	return out
}

// excluded says which series have no figures, and why.
func (v *view) excluded() []string {
	where := grouping{}
	for i := range v.e.Rows {
		if r := &v.e.Rows[i]; r.Failure != "" {
			where.add(full(r)+"\x00"+r.Failure, place(r.Workload, r.Parameter))
		}
	}
	arms := grouping{}
	for _, k := range where.keys {
		name, why, _ := strings.Cut(k, "\x00")
		arms.add("in "+strings.Join(where.of[k], ", ")+": "+why, name)
	}
	var lines []string
	for _, k := range arms.keys {
		lines = append(lines, strings.Join(arms.of[k], "; ")+" "+k)
	}
	return lines
}

// grouping collects different values by a key, both in the order in which they came.
type grouping struct {
	keys []string
	of   map[string][]string
}

func (g *grouping) add(key, value string) {
	if g.of == nil {
		g.of = map[string][]string{}
	}
	if _, ok := g.of[key]; !ok {
		g.keys = append(g.keys, key)
	}
	if !slices.Contains(g.of[key], value) {
		g.of[key] = append(g.of[key], value)
	}
}

// place names a workload with its parameter.
func place(name string, parameter int64) string {
	switch name {
	case workload.Listing:
		return fmt.Sprintf("work %d", parameter)
	case workload.Call:
		return fmt.Sprintf("work %d in a tight loop", parameter)
	case workload.Matrix:
		return fmt.Sprintf("tiles of %d", parameter)
	}
	return workloadTitle(name)
}

// workloadTitle names a workload for people.
func workloadTitle(name string) string {
	switch name {
	case workload.Listing:
		return "nested calls"
	case workload.Call:
		return "calls in a tight loop"
	case workload.Matrix:
		return "matrix multiplication"
	case workload.Startup:
		return "start of a real program"
	case workload.Schedule:
		return "two threads that wake each other"
	case workload.IO:
		return "small writes"
	case workload.Command:
		return "the given program"
	}
	return name
}

// family is arms that differ only in the instruction that the probe sits on.
type family struct {
	title, group string
	rows         []*estimate.Row
}

// families puts probe arms together whose names differ only behind their last hyphen and that sit on different classes.
func families(rows []*estimate.Row) []family {
	var fs []family
	index := map[string]int{}
	for _, r := range rows {
		key := r.Arm
		if i := strings.LastIndexByte(r.Arm, '-'); i > 0 && r.Class != "" {
			key = r.Arm[:i]
		}
		i, ok := index[key]
		if ok && !slices.ContainsFunc(fs[i].rows, func(o *estimate.Row) bool { return o.Class == r.Class || o.Class == "" }) {
			fs[i].rows = append(fs[i].rows, r)
			fs[i].title = common(fs[i].title, title(r))
			continue
		}
		index[key] = len(fs)
		fs = append(fs, family{title: title(r), group: r.Group, rows: []*estimate.Row{r}})
	}
	for i := range fs { // titles may differ in nothing but the class
		if slices.ContainsFunc(fs[:i], func(f family) bool { return f.title == fs[i].title }) {
			fs[i].title = full(fs[i].rows[0])
		}
	}
	return fs
}

// common is the beginning that two titles share, without what joined it to the rest. If that is little, it is the first.
func common(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n < len(a) && n < len(b) {
		n = strings.LastIndexAny(a[:n], " ,(") + 1 // not within a word
	}
	s := strings.TrimRight(a[:n], " ,(:")
	for _, w := range []string{" on", " at"} {
		s = strings.TrimRight(strings.TrimSuffix(s, w), " ,(:")
	}
	if len(s) < 4 {
		return a
	}
	return s
}

// classes of the probed instructions, in the order in which they appear.
func classes(rows []*estimate.Row) []string {
	var cs []string
	for _, r := range rows {
		if r.Class != "" && !slices.Contains(cs, r.Class) {
			cs = append(cs, r.Class)
		}
	}
	return cs
}
