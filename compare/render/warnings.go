package render

import (
	"fmt"
	"slices"

	"braid/compare/result"
)

// fewLaunches is how many observations make an interval that is worth something.
const fewLaunches = 5

// warnings are those of the study, and what shows only now. A code is said once.
func (v *view) warnings() []result.Warning {
	ws := slices.Clone(v.r.Warnings)
	add := func(cond bool, code, text string) {
		if cond && !slices.ContainsFunc(ws, func(w result.Warning) bool { return w.Code == code }) {
			ws = append(ws, result.Warning{Code: code, Text: text})
		}
	}
	m := v.r.Machine
	add(m.Emulated, "emulated", "The processor is emulated by software: these times mean nothing. That all arms record what they should is all that this study shows.")
	add(m.Virtual != "", "virtual-machine", "This is a virtual machine ("+m.Virtual+"): its hypervisor can take time away and make traps slow.")
	add(m.CPUs == 1, "one-cpu", "There is one CPU: recorders and the measured program take turns on it.")
	add(!m.CounterSteady, "counter", "The counter's rate is not known to be constant: trace points may show wrong times, whatever they cost.")
	broken := "The study did not come to its end"
	if v.r.Why != "" {
		broken += ": " + v.r.Why
	}
	add(!v.r.Complete, "incomplete", broken+". It shows what there was until then.")
	few, none := 0, 0
	for _, r := range v.e.Rows {
		switch {
		case r.Failure != "":
		case !r.Call.OK:
			none++
		case r.Launches < fewLaunches:
			few++
		}
	}
	add(none > 0, "no-interval", fmt.Sprintf("%s of %d have no figures: there were too few launches for an interval. Give the study more time (--seconds).",
		seriesCount(none), len(v.e.Rows)))
	add(few > 0, "few-launches", fmt.Sprintf("%s of %d were measured in fewer than %d launches: their intervals are wide, and little more than guesses.",
		seriesCount(few), len(v.e.Rows), fewLaunches))
	for _, s := range v.r.Series {
		add(s.Failure == "" && s.Expected != s.Recorded && !v.arm(s.Arm).Estimated, "events", fmt.Sprintf(
			"%s recorded %s of %s events in %s: it did not do all of the work that it is measured for.",
			v.arm(s.Arm).Title, number(float64(s.Recorded), 0), number(float64(s.Expected), 0), place(s.Workload, s.Parameter)))
	}
	return ws
}
