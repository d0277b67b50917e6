package capture

import (
	"braid/control"
	"braid/inline"
	"braid/internal/tracefile"
)

// Process is what is remembered of a process, and of each program that it executed, when its area is gone.
type Process struct {
	Pid, Parent int
	Since       uint64 // counter when it began with this program; 0: it is its first
	Modules     []control.Module
	used        map[uint32]struct{} // low words of method pointers seen in its rings
	wide        map[uint64]struct{} // whole method pointers
	Info        tracefile.Process
}

// NewProcess describes a process from what /proc says of it, and from who forked it under trace; parent 0: nobody did.
func NewProcess(pid, parent int) *Process {
	p := &Process{Pid: pid, Parent: parent, used: map[uint32]struct{}{}, wide: map[uint64]struct{}{}}
	p.Info = Describe(pid)
	// The names of a fork's methods are its parent's. Where that has ended, /proc tells who took the child in.
	if parent != 0 {
		p.Info.PPid = parent
	}
	return p
}

// Again returns a copy that knows the same modules and no methods, for another trace file.
func (p *Process) Again() *Process {
	q := *p
	q.used, q.wide = map[uint32]struct{}{}, map[uint64]struct{}{}
	q.Modules = append([]control.Module(nil), p.Modules...)
	return &q
}

// Ring is a segment as the trace file takes it: the thread's sequence-th, counted from 0. It shares the slots.
func (p *Process) Ring(t *control.Thread, s *control.Segment, sequence uint32) *tracefile.Ring {
	g := &tracefile.Ring{Pid: uint32(p.Pid), Tid: uint32(t.Tid), Sequence: sequence, Begin: s.Begin, End: s.End,
		DroppedNewest: uint64(s.DroppedNewest), DroppedOldest: uint64(s.Dropped), Anchors: s.Anchors, Slots: s.Slots}
	copy(g.Name[:], t.Name())
	for f, on := range map[tracefile.RingFlags]bool{tracefile.RingComplete: s.Complete, tracefile.RingExited: s.Gone,
		tracefile.RingExactEnd: s.Exact, tracefile.RingProcessGone: s.Gone && Gone(p.Pid)} {
		if on {
			g.Flags |= f
		}
	}
	return g
}

// Scan notes the method pointers in a ring, so that the trace file carries the names that it needs and no more.
func (p *Process) Scan(slots []uint64) {
	var last [256]uint32 // most calls go to few methods
	for i, v := range slots {
		switch w := uint32(v); {
		case w == inline.WordExit:
		case w == inline.WordEntryWide || w == inline.WordResumed:
			if i > 0 {
				p.wide[slots[i-1]] = struct{}{}
			}
		case w <= inline.WordReservedMax: // a framed record's method is the low half of the slot before
		default:
			if c := &last[(w>>2^w>>10)&255]; *c != w {
				*c = w
				p.used[w] = struct{}{}
			}
		}
	}
}
