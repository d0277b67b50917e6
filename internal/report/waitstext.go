package report

import (
	"fmt"
	"io"
	"strings"

	"braid/internal/wording"
)

const (
	textLocks    = 10 // locks, and kinds of binder calls and of others, that the text has
	textReleases = 3  // threads that released a lock
)

// textWaits writes what threads slept for.
func (r *Report) textWaits(w io.Writer) {
	if r.Waits == nil {
		return
	}
	n := textLocks
	if r.top > 0 {
		n = min(n, r.top)
	}
	r.textLocks(w, n)
	r.textBinder(w, n)
	calls := r.Waits.Calls
	if len(calls) > 0 {
		fmt.Fprintf(w, "\n%6s %6s %6s %6s  %s\n", "WAITS", "TOTAL", "SLEPT", "MAX", "WAITED IN CALL")
	}
	for i := range calls[:min(len(calls), n)] {
		c := &calls[i]
		slept := wording.Duration(c.SleptNs)
		if c.SleptNs == 0 {
			slept = "-"
		}
		fmt.Fprintf(w, "%6s %6s %6s %6s  %s\n", wording.Count(c.Waits), wording.Duration(c.TotalNs), slept, wording.Duration(c.MaxNs), c.Call)
	}
	more(w, len(calls)-n, "kinds of waits")
}

func more(w io.Writer, n int, what string) {
	if n > 0 {
		fmt.Fprintf(w, "%6s %d more %s\n", "", n, what)
	}
}

func (r *Report) textLocks(w io.Writer, n int) {
	locks := r.Waits.Locks
	if len(locks) > 0 {
		fmt.Fprintf(w, "\n%6s %6s %6s  %-18s %s\n", "WAITS", "TOTAL", "MAX", "LOCK", "WAITED IN")
	}
	for i := range locks[:min(len(locks), n)] {
		l := &locks[i]
		var in []string
		for _, m := range l.Waiting[:min(len(l.Waiting), 2)] {
			if m.Method != "" {
				in = append(in, m.Method)
			}
		}
		room := Width - 42
		for k := range in {
			in[k] = wording.Shorten(wording.Printable(in[k]), (room-2*(len(in)-1))/len(in))
		}
		if len(in) == 0 {
			in = []string{"-"}
		}
		fmt.Fprintf(w, "%6s %6s %6s  %-18s %s\n", wording.Count(l.Waits), wording.Duration(l.TotalNs), wording.Duration(l.MaxNs), l.Address, strings.Join(in, ", "))
		for _, by := range l.Released[:min(len(l.Released), textReleases)] {
			fmt.Fprintf(w, "%6s %6s %6s  released by %s\n", wording.Count(by.Waits), wording.Duration(by.Ns), "", by.text(Width-35))
		}
		if l.TimedOut > 0 {
			fmt.Fprintf(w, "%6s %6s %6s  not released: time was over, or a signal came\n", wording.Count(l.TimedOut), "", "")
		}
	}
	more(w, len(locks)-n, "locks")
}

// text is who it was, and where, in some columns.
func (by *Release) text(columns int) string {
	if by.Tid == 0 {
		return "somebody who was not seen"
	}
	s := fmt.Sprintf("thread %d", by.Tid)
	if by.Name != "" {
		s = fmt.Sprintf("%s (%d)", wording.Printable(by.Name), by.Tid)
	}
	if by.Method != "" {
		s += " in " + wording.Shorten(wording.Printable(by.Method), max(columns-len(s)-4, 12))
	}
	return s
}

func (r *Report) textBinder(w io.Writer, n int) {
	calls := r.Waits.Binder
	if len(calls) > 0 {
		fmt.Fprintf(w, "\n%6s %6s %6s %6s %6s %6s  %6s  %s\n", "CALLS", "TOTAL", "MAX", "QUEUED", "SERVED", "REPLY", "CODE", "BINDER CALLS TO")
	}
	for i := range calls[:min(len(calls), n)] {
		c := &calls[i]
		total, longest, reply := wording.Duration(c.TotalNs), wording.Duration(c.MaxNs), wording.Duration(c.ReplyNs)
		if c.OneWay {
			total, longest, reply = "-", "-", "-"
		}
		fmt.Fprintf(w, "%6s %6s %6s %6s %6s %6s  %6d  %s\n", wording.Count(c.Calls), total, longest, wording.Duration(c.QueuedNs),
			wording.Duration(c.ServedNs), reply, c.Code, c.to())
		for _, s := range c.said() {
			fmt.Fprintf(w, "%17s%s\n", "", s)
		}
	}
	more(w, len(calls)-n, "kinds of binder calls")
	if u := r.Waits.Unsent; u > 0 {
		fmt.Fprintf(w, "binder: %d receipts and answers are of calls that were not seen\n", u)
	}
}

// to names whom the calls went to.
func (c *BinderCalls) to() string {
	s := fmt.Sprintf("process %d", c.ToPid)
	if c.ToProcess != "" {
		s = fmt.Sprintf("%s (%d)", wording.Printable(c.ToProcess), c.ToPid)
	}
	if c.OneWay {
		s += ", one-way"
	}
	return s
}

// from names who called, if that was none of the recorded processes.
func (c *BinderCalls) from() string {
	s := fmt.Sprintf("called from process %d", c.Pid)
	if c.Process != "" {
		s = fmt.Sprintf("called from %s (%d)", wording.Printable(c.Process), c.Pid)
	}
	return s + ", while it worked on a call"
}

// said is what else there is to say of calls.
func (c *BinderCalls) said() (lines []string) {
	if c.Within {
		lines = append(lines, c.from())
	}
	var did []string
	for _, s := range []struct {
		what string
		ns   int64
	}{
		{"running", c.Server.RunningNs}, {"runnable", c.Server.RunnableNs}, {"sleeping", c.Server.SleepingNs}, {"blocked", c.Server.BlockedNs},
	} {
		if s.ns > 0 {
			did = append(did, s.what+" "+wording.Duration(s.ns))
		}
	}
	if len(did) > 0 {
		lines = append(lines, "there: "+strings.Join(did, ", "))
	}
	if n := c.Unanswered - c.Open; n > 0 {
		lines = append(lines, fmt.Sprintf("no answer was seen to %d", n))
	}
	if c.Open > 0 {
		lines = append(lines, fmt.Sprintf("%d under way at the end", c.Open))
	}
	return lines
}
