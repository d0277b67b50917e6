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

// Finding is a sentence about a study. It says only what the intervals and tests support.
type Finding struct {
	Topic   string `json:"topic"`             // stable: "inline", "off", "kernel", "compiled", "probe", "class", "kernel-entry", "external", "loop", "amortisation", "cache", "startup", "whole", "noise", "align", "emulated"
	Cluster string `json:"cluster,omitempty"` // that it is about, if the machine has several
	Text    string `json:"text"`
}

// Findings are what a study found, in plain words, the most important first. Names in them come from the result: escape
// them for where they are shown.
func Findings(r *result.Study, e *estimate.Study) []Finding { return findings(newView(r, e)) }

func findings(v *view) []Finding {
	if v.r.Machine.Emulated {
		return []Finding{v.emulated()}
	}
	var fs []Finding
	clusters := v.clusters()
	for _, c := range clusters {
		f := finder{view: v, cluster: c.Name}
		f.costs = v.costRows(c.Name)
		f.works = v.parameters(workload.Listing, c.Name)
		f.inline()
		f.probes()
		f.entering(c)
		f.externals()
		f.loop()
		f.amortisation()
		f.cache()
		for _, name := range v.others(c.Name) {
			f.whole(name)
		}
		f.trust()
		for i := range f.found {
			if len(clusters) > 1 {
				f.found[i].Cluster = c.Name
			}
		}
		fs = append(fs, f.found...)
	}
	return fs
}

// emulated is all that can be said where times mean nothing.
func (v *view) emulated() Finding {
	ran, short := 0, grouping{}
	for _, a := range v.r.Arms {
		if a.Ran {
			ran++
		}
	}
	for _, s := range v.r.Series {
		if s.Expected != s.Recorded && !v.arm(s.Arm).Estimated || s.Failure != "" {
			short.add("", armTitle(v.arm(s.Arm)))
		}
	}
	text := fmt.Sprintf("The processor is emulated: times mean nothing here, and nothing is said about them. Of %d arms, %d ran", len(v.r.Arms), ran)
	if arms := short.of[""]; len(arms) > 0 {
		text += "; not all was recorded, or failed, with " + strings.Join(arms, "; ")
	} else if ran > 0 {
		text += ", and recorded exactly the events that they should have"
	}
	return Finding{Topic: "emulated", Text: text + "."}
}

type finder struct {
	*view
	cluster string
	costs   []*estimate.Row // of a method without work
	works   []int64
	found   []Finding
}

// Sentence is the text for where nothing else tells the cluster.
func (f Finding) Sentence() string {
	if f.Cluster == "" || f.Text == "" {
		return f.Text
	}
	return "On " + f.Cluster + " CPUs: " + strings.ToLower(f.Text[:1]) + f.Text[1:]
}

// Heading is the topic for people.
func (f Finding) Heading() string {
	h := map[string]string{"inline": "Inline", "off": "Turned off", "kernel": "With the kernel", "compiled": "Called handler", "probe": "Probes",
		"class": "Instructions", "external": "Other tracers", "kernel-entry": "Into the kernel", "loop": "Tight loop", "amortisation": "Work", "cache": "Cache", "startup": "Start-up", "noise": "Noise",
		"align": "Alignment", "emulated": "Emulated"}[f.Topic]
	return or(h, "Whole workload")
}

func (f *finder) add(topic, format string, args ...any) {
	f.found = append(f.found, Finding{Topic: topic, Text: fmt.Sprintf(format, args...)})
}

// cost is an arm's row in a method without work, nil if it has no figure there.
func (f *finder) cost(arm string) *estimate.Row {
	for _, r := range f.costs {
		if r.Arm == arm && r.Point.OK {
			return r
		}
	}
	return nil
}

// ns is a cost with its interval.
func ns(v estimate.Value) string {
	return nanoseconds(v.Median) + " ns (" + span(v.Low, v.High, 2) + ")"
}

