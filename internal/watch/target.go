package watch

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"braid/control"
	"braid/inline/runtime"
	"braid/internal/capture"
	"braid/internal/live"
	"braid/internal/trigger"
)

// target is one watched process: its area and the threads that have rings. Everything here runs on the daemon's one
// goroutine, but for what a flush has copied.
type target struct {
	pid     int
	uid     int
	name    string
	area    *control.Area
	proc    *capture.Process
	opts    TargetOptions
	rings   []*ring           // threads that have one, in the order in which they got it
	leaving []*control.Thread // asked to stop, and their rings' memory not given back yet
	ran     map[int]string    // by tid, of threads without a ring: schedstat when looked at last
	gone    bool
	trigger uint32 // the sequence of the program's own triggers that was seen last

	match  trigger.Target // as the configuration knows it
	needs  trigger.Needs
	ended  []*ring  // of threads that have ended, for what may still be asked of them
	halted bool     // turned off by a request
	off    []string // threads that were: ids and patterns of names

	live      *live.Process // nil: no rule is about its methods
	following []live.Thread
	modules   int // how many live and the probes know
	probes    []uint32
	probedAt  map[uint64]bool // addresses of methods that were looked at

	replaced bool      // it may have executed another program
	left     time.Time // when it was found gone
	writing  int       // traces under way
	records  uint64    // of rings that were given up

	flushes, starts, stops uint64
	byTrigger, lost        map[string]uint64
	lastTrigger, note      string
	lastFlush              time.Time
	looked                 time.Time // when threads were chosen last
}

// TargetOptions say how a program's threads are recorded.
type TargetOptions struct {
	Main    bool     // the main thread
	All     bool     // any thread, as long as there are rings
	Threads []string // patterns of names (path.Match), or ids
	Rings   int      // at most this many threads at a time
	Bytes   uint64   // of each ring; a power of two
}

// ring is a thread that records.
type ring struct {
	t        *control.Thread
	name     string
	rank     int       // lower is more important
	cursor   uint64    // where it was when it was looked at last
	moved    time.Time // when it was seen to have recorded last
	swaps    uint64
	segments uint32
	over     time.Time // when its thread was found to have ended
	old      time.Time // when its thread, which rested at a flush, was seen in its second ring
}

// dropOld gives a ring back that its thread left some time after a flush, when it woke. The flush had all of it but the
// last records, which are kept for a while.
func (r *ring) dropOld(now time.Time) {
	switch {
	case !r.t.Swapped():
	case r.old.IsZero():
		r.old = now
	case now.Sub(r.old) > endedKept:
		r.t.ReleaseOld()
		r.old = time.Time{}
		r.swaps++
	}
}

// reclaimAfter is for how long a thread may record nothing before a busier one gets its ring's memory.
const reclaimAfter = 2 * time.Second

// choosePeriod is how often threads are chosen anew.
const choosePeriod = time.Second

func newTarget(a *control.Area, o TargetOptions) *target {
	t := &target{pid: a.Pid(), area: a, opts: o, proc: capture.NewProcess(a.Pid(), a.Parent()), lost: map[string]uint64{}, byTrigger: map[string]uint64{}, ran: map[int]string{}, probedAt: map[uint64]bool{}}
	t.name = t.proc.Info.Name
	t.trigger, _, _, _, _ = a.Trigger()
	policy := runtime.PolicyNone
	if o.Main || o.All {
		policy = runtime.PolicyMain // starts by itself at its first trace point; others when they are chosen
	}
	for _, th := range a.Threads() {
		switch {
		case th.On(): // a recorder before us was killed: what is in the ring is still good
			t.rings = append(t.rings, t.ringOf(th))
		case th.Recorded():
			th.Release() // what an earlier recorder left behind
		}
	}
	a.Arm(policy, o.Bytes)
	return t
}

func (t *target) ringOf(th *control.Thread) *ring {
	name := th.Name()
	return &ring{t: th, name: name, rank: t.rank(th, name), moved: time.Now()}
}

