package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"braid/control"
	"braid/internal/capture"
	"braid/internal/tracefile"
)

// rings is the methods' side of a recording: the areas of all traced processes. One goroutine.
type rings struct {
	out     *capture.Output
	choose  Threads
	bytes   uint64
	session *control.Session
	areas   []*control.Area
	gone    map[*control.Area]time.Time // when their processes were found to have ended
	buf     []uint64

	names    capture.Names
	byArea   map[*control.Area]*capture.Process
	latest   map[int]*control.Area // by process id: where it is now
	segments map[int]uint32        // by tid: how many segments it has
	slots    uint64
	wrapped  int              // rings that held more than they could
	threads  map[int]struct{} // with records
	lost     map[string]uint64
	late     int // unanswered at the end

	seeking map[int]*sought // processes whose areas are looked for; see seek.go
	child   map[int]bool    // that recorded processes have forked, and that the kernel side has announced
	refused map[int]error   // why an area was not to be had
	told    bool            // the kernel side announces children
}

func newRings(out *capture.Output, o Options) *rings {
	return &rings{out: out, choose: o.Threads, bytes: o.RingBytes, gone: map[*control.Area]time.Time{}, byArea: map[*control.Area]*capture.Process{},
		latest: map[int]*control.Area{}, segments: map[int]uint32{},
		seeking: map[int]*sought{}, child: map[int]bool{}, refused: map[int]error{},
		threads: map[int]struct{}{}, lost: map[string]uint64{}, names: capture.Names{Files: capture.NewFiles()}}
}

// poll finds new processes and threads, notes where quiet ones are, and empties the rings of ended ones. The caller
// polls several times in 2^32 ticks of the counter.
func (r *rings) poll() error {
	if err := r.discover(); err != nil {
		return err
	}
	keep := r.areas[:0]
	for i, a := range r.areas {
		ended, err := r.look(a)
		if err != nil {
			r.areas = append(keep, r.areas[i:]...)
			return err
		}
		if ended && r.expired(a) {
			r.loseFrom(a)
			a.Discard()
			delete(r.gone, a)
			delete(r.byArea, a)
			continue
		}
		keep = append(keep, a)
	}
	clear(r.areas[len(keep):])
	r.areas = keep
	return nil
}

// linger is how long the area of a process that has ended is kept: a child that it has just forked reads it.
const linger = time.Second

func (r *rings) expired(a *control.Area) bool {
	since, ok := r.gone[a]
	if !ok {
		r.gone[a] = time.Now()
		return false
	}
	return time.Since(since) > linger
}

// look does one area's part of poll and reports whether its process has left it and all that it recorded written.
func (r *rings) look(a *control.Area) (ended bool, err error) {
	ended = r.left(a) || capture.Gone(a.Pid()) // before the threads are looked at: what it wrote is all there then
	r.names.Files.Remember(r.byArea[a], a)
	for _, t := range a.Threads() {
		if !t.On() {
			if !t.Recorded() && t.Exiting() {
				if t.Gone() {
					t.Release() // its block is for another thread
				}
				continue
			}
			if !t.Recorded() && !ended && r.choose.picks(a.Pid(), t.Tid, t.Name()) {
				t.Start()
			}
			continue
		}
		t.Note()
		if ended || t.Gone() {
			if err := r.collect(a, t); err != nil {
				return false, err
			}
			t.Release()
		}
	}
	return ended, nil
}

// left reports whether the process has executed another traced program, and has an area there.
func (r *rings) left(a *control.Area) bool {
	next := r.latest[a.Pid()]
	if next == nil || next == a || r.byArea[next].Since == 0 {
		return false
	}
	a.End(r.byArea[next].Since)
	return true
}

func (r *rings) loseFrom(a *control.Area) {
	for name, n := range a.Lost() {
		if n > 0 {
			r.lost[name] += n
		}
	}
}

