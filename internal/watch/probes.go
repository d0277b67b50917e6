package watch

import (
	"fmt"
	"slices"

	"braid/bpf"
	"braid/internal/trigger"
	"braid/symbols"
)

// maxProbes is how many methods of a process a pattern may put probes at. A pattern that fits more is a mistake: each call
// costs microseconds.
const maxProbes = 16

var errTooMany = fmt.Errorf("more than %d methods of the process fit what is to be probed", maxProbes)

// probed is what a probe was put at.
type probed struct {
	condition *trigger.Condition
	method    string
	pid       int
	probe     *bpf.Probe
}

// openProbes puts probes at the methods that conditions name, as far as the target's modules are known. A condition with a
// method that can't be probed is decided from the rings.
func (d *Daemon) openProbes(t *target) error {
	if d.kernel == nil || len(t.needs.Probe) == 0 {
		return nil
	}
	mods := t.proc.Symbols()
	refused := map[*trigger.Condition]bool{}
	for s := range symbols.NewTable(mods, symbols.Options{}).Functions() {
		if t.probedAt[s.Addr] {
			continue
		}
		for _, c := range t.needs.Probe {
			if refused[c] || !trigger.MatchMethod(c.Method, s.Name) {
				continue
			}
			err := errTooMany
			if t.probedAt[s.Addr] = true; len(t.probes) < maxProbes {
				err = d.probe(t, c, &s, mods[s.Module].Bias)
			}
			if err != nil {
				refused[c] = true
				t.lost["probes_refused"]++
				t.note = fmt.Sprintf("no probe at %s: %v; its calls are watched from the rings", s.Name, err)
				d.log.Warn("methods are watched from the rings, not by probes", "pid", t.pid, "pattern", c.Method, "method", s.Name, "why", err)
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	d.closeProbes(t, refused)
	t.needs.Probe = slices.DeleteFunc(slices.Clone(t.needs.Probe), func(c *trigger.Condition) bool { return refused[c] })
	t.needs.Ring = slices.Clone(t.needs.Ring)
	for c := range refused {
		t.needs.Ring = append(t.needs.Ring, c)
	}
	return d.openLive(t)
}

func (d *Daemon) probe(t *target, c *trigger.Condition, s *symbols.Symbol, bias uint64) error {
	d.nextProbe++
	path := fmt.Sprintf("/proc/%d/root%s", t.pid, t.proc.Modules[s.Module].Path)
	p, err := d.kernel.rec.WatchMethod(t.pid, bpf.Method{Path: path, Address: s.Addr - bias, Size: s.Size}, c.Longer, d.nextProbe)
	if err != nil {
		return err
	}
	d.probes[d.nextProbe] = &probed{condition: c, method: s.Name, pid: t.pid, probe: p}
	t.probes = append(t.probes, d.nextProbe)
	return nil
}

// probeSays passes a call that took longer than its limit on to the rules.
func (d *Daemon) probeSays(n notice) {
	p := d.probes[n.fired.Cookie()]
	if p == nil || p.pid != int(n.fired.Tgid) {
		return // it was closed meanwhile
	}
	d.fireAll(d.engine.Observe(trigger.Observation{Time: n.h.Time, Target: p.pid, Tid: int(n.h.Tid), Kind: trigger.Method,
		Condition: p.condition.ID, Subject: p.method, Value: float64(n.fired.Value)}))
}

// closeProbes takes a target's probes out, those of some conditions or (nil) all, beside the daemon's other work: the
// kernel waits at each, up to seconds in all.
func (d *Daemon) closeProbes(t *target, of map[*trigger.Condition]bool) {
	var all []*bpf.Probe
	t.probes = slices.DeleteFunc(t.probes, func(id uint32) bool {
		p := d.probes[id]
		if of != nil && !of[p.condition] {
			return false
		}
		all = append(all, p.probe)
		delete(d.probes, id)
		return true
	})
	if len(all) == 0 {
		return
	}
	d.closing.Go(func() {
		for _, p := range all {
			if err := p.Close(); err != nil {
				d.log.Warn("taking a probe out", "pid", t.pid, "err", err)
			}
		}
	})
}
