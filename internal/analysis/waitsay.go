package analysis

import (
	"fmt"
	"strings"

	"braid/internal/wording"
)

// released says who released a futex.
func (w *Waited) released() (more []string) {
	for _, r := range w.Who {
		switch {
		case r.Tid != 0:
			text := fmt.Sprintf("%s for %s until %s released it", wording.Duration(r.Ns), w.Address, who(r))
			if r.Method != "" {
				text += " in " + short(r.Method)
			}
			more = append(more, text)
		case w.TimedOut == w.Waits:
			more = append(more, fmt.Sprintf("%s for %s, which nobody released in time", wording.Duration(r.Ns), w.Address))
		case w.TimedOut > 0:
			more = append(more, fmt.Sprintf("%s for %s, of which nobody is known to have released it; %s timed out",
				wording.Duration(r.Ns), w.Address, plural(w.TimedOut, "wait")))
		default:
			more = append(more, fmt.Sprintf("%s for %s, which nobody is known to have released", wording.Duration(r.Ns), w.Address))
		}
	}
	return more
}

// woken says who ended sleeps.
func woken(where string, by []Who) (more []string) {
	for _, w := range by {
		if w.Tid == 0 {
			more = append(more, fmt.Sprintf("%s%s until an interrupt or an unseen thread woke it", wording.Duration(w.Ns), where))
			continue
		}
		text := fmt.Sprintf("%s%s until %s woke it", wording.Duration(w.Ns), where, who(w))
		switch {
		case w.Method != "":
			text += " in " + short(w.Method)
		case w.foreign: // the kernel names whoever ran where the wake-up came from
			text += ", or an interrupt while that ran"
		}
		more = append(more, text)
	}
	return more
}

// answered says whom binder calls went to, and what was done there.
func (w *Waited) answered() string {
	return fmt.Sprintf("%s in %s", wording.Duration(w.Ns), w.Binder.told(w.Ns))
}

// told says whom calls went to that took a time, what the threads there did, and where these waited.
func (c *Called) told(ns int64) string {
	text := fmt.Sprintf("%s (code %d) to %s", plural(c.Calls, "binder call"), c.Code, c.name())
	switch {
	case c.Unanswered == 0:
	case c.Calls == 1:
		text += ", to which no answer was seen"
	default:
		text += fmt.Sprintf(", to %d of which no answer was seen", c.Unanswered)
	}
	if c.Tid == 0 {
		return text + ", which nobody was seen to receive"
	}
	var did []string
	for _, s := range []struct {
		ns   int64
		what string
	}{
		{c.RunningNs, "running"}, {c.RunnableNs, "runnable"}, {c.SleepingNs, "sleeping"}, {c.BlockedNs, "blocked"},
	} {
		if s.ns > ns/20 {
			did = append(did, fmt.Sprintf("%s for %s", s.what, wording.Duration(s.ns)))
		}
	}
	who := "whose " + who(Who{Tid: c.Tid, Name: c.Thread}) + " was"
	if c.Thread != "" {
		who = "whose thread" + strings.TrimPrefix(who, "whose")
	}
	if c.Calls > 1 {
		who = "whose threads were"
	}
	switch {
	case len(did) > 0:
		text += fmt.Sprintf(", %s %s of it", who, strings.Join(did, " and "))
	case c.Calls == 1:
		text += ", " + who + " in states that were not recorded"
	}
	for i := range c.Waits {
		if w := &c.Waits[i]; w.Ns > ns/20 {
			text += "; " + w.there()
		}
	}
	if c.Next != nil && c.Next.Ns > ns/20 {
		text += fmt.Sprintf("; there %s in %s", wording.Duration(c.Next.Ns), c.Next.told(c.Next.Ns))
	}
	return text
}

// there says what a thread waited for that worked on a call.
func (w *Waited) there() string {
	text := fmt.Sprintf("there %s in %s", wording.Duration(w.Ns), w.What)
	if w.Address != "" {
		text += " of " + w.Address
	}
	if len(w.Who) > 0 {
		text += ", released by " + who(w.Who[0])
	}
	return text
}

// name is the process that was called.
func (c *Called) name() string {
	if c.Process == "" {
		return fmt.Sprintf("pid %d", c.Pid)
	}
	return fmt.Sprintf("%s (pid %d)", wording.Printable(c.Process), c.Pid)
}
