package watch

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"braid/bpf"
	"braid/control"
	"braid/internal/counter"
	"braid/internal/targets"
	"braid/internal/trigger"
)

// scan considers every process that runs: at the start, and where no kernel side announces new ones.
func (d *Daemon) scan() {
	es, err := os.ReadDir("/proc")
	if err != nil {
		d.log.Error("listing processes", "err", err)
		return
	}
	for _, e := range es {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			d.consider(pid)
		}
	}
}

// consider makes a process a candidate if it is one to watch. Whether it carries stubs shows later: at its exec, the
// dynamic linker has not come yet.
func (d *Daemon) consider(pid int) {
	if d.targets[pid] != nil || d.pending[pid] != nil || pid == os.Getpid() {
		return
	}
	m, ok := identify(pid)
	if !ok || d.o.Config.Program(&m) == nil && !targets.Unnamed(m.Package) {
		return
	}
	d.pending[pid] = &candidate{since: time.Now()}
	d.attach(pid)
}

// attachPending tries again with processes whose area was not there yet.
func (d *Daemon) attachPending(now time.Time) {
	for pid, c := range d.pending {
		if now.After(c.next) {
			d.attach(pid)
		}
	}
}

// starting reports whether a process has become a candidate just now.
func (d *Daemon) starting(now time.Time) bool {
	for _, c := range d.pending {
		if now.Sub(c.since) < 100*time.Millisecond {
			return true
		}
	}
	return false
}

// attach takes a candidate over if it carries stubs.
func (d *Daemon) attach(pid int) {
	c := d.pending[pid]
	m, ok := identify(pid)
	program := d.o.Config.Program(&m)
	age := time.Since(c.since)
	// Often while it starts, then at leisure: a program may load its first traced library late.
	c.next = time.Now().Add(min(age/4, time.Second))
	if program == nil && ok && targets.Unnamed(m.Package) && age < unnamedPatience {
		return
	}
	if !ok || program == nil { // gone, or it is called something else now
		delete(d.pending, pid)
		return
	}
	if c.late {
		if c.next = time.Now().Add(latePeriod); !control.Keeps(pid) {
			return
		}
	}
	areas, err := control.Attach(pid)
	if errors.Is(err, control.ErrBusy) {
		for _, a := range areas {
			a.Close()
		}
		// A child that was forked just now still maps its parent's.
		if age > time.Second && !c.told {
			c.told = true
			d.log.Info("another braid is recording it", "pid", pid, "program", m.Name)
		}
		return
	}
	if len(areas) == 0 {
		if age > stubsPatience {
			c.late = true
			if err != nil && !errors.Is(err, control.ErrNoStubs) && d.refused[pid] != err.Error() { // said once
				d.refused[pid] = err.Error()
				d.log.Warn("can't be watched", "pid", pid, "program", m.Name, "why", err)
			}
		}
		return
	}
	delete(d.pending, pid)
	for _, a := range areas[1:] {
		a.Close() // a process maps one of its own; another is its parent's, which is about to go
	}
	t := newTarget(areas[0], optionsOf(program))
	t.match, t.uid = m, m.UID
	t.needs = d.o.Config.Needs(&m)
	if err := d.openLive(t); err != nil {
		d.log.Error("rules on methods", "pid", pid, "err", err)
	}
	d.files.Remember(t.proc, t.area)
	d.targets[pid] = t
	if err := d.store.Prepare(t.uid); err != nil { // where the user may put their consent
		t.note = err.Error()
	} else if err := d.store.Consent(t.name, t.uid); err != nil {
		t.note = err.Error()
	}
	d.limits(t)
	d.log.Info("watching", "pid", pid, "program", m.Name, "uid", t.uid)
}

func optionsOf(p *trigger.Program) TargetOptions {
	return TargetOptions{Main: p.Threads.Main, All: p.Threads.All, Threads: p.Threads.Names, Rings: p.Rings, Bytes: uint64(p.Ring)}
}

// limits tells the kernel side what to watch of a target.
func (d *Daemon) limits(t *target) {
	if d.kernel == nil {
		return
	}
	k := t.needs.Kernel
	err := d.kernel.rec.AddTarget(t.pid)
	if err == nil {
		err = d.kernel.rec.SetThresholds(t.pid, bpf.Thresholds{RunQueue: k.RunQueue, OffCPU: k.OffCPU, Fsync: k.Fsync,
			BlockIO: k.BlockIO, Reclaim: k.Reclaim, MajorFaultsPerSecond: k.MajorFaultsPerSecond})
	}
	if err != nil {
		t.note = err.Error()
		d.log.Warn("no kernel events of it", "pid", t.pid, "why", err)
	}
}

// identify reads what the configuration compares. False: the process is gone, or a kernel thread.
func identify(pid int) (m trigger.Target, ok bool) {
	p, ok := targets.Read(pid)
	return trigger.Target{Pid: pid, Name: p.Comm, Exe: p.Exe, Package: p.Name, Cgroup: p.Cgroup, UID: p.UID}, ok
}

// exited is called when the kernel has announced a target's end. A fatal signal is a crash.
func (d *Daemon) exited(t *target, n notice) {
	if sig := n.announce.Signal; sig != 0 && t.needs.Crash {
		now, _ := counter.Boottime()
		d.fireAll(d.engine.Observe(trigger.Observation{Time: now, Target: t.pid, Tid: int(n.h.Tid), Kind: trigger.Crash, Value: float64(sig)}))
	}
}

// kernelName turns a pattern of a program's name into what the kernel can compare: a name, or its beginning and a star.
func kernelName(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return pattern[:i] + "*"
	}
	return pattern
}
