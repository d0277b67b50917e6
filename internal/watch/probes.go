package watch

import (
	"fmt"

	"braid/bpf"
	"braid/internal/trigger"
	"braid/symbols"
)

// maxProbes is how many methods of a process a pattern may put probes at. A pattern that fits more is a mistake: each call
// costs microseconds.
const maxProbes = 16

// probed is what a probe was put at.
type probed struct {
	condition *trigger.Condition
	method    string
	pid       int
	probe     *bpf.Probe
}

// openProbes puts probes at the methods that conditions name, as far as the target's modules are known.
func (d *Daemon) openProbes(t *target) {
	if d.kernel == nil || len(t.needs.Probe) == 0 {
		return
	}
	mods := t.proc.Symbols()
	for s := range symbols.NewTable(mods, symbols.Options{}).Functions() {
		if t.probedAt[s.Addr] {
			continue
		}
		for _, c := range t.needs.Probe {
			if !trigger.MatchMethod(c.Method, s.Name) {
				continue
			}
			if t.probedAt[s.Addr] = true; len(t.probes) >= maxProbes {
				t.lost["probes_too_many"]++
				continue
			}
			if err := d.probe(t, c, &s, mods[s.Module].Bias); err != nil {
				t.lost["probes_refused"]++
				t.note = fmt.Sprintf("no probe at %s: %v", s.Name, err)
				d.log.Warn("a method is not watched", "pid", t.pid, "method", s.Name, "why", err)
			}
		}
	}
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

// closeProbes takes a target's probes out, beside the daemon's other work: the kernel waits at each, up to seconds in all.
func (d *Daemon) closeProbes(t *target) {
	var all []*bpf.Probe
	for _, id := range t.probes {
		all = append(all, d.probes[id].probe)
		delete(d.probes, id)
	}
	t.probes = nil
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
