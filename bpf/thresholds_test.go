package bpf

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"braid/internal/kevent"

	"github.com/cilium/ebpf"
)

// measured is what took time: what the kernel measures, found again in the events that it recorded at the same time.
type measured struct {
	limit kevent.Limit
	tid   uint32
	end   uint64
	ns    uint64
}

// model is the expectation: everything that is measured of one process, from its events alone.
type model struct {
	hist                   map[string][]uint64
	all                    []measured
	voluntary, involuntary uint64
	majorFaults            uint64
}

func (m *model) add(name string, limit kevent.Limit, tid uint32, start, end uint64) {
	m.hist[name] = append(m.hist[name], end-start)
	m.all = append(m.all, measured{limit, tid, end, end - start})
}

// newModel follows the threads of a process through its events, as docs/kernel.md has the states.
func newModel(events []event, pid int) *model {
	m := &model{hist: map[string][]uint64{}}
	type state struct {
		name  string // running is none
		since uint64
		early uint64 // see waits.h
		ended bool
	}
	threads := map[uint32]*state{}
	thread := func(tid uint32) *state {
		if threads[tid] == nil {
			threads[tid] = &state{}
		}
		return threads[tid]
	}
	slept := func(s *state, tid uint32, at uint64) {
		limit := kevent.LimitSleeping
		if s.name == "blocked" {
			limit = kevent.LimitBlocked
		}
		m.add(s.name, limit, tid, s.since, at)
		s.name, s.since = "runnable", at
	}
	tgid := uint32(pid)
	for _, e := range slices.SortedStableFunc(slices.Values(events), func(a, b event) int { return cmp.Compare(a.Time, b.Time) }) {
		switch e.Kind {
		case kevent.KindSwitch:
			sw := kevent.DecodeSwitch(e.body)
			if sw.PrevTgid == tgid {
				if e.Flags&kevent.FlagPreempted != 0 {
					m.involuntary++
				} else {
					m.voluntary++
				}
				if s := thread(e.Tid); !s.ended {
					s.since, s.name = e.Time, offCPU(e, sw)
				}
			}
			if sw.NextTgid != tgid {
				continue
			}
			s := thread(sw.NextTid)
			if s.name == "sleeping" || s.name == "blocked" {
				end := e.Time
				if s.early != 0 && s.early+1e6 >= s.since {
					end = s.since
				}
				slept(s, sw.NextTid, end)
				if end == e.Time {
					s.name = ""
				}
			}
			if s.name == "preempted" {
				m.hist["preempted"] = append(m.hist["preempted"], e.Time-s.since)
			}
			if s.name != "" {
				m.add("run queue", kevent.LimitRunQueue, sw.NextTid, s.since, e.Time)
			}
			s.name, s.early = "", 0
		case kevent.KindWaking:
			if kevent.DecodeWaking(e.body).Tgid != tgid {
				continue
			}
			fresh := threads[e.Tid] == nil
			switch s := thread(e.Tid); {
			case s.ended || s.name == "preempted":
			case s.name == "sleeping" || s.name == "blocked":
				slept(s, e.Tid, e.Time)
			case fresh || s.name == "runnable":
				s.name, s.since = "runnable", e.Time
			default:
				s.early = e.Time
			}
		case kevent.KindExit:
			if s := threads[e.Tid]; s != nil {
				s.name, s.ended = "", true
			}
		case kevent.KindRqComplete:
			if rq := kevent.DecodeRq(e.body); rq.OwnerPid == tgid {
				name := rq.Op.String()
				if rq.Op > kevent.OpFlush {
					name = "other"
				}
				m.add(name, kevent.LimitBlockIO, rq.OwnerTid, rq.IssueNs, e.Time)
			}
		case kevent.KindFsync:
			m.add("fsync", kevent.LimitFsync, e.Tid, kevent.DecodeFsync(e.body).StartNs, e.Time)
		case kevent.KindMajorFault:
			m.majorFaults++
		}
	}
	return m
}

func offCPU(e event, sw kevent.Switch) string {
	switch {
	case e.Flags&kevent.FlagPreempted != 0:
		return "preempted"
	case sw.PrevState&kevent.StateBlocked != 0 && sw.PrevState&kevent.StateNoLoad == 0:
		return "blocked"
	}
	return "sleeping"
}

