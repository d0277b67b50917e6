package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"braid/internal/analysis"
	"braid/internal/timeline"
	"braid/internal/tracefile"
	"braid/internal/wording"
)

// why adds the trigger, the snapshots of the system, and what the analysis finds.
func (r *Report) why(t *timeline.Trace, o Options) (err error) {
	if r.Snapshots, err = t.File.Snapshots(); err != nil {
		return err
	}
	r.Trigger = t.Meta.Trigger
	if o.Why == nil {
		return nil
	}
	r.Analysis, err = analysis.Analyze(t, *o.Why)
	return err
}

// boot is a CLOCK_BOOTTIME as dump shows it, to the microsecond.
func boot(ns int64) string { return fmt.Sprintf("%d.%06ds", ns/1e9, ns%1e9/1000) }

// textWhy writes what triggered the trace, how the system was, and what the analysis found.
func (r *Report) textWhy(w io.Writer) {
	if r.Trigger != nil {
		textTrigger(w, r.Trigger)
	}
	for i := range r.Snapshots {
		textSnapshot(w, &r.Snapshots[i])
	}
	if a := r.Analysis; a != nil {
		textAnalysis(w, a)
	}
	if r.Trigger != nil || len(r.Snapshots) > 0 || r.Analysis != nil {
		fmt.Fprintln(w)
	}
}

func textTrigger(w io.Writer, t *tracefile.Trigger) {
	s := fmt.Sprintf("trigger: %s (%s", wording.Printable(t.Name), wording.Printable(t.Kind))
	if t.Severity != "" {
		s += ", " + wording.Printable(t.Severity)
	}
	s += ") at " + boot(int64(min(t.TimeNs, 1<<62)))
	if t.Tid != 0 {
		s += fmt.Sprintf(" in thread %d", t.Tid)
	}
	if t.Pid != 0 {
		s += fmt.Sprintf(" of process %d", t.Pid)
	}
	if t.Method != "" {
		s += ", method " + wording.Shorten(wording.Printable(t.Method), Width/2)
	}
	if t.Reason != "" {
		s += ": " + wording.Printable(t.Reason)
	}
	wording.Wrap(w, s, Width)
	var values []string
	for _, name := range slices.Sorted(maps.Keys(t.Values)) {
		v := fmt.Sprint(t.Values[name])
		if strings.HasSuffix(name, "_ns") {
			v = wording.Duration(int64(t.Values[name]))
		}
		values = append(values, wording.Printable(strings.TrimSuffix(name, "_ns"))+" "+v)
	}
	if len(values) > 0 {
		wording.Wrap(w, "values: "+strings.Join(values, ", "), Width)
	}
}

const waiting = 6 // threads of a snapshot that the text names

// textSnapshot writes what it knows of a snapshot in a few lines.
func textSnapshot(w io.Writer, s *tracefile.Snapshot) {
	parts := []string{}
	if f := strings.Fields(s.Texts["/proc/loadavg"]); len(f) > 0 {
		parts = append(parts, "load "+wording.Printable(f[0]))
	}
	for _, of := range []string{"cpu", "memory", "io"} {
		if v, ok := pressure(s.Texts["/proc/pressure/"+of]); ok {
			parts = append(parts, fmt.Sprintf("%s pressure %s%%", of, wording.Printable(v)))
		}
	}
	if v, ok := available(s.Texts["/proc/meminfo"]); ok {
		parts = append(parts, wording.Size(v)+" of memory available")
	}
	for i, t := range s.Threads {
		if i == waiting {
			parts = append(parts, fmt.Sprintf("%d more threads", len(s.Threads)-i))
			break
		}
		p := fmt.Sprintf("%s (%d) in state %s", wording.Printable(t.Name), t.Tid, wording.Printable(t.State))
		if t.Wait != "" && t.Wait != "0" {
			p += " in " + wording.Printable(t.Wait)
		}
		parts = append(parts, p)
	}
	if len(parts) > 0 {
		wording.Wrap(w, fmt.Sprintf("system at %s: %s", boot(int64(min(s.TimeNs, 1<<62))), strings.Join(parts, ", ")), Width)
	}
}

