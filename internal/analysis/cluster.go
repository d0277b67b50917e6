package analysis

import (
	"fmt"
	"strings"

	"braid/internal/timeline"
	"braid/internal/wording"
)

const (
	placedNs    = 1_000_000 // less than this is not worth a sentence
	placedShare = 20        // nor is less than one in this many of the time
	placedAll   = 10        // one in this many is as good as none, and all but that as good as all
)

// SayPlaced says how much of the time that something ran was on a weaker core while a stronger one was idle, as the rest of a
// sentence; "" if it is not worth one.
func SayPlaced(m *timeline.Machine, p *timeline.Placed) string {
	weak, ran := p.WeakNs(), p.RunningNs()
	if weak < placedNs || weak*placedShare < ran {
		return ""
	}
	var parts []string
	last := ""
	for rank := m.Ranks() - 1; rank > 0; rank-- {
		if p.Weak[rank] > 0 {
			last = m.Name(rank)
			parts = append(parts, fmt.Sprintf("%s on %s", wording.Duration(p.Weak[rank]), last))
		}
	}
	where, better, more := "on a "+last+" core", "a stronger one", ""
	if len(parts) > 1 {
		where, more = "on a weaker core", " ("+strings.Join(parts, ", ")+")"
	} else if last == m.Name(1) {
		better = "a big one"
	}
	text := fmt.Sprintf("ran %d %% of its time %s while %s was idle: %s%s of %s.", wording.Percent(weak, ran), where, better,
		wording.Duration(weak), more, wording.Duration(ran))
	switch free := p.FreeNs(); {
	case free*placedAll < weak:
		text += " It is not allowed to use those that were idle."
	case free < weak-weak/placedAll:
		text += fmt.Sprintf(" For %s of it, it was allowed to use one of those that were idle.", wording.Duration(free))
	}
	return text
}

// SayQueued says how much of the time that a thread was runnable it waited behind others while another processor was idle,
// as the rests of sentences.
func SayQueued(p *timeline.Placed, runnable int64) (texts []string) {
	add := func(ns int64, which string) {
		if ns >= placedNs && ns*placedShare >= runnable {
			texts = append(texts, fmt.Sprintf("waited %s of %s for a processor while %s.", wording.Duration(ns), wording.Duration(runnable), which))
		}
	}
	add(p.WaitFreeNs, "another one was idle that it may use")
	add(p.WaitNs-p.WaitFreeNs, "others were idle that it may not use")
	return texts
}

// placed says how well the moment's thread was placed.
func (a *analyzer) placed() {
	m := a.result.Moment
	activity := a.trace.Kernel.Thread(m.Tid)
	if activity == nil {
		return
	}
	p := activity.PlacedIn(m.FromNs, m.ToNs)
	if text := SayPlaced(a.trace.Kernel.Machine(), &p); text != "" {
		a.say("Meanwhile the thread %s", text)
	}
	for _, text := range SayQueued(&p, m.Causes[Runnable.String()]) {
		a.say("Meanwhile the thread %s", text)
	}
}
