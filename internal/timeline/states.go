package timeline

import "braid/internal/kevent"

// StateStats counts what the states' reconstruction had to repair.
type StateStats struct {
	// Repaired are contradictions that mean lost events: a thread was switched in while it ran elsewhere, switched
	// out without having run, or replaced on its CPU unseen. The time since its last certain event is Unknown.
	Repaired uint64
	// MissedWakeups are threads that were switched in from a sleep of which no end was seen.
	MissedWakeups uint64
	// Late events came after later ones of the same thread. They were taken to be as late as those.
	Late uint64
}

// thread is what States knows of a live thread.
type thread struct {
	tid, tgid uint32
	since     int64 // begin of the current interval
	state     State
	flags     IntervalFlags
	cpu       uint16
	waker     uint32
	// wake is a wake-up that came while the thread ran. If the thread sleeps next and is switched in without another
	// wake-up, this was the one: the waker saw a thread that was already on its way out, and the scheduler orders
	// the two events no further.
	wake struct {
		seen  bool
		waker uint32
	}
	initialAt int64 // state is what /proc showed then; 0 otherwise
	exiting   bool
	exitAt    int64
	// serves: it belongs to no traced process, and is recorded only while it works on a binder call of one.
	serves bool
}

// States turns scheduling events in order of time into the intervals of each traced thread.
//
// Each thread's intervals are without gap from the beginning of the recording, or the thread's creation, to its end:
//
//   - switched in: running on that CPU;
//   - switched out: runnable if it was preempted, else sleeping or blocked by its state (stateAfter);
//   - waking: runnable from the moment of the wake-up, not from when the woken CPU noticed;
//   - before its first event, unknown, unless an initial state was given.
type States struct {
	// Begin is when recording began, CLOCK_BOOTTIME ns.
	Begin int64
	// Emit gets each interval when it ends, each thread's in order. It may keep nothing but copies.
	Emit func(tid uint32, iv Interval)

	threads map[uint32]*thread
	ended   map[uint32]int64   // when the last thread of a number ended
	onCPU   map[uint16]*thread // those whose state is Running
	stats   StateStats
	// scheduled: there was a switch. Without any, scheduling was not recorded, and initial states say nothing.
	scheduled bool
}

// NewStates returns a States for a recording that began at begin.
func NewStates(begin int64, emit func(tid uint32, iv Interval)) *States {
	return &States{
		Begin: begin, Emit: emit,
		threads: make(map[uint32]*thread), ended: make(map[uint32]int64), onCPU: make(map[uint16]*thread),
	}
}

// Initial says what /proc showed of a thread at a time, after recording had begun. It must come before all events. If
// an event of the thread is earlier than that, the event is believed instead.
func (s *States) Initial(tid, tgid uint32, state State, at int64) {
	s.threads[tid] = &thread{tid: tid, tgid: tgid, since: s.Begin, state: state, initialAt: max(at, 1)}
}

// Stats returns the counts so far.
func (s *States) Stats() StateStats { return s.stats }

// Event takes one event; kinds without bearing on states are ignored. body must be as kevent.Next returned it.
func (s *States) Event(h kevent.Header, body []byte) {
	t := int64(h.Time)
	switch h.Kind {
	case kevent.KindSwitch:
		s.scheduled = true
		s.sched(t, h, kevent.DecodeSwitch(body))
	case kevent.KindWaking:
		e := kevent.DecodeWaking(body)
		th := s.get(h.Tid, e.Tgid, t)
		th.serves = h.Flags&kevent.FlagServer != 0
		s.waking(th, t, e, h.Flags&kevent.FlagNew != 0)
	case kevent.KindFork:
		e := kevent.DecodeFork(body)
		if old := s.threads[h.Tid]; old != nil {
			s.end(old, t)
		}
		s.threads[h.Tid] = &thread{tid: h.Tid, tgid: e.Tgid, since: max(t, s.ended[h.Tid]), state: Runnable, cpu: h.CPU}
	case kevent.KindExec:
		e := kevent.DecodeExec(body)
		if e.OldTid != h.Tid && e.OldTid != 0 {
			s.renumber(e.OldTid, h.Tid, t)
		}
		s.executes(h, e.Tgid, t)
	case kevent.KindExit:
		if th := s.threads[h.Tid]; th != nil {
			th.exiting, th.exitAt = true, t
		}
	case kevent.KindMigrate:
		if th := s.threads[h.Tid]; th != nil && th.state == Runnable {
			th.cpu = uint16(kevent.DecodeMigrate(body).ToCPU)
		}
	}
}

