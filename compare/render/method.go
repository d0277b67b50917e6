package render

import (
	"fmt"
	"strings"
	"time"

	"braid/internal/wording"
)

// methodLines say in sentences how a study was made, and what was thrown away.
func (v *view) methodLines() []string {
	r, m := v.r, v.r.Method
	kind := "a study"
	if m.Quick {
		kind = "a quick study"
	}
	lines := []string{fmt.Sprintf("%s, %s that took %s%s, seed %d.", r.Started.UTC().Format("2 January 2006 15:04 UTC"), kind,
		took(r.Ended.Sub(r.Started)), limit(m.Seconds), m.Seed)}
	lines = append(lines, fmt.Sprintf("Arms took turns in random order, pinned to one CPU; programs were started %s%s.",
		times(m.Launches), aligned(m.Aligns)))
	if m.WarmUps > 0 {
		s := fmt.Sprintf("%s to warm up until times were within %s %% of each other", plural(m.WarmUps, "measurement"), tickLabel(m.StableShare*100))
		if m.Unsteady > 0 {
			s += fmt.Sprintf("; %s never got that steady", count(m.Unsteady))
		}
		lines = append(lines, s+".")
	}
	lines = append(lines, fmt.Sprintf("Figures are medians over launches of the difference to the baseline in the same round, with bootstrap intervals "+
		"of %s %%. Spread is the standard deviation over launches. Verdicts are paired one-sided t tests against a margin of %s.",
		tickLabel(v.e.Confidence*100), v.margin()))
	lines = append(lines, "Times are of the measured thread on its CPU; of the wall clock for workloads with several threads or processes.")
	if len(m.Command) > 0 {
		lines = append(lines, "The given program: "+strings.Join(m.Command, " "))
	}
	total := 0
	for _, s := range r.Series {
		total += len(s.Samples)
	}
	lines = append(lines, plural(total, "sample")+" were kept in the result, with those that were discarded:")
	if len(r.Discards) == 0 {
		lines[len(lines)-1] = plural(total, "sample") + " are in the result; none was discarded."
	}
	return append(lines, v.discards()...)
}

// discards sum up what was thrown away, by why. Where it was only some arms, it names them.
func (v *view) discards() []string {
	var arms, workloads grouping
	samples := map[string]int{}
	for _, d := range v.r.Discards {
		samples[d.Why] += d.Samples
		name := "whole rounds"
		if d.Arm != "" {
			name = armTitle(v.arm(d.Arm))
		}
		arms.add(d.Why, name)
		if d.Workload != "" {
			workloads.add(d.Why, workloadTitle(d.Workload))
		}
	}
	var lines []string
	for _, why := range arms.keys {
		s := plural(samples[why], "sample")
		if n := len(arms.of[why]); n > namedArms {
			s += fmt.Sprintf(" of %d arms", n)
		} else {
			s += " of " + strings.Join(arms.of[why], "; ")
		}
		if w := workloads.of[why]; len(w) > 0 {
			s += " in " + strings.Join(w, ", ")
		}
		lines = append(lines, s+": "+why+".")
	}
	return lines
}

// namedArms is up to how many arms are named in a sentence.
const namedArms = 3

// pair is a row of a list of facts.
type pair struct{ Name, Value string }

// machineFacts describe where a study ran.
func (v *view) machineFacts() []pair {
	m := v.r.Machine
	yes := map[bool]string{true: "yes", false: "no"}
	facts := []pair{{"Device", m.Name}, {"System", strings.Join(nonEmpty(m.OS, prefixed("kernel ", m.Kernel)), ", ")}, {"Architecture", m.Arch}}
	virtual := "none: bare metal"
	if m.Virtual != "" {
		virtual = m.Virtual
	}
	if m.Emulated {
		virtual = strings.Join(nonEmpty(m.Virtual, "emulated by software"), ", ")
	}
	facts = append(facts, pair{"Virtual machine", virtual})
	var calls []string
	for _, c := range m.Clusters {
		s := plural(len(c.CPUs), "CPU") + " " + cpuList(c.CPUs)
		if c.MaxKHz > 0 {
			s += fmt.Sprintf(", up to %s GHz", number(float64(c.MaxKHz)/1e6, 2))
		}
		s += prefixed(", ", c.Model)
		if len(m.Clusters) > 1 {
			s += fmt.Sprintf(", capacity %d of 1024", c.Capacity)
		}
		if c.SyscallNS > 0 {
			calls = append(calls, fmt.Sprintf("%s ns before the study and %s ns after it, on CPU %d", nanoseconds(c.SyscallNS), nanoseconds(c.SyscallAfterNS), c.PinnedTo))
		}
		name := "CPUs"
		if c.Name != "" && c.Name != "all" {
			name = "CPUs, " + c.Name
		}
		facts = append(facts, pair{name, s + fmt.Sprintf("; measured on CPU %d", c.PinnedTo)})
	}
	if m.MemoryBytes > 0 {
		facts = append(facts, pair{"Memory", wording.Size(m.MemoryBytes)})
	}
	steady := "constant rate"
	if !m.CounterSteady {
		steady = "rate not known to be constant"
	}
	hz := ""
	if m.CounterHz > 0 {
		hz = number(float64(m.CounterHz)/1e6, decimals(float64(m.CounterHz)/1e6, 1)) + " MHz"
	}
	facts = append(facts, pair{"Counter", strings.Join(nonEmpty(m.Counter, hz, steady), ", ")}, pair{"Kernel's clock", m.ClockSource},
		pair{"A bare system call", strings.Join(calls, "; ")}, pair{"Root", yes[m.Root]}, pair{"Hardware counters (PMU)", yes[m.PMU]}, pair{"Mitigations", m.MitigationNote}, pair{"braid", v.r.Version})
	kept := facts[:0]
	for _, f := range facts {
		if f.Value != "" {
			kept = append(kept, f)
		}
	}
	return kept
}

// cpuList is "0-3,6".
func cpuList(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if parts = append(parts, fmt.Sprint(cpus[i])); j > i {
			parts[len(parts)-1] += fmt.Sprintf("-%d", cpus[j])
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

func took(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
}

func limit(seconds float64) string {
	if seconds <= 0 {
		return ""
	}
	return " (limit " + took(time.Duration(seconds*float64(time.Second))) + ")"
}

func times(n int) string {
	switch n {
	case 0:
		return "anew for each launch"
	case 1:
		return "once"
	}
	return count(n) + " times"
}

func aligned(aligns []int) string {
	if len(aligns) < 2 {
		return ""
	}
	var s []string
	for _, a := range aligns {
		s = append(s, fmt.Sprint(a))
	}
	return ", with the measured functions moved by " + strings.Join(s, ", ") + " bytes"
}