// checkHistograms compares what the kernel counted with the model, to the nanosecond.
func checkHistograms(t *testing.T, got HistogramSet, want *model) {
	t.Helper()
	for name, h := range map[string]Histogram{
		"run queue": got.RunQueue, "sleeping": got.Sleeping, "blocked": got.Blocked, "preempted": got.Preempted,
		"read": got.Read, "write": got.Write, "flush": got.Flush, "other": got.OtherIO, "fsync": got.Fsync, "reclaim": got.Reclaim,
	} {
		var w Histogram
		for _, ns := range want.hist[name] {
			i := 0
			for time.Duration(ns) >= BucketBound(i) {
				i++
			}
			w.Buckets[i]++
			w.Sum += ns
			w.Count++
		}
		if !h.near(w) {
			t.Errorf("%s: counted\n%+v, the events have\n%+v", name, h, w)
		}
		t.Logf("%s: %d, together %v", name, h.Count, time.Duration(h.Sum))
	}
	if got.Voluntary != want.voluntary || got.Involuntary != want.involuntary || got.MajorFaults != want.majorFaults {
		t.Errorf("counted %d voluntary and %d involuntary switches and %d major faults, the events have %d, %d and %d",
			got.Voluntary, got.Involuntary, got.MajorFaults, want.voluntary, want.involuntary, want.majorFaults)
	}
}

// twice is how far a time may be off, ns: where two processors wake a thread at once, their events can come in another order
// than their changes of what is known of the thread.
const twice = 1000

// near reports whether histograms are the same but for one thread that was woken twice.
func (h Histogram) near(w Histogram) bool {
	moved := uint64(0)
	for i, n := range h.Buckets {
		moved += max(n, w.Buckets[i]) - min(n, w.Buckets[i])
	}
	return h.Count == w.Count && max(h.Sum, w.Sum)-min(h.Sum, w.Sum) <= twice && moved <= 2
}

// certain leaves out what is so near to its limit that it may be on the other side of it.
func certain(all []measured, limits map[kevent.Limit]uint64) []measured {
	return slices.DeleteFunc(slices.Clone(all), func(m measured) bool { return m.ns <= limits[m.limit]+twice })
}

// fired returns the limits that fired, as the model has what took time.
func fired(t *testing.T, events []event, pid int, limits map[kevent.Limit]uint64) (all []measured) {
	t.Helper()
	for _, e := range events {
		if e.Kind != kevent.KindFired {
			continue
		}
		f := kevent.DecodeFired(e.body)
		if f.Tgid != uint32(pid) || f.Limit != limits[f.What] || f.Value <= f.Limit {
			t.Errorf("fired: %v", e)
		}
		all = append(all, measured{f.What, e.Tid, e.Time, f.Value})
	}
	return all
}

func sorted(all []measured) []measured {
	return slices.SortedFunc(slices.Values(all), func(a, b measured) int {
		return cmp.Or(cmp.Compare(a.limit, b.limit), cmp.Compare(a.end, b.end), cmp.Compare(a.tid, b.tid))
	})
}

// TestLimitsAndHistograms records processes and has limits for them at the same time. A limit must have fired for
// exactly those waits, calls and requests whose events say that they took longer, and the histograms must be those of
// the events.
func TestLimitsAndHistograms(t *testing.T) {
	file := preparedFile(t, 101<<16)
	limits := Thresholds{
		RunQueue: 30 * time.Microsecond, Sleeping: 1200 * time.Microsecond, Blocked: 200 * time.Microsecond,
		BlockIO: 150 * time.Microsecond, Fsync: time.Microsecond, Cooldown: 1,
	}
	ns := map[kevent.Limit]uint64{
		kevent.LimitRunQueue: uint64(limits.RunQueue), kevent.LimitSleeping: uint64(limits.Sleeping),
		kevent.LimitBlocked: uint64(limits.Blocked), kevent.LimitBlockIO: uint64(limits.BlockIO),
		kevent.LimitFsync: uint64(limits.Fsync),
	}
	for _, c := range []struct {
		btf   string
		story []string
		must  []kevent.Limit // what fires in any case
	}{
		{"", []string{"sleep", "199"}, nil},
		{"/sys/kernel/btf/vmlinux", []string{"sleep", "199"}, nil},
		{"", []string{"futex", "499"}, nil},
		{"", []string{"write", file, "16"}, []kevent.Limit{kevent.LimitFsync}},
		{"/sys/kernel/btf/vmlinux", []string{"write", file, "16"}, []kevent.Limit{kevent.LimitFsync}},
		{"", []string{"read", file, "199", "8192"}, nil},
		{"", []string{"fault", file, "101"}, nil},
	} {
		t.Run(c.story[0], func(t *testing.T) {
			r := load(t, Options{BTFPath: c.btf, Watch: &WatchOptions{}})
			tg := startTarget(t, c.story...)
			if err := r.AddTarget(tg.pid()); err != nil {
				t.Fatal(err)
			}
			if err := r.SetThresholds(tg.pid(), limits); err != nil {
				t.Fatal(err)
			}
			keepBusy(t)
			tg.run()
			tg.results()
			tg.finish()
			events := stopAndRead(t, r)
			sets, err := r.Histograms()
			if err != nil {
				t.Fatal(err)
			}
			want := newModel(events, tg.pid())
			checkHistograms(t, sets[tg.pid()], want)

			var over []measured
			for _, m := range want.all {
				if m.ns > ns[m.limit] {
					over = append(over, m)
				}
			}
			got := fired(t, events, tg.pid(), ns)
			if !slices.EqualFunc(sorted(certain(got, ns)), sorted(certain(over, ns)), func(a, b measured) bool {
				off := max(a.ns, b.ns) - min(a.ns, b.ns)
				a.ns = b.ns
				return a == b && off <= twice
			}) {
				t.Errorf("fired\n%v, above their limits were\n%v", sorted(got), sorted(over))
			}
			for _, l := range c.must {
				if !slices.ContainsFunc(got, func(m measured) bool { return m.limit == l }) {
					t.Errorf("%v did not fire", l)
				}
			}
			t.Logf("%d of %d fired", len(got), len(want.all))
		})
	}
}

