package watch

import "braid/internal/kevent"

// partners are the processes that a process talks to through binder, as far as its trace tells of them: what they were
// asked on its behalf, and what their threads did about it.
type partners struct {
	pid     uint32
	calls   map[int32]bool  // transactions and replies that concern the process, by id; true: a transaction
	servers map[uint32]bool // threads of others that received such a transaction, or were woken to
}

func newPartners(pid uint32) partners {
	return partners{pid: pid, calls: map[int32]bool{}, servers: map[uint32]bool{}}
}

func (p *partners) sent(h kevent.Header, b kevent.BinderTransaction) bool {
	if b.Tgid != p.pid && b.ToTgid != p.pid && !p.servers[h.Tid] {
		return false
	}
	p.calls[b.DebugID] = b.Reply == 0
	return true
}

func (p *partners) received(h kevent.Header, b kevent.BinderReceived) bool {
	call, ours := p.calls[b.DebugID]
	if call && b.Tgid != p.pid {
		p.servers[h.Tid] = true
	}
	return ours
}

func (p *partners) done(b kevent.BinderDone) bool {
	_, ours := p.calls[b.DebugID]
	return ours
}

func (p *partners) woken(h kevent.Header, w kevent.Waking) bool {
	if h.Flags&kevent.FlagServer != 0 && w.WakerTgid == p.pid {
		p.servers[h.Tid] = true
	}
	return p.servers[h.Tid]
}

func (p *partners) switched(h kevent.Header, s kevent.Switch) bool {
	return h.Flags&kevent.FlagPrevServer != 0 && p.servers[h.Tid] || h.Flags&kevent.FlagNextServer != 0 && p.servers[s.NextTid]
}