// Ranks of threads. Those that the program asked for itself, and named ones, come before the main thread.
const (
	rankAsked = iota
	rankNamed
	rankMain
	rankAny
	rankNone
)

func (t *target) rank(th *control.Thread, name string) int {
	switch th.Asked() {
	case 1:
		return rankAsked
	case 2:
		return rankNone
	}
	switch {
	case matches(t.off, th.Tid, name):
		return rankNone
	case matches(t.opts.Threads, th.Tid, name):
		return rankNamed
	case t.opts.Main && th.Tid == t.pid:
		return rankMain
	case t.opts.All:
		return rankAny
	}
	return rankNone
}

// look notes where threads are, finds ended ones, and every now and then chooses which threads have rings.
func (t *target) look(now time.Time) {
	t.gone = t.replaced && t.area.Left() || capture.Gone(t.pid)
	t.replaced = t.replaced && t.gone
	threads := t.find()
	there := map[*control.Thread]bool{}
	for _, th := range threads {
		there[th] = true
	}
	kept := t.rings[:0]
	for _, r := range t.rings {
		if t.gone || !there[r.t] || r.t.Gone() {
			r.over = now
			t.ended = append(t.ended, r)
			continue
		}
		r.t.Note()
		r.dropOld(now)
		if at, _ := r.t.Position(); at != r.cursor {
			r.cursor, r.moved = at, now
		}
		kept = append(kept, r)
	}
	clear(t.rings[len(kept):])
	t.rings = kept
	t.giveBack(there, now)
	if !t.gone && !t.halted && now.Sub(t.looked) >= choosePeriod {
		t.looked = now
		t.choose(threads, now)
	}
}

// holds reports whether a thread has a ring, or had one that is still of use.
func (t *target) holds(th *control.Thread) bool {
	same := func(r *ring) bool { return r.t == th }
	return slices.ContainsFunc(t.rings, same) || slices.ContainsFunc(t.ended, same) || slices.Contains(t.leaving, th)
}

// find returns all threads, and takes note of those that have started by themselves.
func (t *target) find() []*control.Thread {
	threads := t.area.Threads()
	for _, th := range threads {
		if th.On() && !t.holds(th) {
			t.starts++
			t.rings = append(t.rings, t.ringOf(th))
		}
	}
	return threads
}

// endedKept is for how long the ring of a thread that has ended is kept, in case a trigger fires for it.
const endedKept = 10 * time.Second

// giveBack frees the memory of rings that nobody needs any more: of threads that have turned themselves off, and of those
// that ended a while ago, or of which there are too many.
func (t *target) giveBack(there map[*control.Thread]bool, now time.Time) {
	for th := range there { // it ended before it had a ring
		if th.Exiting() && !th.On() && !t.holds(th) {
			th.Release()
		}
	}
	t.leaving = slices.DeleteFunc(t.leaving, func(th *control.Thread) bool {
		if there[th] && !th.Stopped() && !th.Gone() {
			return false
		}
		th.Release()
		return true
	})
	for len(t.ended) > 0 && !t.gone && (len(t.ended) > t.opts.Rings || now.Sub(t.ended[0].over) > endedKept) {
		r := t.ended[0]
		at, _ := r.t.Position()
		t.records += at / 8
		r.t.Release()
		t.ended = t.ended[1:]
	}
}

// choose gives rings to the threads that matter most: by rank, then who recorded last. Of the threads without one, those
// that have run since the last time want one.
func (t *target) choose(threads []*control.Thread, now time.Time) {
	for _, r := range t.rings {
		r.rank = t.rank(r.t, r.name)
	}
	for _, r := range slices.Clone(t.rings) {
		if r.rank == rankNone {
			t.drop(r)
		}
	}
	ran := map[int]string{}
	var waiting []*ring
	for _, th := range threads {
		if th.On() || slices.Contains(t.leaving, th) {
			continue
		}
		r := t.ringOf(th)
		if r.rank == rankNone {
			continue
		}
		if ran[th.Tid] = cpuTime(t.pid, th.Tid); ran[th.Tid] != "" && ran[th.Tid] != t.ran[th.Tid] {
			waiting = append(waiting, r)
		}
	}
	t.ran = ran
	t.give(waiting, now)
	for len(t.rings) > t.opts.Rings {
		t.drop(t.leastUsed())
	}
}

