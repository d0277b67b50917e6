package timeline

import "braid/internal/kevent"

// placing cuts the times that threads run or wait behind others where what is known of the processors changes. It gets
// each event after States has, and each interval when it ends.
type placing struct {
	machine *Machine
	states  *States
	emit    func(tid uint32, p Place)

	idle    uint64            // the processors that are idle, as told last
	khz     map[uint16]uint32 // by processor
	changed map[uint16]bool   // processors whose frequency is not that of the beginning
	allowed map[uint32]uint64 // by thread, of those that may not use all processors
	open    map[uint32]*placed
	ranOn   map[uint32]uint16 // where each thread ran last
}

// placed is a thread that runs, or waits behind others.
type placed struct {
	closed  []Place // of the same interval
	current Place   // its End is not known yet
}

// maxPlaces bounds what is kept of one interval. What is beyond is one place, with what was known at its start.
const maxPlaces = 1 << 16

func newPlacing(m *Machine, s *States, emit func(uint32, Place)) *placing {
	p := &placing{machine: m, states: s, emit: emit, khz: make(map[uint16]uint32), changed: make(map[uint16]bool), allowed: make(map[uint32]uint64),
		open: make(map[uint32]*placed), ranOn: make(map[uint32]uint16)}
	for _, c := range m.CPUs {
		if c.KHz != 0 && c.KHz < 1<<32 {
			p.khz[uint16(c.ID)] = uint32(c.KHz)
		}
	}
	return p
}

func (p *placing) event(h kevent.Header, body []byte) {
	t := int64(h.Time)
	switch h.Kind {
	case kevent.KindSwitch:
		e := kevent.DecodeSwitch(body)
		if h.Flags&kevent.FlagPrevTarget != 0 {
			p.waits(h.Tid, t, h.CPU, h.Flags&kevent.FlagPreempted != 0)
		}
		if th := p.states.threads[e.NextTid]; h.Flags&kevent.FlagNextTarget != 0 && th != nil && th.state == Running && th.since == t {
			p.begin(e.NextTid, Place{Start: t, CPU: h.CPU})
		}
	case kevent.KindWaking:
		p.waits(h.Tid, t, uint16(kevent.DecodeWaking(body).TargetCPU), h.Flags&kevent.FlagBehind != 0)
	case kevent.KindMigrate:
		to := uint16(kevent.DecodeMigrate(body).ToCPU)
		if o := p.open[h.Tid]; o != nil && o.current.Flags&Waits != 0 {
			p.cut(o, t)
			o.current.CPU = to
		}
		th := p.states.threads[h.Tid]
		switch {
		case th == nil || th.state != Runnable:
		case h.Flags&kevent.FlagBehind == 0:
			p.cutOff(h.Tid, t)
		case p.open[h.Tid] == nil:
			p.begin(h.Tid, Place{Start: t, CPU: to, Flags: Waits})
		default:
			p.look(h.Tid, t)
		}
	case kevent.KindIdle:
		p.idle = kevent.DecodeIdle(body).Idle
		for tid := range p.open {
			p.look(tid, t)
		}
	case kevent.KindAffinity:
		p.allowed[h.Tid] = kevent.DecodeAffinity(body).Allowed
		p.look(h.Tid, t)
	case kevent.KindFreq:
		e := kevent.DecodeFreq(body)
		cpu := uint16(e.CPU)
		p.changed[cpu] = p.changed[cpu] || p.khz[cpu] != e.KHz
		p.khz[cpu] = e.KHz
		if th := p.states.onCPU[uint16(e.CPU)]; th != nil {
			p.look(th.tid, t)
		}
	case kevent.KindExec:
		if th := p.states.threads[h.Tid]; th != nil && th.state == Running && th.since == t {
			p.begin(h.Tid, Place{Start: t, CPU: h.CPU})
		}
	case kevent.KindFork:
		delete(p.ranOn, h.Tid)
	}
}