// Finish ends all intervals at the end of the recording.
func (s *States) Finish(end int64) {
	for _, th := range s.threads {
		if !s.scheduled {
			th.state = Unknown
		}
		if th.exiting { // its last switch was not seen
			s.end(th, min(end, max(th.exitAt, th.since)))
			continue
		}
		s.end(th, end)
	}
}

// get returns a thread, whose state before its first event is unknown.
func (s *States) get(tid, tgid uint32, t int64) *thread {
	th := s.threads[tid]
	if th == nil {
		th = &thread{tid: tid, tgid: tgid, since: max(s.Begin, s.ended[tid])}
		s.threads[tid] = th
	}
	if th.initialAt != 0 {
		if t < th.initialAt {
			th.state = Unknown
		}
		th.initialAt = 0
	}
	return th
}

// sched handles a switch of CPU h.CPU from one thread to another.
func (s *States) sched(t int64, h kevent.Header, e kevent.Switch) {
	if was := s.onCPU[h.CPU]; was != nil && was.tid != h.Tid && was.since < t {
		s.lost(was, t)
	}
	if h.Flags&(kevent.FlagPrevTarget|kevent.FlagPrevServer) != 0 {
		th := s.get(h.Tid, e.PrevTgid, t)
		th.serves = h.Flags&kevent.FlagPrevServer != 0
		s.out(th, t, h, e)
	}
	if h.Flags&(kevent.FlagNextTarget|kevent.FlagNextServer) != 0 {
		th := s.get(e.NextTid, e.NextTgid, t)
		th.serves = h.Flags&kevent.FlagNextServer != 0
		s.in(th, t, h.CPU)
	}
}

// Runs says that a thread, of which perhaps nothing is known so far, did something on a CPU: it runs there. It returns
// whether the thread is one that is recorded only while it works on a binder call.
func (s *States) Runs(tid, tgid uint32, cpu uint16, t int64) (serves bool) {
	th := s.threads[tid]
	if !s.scheduled {
		return th == nil || th.serves
	}
	if th == nil {
		th = s.get(tid, tgid, t)
		th.serves = true
	}
	if th.state == Unknown {
		s.change(th, t, Running)
		th.cpu = cpu
		s.onCPU[cpu] = th
	}
	return th.serves
}

// Leave says that a thread is recorded no more, if it was only while it worked on a binder call.
func (s *States) Leave(tid uint32, t int64) {
	th := s.threads[tid]
	if th == nil || !th.serves {
		return
	}
	if s.onCPU[th.cpu] == th {
		delete(s.onCPU, th.cpu)
	}
	s.change(th, t, Unknown)
	th.waker, th.flags, th.wake.seen = 0, 0, false
}

func (s *States) out(th *thread, t int64, h kevent.Header, e kevent.Switch) {
	state := stateAfter(h.Flags, e.PrevState)
	if th.since == t && th.state == state && th.cpu == h.CPU {
		return // the same event again
	}
	switch {
	case th.state == queued:
		th.state, th.cpu = Running, h.CPU
	case th.state == Unknown:
	case th.state != Running || th.cpu != h.CPU:
		s.lost(th, t)
	}
	if s.onCPU[h.CPU] == th {
		delete(s.onCPU, h.CPU)
	}
	s.change(th, t, state)
	th.cpu, th.waker, th.flags = h.CPU, 0, 0
	if h.Flags&kevent.FlagIOWait != 0 && state != Runnable {
		th.flags = IOWait
	}
	// Who is dead has told so before, unless that was before the process was recorded.
	if e.PrevState&kevent.StateDead != 0 || th.exiting && state != Runnable {
		s.end(th, th.since)
	}
}