func (r *rings) discover() error {
	if r.session == nil {
		if !r.told {
			r.follow()
		}
		return nil
	}
	as, err := r.session.Areas()
	r.areas = append(r.areas, as...)
	for _, a := range as {
		r.meet(a)
	}
	if err != nil {
		return fmt.Errorf("mapping a new process: %w", err)
	}
	return nil
}

// follow finds the children of attached processes. A forked child of a traced process has an arena of its own, already
// armed; without a session it is found by looking, so one that lives for less than a poll period is missed.
func (r *rings) follow() {
	for pid := range r.latest {
		kids, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
		if err != nil {
			continue
		}
		for _, k := range kids {
			b, err := os.ReadFile(k)
			if err != nil {
				continue
			}
			for _, f := range strings.Fields(string(b)) {
				kid, err := strconv.Atoi(f)
				if err != nil || r.latest[kid] != nil {
					continue
				}
				as, err := control.Attach(kid)
				if err != nil {
					continue // it carries no stubs, or has ended: tried again while it is there
				}
				for _, a := range as {
					r.areas = append(r.areas, a)
					r.meet(a)
				}
			}
		}
	}
}

// meet takes up a new area. A process that has left the one that it had has executed another program.
func (r *rings) meet(a *control.Area) {
	p := capture.NewProcess(a.Pid(), a.Parent())
	if old := r.latest[a.Pid()]; old != nil && (r.byArea[old] == nil || old.Left()) {
		p.Since = a.Started()
	}
	r.names.Procs = append(r.names.Procs, p)
	r.byArea[a], r.latest[a.Pid()] = p, a
}

// collect writes what a thread recorded.
func (r *rings) collect(a *control.Area, t *control.Thread) error {
	s, err := t.Collect(r.buf)
	if errors.Is(err, control.ErrArena) {
		r.lost["rings_damaged"]++
		return nil
	}
	if err != nil {
		return err
	}
	if cap(s.Slots) > cap(r.buf) {
		r.buf = s.Slots[:0]
	}
	p := r.byArea[a]
	p.Scan(s.Slots)
	r.slots += uint64(len(s.Slots))
	if len(s.Slots) > 0 {
		r.threads[t.Tid] = struct{}{}
	}
	g := p.Ring(t, &s, r.segments[t.Tid])
	if !s.Complete {
		r.wrapped++
	}
	r.segments[t.Tid]++
	return r.out.Do(func(w *tracefile.Writer) error { return w.WriteRing(g) })
}

// finish stops every thread and writes what they recorded.
func (r *rings) finish() error {
	if r.session != nil {
		r.session.Disarm()
	}
	if err := r.discover(); err != nil {
		return err
	}
	var first error
	var there []*control.Area
	for _, a := range r.areas {
		if !r.left(a) {
			there = append(there, a)
		}
	}
	r.late = control.StopAll(there, patience)
	for _, a := range r.areas {
		r.names.Files.Remember(r.byArea[a], a)
		for _, t := range a.Threads() {
			if t.Recorded() {
				if err := r.collect(a, t); err != nil && first == nil {
					first = err
				}
			}
			t.Release()
		}
		r.loseFrom(a)
	}
	return first
}

// close gives everything back. Threads that did not answer keep their request and turn themselves off when they wake.
func (r *rings) close() {
	for _, a := range r.areas {
		a.Disarm()
		for _, t := range a.Threads() {
			t.RequestStop()
		}
		a.Close()
	}
	r.areas = nil
	r.names.Files.Close()
	if r.session != nil {
		r.session.Disarm()
		r.session.Close()
	}
}

// attach takes over a running process.
func (r *rings) attach(pid int) error {
	as, err := control.Attach(pid)
	if err != nil {
		return err
	}
	r.areas = as
	for _, a := range as {
		r.meet(a)
		r.names.Files.Remember(r.byArea[a], a)
		r.arm(a)
	}
	return nil
}

func (r *rings) open(o Options) error {
	s, err := control.NewSession(o.Threads.policy(), o.RingBytes)
	if err != nil {
		return err
	}
	r.session = s
	return nil
}