// waits begins a wait behind others, if the thread has become runnable just now.
func (p *placing) waits(tid uint32, t int64, cpu uint16, behind bool) {
	if th := p.states.threads[tid]; behind && th != nil && th.state == Runnable && th.since == t {
		p.begin(tid, Place{Start: t, CPU: cpu, Flags: Waits})
	}
}

func (p *placing) begin(tid uint32, at Place) {
	o := &placed{current: at}
	p.open[tid] = o
	if at.Flags&Waits == 0 {
		last, ok := p.ranOn[tid]
		if ok && last != at.CPU {
			o.current.Flags |= Moved
			if p.machine.Rank(last) != p.machine.Rank(at.CPU) {
				o.current.Flags |= MovedCluster
			}
		}
		p.ranOn[tid] = at.CPU
	}
	p.look(tid, at.Start)
}

// look begins a new place if what is known of the thread's processor has changed.
func (p *placing) look(tid uint32, t int64) {
	o := p.open[tid]
	if o == nil {
		return
	}
	now := o.current
	now.Rank = uint8(p.machine.Rank(now.CPU))
	now.Flags &^= BetterIdle | BetterAllowed
	better := p.idle & p.machine.stronger[now.Rank]
	if now.Flags&Waits != 0 {
		better = p.idle
		if now.CPU < 64 && p.idle>>now.CPU&1 != 0 {
			better = 0 // its own processor is waking up
		}
	} else {
		now.KHz = p.khz[now.CPU]
	}
	if better != 0 {
		now.Flags |= BetterIdle
		if allowed, some := p.allowed[tid]; !some || better&allowed != 0 {
			now.Flags |= BetterAllowed
		}
	}
	if now == o.current || !p.cut(o, t) {
		return
	}
	if len(o.closed) > 0 {
		now.Flags &^= Moved | MovedCluster
	}
	now.Start = o.current.Start
	o.current = now
}

// cut ends the current place at t, and begins the next. It returns false if there are too many already.
func (p *placing) cut(o *placed, t int64) bool {
	if t <= o.current.Start {
		return true
	}
	if len(o.closed) >= maxPlaces {
		return false
	}
	o.current.End = t
	o.closed = append(o.closed, o.current)
	o.current.Start = t
	o.current.Flags &^= Moved | MovedCluster
	return true
}

// cutOff ends a wait behind others, though the thread goes on waiting.
func (p *placing) cutOff(tid uint32, t int64) {
	if o := p.open[tid]; o != nil && o.current.Flags&Waits != 0 {
		p.give(tid, o, t)
		delete(p.open, tid)
	}
}

// interval gets each interval of a thread when it ends. Places of an interval that turns out to be something else, since
// events are missing, are dropped.
func (p *placing) interval(tid uint32, iv Interval) {
	o := p.open[tid]
	if o == nil {
		if iv.State == Running { // since before the recording
			p.ranOn[tid] = iv.CPU
			at := Place{Start: iv.Start, CPU: iv.CPU, Rank: uint8(p.machine.Rank(iv.CPU))}
			if !p.changed[iv.CPU] {
				at.KHz = p.khz[iv.CPU]
			}
			p.give(tid, &placed{current: at}, iv.End)
		}
		return
	}
	delete(p.open, tid)
	if waits := o.current.Flags&Waits != 0; waits && iv.State == Runnable || !waits && iv.State == Running {
		p.give(tid, o, iv.End)
	}
}

// give emits a thread's places that say something, up to a time.
func (p *placing) give(tid uint32, o *placed, to int64) {
	o.current.End = to
	for _, at := range append(o.closed, o.current) {
		says := at.Flags&BetterIdle != 0
		if at.Flags&Waits == 0 {
			says = says || at.KHz != 0 || p.machine.Clustered()
		}
		if says && at.End > at.Start {
			p.emit(tid, at)
		}
	}
}
