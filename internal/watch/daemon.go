package watch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"braid/bpf"
	"braid/internal/capture"
	"braid/internal/counter"
	"braid/internal/ctl"
	"braid/internal/kevent"
	"braid/internal/live"
	"braid/internal/metrics"
	"braid/internal/retain"
	"braid/internal/targets"
	"braid/internal/trigger"
)

// The daemon's periods. Each wakes it, so the short one does next to nothing.
const (
	tickPeriod  = 100 * time.Millisecond // programs' own triggers, due flushes
	startPeriod = time.Millisecond       // the same, while one is starting: it may not live for long
	lookPeriod  = 200 * time.Millisecond // rings: many times in 2^32 ticks of the counter (package control, Note)
	slowPeriod  = time.Second            // clock samples, the choice of threads, processes that no event tells of
	sweepPeriod = time.Minute            // traces that have become too old
)

// How long a new process may take until its runtime has made the area: the dynamic linker comes first.
const stubsPatience = 3 * time.Second

// How often a process that matches, and had no stubs while it started, is looked at: it may load a traced library later.
const latePeriod = time.Second

// How long an app may take to get its name: it asks another process for what it is to be.
const unnamedPatience = 10 * time.Second

// linger is how long a process that has ended is kept: a trigger may still fire for it.
const linger = time.Second

// maxWriting is how many traces are written at the same time. Each holds a copy of its rings.
const maxWriting = 2

// Options say what to watch and how to be reached.
type Options struct {
	Config  *trigger.Config
	Socket  string // path of the control socket; "": none
	BTF     string // file with the kernel's types; "": the kernel's own
	Version string // of braid, for traces
	Log     *slog.Logger
	Ready   func() // called once everything is set up; may be nil
}

// Daemon is a running braid watch.
type Daemon struct {
	o           Options
	log         *slog.Logger
	began       time.Time
	engine      *trigger.Engine
	store       *retain.Store
	kernel      *kernelSide
	kernelState string
	cgroups     []uint64 // those that the kernel side was told of
	files       *capture.Files
	socket      *ctl.Server
	scraped     *metrics.Server
	methods     *metrics.Methods // nil: nobody scrapes
	liveClock   *live.Clock
	clock       clock
	targets     map[int]*target
	pending     map[int]*candidate // processes that may become targets
	refused     map[int]string     // why one that would be a target can't be
	due         []due              // flushes that wait for their rule's settle time
	probes      map[uint32]*probed // by the number that their events carry
	nextProbe   uint32
	closing     sync.WaitGroup // of probes
	writing     int
	waiting     []waiting             // flushes for which there was no room when they came
	flushing    bool                  // rings are about to be taken
	triggers    map[string]*time.Time // when a rule fired last
	unexplained []*retain.Entry       // traces whose summaries are to come; the first is being made
	skipped     uint64                // flushes for which there was no room in memory

	requests chan func()
	seen     chan trigger.Observation
	over     chan struct{}
}

// candidate is a process that matches, and of which it is not known whether it carries stubs; or an app that is starting,
// whose name is still to come.
type candidate struct {
	since, next time.Time
	told        bool // that another braid records it
	late        bool // it had no stubs while it started
}

// due is a flush that is to come.
type due struct {
	at    time.Time
	pid   int
	fired trigger.Fired
}

// Run watches until ctx is done. Then all threads are turned off, and nothing of braid is left in the programs.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Daemon{o: o, log: o.Log, began: time.Now(), engine: trigger.NewEngine(o.Config), files: capture.NewFiles(),
		targets: map[int]*target{}, probes: map[uint32]*probed{}, pending: map[int]*candidate{}, refused: map[int]string{}, triggers: map[string]*time.Time{},
		requests: make(chan func()), seen: make(chan trigger.Observation, 64), over: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.open(ctx); err != nil {
		return errors.Join(err, d.close())
	}
	if o.Ready != nil {
		o.Ready()
	}
	d.loop(ctx)
	cancel()
	return d.close()
}

// open sets everything up that does not depend on a target.
func (d *Daemon) open(ctx context.Context) error {
	c := d.o.Config
	if err := d.clock.take(); err != nil {
		return err
	}
	var err error
	d.store, err = retain.Open(retain.Options{Dir: c.Output.Dir, Campaign: c.Output.Campaign, SummaryOnly: c.Output.Summary == trigger.SummaryOnly,
		Keep: retain.Keep(c.Output.Keep), Limits: retain.Limits{PerWeek: c.Output.Limits.PerWeek, PerProgram: c.Output.Limits.PerProgram,
			PerTrigger: c.Output.Limits.PerTrigger, Quota: c.Output.Quota, MaxAge: c.Output.Age}})
	if err != nil {
		return err
	}
	d.checkCgroups()
	d.openKernel()
	d.openSources(ctx)
	if d.o.Socket != "" {
		if err := d.serveSocket(); err != nil {
			return err
		}
	}
	if c.Metrics.Address != "" {
		if err := d.serveMetrics(); err != nil {
			return err
		}
	}
	d.scan()
	return nil
}