// against says how many times as much a cost is, if the interval lets it differ at all.
func against(v estimate.Value, what string) string {
	switch {
	case !v.OK:
		return ""
	case v.Low <= 1 && v.High >= 1:
		return fmt.Sprintf(", as much as %s as far as can be told (%s ×)", what, span(v.Low, v.High, 2))
	}
	return fmt.Sprintf(", %s × %s", ratio(v.Median), what)
}

const (
	theClock = "the bare clock read"
	theStub  = "an inlined trace point"
)

func (f *finder) inline() {
	if r := f.cost(armOn); r != nil {
		f.add("inline", "An inlined trace point costs %s here%s.", ns(r.Point), against(r.ToClock, theClock))
	}
	if r := f.cost(armOff); r != nil {
		if r.AboveNoise && r.Point.Low > 0 {
			f.add("off", "Compiled in and turned off it costs %s.", ns(r.Point))
		} else {
			f.add("off", "Compiled in and turned off it costs nothing that this study could measure: %s at most.",
				long(max(r.Point.High, 0.01)))
		}
	}
	if r, on := f.cost(armWithKernel), f.cost(armOn); r != nil && on != nil {
		switch {
		case r.Point.Low > on.Point.High:
			f.add("kernel", "With the kernel side recording it costs more: %s.", ns(r.Point))
		case r.Point.High < on.Point.Low:
			f.add("kernel", "With the kernel side recording it took less, which means that something else differed: %s.", ns(r.Point))
		default:
			f.add("kernel", "That the kernel side records does not make a measurable difference to it: %s.", ns(r.Point))
		}
	}
	h, g := f.cost(armHandler), f.cost(armGetTime)
	if h != nil {
		f.add("compiled", "The smallest handler for -finstrument-functions costs %s%s.", ns(h.Point), against(h.ToStub, theStub))
	}
	if h != nil && g != nil && g.Point.Low > h.Point.High {
		f.add("compiled", "With clock_gettime in place of the counter it costs %s%s.", ns(g.Point), against(g.ToStub, theStub))
	}
}

// cheapest are the arms that may be the cheapest, the one with the lowest median first.
func cheapest(rows []*estimate.Row) []*estimate.Row {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b *estimate.Row) int { return cmp.Compare(a.Point.Median, b.Point.Median) })
	limit := rows[0].Point.High
	return slices.DeleteFunc(rows, func(r *estimate.Row) bool { return r.Point.Low > limit })
}

// of are the rows of a group that have a cost.
func (f *finder) of(group string) (rows []*estimate.Row) {
	for _, r := range f.costs {
		if r.Group == group && r.Point.OK {
			rows = append(rows, r)
		}
	}
	return rows
}

func (f *finder) probes() {
	rows := f.of(result.GroupProbe)
	if len(rows) == 0 {
		return
	}
	best := cheapest(rows)
	r := best[0]
	others := ""
	if n := len(best) - 1; n == 1 {
		others = fmt.Sprintf(" (or %s, which can't be told apart from it)", full(best[1]))
	} else if n > 1 {
		others = fmt.Sprintf(" (or one of %d others that can't be told apart from it)", n)
	}
	if len(rows) == 1 {
		f.add("probe", "The probe that ran, %s, costs %s%s.", full(r), ns(r.Point), against(r.ToStub, theStub))
	} else {
		f.add("probe", "The cheapest probe costs %s%s: %s%s.", ns(r.Point), against(r.ToStub, theStub), full(r), others)
	}
	var bests []*estimate.Row
	for _, c := range classes(rows) {
		of := slices.DeleteFunc(slices.Clone(rows), func(x *estimate.Row) bool { return x.Class != c })
		bests = append(bests, cheapest(of)[0])
	}
	slices.SortStableFunc(bests, func(a, b *estimate.Row) int { return cmp.Compare(a.Point.Median, b.Point.Median) })
	low := cheapest(bests)
	if len(bests) == len(low) {
		return // no class can be told from the cheapest
	}
	var parts []string
	for _, b := range low {
		parts = append(parts, b.Class)
	}
	alike := ""
	if len(low) > 1 {
		alike = " (which can't be told apart)"
	}
	s := fmt.Sprintf("%s%s from %s ns", strings.Join(parts, ", "), alike, nanoseconds(low[0].Point.Median))
	for _, b := range bests {
		if !slices.Contains(low, b) {
			s += fmt.Sprintf("; %s from %s ns", b.Class, nanoseconds(b.Point.Median))
		}
	}
	f.add("class", "What a probe sits on decides its cost: %s.", s)
}

