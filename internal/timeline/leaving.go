package timeline

import "braid/internal/kevent"

// leaving finds the threads that a process had before it executed the program that is recorded: those of braid's launcher.
// Executing a program ends them, but their last switches may come after it, and would stand in reports as threads that did
// nothing.
type leaving struct {
	execs map[uint32]bool // processes that executed a program
	old   map[uint32]bool // threads of theirs of which no beginning was seen
	gone  map[uint32]bool // those of them that died, without an end that was seen either
}

func (l *leaving) event(h kevent.Header, body []byte, known map[uint32]*Activity) {
	switch h.Kind {
	case kevent.KindExec:
		set(&l.execs, kevent.DecodeExec(body).Tgid)
	case kevent.KindFork:
		delete(l.old, h.Tid)
		delete(l.gone, h.Tid)
	case kevent.KindWaking:
		l.meet(h.Tid, kevent.DecodeWaking(body).Tgid, known)
	case kevent.KindSwitch:
		e := kevent.DecodeSwitch(body)
		if h.Flags&kevent.FlagNextTarget != 0 {
			l.meet(e.NextTid, e.NextTgid, known)
		}
		if h.Flags&kevent.FlagPrevTarget == 0 {
			return
		}
		l.meet(h.Tid, e.PrevTgid, known)
		if a := known[h.Tid]; l.old[h.Tid] && e.PrevState&kevent.StateDead != 0 && (a == nil || a.End == 0) {
			set(&l.gone, h.Tid)
		}
	}
}

// meet notes a thread that is seen for the first time.
func (l *leaving) meet(tid, tgid uint32, known map[uint32]*Activity) {
	if l.execs[tgid] && tid != tgid && known[tid] == nil {
		set(&l.old, tid)
	}
}

func set(m *map[uint32]bool, n uint32) {
	if *m == nil {
		*m = make(map[uint32]bool)
	}
	(*m)[n] = true
}