// pressure is the share of the last 10 s in which some thread waited, of a file of /proc/pressure.
func pressure(text string) (string, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "some avg10="); ok {
			v, _, _ := strings.Cut(rest, " ")
			return v, true
		}
	}
	return "", false
}

// available is MemAvailable of /proc/meminfo in bytes.
func available(text string) (kib uint64, ok bool) {
	for line := range strings.Lines(text) {
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10, true
		}
	}
	return 0, false
}

func textAnalysis(w io.Writer, a *analysis.Result) {
	for _, s := range a.Explanation {
		wording.Wrap(w, s, Width)
	}
	for _, s := range a.Notes {
		wording.Wrap(w, "limit: "+wording.Printable(s), Width)
	}
	if len(a.Findings) > 0 {
		fmt.Fprintf(w, "\n%6s %6s %6s %6s %6s %-12s %s\n", "EXCESS", "TIME", "USUAL", "CALLS", "USUAL", "CAUSE", "METHOD")
	}
	for i := range a.Findings {
		f := &a.Findings[i]
		usual, calls := wording.Duration(f.UsualNs), wording.Count(uint64(f.UsualCalls))
		if f.Basis == "none" {
			usual, calls = "-", "-"
		}
		fmt.Fprintf(w, "%6s %6s %6s %6s %6s %-12s %s\n", wording.Duration(f.ExcessNs), wording.Duration(f.Ns), usual,
			wording.Count(f.Calls), calls, f.Cause, wording.Shorten(wording.Printable(f.Method), Width-49))
	}
	textChain(w, a.Chain)
	textSignatures(w, a.Signatures)
}

// textChain writes the critical chain, the times of each level with its callees.
func textChain(w io.Writer, chain []analysis.Level) {
	if len(chain) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%6s %6s %6s %7s %8s %8s %7s  %s\n", "CALLS", "TOTAL", "SELF", "RUNNING", "RUNNABLE", "SLEEPING", "BLOCKED", "CHAIN")
	for i := range chain {
		l := &chain[i]
		c := l.Causes
		blocked := c["fsync"] + c["major_fault"] + c["read"] + c["write"] + c["other_io"] + c["blocked"]
		asleep := c["sleeping"] + c["lock"] + c["binder"] + c["poll"] + c["stream"] + c["timer"]
		indent := strings.Repeat(" ", min(i, 8))
		total, self := wording.Duration(l.TotalNs), wording.Duration(l.SelfNs)
		states := []string{wording.Duration(c["running"] + c["reclaim"]), wording.Duration(c["runnable"]), wording.Duration(asleep), wording.Duration(blocked)}
		if l.TotalNs == c["unknown"] {
			states = []string{"-", "-", "-", "-"}
		}
		if l.Outside && l.TotalNs == 0 {
			total, self = "-", "-"
		}
		fmt.Fprintf(w, "%6s %6s %6s %7s %8s %8s %7s  %s%s\n", wording.Count(l.Calls+l.Recursive), total, self,
			states[0], states[1], states[2], states[3], indent, wording.Shorten(wording.Printable(l.Method), Width-56-len(indent)))
	}
}

func textSignatures(w io.Writer, found []analysis.Match) {
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%6s %6s  %s\n", "CALLS", "TOTAL", "SIGNATURE")
	for i := range found {
		m := &found[i]
		fmt.Fprintf(w, "%6s %6s  %s\n", wording.Count(m.Calls), wording.Duration(m.TotalNs), wording.Fit(wording.Printable(m.Name), Width-15))
		for _, e := range m.Examples {
			place := fmt.Sprintf(" at %s in %s (%d)", boot(e.FromNs), wording.Fit(wording.Printable(e.Thread), 15), e.Tid)
			fmt.Fprintf(w, "%15s%6s %s%s\n", "", wording.Duration(e.ToNs-e.FromNs), wording.Shorten(wording.Printable(e.Method), Width-22-len(place)), place)
		}
	}
}