// openKernel loads the kernel side. Without it, braid watch goes on with methods alone, and says so.
func (d *Daemon) openKernel() {
	k := d.o.Config.Kernel
	var units []string
	if k.Sched {
		units = append(units, bpf.UnitSched)
	}
	if k.IO {
		units = append(units, bpf.UnitIO)
	}
	if k.Wait {
		units = append(units, bpf.UnitWait)
	}
	d.kernelState = "off"
	if len(units) == 0 {
		return
	}
	// A second of a busy machine is some 4 MiB of events.
	limit := int(min(max(int64(k.Keep/time.Second)*4<<20, 16<<20), 256<<20))
	matched := match(d.o.Config)
	d.cgroups = matched.Cgroups
	side, err := loadKernel(bpf.Options{Units: units, RingBytes: int(k.Buffer), BTFPath: d.o.BTF, Watch: &bpf.WatchOptions{Match: matched}}, k.Keep, limit)
	if err != nil {
		d.kernelState = err.Error()
		d.log.Warn("no kernel events; new programs are found once a second", "why", err)
		return
	}
	d.kernel, d.kernelState = side, "on"
	for _, note := range side.rec.Fallbacks() {
		d.log.Info("kernel events", "note", note)
	}
}

// match is what the kernel announces: the names, cgroups and users of all programs. Where one can't be said that way, the
// kernel announces too much or nothing, and processes are looked at in /proc.
func match(c *trigger.Config) (m bpf.Match) {
	for _, p := range c.Programs {
		switch {
		case p.Name != "" && len(m.Names) < 32:
			m.Names = append(m.Names, kernelName(p.Name))
		case p.Package != "" && len(m.Names) < 29:
			if kernelName(p.Package) == p.Package {
				m.Names = append(m.Names, targets.Comms(p.Package)...)
			}
			if !slices.Contains(m.Names, targets.StartingComm) { // of a component or a pattern no more is known
				m.Names = append(m.Names, targets.StartingComm)
			}
		case p.Cgroup != "" && len(m.Cgroups) < 32:
			if id := cgroupID(p.Cgroup); id != 0 {
				m.Cgroups = append(m.Cgroups, id)
			}
		case p.UID >= 0 && len(m.Uids) < 64:
			m.Uids = append(m.Uids, uint32(p.UID))
		}
	}
	return m
}

func (d *Daemon) loop(ctx context.Context) {
	tick := time.NewTicker(tickPeriod)
	defer tick.Stop()
	var looked, slow, swept time.Time
	signals := d.signals()
	defer signal.Stop(signals)
	for {
		var notices chan notice
		if d.kernel != nil {
			notices = d.kernel.notice
		}
		select {
		case <-ctx.Done():
			return
		case f := <-d.requests:
			f()
			continue
		case n := <-notices:
			d.kernelSays(n)
			continue
		case o := <-d.seen:
			d.fireAll(d.engine.Observe(o))
			continue
		case s := <-signals:
			d.signalled(s)
			continue
		case <-tick.C:
		}
		now := time.Now()
		if d.starting(now) {
			tick.Reset(startPeriod)
		} else {
			tick.Reset(tickPeriod)
		}
		d.programsAsk()
		d.attachPending(now)
		if now.Sub(slow) >= slowPeriod {
			slow = now
			d.slowly()
		}
		if now.Sub(looked) >= lookPeriod {
			looked = now
			d.look(now)
		}
		if now.Sub(swept) >= sweepPeriod {
			swept = now
			d.store.Sweep(now)
			maps.DeleteFunc(d.refused, func(pid int, _ string) bool { return capture.Gone(pid) })
		}
		d.flushDue(now)
		if next := d.engine.Next(); next != 0 {
			if boot, err := counter.Boottime(); err == nil && boot >= next {
				d.fireAll(d.engine.Tick(boot))
			}
		}
	}
}

func (d *Daemon) slowly() {
	if err := d.clock.take(); err != nil {
		d.log.Error("clock", "err", err)
	}
	if d.liveClock != nil {
		d.liveClock.Update()
	}
	if d.kernel == nil || d.kernel.failed() != nil {
		d.scan()
	} else {
		d.followCgroups()
	}
	if d.kernel != nil && d.kernelState == "on" {
		if err := d.kernel.failed(); err != nil {
			d.kernelState = err.Error()
			d.log.Error("no more kernel events", "err", err)
		}
	}
	if d.kernel == nil { // nobody says when a process executes another program
		for _, t := range d.targets {
			t.replaced = t.area.Left()
		}
	}
}

