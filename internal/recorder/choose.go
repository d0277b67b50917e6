package recorder

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"braid/bpf"
	"braid/internal/capture"
	"braid/internal/kevent"
	"braid/internal/targets"
	"braid/internal/tracefile"
)

// DefaultWait is how long a recording waits for a chosen process unless told otherwise.
const DefaultWait = 30 * time.Second

// quickPeriod is how often something is looked for that is about to come: the area of a process that has just begun, or a
// name that a process has not taken yet.
const quickPeriod = 2 * time.Millisecond

// ErrNobody says that no chosen process came in time.
var ErrNobody = errors.New("nothing to record")

// notice is what the kernel side announces of a process.
type notice struct {
	tgid   int
	parent int
	what   kevent.Announcement
}

// chooser finds the processes of Options.Choose, and knows which of them still run.
type chooser struct {
	finder  *targets.Finder
	running map[int]bool
	gone    map[int]bool // let go
	found   int
	began   time.Time
	scanned time.Time
}

// scanPeriod is how often /proc is listed where no kernel side announces processes; with one, it is to find what changes
// its user without executing or renaming, and what is announced while events are lost.
func (r *recording) scanPeriod() time.Duration {
	if r.kernel != nil {
		return time.Second
	}
	return pollPeriod
}

// watchOptions is what the kernel side announces: the processes that are chosen, and children of those recorded. A launched
// program needs neither.
func (o *Options) watchOptions() *bpf.WatchOptions {
	if o.Choose == nil {
		if o.Pid == 0 {
			return nil
		}
		return &bpf.WatchOptions{Adopt: true}
	}
	w := &bpf.WatchOptions{Adopt: true, Match: bpf.Match{Names: o.Choose.Comms()}}
	if o.Choose.HasUID && o.Choose.Package == "" {
		w.Match.Uids = []uint32{uint32(o.Choose.UID)}
	}
	return w
}

// choose begins a recording of processes that are chosen, which run or are still to come.
func (r *recording) choose() error {
	r.chooser = &chooser{finder: targets.NewFinder(*r.o.Choose), running: map[int]bool{}, gone: map[int]bool{}, began: time.Now()}
	if err := r.scan(time.Now()); err != nil {
		return err
	}
	if r.chooser.found == 0 && r.o.Waiting != nil {
		r.o.Waiting()
	}
	return nil
}

func (r *recording) scan(now time.Time) error {
	r.chooser.scanned = now
	found, err := r.chooser.finder.Scan(now)
	if err != nil {
		return fmt.Errorf("listing processes: %w", err)
	}
	for _, p := range found {
		if err := r.take(p.Pid); err != nil {
			return err
		}
	}
	return nil
}

// take begins to record a process that was found, or goes on with one that the kernel side has adopted.
func (r *recording) take(pid int) error {
	c := r.chooser
	if r.kernel != nil {
		err := r.kernel.rec.AddTarget(pid)
		if errors.Is(err, bpf.ErrNoProcess) {
			c.finder.Forget(pid)
			return nil
		}
		if err != nil {
			return err
		}
	}
	if err := r.sampleRunning(pid); err != nil {
		return err
	}
	c.found++
	c.running[pid] = true
	if r.meta.Pid == 0 {
		r.meta.Pid = pid
	}
	r.initial.Processes = append(r.initial.Processes, capture.Describe(pid))
	r.initial.Threads = append(r.initial.Threads, capture.ThreadsOf(pid)...)
	r.rings.seek(pid)
	return nil
}

// announced takes in what the kernel side tells.
func (r *recording) announced(n notice) error {
	c := r.chooser
	switch n.what {
	case kevent.AnnounceFork:
		return r.born(n)
	case kevent.AnnounceExit:
		r.rings.unseek(n.tgid)
		return nil
	case kevent.AnnounceExec:
		r.rings.seek(n.tgid) // its new program may have an area
	}
	if c == nil || c.finder.Found(n.tgid) {
		return nil
	}
	return r.judge(n.tgid)
}

// judge looks at a process that may have become a chosen one. One that the kernel side has adopted by the part of a name,
// and that turns out to be another, is let go.
func (r *recording) judge(pid int) error {
	p, verdict := r.chooser.finder.Look(pid)
	switch {
	case verdict == targets.Yes:
		return r.take(pid)
	case verdict == targets.No && r.kernel != nil && !r.chooser.finder.Found(pid) && !r.rings.child[pid]:
		return r.letGo(pid, p.Name)
	}
	return nil
}

// born is told of a process that one which is known has forked: it is recorded too, whatever it is called. A child of one
// that was adopted and let go again is let go as well.
func (r *recording) born(n notice) error {
	c := r.chooser
	if c == nil || c.running[n.parent] || r.rings.child[n.parent] {
		r.rings.seekChild(n.tgid)
		return nil
	}
	return r.judge(n.tgid)
}

// letGo forgets a process that the kernel side has adopted and that is not meant.
func (r *recording) letGo(pid int, name string) error {
	if !r.chooser.gone[pid] {
		r.chooser.gone[pid] = true
		if name != "" {
			r.note(fmt.Sprintf("process %d (%s) was recorded until its whole name showed that it is another one", pid, name))
		} else if !r.described(pid) {
			r.note(fmt.Sprintf("process %d was recorded for the end of its name, and ended before the whole name was read", pid))
		}
	}
	return r.kernel.rec.RemoveTarget(pid)
}

// described reports whether a process was taken: its name was read.
func (r *recording) described(pid int) bool {
	return slices.ContainsFunc(r.initial.Processes, func(p tracefile.Process) bool { return p.Pid == pid })
}

// search looks for what may have come. Done: all chosen processes that came have ended.
func (r *recording) search(now time.Time) (done bool, err error) {
	r.rings.find(now)
	if r.chooser == nil {
		return false, nil
	}
	return r.look(now)
}

// period is when to look again.
func (r *recording) period(now time.Time) time.Duration {
	if r.rings.hurried(now) || r.chooser != nil && len(r.chooser.finder.Undecided()) > 0 {
		return quickPeriod
	}
	return pollPeriod
}

// look does what comes again and again: names that are to come, ends, and the time that is over. Done: all that were
// recorded have ended.
func (r *recording) look(now time.Time) (done bool, err error) {
	c := r.chooser
	for _, pid := range c.finder.Undecided() {
		if err := r.judge(pid); err != nil {
			return false, err
		}
	}
	if now.Sub(c.scanned) >= r.scanPeriod() {
		if err := r.scan(now); err != nil {
			return false, err
		}
	}
	for pid := range c.running {
		if capture.Gone(pid) {
			delete(c.running, pid)
			c.finder.Forget(pid)
		}
	}
	if c.found == 0 && now.Sub(c.began) >= r.o.Wait {
		return false, r.nobody()
	}
	return c.found > 0 && len(c.running) == 0 && len(c.finder.Undecided()) == 0, nil
}

// nobody is the error for when no process came, with what may help.
func (r *recording) nobody() error {
	c := r.o.Choose
	msg := fmt.Sprintf("no %s in %s", c, r.o.Wait)
	if alike := c.Alike(targets.Running(), 5); len(alike) > 0 {
		msg += "; running ones that look alike: " + strings.Join(alike, ", ")
	} else if installed, known := targets.Installed(c.Package); c.Package != "" && known && !installed {
		msg += "; no package of that name is installed"
	}
	return fmt.Errorf("%w: %s", ErrNobody, msg)
}
