package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"braid/internal/wording"
)

const (
	nameColumns = 60 // of a method's name in a sentence
	headParts   = 3  // causes that the first sentence names
)

func short(method string) string { return wording.Shorten(wording.Printable(method), nameColumns) }

// phrases say what a thread did in a cause.
var phrases = [numCauses]string{
	Unknown: "in an unknown state", Running: "running", Runnable: "waiting for a CPU", Sleeping: "sleeping",
	Lock: "waiting for a futex", Binder: "waiting for binder", Poll: "waiting for events of files",
	Stream: "waiting for a pipe, socket or the like", Timer: "sleeping for a time that it asked for",
	Fsync: "blocked in fsync", MajorFault: "in major page faults", Reclaim: "in direct memory reclaim",
	Read: "blocked in block reads", Write: "blocked in block writes",
	OtherIO: "blocked in I/O of which the requests are not known", Blocked: "blocked for a reason that is not known",
}

func plural(n uint64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "s") {
		return fmt.Sprintf("%d %ses", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// sentences says what was found.
func (a *analyzer) sentences() {
	m := a.result.Moment
	length := m.ToNs - m.FromNs
	var b strings.Builder
	verb := "took"
	if m.Open {
		verb = "had not ended after"
	}
	fmt.Fprintf(&b, "%s %s %s in thread %s (%d)", short(m.Method), verb, wording.Duration(length), wording.Printable(m.Thread), m.Tid)
	excess := length
	switch {
	case m.Usual == nil:
		fmt.Fprintf(&b, "; with %s in the recording, nobody can say whether that is much", plural(a.normals.rows[a.detail.method].calls, "whole call"))
	case !m.Unusual:
		fmt.Fprintf(&b, ", which is not unusual: its median is %s, and one in ten of %d calls takes %s or more",
			wording.Duration(m.Usual.MedianNs), m.Usual.Calls, wording.Duration(m.Usual.P90Ns))
		excess -= m.Usual.MedianNs
	default:
		excess -= m.Usual.MedianNs
		fmt.Fprintf(&b, ", %s more than its median of %s (%d calls)", wording.Duration(excess), wording.Duration(m.Usual.MedianNs), m.Usual.Calls)
	}
	named := int64(0)
	if m.Usual == nil || m.Unusual {
		var parts []string
		for i := range a.result.Findings[:min(headParts, len(a.result.Findings))] {
			f := &a.result.Findings[i]
			if f.ExcessNs < excess/20 {
				break
			}
			named += f.ExcessNs
			parts = append(parts, a.part(f, len(parts) == 0))
		}
		if len(parts) > 0 {
			fmt.Fprintf(&b, ": %s", strings.Join(parts, ", "))
		}
	}
	b.WriteString(".")
	a.say("%s", b.String())
	if rest := excess - named; m.Unusual && rest > excess/4 {
		a.say("%s of the excess is spread over other methods and causes.", wording.Duration(rest))
	}
	a.calledOften()
}

// part is a finding within the first sentence.
func (a *analyzer) part(f *Finding, first bool) string {
	of := ""
	if first {
		of = " of it"
	}
	where := "in " + short(f.Method)
	if f.method == a.detail.method {
		where = "in itself"
	}
	s := fmt.Sprintf("%s%s %s %s", wording.Duration(f.ExcessNs), of, phrases[f.cause], where)
	if more := details(f); len(more) > 0 {
		s += " (" + strings.Join(more, ", ") + ")"
	}
	return s
}

// details are what else is known of a finding.
func details(f *Finding) (more []string) {
	p := &f.Points
	switch f.cause {
	case Fsync, Read, Write:
		if p.Fsyncs > 0 {
			calls := plural(uint64(p.Fsyncs), "call") + " of fsync"
			if f.cause == Fsync && p.FsyncNs > f.Ns+f.Ns/10 {
				calls += fmt.Sprintf(", %s with the time on a CPU in them", wording.Duration(p.FsyncNs))
			}
			more = append(more, calls)
		}
		if p.Requests > 0 {
			more = append(more, plural(uint64(p.Requests), "request"), wording.Size(p.Bytes))
		}
	case MajorFault:
		if p.Faults > 0 {
			more = append(more, plural(uint64(p.Faults), "fault"))
		}
	case Runnable:
		for _, w := range f.Who {
			if w.Tid == 0 {
				if w.Ns > f.Ns/20 {
					more = append(more, fmt.Sprintf("for %s it is not known who had it", wording.Duration(w.Ns)))
				}
				continue
			}
			more = append(more, fmt.Sprintf("%s had it for %s", who(w), wording.Duration(w.Ns)))
		}
	case Lock:
		for i := range f.Waits {
			more = append(more, f.Waits[i].released()...)
		}
	case Binder:
		for i := range f.Waits {
			more = append(more, f.Waits[i].answered())
		}
	case Poll, Stream:
		for i := range f.Waits {
			more = append(more, woken(" in "+f.Waits[i].What, f.Waits[i].Who)...)
		}
	case Sleeping:
		for i := range f.Waits {
			more = append(more, fmt.Sprintf("%s in %s", wording.Duration(f.Waits[i].Ns), f.Waits[i].What))
		}
		more = append(more, woken("", f.Who)...)
	}
	return more
}

func who(w Who) string {
	if w.Name == "" {
		return fmt.Sprintf("thread %d", w.Tid)
	}
	return fmt.Sprintf("%s (%d)", wording.Printable(w.Name), w.Tid)
}

// calledOften names methods that were called more often than usual.
func (a *analyzer) calledOften() {
	seen := map[uint32]bool{}
	for i := range a.result.Findings {
		f := &a.result.Findings[i]
		if f.Basis != "moment" || f.method == a.detail.method || seen[f.method] || int64(f.Calls) <= 2*f.UsualCalls+1 {
			continue
		}
		seen[f.method] = true
		a.say("%s was called %s, usually %d within one %s.", short(f.Method), plural(f.Calls, "time"), f.UsualCalls, short(a.result.Moment.Method))
	}
}

// limits says what the result does not know.
func (a *analyzer) limits(c *cpus) {
	d, m := &a.detail, a.result.Moment
	length := m.ToNs - m.FromNs
	switch unknown := d.root.total[Unknown]; {
	case unknown == length:
		a.note("no kernel events cover the moment: whether the thread ran or waited is not known")
	case unknown > length/20:
		a.note("for %s of the moment it is not known whether the thread ran or waited", wording.Duration(unknown))
	}
	if n := d.n; m.Usual != nil && n < MinPeers {
		a.note("%s: only %s can be compared from the inside; its callees are compared with their own calls", short(m.Method), plural(n, "other call"))
	}
	var few []string
	for i := range a.result.Findings {
		f := &a.result.Findings[i]
		if name := short(f.Method); f.Basis == "none" && !slices.Contains(few, name) && len(few) < headParts {
			few = append(few, name)
		}
	}
	if len(few) > 0 {
		a.note("too few calls to say what is usual of %s: all of the time counts as found", strings.Join(few, ", "))
	}
	if m.Open {
		a.note("the call was not over when the recording ended: what it did later is not known")
	}
	if d.hidden > 0 {
		a.note("%d calls are counted to their callers: the moment has more than %d different chains", d.hidden, maxNodes)
	}
	if d.cut || c.cut {
		a.note("who had the CPU is not known for all of the moment: it holds too many switches")
	}
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(a.trace.Lost)) {
		if n := a.trace.Lost[name]; n > 0 && strings.HasPrefix(name, "kernel_") {
			lost = append(lost, fmt.Sprintf("%s %d", name, n))
		}
	}
	if len(lost) > 0 {
		a.note("kernel events are missing somewhere in the recording: %s", strings.Join(lost, ", "))
	}
}
