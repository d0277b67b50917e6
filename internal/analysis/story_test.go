package analysis

import (
	"path/filepath"
	"slices"
	"testing"

	"braid/inline"
	"braid/internal/kevent"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

const (
	us     = int64(1000)
	ms     = 1000 * us
	second = 1000 * ms
	start  = 100 * second // of all stories, CLOCK_BOOTTIME; a tick of their counter is a nanosecond
	pid    = 50
	code   = uint64(0x5555_5555_0000)
)

// story writes a trace of one process. Its threads are told one after another, each with a clock of its own.
type story struct {
	t       testing.TB
	meta    tracefile.Meta
	names   []string // of methods
	threads []*actor
	events  []event
	silent  bool // no kernel events
}

type event struct {
	at    int64
	bytes []byte
}

// actor is a thread of a story. It runs on a CPU of its own unless told otherwise.
type actor struct {
	s     *story
	tid   uint32
	cpu   uint16
	name  string
	now   int64
	slots []uint64
}

func (s *story) thread(tid uint32, name string) *actor {
	a := &actor{s: s, tid: tid, cpu: uint16(len(s.threads)), name: name, now: start}
	s.threads = append(s.threads, a)
	s.at(a.now, a.cpu, 0, tid, 0, 0)
	return a
}

func (s *story) method(name string) uint64 {
	i := slices.Index(s.names, name)
	if i < 0 {
		i = len(s.names)
		s.names = append(s.names, name)
	}
	return code + 0x100*uint64(i+1)
}

func (s *story) add(at int64, b []byte) { s.events = append(s.events, event{at, b}) }

// at is a switch of a CPU from prev to next; 0 is the idle task.
func (s *story) at(at int64, cpu uint16, prev, next, state uint32, flags uint8) {
	h := kevent.Header{Time: uint64(at), CPU: cpu, Tid: prev, Flags: flags}
	e := kevent.Switch{PrevState: state, NextTid: next}
	for _, a := range s.threads {
		if a.tid == prev {
			h.Flags, e.PrevTgid = h.Flags|kevent.FlagPrevTarget, pid
		}
		if a.tid == next {
			h.Flags, e.NextTgid = h.Flags|kevent.FlagNextTarget, pid
			copy(e.NextComm[:], a.name)
		}
	}
	if next == 999 {
		copy(e.NextComm[:], "rival")
	}
	s.add(at, kevent.AppendSwitch(nil, h, e))
}

// call is a method with what it does.
func (a *actor) call(method string, inner ...func()) {
	a.slots = inline.AppendEntry(a.slots, uint64(a.now), a.s.method(method))
	for _, f := range inner {
		f()
	}
	a.slots = inline.AppendExit(a.slots, uint64(a.now))
}

// run lets time pass on the CPU.
func (a *actor) run(ns int64) func() { return func() { a.now += ns } }

// off leaves the CPU for a time, and is woken by a thread.
func (a *actor) off(ns int64, state uint32, waker uint32) {
	a.s.at(a.now, a.cpu, a.tid, 0, state, 0)
	a.now += ns
	a.s.add(a.now, kevent.AppendWaking(nil, kevent.Header{Time: uint64(a.now), Tid: a.tid, CPU: a.cpu},
		kevent.Waking{WakerTid: waker, Tgid: pid, TargetCPU: uint32(a.cpu)}))
	a.s.at(a.now, a.cpu, 0, a.tid, 0, 0)
}

func (a *actor) sleep(ns int64, waker uint32) func() {
	return func() { a.off(ns, kevent.StateSleeping, waker) }
}

func (a *actor) block(ns int64) func() {
	return func() { a.off(ns, kevent.StateBlocked, 0) }
}

// preempted loses the CPU to thread 999 of another program.
func (a *actor) preempted(ns int64) func() {
	return func() {
		a.s.at(a.now, a.cpu, a.tid, 999, 0, kevent.FlagPreempted)
		a.now += ns
		a.s.at(a.now, a.cpu, 999, a.tid, 0, 0)
	}
}

// fsync blocks, with requests of its own of 1 MiB.
func (a *actor) fsync(ns int64, requests int) func() {
	return func() {
		from := a.now
		a.now += us
		for i := range requests {
			a.s.add(a.now+ns/2, kevent.AppendRqComplete(nil, kevent.Header{Time: uint64(a.now + ns/2)}, kevent.Rq{
				ID: uint64(a.now)<<8 + uint64(i), IssueNs: uint64(a.now + int64(i)), Dev: 8 << 20, Bytes: 1 << 20, OwnerTid: a.tid, OwnerPid: pid, Op: kevent.OpWrite,
			}))
		}
		a.off(ns-2*us, kevent.StateBlocked, 0)
		a.now += us
		a.s.add(a.now, kevent.AppendFsync(nil, kevent.Header{Time: uint64(a.now), Tid: a.tid}, kevent.Fsync{StartNs: uint64(from), Tgid: pid}))
	}
}

// fault blocks in a major fault.
func (a *actor) fault(ns int64) func() {
	return func() {
		from := a.now
		a.off(ns, kevent.StateBlocked, 0)
		a.s.add(a.now, kevent.AppendMajorFault(nil, kevent.Header{Time: uint64(a.now), Tid: a.tid}, kevent.MajorFault{StartNs: uint64(from), Tgid: pid}))
	}
}

// reclaim runs in direct reclaim.
func (a *actor) reclaim(ns int64) func() {
	return func() {
		from := a.now
		a.now += ns
		a.s.add(a.now, kevent.AppendReclaim(nil, kevent.Header{Time: uint64(a.now), Tid: a.tid}, kevent.Reclaim{StartNs: uint64(from), Tgid: pid}))
	}
}

// load writes the story and loads it.
func (s *story) load() *timeline.Trace {
	s.t.Helper()
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	path := filepath.Join(s.t.TempDir(), "story.braid")
	w, err := tracefile.Create(path)
	must(err)
	defer w.Abort()
	end := start
	for _, a := range s.threads {
		end = max(end, a.now)
	}
	s.meta.Start.BootNs, s.meta.End.BootNs = uint64(start), uint64(end+ms)
	must(w.WriteMeta(&s.meta))
	clock := &tracefile.Clock{Counter: tracefile.CounterTSC, Frequency: uint64(second)}
	for at := start - second; at <= end+second; at += 100 * ms {
		clock.Samples = append(clock.Samples, tracefile.ClockSample{Before: uint64(at), After: uint64(at), BootNs: uint64(at)})
	}
	must(w.WriteClock(clock))
	p := &tracefile.Processes{Processes: []tracefile.Process{{Pid: pid, Name: "app"}}}
	for _, a := range s.threads {
		p.Threads = append(p.Threads, tracefile.Thread{Pid: pid, Tid: int(a.tid), Names: []string{a.name}})
	}
	must(w.WriteProcesses(p))
	must(w.WriteModules([]tracefile.Module{{Pid: pid, Path: "/usr/bin/app", Bias: code, Start: code, End: code + 1<<20}}))
	var symbols []tracefile.Symbol
	for _, n := range s.names {
		symbols = append(symbols, tracefile.Symbol{Addr: s.method(n), Name: n})
	}
	must(w.WriteSymbols(symbols))
	for _, a := range s.threads {
		r := &tracefile.Ring{Pid: pid, Tid: a.tid, Begin: uint64(start), End: uint64(a.now), Slots: a.slots, Flags: tracefile.RingComplete}
		copy(r.Name[:], a.name)
		must(w.WriteRing(r))
	}
	if !s.silent {
		slices.SortStableFunc(s.events, func(a, b event) int { return int(a.at - b.at) })
		var all []byte
		for _, e := range s.events {
			all = append(all, e.bytes...)
		}
		must(w.WriteEvents(all))
	}
	must(w.Close())
	r, err := tracefile.Open(path)
	must(err)
	s.t.Cleanup(func() { r.Close() })
	tr, err := timeline.Load(r)
	must(err)
	return tr
}

func (s *story) analyze(o Options) *Result {
	s.t.Helper()
	r, err := Analyze(s.load(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}