// look looks at all targets' rings, and takes leave of those that have ended.
func (d *Daemon) look(now time.Time) {
	for _, t := range d.sorted() {
		if !t.gone {
			d.files.Remember(t.proc, t.area)
			t.look(now)
			d.watchMethods(t)
			if t.gone {
				t.left = now
			}
		}
		if t.gone && now.Sub(t.left) >= linger && !d.waits(t.pid) {
			d.forget(t)
		}
	}
}

// waits reports whether a flush of the process is still to come.
func (d *Daemon) waits(pid int) bool {
	return slices.ContainsFunc(d.due, func(x due) bool { return x.pid == pid }) ||
		slices.ContainsFunc(d.waiting, func(w waiting) bool { return w.t.pid == pid })
}

func (d *Daemon) forget(t *target) {
	delete(d.targets, t.pid)
	d.closeProbes(t, nil)
	if d.kernel != nil {
		d.kernel.rec.RemoveTarget(t.pid)
	}
	d.engine.Forget(t.pid)
	again := t.replaced
	t.area.Discard()
	d.log.Info("ended", "pid", t.pid, "program", t.name)
	if again {
		d.consider(t.pid)
	}
}

// sorted returns the targets by process id.
func (d *Daemon) sorted() []*target {
	all := make([]*target, 0, len(d.targets))
	for _, t := range d.targets {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *target) int { return cmp.Compare(a.pid, b.pid) })
	return all
}

// kernelSays acts on what the kernel side announces.
func (d *Daemon) kernelSays(n notice) {
	switch {
	case n.announce != nil:
		pid := int(n.announce.Tgid)
		t := d.targets[pid]
		switch n.announce.What {
		case kevent.AnnounceExit:
			if t != nil {
				d.exited(t, n)
			}
			delete(d.pending, pid)
		case kevent.AnnounceExec:
			if t != nil {
				t.replaced = true // look finds that it has left its area
				return
			}
			d.consider(pid)
		default:
			if t == nil {
				d.consider(pid)
			}
		}
	case n.fired != nil && n.fired.What == kevent.LimitMethod:
		d.probeSays(n)
	case n.fired != nil:
		kinds := [...]trigger.Kind{kevent.LimitRunQueue: trigger.RunQueue, kevent.LimitSleeping: trigger.OffCPU, kevent.LimitBlocked: trigger.OffCPU,
			kevent.LimitBlockIO: trigger.BlockIO, kevent.LimitFsync: trigger.Fsync, kevent.LimitReclaim: trigger.Reclaim,
			kevent.LimitMajorFaults: trigger.MajorFaults}
		if int(n.fired.What) < len(kinds) {
			d.fireAll(d.engine.Observe(trigger.Observation{Time: n.h.Time, Target: int(n.fired.Tgid), Tid: int(n.h.Tid),
				Kind: kinds[n.fired.What], Value: float64(n.fired.Value)}))
		}
	}
}

// programsAsk looks whether a program has called braid_trigger.
func (d *Daemon) programsAsk() {
	for _, t := range d.sorted() {
		seq, why, tid, _, lost := t.area.Trigger()
		if lost > 0 {
			t.lost["program_triggers"] = lost
		}
		if seq == t.trigger {
			continue
		}
		t.trigger = seq
		now, _ := counter.Boottime()
		d.fireAll(d.engine.Observe(trigger.Observation{Time: now, Target: t.pid, Tid: tid, Kind: trigger.ProgramAsks, Subject: why}))
	}
}

// close turns everything off.
func (d *Daemon) close() error {
	close(d.over)
	if d.socket != nil {
		d.socket.Close()
	}
	if d.scraped != nil {
		d.scraped.Close()
	}
	for _, t := range d.targets {
		if !t.gone {
			t.leave()
		} else {
			t.area.Close()
		}
	}
	clear(d.targets) // a request that comes now must not look at areas that are closed
	d.waiting = nil
	for d.writing > 0 || len(d.unexplained) > 0 { // traces under way are finished
		(<-d.requests)()
	}
	var errs []error
	d.closing.Wait()
	if d.kernel != nil {
		errs = append(errs, d.kernel.close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	d.files.Close()
	return errors.Join(errs...)
}

// signals are those that a rule waits for.
func (d *Daemon) signals() chan os.Signal {
	c := make(chan os.Signal, 8)
	for _, s := range d.o.Config.System().Signals {
		signal.Notify(c, s)
	}
	return c
}