// entering sets the cheapest pair of probes against what enters the kernel and does nothing.
func (f *finder) entering(c result.Cluster) {
	if c.SyscallNS <= 0 {
		return
	}
	call, s := c.SyscallNS, ""
	if c.SyscallAfterNS > 0 {
		call = (c.SyscallNS + c.SyscallAfterNS) / 2
	}
	pairs := slices.DeleteFunc(f.of(result.GroupProbe), func(r *estimate.Row) bool { return f.arm(r.Arm).Points != 2 })
	if len(pairs) > 0 {
		best := cheapest(pairs)[0]
		s = fmt.Sprintf("; the cheapest pair of probes, entry and return, costs as much as %s of them: %s", ratio(2*best.Point.Median/call), full(best))
	}
	f.add("kernel-entry", "A bare system call costs %s ns here%s.", nanoseconds(call), s)
}

func (f *finder) externals() {
	rows, where := f.of(result.GroupExternal), ""
	if len(rows) == 0 { // by default they run the tight loop alone
		where = " in a tight loop"
		for _, a := range f.r.Arms {
			if r := f.e.Find(a.Name, workload.Call, 0, f.cluster); a.Group == result.GroupExternal && r != nil && r.Failure == "" && r.Point.OK {
				rows = append(rows, r)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b *estimate.Row) int { return cmp.Compare(a.Point.Median, b.Point.Median) })
	var parts []string
	for _, r := range rows {
		s := title(r) + " " + nanoseconds(r.Point.Median) + " ns"
		if r.ToStub.OK {
			s += " (" + ratio(r.ToStub.Median) + " ×)"
		}
		if f.arm(r.Arm).Estimated {
			s += ", its events estimated"
		}
		parts = append(parts, s)
	}
	if len(parts) > 0 {
		f.add("external", "Other tracers take for a trace point%s: %s.", where, strings.Join(parts, "; "))
	}
}

// loop says what is different in a loop of single calls, which is how tracers' own benchmarks are made.
func (f *finder) loop() {
	if len(f.works) == 0 {
		return // there is nothing else to compare it with
	}
	var parts []string
	for _, a := range f.r.Arms {
		nested := f.cost(a.Name)
		r := f.e.Find(a.Name, workload.Call, 0, f.cluster)
		if nested == nil || r == nil || r.Failure != "" || !r.Point.OK || !f.telling(a) {
			continue
		}
		if r.Point.High < nested.Point.Low || r.Point.Low > nested.Point.High {
			parts = append(parts, fmt.Sprintf("%s %s ns in place of %s", full(nested), nanoseconds(r.Point.Median), nanoseconds(nested.Point.Median)))
		}
	}
	if len(parts) > 0 {
		f.add("loop", "In a tight loop of single calls, as in most tracers' own benchmarks, a trace point costs something else than in nested ones: %s.",
			strings.Join(parts, "; "))
	}
}

// telling says whether an arm stands for others of its group: the stub, the cheapest probe, and each other tracer.
func (f *finder) telling(a result.Arm) bool {
	return a.Name == armOn || a.Group == result.GroupExternal || a.Group == result.GroupProbe && a.Name == cheapest(f.of(a.Group))[0].Arm
}

// share is an overhead with its interval.
func share(v estimate.Value) string {
	return percent(v.Median) + " % (" + percents(v.Low, v.High) + ")"
}

func (f *finder) amortisation() {
	if len(f.works) < 2 {
		return
	}
	from, reached := int64(0), false
	for i := len(f.works) - 1; i >= 0; i-- {
		r := f.e.Find(armOn, workload.Listing, f.works[i], f.cluster)
		if r == nil || r.Failure != "" || !r.IsNotInferior {
			break
		}
		from, reached = f.works[i], true
	}
	empty := f.e.Find(armOn, workload.Listing, f.works[0], f.cluster)
	if empty == nil || empty.Failure != "" || !empty.Overhead.OK || empty.Overhead.Low <= 0 {
		return
	}
	s := fmt.Sprintf("A method %s takes %s × as long (%s) with the stub on", or(map[bool]string{true: "without work"}[f.works[0] == 0], "with little work"),
		ratio(1+empty.Overhead.Median), span(1+empty.Overhead.Low, 1+empty.Overhead.High, 2))
	last := f.works[len(f.works)-1]
	switch r := f.e.Find(armOn, workload.Listing, last, f.cluster); {
	case reached:
		f.add("amortisation", "%s; from %d steps of work on it is within %s of a method that is not traced.", s, from, f.margin())
	case r != nil && r.Overhead.OK:
		f.add("amortisation", "%s; with %d steps of work the overhead is %s.", s, last, share(r.Overhead))
	}
}

func (f *finder) cache() {
	sizes := f.parameters(workload.Matrix, f.cluster)
	var rows []*estimate.Row
	for _, p := range sizes {
		if r := f.e.Find(armOn, workload.Matrix, p, f.cluster); r != nil && r.Failure == "" && r.Overhead.OK {
			rows = append(rows, r)
		}
	}
	if len(rows) < 2 {
		return
	}
	worst, least := rows[0], rows[0]
	for _, r := range rows {
		if r.Overhead.Median > worst.Overhead.Median {
			worst = r
		}
		if r.Overhead.Median < least.Overhead.Median {
			least = r
		}
	}
	if worst.Overhead.Low <= least.Overhead.High {
		f.add("cache", "A matrix multiplication with a trace point at each step takes %s longer with the stub on, and the size of its tiles makes no difference that could be measured.",
			share(worst.Overhead))
		return
	}
	f.add("cache", "A matrix multiplication with a trace point at each step takes between %s longer (tiles of %d) and %s longer (tiles of %d) with the stub on.",
		share(least.Overhead), least.Parameter, share(worst.Overhead), worst.Parameter)
}

// whole is a sentence about a workload without a parameter, for the stub and the tracers that ran it.
func (f *finder) whole(name string) {
	topic := "whole"
	if name == workload.Startup {
		topic = "startup"
	}
	for _, p := range f.parameters(name, f.cluster) {
		rows := f.rows(name, p, f.cluster)
		ends := ends(rows)
		var within, slower, open []string
		for _, r := range rows {
			if !f.compared(r) || r.Group == result.GroupFloor || r.Group == result.GroupProbe && !ends[r.Arm] {
				continue
			}
			s := full(r) + " (" + percents(r.Overhead.Low, r.Overhead.High) + " %)"
			switch {
			case r.IsNotInferior:
				within = append(within, s)
			case isSlower(r):
				slower = append(slower, s)
			default:
				open = append(open, s)
			}
		}
		var parts []string
		for _, g := range []struct {
			heading string
			arms    []string
		}{{"within " + f.margin() + " of no tracing", within}, {"slower", slower}, {"not decided", open}} {
			if len(g.arms) > 0 {
				parts = append(parts, upperFirst(g.heading)+": "+strings.Join(g.arms, "; "))
			}
		}
		if len(parts) > 0 {
			f.add(topic, "%s. %s.", upperFirst(workloadTitle(name)), strings.Join(parts, ". "))
		}
	}
}

// trust says how much chance there is in the costs.
func (f *finder) trust() {
	r := f.cost(armOn)
	if r == nil {
		return
	}
	if r.Noise.OK {
		f.add("noise", "Two runs of the program without tracing differ by %s ns for each trace point: smaller differences than that mean nothing.",
			span(r.Noise.Low, r.Noise.High, 2))
	}
	if len(r.Aligns) > 1 {
		low, high := r.Aligns[0].Median, r.Aligns[0].Median
		for _, a := range r.Aligns {
			low, high = min(low, a.Median), max(high, a.Median)
		}
		f.add("align", "Where a method happens to lie in its program, its trace points cost %s ns.", span(low, high, 2))
	}
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