// TestQuiet watches a process without recording it: limits fire and wake the reader, histograms count, and there is no
// other event but its end. What is far below its limit fires nothing, and the cooldown suppresses and counts the rest.
func TestQuiet(t *testing.T) {
	const naps = 101
	r := load(t, Options{Watch: &WatchOptions{}})
	tg := startTarget(t, "sleep", strconv.Itoa(naps))
	calm := startTarget(t, "write", preparedFile(t, 1), "1")
	for _, pid := range []int{tg.pid(), calm.pid()} {
		if err := r.AddWatched(pid); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.SetThresholds(tg.pid(), Thresholds{OffCPU: 500 * time.Microsecond, Cooldown: time.Hour}); err != nil {
		t.Fatal(err)
	}
	hour := Thresholds{
		RunQueue: time.Hour, OffCPU: time.Hour, BlockIO: time.Hour, Fsync: time.Hour, Reclaim: time.Hour,
		MajorFaultsPerSecond: 1 << 30,
	}
	if err := r.SetThresholds(calm.pid(), hour); err != nil {
		t.Fatal(err)
	}
	tg.run()
	start := time.Now()
	first, err := r.Read(make([]byte, 0, 1<<16), start.Add(100*time.Second))
	if err != nil || len(first) == 0 || time.Since(start) > 90*time.Second {
		t.Errorf("read %d bytes after %v, error %v: a limit that fires must wake the reader", len(first), time.Since(start), err)
	}
	calm.run()
	calm.results()
	calm.finish()
	tg.results()
	tg.finish()
	events := append(decode(t, first), stopAndRead(t, r)...)
	sets, err := r.Histograms()
	if err != nil {
		t.Fatal(err)
	}

	if n := len(fired(t, events, tg.pid(), map[kevent.Limit]uint64{kevent.LimitSleeping: 500_000})); n != 1 {
		t.Errorf("fired %d times, want once in a cooldown of an hour", n)
	}
	ends := told(t, slices.DeleteFunc(events, func(e event) bool { return e.Kind == kevent.KindFired }))
	checkTold(t, ends, map[int][]string{tg.pid(): {"exit target"}, calm.pid(): {"exit target"}})
	s := sets[tg.pid()]
	over := s.Fired[kevent.LimitSleeping] + s.Suppressed[kevent.LimitSleeping]
	if s.Fired[kevent.LimitSleeping] != 1 || over < naps*9/10 || over > s.Sleeping.Count {
		t.Errorf("fired %v, suppressed %v, %d sleeps", s.Fired, s.Suppressed, s.Sleeping.Count)
	}
	c := sets[calm.pid()]
	if c.Fired != [kevent.Limits]uint64{} || c.Suppressed != c.Fired {
		t.Errorf("nothing was above an hour, yet fired %v, suppressed %v", c.Fired, c.Suppressed)
	}
	if c.Fsync.Count != 2 || c.Write.Count == 0 {
		t.Errorf("%d calls of the fsync family and %d writes, want 2 and some", c.Fsync.Count, c.Write.Count)
	}
	if err := r.RemoveTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	if sets, err = r.Histograms(); err != nil || len(sets) != 1 {
		t.Errorf("%d processes have histograms after one of two was removed, error %v", len(sets), err)
	}
}

// TestMajorFaultLimit checks the rate against the faults' own events.
func TestMajorFaultLimit(t *testing.T) {
	const pages, limit = 101, 53
	path := preparedFile(t, pages<<16)
	for name, th := range map[string]Thresholds{
		"above": {MajorFaultsPerSecond: limit, Cooldown: 1}, "below": {MajorFaultsPerSecond: pages + 100, Cooldown: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := load(t, Options{Units: []string{UnitIO}, Watch: &WatchOptions{}})
			tg := startTarget(t, "fault", path, strconv.Itoa(pages))
			if err := r.AddTarget(tg.pid()); err != nil {
				t.Fatal(err)
			}
			if err := r.SetThresholds(tg.pid(), th); err != nil {
				t.Fatal(err)
			}
			tg.run()
			tg.results()
			events := stopAndRead(t, r)

			var window, n uint64
			var want []measured
			for _, e := range events {
				if e.Kind != kevent.KindMajorFault {
					continue
				}
				if e.Time-window >= 1e9 {
					window, n = e.Time, 0
				}
				if n++; n > uint64(th.MajorFaultsPerSecond) {
					want = append(want, measured{kevent.LimitMajorFaults, e.Tid, e.Time, n})
				}
			}
			got := fired(t, events, tg.pid(), map[kevent.Limit]uint64{kevent.LimitMajorFaults: uint64(th.MajorFaultsPerSecond)})
			if !slices.Equal(got, want) {
				t.Errorf("fired %v, want %v", got, want)
			}
			if name == "below" && len(got) != 0 {
				t.Errorf("fired %d times at %d faults", len(got), pages)
			}
		})
	}
}