func (s *States) in(th *thread, t int64, cpu uint16) {
	switch th.state {
	case Running:
		if th.cpu == cpu && th.since == t {
			return // the same event again
		}
		s.lost(th, t)
	case Sleeping, Blocked:
		if th.wake.seen {
			th.state, th.waker, th.flags = Runnable, th.wake.waker, Woken
		} else {
			s.stats.MissedWakeups++
		}
	case queued:
		th.state, th.cpu = Runnable, cpu
	}
	s.change(th, t, Running)
	th.cpu, th.waker, th.flags = cpu, 0, 0
	th.wake.seen = false
	s.onCPU[cpu] = th
}

func (s *States) waking(th *thread, t int64, e kevent.Waking, isNew bool) {
	switch th.state {
	case Running:
		th.wake.seen, th.wake.waker = true, e.WakerTid
		return
	case Runnable:
		if isNew {
			th.waker, th.cpu = e.WakerTid, uint16(e.TargetCPU)
			th.flags |= Woken
		}
		return
	case queued:
		th.state = Runnable
		return
	case Sleeping, Blocked:
		th.waker = e.WakerTid
	}
	th.wake.seen = false
	s.change(th, t, Runnable)
	th.waker, th.cpu, th.flags = e.WakerTid, uint16(e.TargetCPU), Woken
}

// change ends the thread's interval at t and begins one in another state.
func (s *States) change(th *thread, t int64, to State) {
	if t < th.since {
		s.stats.Late++
		t = th.since
	}
	s.emit(th, t)
	th.since, th.state = t, to
}

func (s *States) emit(th *thread, t int64) {
	if t <= th.since {
		return
	}
	iv := Interval{Start: th.since, End: t, Waker: th.waker, CPU: th.cpu, State: th.state, Flags: th.flags}
	if iv.State == queued {
		iv.State = Running // alone on its CPU, it was never switched
	}
	s.Emit(th.tid, iv)
}

// lost makes the thread's time since its last certain event unknown, because something after it was not seen.
func (s *States) lost(th *thread, t int64) {
	s.stats.Repaired++
	if th.state == Running && s.onCPU[th.cpu] == th {
		delete(s.onCPU, th.cpu)
	}
	th.state, th.waker, th.flags = Unknown, 0, 0
	s.change(th, t, Unknown)
}

// end forgets a thread, with its last interval until t.
func (s *States) end(th *thread, t int64) {
	s.emit(th, t)
	if s.onCPU[th.cpu] == th {
		delete(s.onCPU, th.cpu)
	}
	delete(s.threads, th.tid)
	s.ended[th.tid] = max(t, th.since)
}

// renumber gives a thread that executed a program the number of its process, which the kernel does.
// executes takes a thread that executes a program for running, which it must be. A launched program has no event before
// this one: its time begins here.
func (s *States) executes(h kevent.Header, tgid uint32, t int64) {
	th := s.threads[h.Tid]
	if th == nil {
		th = &thread{tid: h.Tid, tgid: tgid, since: max(t, s.ended[h.Tid])}
		s.threads[h.Tid] = th
	}
	if th.state == Unknown {
		s.change(th, t, Running)
		th.cpu = h.CPU
		s.onCPU[h.CPU] = th
	}
}

func (s *States) renumber(from, to uint32, t int64) {
	th := s.threads[from]
	if th == nil {
		return
	}
	if leader := s.threads[to]; leader != nil {
		s.end(leader, t)
	}
	s.emit(th, t)
	delete(s.threads, from)
	s.ended[from] = max(t, th.since)
	th.tid, th.since = to, max(t, th.since, s.ended[to])
	s.threads[to] = th
}
