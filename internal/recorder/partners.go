package recorder

import (
	"slices"

	"braid/internal/capture"
	"braid/internal/kevent"
	"braid/internal/tracefile"
)

// partners are the processes that took part in binder transactions, as they were when that was first seen. Only the
// goroutine that reads kernel events changes them; others read them when it has ended.
type partners map[uint32]tracefile.Process

// meet notes both sides of a transaction.
func (p partners) meet(b kevent.BinderTransaction) {
	for _, pid := range []uint32{b.Tgid, b.ToTgid} {
		if _, known := p[pid]; !known && pid != 0 {
			d := capture.Describe(int(pid))
			d.Partner = true
			p[pid] = d
		}
	}
}

// foreign returns those that were not recorded themselves, in order of their ids.
func (p partners) foreign(targets []int) (out []tracefile.Process) {
	for _, d := range p {
		if d.Name != "" && !slices.Contains(targets, d.Pid) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b tracefile.Process) int { return a.Pid - b.Pid })
	return out
}
