package watch

import (
	"slices"
	"time"

	"braid/internal/counter"
	"braid/internal/live"
)

// slotBudget is how many slots are decoded of one process at a look. At lookPeriod that is some 5 million a second, a few
// per cent of a processor. What is beyond it is skipped, newest last, and counted.
const slotBudget = 1 << 20

// watchMethods decides the rules on methods from what the target's threads have recorded since the last look.
func (d *Daemon) watchMethods(t *target) {
	if n := len(t.proc.Modules); n != t.modules {
		t.modules = n
		if err := d.openProbes(t); err != nil {
			t.note = err.Error()
		}
		if t.live != nil {
			t.live.SetModules(t.proc.Symbols())
		}
	}
	if t.live == nil {
		return
	}
	t.following = t.following[:0]
	for _, r := range t.rings {
		t.following = append(t.following, live.Thread{Source: r.t, Tid: r.t.Tid, Main: r.t.Tid == t.pid})
	}
	seen, err := t.live.Poll(t.following, counter.Now(), slotBudget)
	if err != nil {
		t.lost["live_errors"]++
		d.log.Debug("following methods", "pid", t.pid, "err", err)
	}
	st := t.live.Stats()
	if st.Skipped > 0 {
		t.lost["slots_not_watched"] = st.Skipped
	}
	for _, o := range seen {
		d.fireAll(d.engine.Observe(o))
	}
}

// openLive prepares a target for the rules on methods, if there are any for it.
func (d *Daemon) openLive(t *target) error {
	watched := t.needs.Ring
	if d.kernel == nil { // then there are no probes
		watched = append(slices.Clone(watched), t.needs.Probe...)
	}
	if len(watched) == 0 {
		return nil
	}
	if d.liveClock == nil {
		c, err := live.NewClock()
		if err != nil {
			return err
		}
		d.liveClock = c
	}
	t.live = live.New(t.pid, watched, d.liveClock)
	if d.methods != nil {
		t.live.Ended = func(method string, took time.Duration) { d.methods.Observe(t.name, method, took) }
	}
	return nil
}