// grant gives rings to threads, as far as there are any.
func (t *target) grant(threads []*control.Thread, now time.Time) {
	var waiting []*ring
	for _, th := range threads {
		if !slices.Contains(t.leaving, th) {
			waiting = append(waiting, t.ringOf(th))
		}
	}
	t.give(waiting, now)
}

// give gives rings to those that wait, the most important first. One that has rested gives way to one of the same rank.
func (t *target) give(waiting []*ring, now time.Time) {
	slices.SortStableFunc(waiting, func(a, b *ring) int { return cmp.Compare(a.rank, b.rank) })
	for _, w := range waiting {
		if len(t.rings) >= t.opts.Rings {
			old := t.leastUsed()
			if old == nil || old.rank < w.rank || old.rank == w.rank && now.Sub(old.moved) < reclaimAfter {
				continue
			}
			t.drop(old)
		}
		w.t.Start()
		t.starts++
		t.rings = append(t.rings, w)
	}
}

// cpuTime is how long a thread has run, as schedstat writes it; empty if that can't be read.
func cpuTime(pid, tid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// leastUsed is the ring to be taken first: of the least important, the one that has rested longest.
func (t *target) leastUsed() (least *ring) {
	for _, r := range t.rings {
		if least == nil || r.rank > least.rank || r.rank == least.rank && r.moved.Before(least.moved) {
			least = r
		}
	}
	return least
}

// drop takes a ring away. The thread turns itself off at its next trace point; then the memory is given back.
func (t *target) drop(r *ring) {
	at, _ := r.t.Position()
	t.records += at / 8
	r.t.RequestStop()
	t.stops++
	t.leaving = append(t.leaving, r.t)
	t.rings = slices.DeleteFunc(t.rings, func(o *ring) bool { return o == r })
}

// turn turns the target's recording, or single threads by id or pattern of names, on or off. It returns how many threads
// were asked.
func (t *target) turn(thread string, on bool) (n int) {
	if t.gone {
		return 0
	}
	pick := []string{thread}
	switch {
	case thread == "":
		t.halted = !on
		if on {
			t.off = nil
		}
	case on:
		t.off = slices.DeleteFunc(t.off, func(p string) bool { return p == thread })
	case !slices.Contains(t.off, thread):
		t.off = append(t.off, thread)
	}
	if !on {
		for _, r := range slices.Clone(t.rings) {
			if thread == "" || matches(pick, r.t.Tid, r.name) {
				t.drop(r)
				n++
			}
		}
		return n
	}
	var all []*control.Thread
	for _, th := range t.area.Threads() {
		name := th.Name()
		if thread != "" && !matches(pick, th.Tid, name) || t.rank(th, name) == rankNone {
			continue
		}
		n++
		if !th.On() {
			all = append(all, th)
		}
	}
	t.grant(all, time.Now()) // those that are still turning themselves off get theirs at the next choice
	return n
}

// leave gives the process back as it was: threads off, rings empty, nothing armed.
func (t *target) leave() {
	t.area.Disarm()
	control.StopAll([]*control.Area{t.area}, 20*time.Millisecond)
	for _, th := range t.area.Threads() {
		th.Release()
	}
	t.area.Close()
}

// matches reports whether one of the patterns names a thread: its id, or its name (path.Match).
func matches(patterns []string, tid int, name string) bool {
	for _, p := range patterns {
		if p == strconv.Itoa(tid) {
			return true
		}
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}
