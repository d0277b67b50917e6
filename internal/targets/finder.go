package targets

import (
	"maps"
	"slices"
	"time"
)

// How often processes are read: those that came lately, which may still rename themselves, and all others.
const (
	youngAge   = 2 * time.Second
	youngAgain = 20 * time.Millisecond
	oldAgain   = time.Second
)

// Finder finds the processes that a Choice means, as they come. One goroutine.
type Finder struct {
	choice    Choice
	seen      map[int]*sight
	undecided map[int]bool
	yes       map[int]bool
}

// sight is a process that was read and was not meant.
type sight struct{ first, next time.Time }

// NewFinder makes a Finder that has found nothing.
func NewFinder(c Choice) *Finder {
	return &Finder{choice: c, seen: map[int]*sight{}, undecided: map[int]bool{}, yes: map[int]bool{}}
}

// Scan lists all processes, reads those that are due, and returns those that are found to be meant.
func (f *Finder) Scan(now time.Time) (found []Process, err error) {
	pids, err := All()
	if err != nil {
		return nil, err
	}
	there := map[int]bool{}
	for _, pid := range pids {
		there[pid] = true
		s := f.seen[pid]
		if s == nil {
			s = &sight{first: now}
			f.seen[pid] = s
		}
		if f.yes[pid] || now.Before(s.next) {
			continue
		}
		s.next = now.Add(oldAgain)
		if now.Sub(s.first) < youngAge {
			s.next = now.Add(youngAgain)
		}
		if p, v := f.Look(pid); v == Yes {
			found = append(found, p)
		}
	}
	maps.DeleteFunc(f.seen, func(pid int, _ *sight) bool { return !there[pid] })
	return found, nil
}

// Look reads one process. Yes is returned once for each process until Forget; an undecided one stays one of Undecided.
func (f *Finder) Look(pid int) (Process, Verdict) {
	p, ok := Read(pid)
	if !ok {
		delete(f.undecided, pid)
		return p, No
	}
	v := f.choice.Match(&p)
	if v == Undecided {
		f.undecided[pid] = true
		return p, v
	}
	delete(f.undecided, pid)
	if v == Yes {
		if f.yes[pid] {
			return p, No
		}
		f.yes[pid] = true
	}
	return p, v
}

// Undecided lists the processes whose names are still to come.
func (f *Finder) Undecided() []int { return slices.Sorted(maps.Keys(f.undecided)) }

// Found reports whether a process was found and not forgotten.
func (f *Finder) Found(pid int) bool { return f.yes[pid] }

// Forget is for a process that has ended: its id may come again.
func (f *Finder) Forget(pid int) {
	delete(f.yes, pid)
	delete(f.undecided, pid)
	delete(f.seen, pid)
}
