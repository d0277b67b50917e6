package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"braid/internal/wording"
)

// Width is the number of columns that the text form keeps to.
const Width = 80

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report as tables of at most Width columns: what made the moment slow, threads, methods, I/O, waits, and a line for each thing
// that is lost or uncertain.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	r.textWhy(b)
	r.textThreads(b)
	r.textMethods(b)
	r.textSamples(b)
	r.textProcessors(b)
	r.textIO(b)
	r.textWaits(b)
	r.textEnd(b)
	return b.Flush()
}

func (r *Report) textThreads(w io.Writer) {
	fmt.Fprintf(w, "%7s %-13s %6s %6s %10s %10s %10s %10s\n",
		"TID", "THREAD", "RECORD", "WALL", "RUNNING %", "RUNNABLE %", "SLEEPING %", "BLOCKED %")
	shown := r.Threads
	if r.top > 0 && len(shown) > r.top {
		shown = shown[:r.top]
	}
	for i := range shown {
		t := &shown[i]
		fmt.Fprintf(w, "%7d %-13s %6s %6s", t.Tid, r.label(t, 13), wording.Count(t.Records), wording.Duration(t.WallNs))
		for _, ns := range []int64{t.RunningNs, t.RunnableNs, t.SleepingNs, t.BlockedNs} {
			if t.UnknownNs == t.WallNs {
				fmt.Fprintf(w, " %10s", "-")
				continue
			}
			fmt.Fprintf(w, " %6s %3d", wording.Duration(ns), wording.Percent(ns, t.WallNs))
		}
		fmt.Fprintln(w)
	}
	if n := len(r.Threads) - len(shown); n > 0 {
		fmt.Fprintf(w, "%7s %d more threads\n", "", n)
	}
	r.textPools(w)
}

func (r *Report) textMethods(w io.Writer) {
	if len(r.Methods) == 0 {
		fmt.Fprintln(w, "\nNo method records. Was the program built with \"braid cc\"?")
		return
	}
	fmt.Fprintf(w, "\n%6s %6s %7s %8s %8s %7s %6s  %s\n",
		"CALLS", "SELF", "RUNNING", "RUNNABLE", "SLEEPING", "BLOCKED", "TOTAL", "METHOD")
	for i := range r.Methods {
		m := &r.Methods[i]
		fmt.Fprintf(w, "%6s %6s", wording.Count(m.Calls), wording.Duration(m.Self.WallNs))
		for k, ns := range []int64{m.Self.RunningNs, m.Self.RunnableNs, m.Self.SleepingNs, m.Self.BlockedNs} {
			text := wording.Duration(ns)
			if m.Self.UnknownNs == m.Self.WallNs {
				text = "-"
			}
			fmt.Fprintf(w, " %*s", []int{7, 8, 8, 7}[k], text)
		}
		fmt.Fprintf(w, " %6s  %s\n", wording.Duration(m.Total.WallNs), wording.Shorten(wording.Printable(m.Name), Width-56))
	}
	if r.hiddenMethods > 0 {
		fmt.Fprintf(w, "%6s %d more methods\n", "", r.hiddenMethods)
	}
}

func (r *Report) textIO(w io.Writer) {
	var fsyncs, faults uint64
	var fsyncNs int64
	for i := range r.Threads {
		fsyncs += r.Threads[i].Fsyncs
		fsyncNs += r.Threads[i].FsyncNs
		faults += r.Threads[i].Faults
	}
	if len(r.IO) == 0 && fsyncs+faults == 0 {
		return
	}
	fmt.Fprintln(w)
	if len(r.IO) > 0 {
		fmt.Fprintf(w, "%-10s %-8s %8s %8s %8s %8s\n", "DEVICE", "REQUEST", "COUNT", "BYTES", "MEAN", "MAX")
	}
	for _, d := range r.IO {
		fmt.Fprintf(w, "%-10s %-8s %8s %8s %8s %8s", d.Device, d.Op, wording.Count(d.Requests), wording.Size(d.Bytes), wording.Duration(d.MeanNs), wording.Duration(d.MaxNs))
		if d.Failed > 0 {
			fmt.Fprintf(w, "  %d failed", d.Failed)
		}
		fmt.Fprintln(w)
	}
	if fsyncs > 0 {
		fmt.Fprintf(w, "fsync: %d calls, %s\n", fsyncs, wording.Duration(fsyncNs))
	}
	if faults > 0 {
		fmt.Fprintf(w, "major faults: %d\n", faults)
	}
}

func (r *Report) textEnd(w io.Writer) {
	fmt.Fprintln(w)
	if r.Clock.FrequencyHz > 0 {
		fmt.Fprintf(w, "clock: %s, %.3f MHz, error up to %s\n", r.Clock.Source, float64(r.Clock.FrequencyHz)/1e6, wording.Duration(r.Clock.MaxResidualNs))
	}
	if r.Unresolved.Calls > 0 {
		fmt.Fprintf(w, "unresolved: %.1f%% of calls, to %d methods without a name\n",
			100*float64(r.Unresolved.Calls)/float64(r.Unresolved.All), r.Unresolved.Methods)
	}
	if r.CutCalls > 0 {
		fmt.Fprintf(w, "cut: %d calls began before or ended after what was recorded\n", r.CutCalls)
	}
	if r.Unwound.Calls > 0 {
		wording.Wrap(w, fmt.Sprintf("unwound: %d calls ended without an exit, most of them of %s", r.Unwound.Calls, names(r.Unwound.Most)), Width)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Lost)) {
		fmt.Fprintf(w, "lost: %s %d\n", wording.Printable(name), r.Lost[name])
	}
	for _, h := range r.Hooks {
		wording.Wrap(w, "missing hook: "+wording.Printable(h), Width)
	}
	for _, n := range r.Notes {
		wording.Wrap(w, "note: "+wording.Printable(n), Width)
	}
}

// names lists names, each one short enough for a line.
func names(list []string) string {
	short := make([]string, 0, len(list))
	for _, n := range list {
		short = append(short, wording.Shorten(wording.Printable(n), Width/2))
	}
	return strings.Join(short, ", ")
}
