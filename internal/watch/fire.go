package watch

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"braid/internal/counter"
	"braid/internal/ctl"
	"braid/internal/retain"
	"braid/internal/trigger"
)

// fireAll schedules the flushes of rules that have fired.
func (d *Daemon) fireAll(all []trigger.Fired) {
	for _, f := range all {
		now := time.Now()
		d.triggers[f.Rule.Name] = &now
		d.log.Info("fired", "trigger", f.Rule.Name, "pid", f.Target, "reason", f.Reason)
		for _, t := range d.sorted() {
			if f.Target == t.pid || f.Target == 0 && f.Rule.For(&t.match) {
				d.due = append(d.due, due{time.Now().Add(f.Rule.Settle), t.pid, f})
			}
		}
	}
	if !d.flushing { // else it comes with the next tick
		d.flushDue(time.Now())
	}
}

// flushDue flushes what has settled. Of several rules that fired for a process meanwhile, the most severe one names the
// trace.
func (d *Daemon) flushDue(now time.Time) {
	byPid := map[int]due{}
	for _, x := range d.due {
		t := d.targets[x.pid]
		ready := !x.at.After(now) || t == nil || t.gone
		old, ok := byPid[x.pid]
		switch {
		case !ready:
		case !ok || x.fired.Rule.Severity > old.fired.Rule.Severity:
			byPid[x.pid] = x
		}
	}
	if len(byPid) == 0 {
		return
	}
	d.due = slices.DeleteFunc(d.due, func(x due) bool { _, ok := byPid[x.pid]; return ok })
	for pid, x := range byPid {
		if t := d.targets[pid]; t != nil {
			d.flush(t, traceTrigger(x.fired), nil)
		}
	}
}

// maxWaiting is how many flushes may wait until others are written.
const maxWaiting = 64

// waiting is a flush that waits. Its target goes on recording, and is kept if it ends.
type waiting struct {
	t      *target
	tr     flushTrigger
	answer chan<- ctl.Flushed
}

// flushWaiting flushes what has waited longest, if there is room now.
func (d *Daemon) flushWaiting() {
	if len(d.waiting) > 0 && d.writing < maxWriting {
		w := d.waiting[0]
		d.waiting = d.waiting[1:]
		d.flush(w.t, w.tr, w.answer)
	}
}

// flush copies what there is of a target, and has it written. The answer must have room: nobody may wait for it any more.
func (d *Daemon) flush(t *target, tr flushTrigger, answer chan<- ctl.Flushed) {
	f := ctl.Flushed{PID: t.pid, Name: t.name}
	if d.writing >= maxWriting {
		if len(d.waiting) < maxWaiting {
			d.waiting = append(d.waiting, waiting{t, tr, answer})
			return
		}
		d.skipped++
		t.lost["flushes_skipped"]++
		f.Error = fmt.Sprintf("%d traces wait to be written: this one was left out", len(d.waiting))
		if answer != nil {
			answer <- f
		}
		return
	}
	j := &job{target: f, uid: t.uid, proc: t.proc.Again(), files: d.files, clock: slices.Clone(d.clock.samples), trigger: tr.Trigger,
		severity: tr.severity, lost: map[string]uint64{}}
	if err := d.clock.take(); err == nil {
		j.clock = slices.Clone(d.clock.samples)
	}
	j.start.WallNs, j.start.BootNs = d.began.UnixNano(), d.clock.samples[0].BootNs
	d.flushing = true
	d.watchMethods(t) // what is given back can be followed no more
	d.flushing = false
	t.copyRings(j)
	j.snapshot = snapshot(t.pid)
	if d.kernel != nil {
		j.events, j.dropped = d.kernel.past.take()
		j.hooks = d.kernel.rec.Missing()
		for name, n := range d.kernel.losses() {
			j.lost[name] += n
		}
	}
	for name, n := range t.area.Lost() {
		j.lost[name] += n
	}
	j.end.WallNs = time.Now().UnixNano()
	j.end.BootNs, _ = counter.Boottime()
	t.writing++
	t.flushes++
	t.byTrigger[tr.Name]++
	t.lastTrigger, t.lastFlush = tr.Name, time.Now()
	d.writing++
	go func() {
		began := time.Now()
		out := j.write(d.store, d.o.Version, d.o.Config.Output.Campaign, d.o.Config.Output.Summary == trigger.SummaryOnly)
		took := time.Since(began)
		d.requests <- func() {
			d.writing--
			t.writing--
			defer d.flushWaiting()
			if t.note = out.Error; out.Error != "" {
				d.log.Warn("no trace", "pid", out.PID, "why", out.Error)
				return
			}
			d.log.Info("flushed", "pid", out.PID, "trace", out.Path, "records", out.Records, "bytes", out.Bytes, "swapped", j.swapped, "copied", j.copied, "wrote", took)
			d.explain(j)
		}
		if answer != nil {
			answer <- out
		}
		debug.FreeOSMemory() // the copy of the rings may be large, and the next one far away
	}()
}

// maxExplaining is how many traces may wait for their analysis. It takes longer than writing them.
const maxExplaining = 16

// explain has a trace analysed, one after another. It runs on the daemon's goroutine.
func (d *Daemon) explain(j *job) {
	if j.entry == nil || j.summary != nil {
		return
	}
	if len(d.unexplained) == maxExplaining {
		d.log.Warn("no summary", "trace", j.entry.Trace, "why", "too many traces wait for theirs; braid report makes it")
		return
	}
	d.unexplained = append(d.unexplained, j.entry)
	if len(d.unexplained) == 1 {
		go d.explainNext(j.entry)
	}
}

func (d *Daemon) explainNext(e *retain.Entry) {
	err := d.store.Amend(e, summarise(e.Trace))
	debug.FreeOSMemory()
	d.requests <- func() {
		if err != nil {
			d.log.Warn("no summary", "trace", e.Trace, "why", err)
		}
		if d.unexplained = d.unexplained[1:]; len(d.unexplained) > 0 {
			go d.explainNext(d.unexplained[0])
		}
	}
}