// TestReclaimLimit runs the programs of direct reclaim by themselves, in this thread: no test can have the machine run
// out of memory.
func TestReclaimLimit(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := load(t, Options{Units: []string{UnitIO}, BTFPath: "/sys/kernel/btf/vmlinux", Watch: &WatchOptions{}})
	pid := os.Getpid()
	if err := r.AddWatched(pid); err != nil {
		t.Fatal(err)
	}
	programs := map[string]*ebpf.Program{}
	for _, p := range r.misses {
		programs[p.name] = p.prog
	}
	reclaim := func(pages uint64) {
		t.Helper()
		for _, name := range []string{"begin", "end"} {
			ctx := []uint64{pages}
			if _, err := programs["kernel_missed_io_reclaim_"+name].Run(&ebpf.RunOptions{Context: ctx}); err != nil {
				t.Fatalf("run the program of reclaim's %s: %v", name, err)
			}
			if name == "begin" {
				time.Sleep(2 * time.Millisecond)
			}
		}
	}
	reclaim(1)
	if err := r.SetThresholds(pid, Thresholds{Reclaim: time.Hour}); err != nil {
		t.Fatal(err)
	}
	reclaim(2)
	if err := r.SetThresholds(pid, Thresholds{Reclaim: 2 * time.Millisecond, Cooldown: time.Hour}); err != nil {
		t.Fatal(err)
	}
	reclaim(3)
	reclaim(4)
	events := stopAndRead(t, r)
	sets, err := r.Histograms()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(fired(t, events, pid, map[kevent.Limit]uint64{kevent.LimitReclaim: 2_000_000})); n != 1 || len(events) != 1 {
		t.Errorf("fired %d times among %d events, want once and nothing else", n, len(events))
	}
	if s := sets[pid]; s.Reclaim.Count != 4 || s.Reclaim.Sum < 8_000_000 || s.Suppressed[kevent.LimitReclaim] != 1 {
		t.Errorf("reclaim %+v, suppressed %v; want 4 of 2 ms each at least, one suppressed", s.Reclaim, s.Suppressed)
	}
}

func TestWatchedSize(t *testing.T) {
	if n := unsafe.Sizeof(schedWatchWatched{}); n != unsafe.Sizeof(ioWatchWatched{}) || n%8 != 0 {
		t.Errorf("struct watched has %d bytes in one unit and %d in the other", n, unsafe.Sizeof(ioWatchWatched{}))
	}
}
