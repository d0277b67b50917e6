package recorder

import (
	"errors"
	"time"

	"braid/control"
	"braid/internal/capture"
)

// sought is a process whose area is looked for: a program makes it when its first traced module is loaded, which may be
// when it starts or much later.
type sought struct {
	since, next, whole time.Time
	forked             bool // from a traced process, whose area it still maps for a moment
}

// How often a process is asked for its area, by how long it has been looked for, and how often all of its mappings are
// read, which finds an area whose descriptor the program has closed.
const (
	seekLately = 10 * time.Second
	seekLater  = 50 * time.Millisecond
	seekWhole  = 250 * time.Millisecond
	seekRarely = 2 * time.Second
)

// seek begins to look for the area of a process. A process that has executed another program is looked at anew.
func (r *rings) seek(pid int) {
	if s := r.seeking[pid]; s == nil {
		r.seeking[pid] = &sought{since: time.Now()}
	} else {
		s.since = time.Now()
	}
}

// seekChild begins to look for the area of a process that one which is recorded has forked.
func (r *rings) seekChild(pid int) {
	r.child[pid] = true
	r.seeking[pid] = &sought{since: time.Now(), forked: true}
}

func (r *rings) unseek(pid int) {
	delete(r.seeking, pid)
	delete(r.child, pid)
}

// hurried reports whether an area may come at any moment.
func (r *rings) hurried(now time.Time) bool {
	for _, s := range r.seeking {
		if now.Sub(s.since) < seekLately {
			return true
		}
	}
	return false
}

// find looks for the areas that are due, and arms them.
func (r *rings) find(now time.Time) {
	for pid, s := range r.seeking {
		if now.Before(s.next) {
			continue
		}
		s.next = now
		whole := seekWhole
		if now.Sub(s.since) > seekLately {
			s.next, whole = now.Add(seekLater), seekRarely
		}
		if capture.Gone(pid) {
			delete(r.seeking, pid)
			delete(r.refused, pid)
			continue
		}
		if now.Before(s.whole) && !control.Keeps(pid) {
			continue
		}
		s.whole = now.Add(whole)
		if r.adopt(pid) {
			delete(r.seeking, pid)
		}
	}
}

// adopt takes over the area of a process, if it is there and nobody else has it.
func (r *rings) adopt(pid int) bool {
	areas, err := control.Attach(pid)
	if old := r.latest[pid]; err == nil && old != nil && !old.Left() {
		err = control.ErrBusy // the program that it executes has not begun
	}
	if err != nil {
		for _, a := range areas {
			a.Close()
		}
		if !errors.Is(err, control.ErrNoStubs) {
			r.refused[pid] = err
		}
		return false
	}
	delete(r.refused, pid)
	for _, a := range areas {
		r.areas = append(r.areas, a)
		r.meet(a)
		r.names.Files.Remember(r.byArea[a], a)
		if r.latest[a.Parent()] != nil {
			continue // its parent records, so it is armed, and goes on
		}
		r.arm(a)
	}
	return true
}

// arm turns an area on that no recorder has now.
func (r *rings) arm(a *control.Area) {
	for _, t := range a.Threads() {
		if !t.On() {
			t.Release() // what an earlier recorder left behind
		}
	}
	a.Arm(r.choose.policy(), r.bytes)
}
