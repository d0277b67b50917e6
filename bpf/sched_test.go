package bpf

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"braid/internal/kevent"
)

// checkSwitches compares the switches away from a thread within its span with what the kernel itself counted for it
// (getrusage), exactly.
func checkSwitches(t *testing.T, events []event, s span) {
	t.Helper()
	within := func(e event) bool { return e.Tid == s.tid && e.Time >= s.start && e.Time <= s.end }
	voluntary := count(events, kevent.KindSwitch, func(e event) bool { return within(e) && e.Flags&kevent.FlagPreempted == 0 })
	involuntary := count(events, kevent.KindSwitch, func(e event) bool { return within(e) && e.Flags&kevent.FlagPreempted != 0 })
	if voluntary != s.voluntary || involuntary != s.involuntary {
		t.Errorf("thread %d: %d voluntary and %d involuntary switches, the kernel counted %d and %d",
			s.tid, voluntary, involuntary, s.voluntary, s.involuntary)
	}
}

// checkFtrace compares the switches and wake-ups of some threads with what ftrace recorded at the same time.
func checkFtrace(t *testing.T, events []event, theirs []ftraceEvent, spans []span) {
	t.Helper()
	of := func(tid uint32, at uint64) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return s.tid == tid && at >= s.start && at <= s.end })
	}
	var got, want []ftraceEvent
	for _, e := range events {
		f := ftraceEvent{time: e.Time, cpu: int(e.CPU)}
		switch e.Kind {
		case kevent.KindSwitch:
			s := kevent.DecodeSwitch(e.body)
			f.name, f.a, f.b, f.state = "sched_switch", e.Tid, s.NextTid, kevent.StateName(s.PrevState)
		case kevent.KindWaking:
			w := kevent.DecodeWaking(e.body)
			f.name, f.a, f.b = "sched_waking", e.Tid, w.WakerTid
		}
		if of(f.a, e.Time) || f.name == "sched_switch" && of(f.b, e.Time) {
			got = append(got, f)
		}
	}
	for _, f := range theirs {
		if (f.name == "sched_switch" && (of(f.a, f.time) || of(f.b, f.time))) || f.name == "sched_waking" && of(f.a, f.time) {
			want = append(want, f)
		}
	}
	if len(want) == 0 {
		t.Fatal("ftrace recorded nothing")
	}
	own := map[uint32]bool{}
	for _, s := range spans {
		own[s.tid] = true
	}
	compareFtrace(t, got, want, own)
}

func TestSleeps(t *testing.T) {
	const naps = 101
	r := load(t, Options{Units: []string{UnitSched}})
	tg := startTarget(t, "sleep", strconv.Itoa(naps))
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	keepBusy(t)
	tracing := startFtrace(t, "sched/sched_switch", "sched/sched_waking")
	tg.run()
	spans, _ := tg.results()
	tg.finish()
	theirs := tracing.stop()
	events := stopAndRead(t, r)

	s := spans[0]
	checkSwitches(t, events, s)
	checkFtrace(t, events, theirs, spans)
	slept := count(events, kevent.KindSwitch, func(e event) bool {
		return e.Tid == s.tid && kevent.DecodeSwitch(e.body).PrevState&kevent.StateSleeping != 0 && e.Time >= s.start && e.Time <= s.end
	})
	// A thread that is preempted on its way into a nap may find it over: that nap is no sleep, for the kernel neither. An
	// emulated processor may take longer over it than the nap lasts.
	if slept != s.voluntary || slept > naps || slept < naps*9/10 && os.Getenv("BRAID_TEST_STRICT") == "" {
		t.Errorf("slept %d times in %d naps, the kernel counted %d", slept, naps, s.voluntary)
	}
	if n := count(events, kevent.KindExit, func(e event) bool { return e.Tid == s.tid }); n != 1 {
		t.Errorf("%d exits", n)
	}
	dead := count(events, kevent.KindSwitch, func(e event) bool {
		return e.Tid == s.tid && kevent.DecodeSwitch(e.body).PrevState&kevent.StateDead != 0
	})
	if dead != 1 {
		t.Errorf("%d last switches, want 1: the end of the thread's last slice", dead)
	}
}

func TestFutex(t *testing.T) {
	r := load(t, Options{Units: []string{UnitSched}})
	tg := startTarget(t, "futex", "499")
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	keepBusy(t)
	tracing := startFtrace(t, "sched/sched_switch", "sched/sched_waking")
	tg.run()
	spans, _ := tg.results()
	tg.finish()
	theirs := tracing.stop()
	events := stopAndRead(t, r)

	if len(spans) != 2 {
		t.Fatalf("%d threads reported, want 2", len(spans))
	}
	checkFtrace(t, events, theirs, spans)
	waits := 0
	for i, s := range spans {
		checkSwitches(t, events, s)
		other := spans[1-i].tid
		waits += s.voluntary
		byOther := count(events, kevent.KindWaking, func(e event) bool {
			return e.Tid == s.tid && kevent.DecodeWaking(e.body).WakerTid == other
		})
		if byOther < s.voluntary-3 || byOther > s.voluntary+3 { // the first and last wait are not the other's doing
			t.Errorf("thread %d was woken %d times by %d, and waited %d times", s.tid, byOther, other, s.voluntary)
		}
	}
	if waits < 400 { // either may be the one that waits, which is the scheduler's choice
		t.Errorf("both threads together waited %d times only: the story does not do what it should", waits)
	}
	names := map[string]int{}
	for _, e := range events {
		if e.Kind == kevent.KindRename {
			c := kevent.DecodeRename(e.body).Comm
			names[string(kevent.Comm(&c))]++
		}
	}
	if names["ping"] != 1 || names["pong"] != 1 {
		t.Errorf("renames %v, want ping and pong once each", names)
	}
}

// TestSpawn also checks that a pending process shows nothing from before its exec.
func TestSpawn(t *testing.T) {
	const children, threads = 7, 13
	r := load(t, Options{Units: []string{UnitSched}})
	tg := startTarget(t, "exec", targetBinary, "spawn", strconv.Itoa(children), strconv.Itoa(threads))
	if err := r.AddPending(tg.pid()); err != nil {
		t.Fatal(err)
	}
	tg.run()
	tg.expect("ready")
	tg.run()
	tg.results()
	tg.finish()
	targets, err := r.Targets()
	if err != nil {
		t.Fatal(err)
	}
	events := stopAndRead(t, r)

	pid := uint32(tg.pid())
	if len(events) == 0 || events[0].Kind != kevent.KindExec || events[0].Tid != pid {
		t.Fatalf("the first event is %v, want the exec of %d", events[0], pid)
	}
	own := map[kevent.Kind]int{}
	newThreads, newProcesses, firstWakes := 0, 0, 0
	for _, e := range events {
		own[e.Kind]++
		switch {
		case e.Kind == kevent.KindFork && e.Flags&kevent.FlagThread != 0:
			newThreads++
		case e.Kind == kevent.KindFork:
			newProcesses++
			if p := kevent.DecodeFork(e.body).ParentTgid; p != pid {
				t.Errorf("%v: parent %d, want %d", e, p, pid)
			}
		case e.Kind == kevent.KindWaking && e.Flags&kevent.FlagNew != 0:
			firstWakes++
		}
	}
	if newProcesses != children || newThreads != children*threads || firstWakes != children*(threads+1) {
		t.Errorf("%d processes, %d threads, %d first wakes; want %d, %d, %d",
			newProcesses, newThreads, firstWakes, children, children*threads, children*(threads+1))
	}
	if own[kevent.KindExec] != 1+children || own[kevent.KindExit] != 1+children*(1+threads) {
		t.Errorf("%d execs and %d exits, want %d and %d", own[kevent.KindExec], own[kevent.KindExit], 1+children, 1+children*(1+threads))
	}
	if len(targets) != 1+children || !slices.Contains(targets, tg.pid()) {
		t.Errorf("targets %v, want %d of them with %d", targets, 1+children, tg.pid())
	}
	dead := count(events, kevent.KindSwitch, func(e event) bool {
		return e.Flags&kevent.FlagPrevTarget != 0 && kevent.DecodeSwitch(e.body).PrevState&kevent.StateDead != 0
	})
	if dead != own[kevent.KindExit] {
		t.Errorf("%d threads ended, %d were switched out for the last time", own[kevent.KindExit], dead)
	}
}

// TestForeigners checks that of others only those are recorded that a target made room for or was preempted by, each
// with one switch away at most, and that a switch that tells nothing of the next thread tells nothing at all.
func TestForeigners(t *testing.T) {
	r := load(t, Options{Units: []string{UnitSched}})
	tg := startTarget(t, "sleep", "101")
	other := startTarget(t, "sleep", "503")
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	other.run()
	tg.run()
	tg.results()
	other.results()
	events := stopAndRead(t, r)

	open := map[uint16]bool{} // per CPU: a foreigner's slice that a target began
	byCPU := slices.Clone(events)
	slices.SortStableFunc(byCPU, func(a, b event) int { return int(a.CPU) - int(b.CPU) })
	follow := 0
	for _, e := range byCPU {
		if e.Kind != kevent.KindSwitch {
			continue
		}
		s := kevent.DecodeSwitch(e.body)
		from, to := e.Flags&kevent.FlagPrevTarget != 0, e.Flags&kevent.FlagNextTarget != 0
		if from != (s.PrevTgid == uint32(tg.pid())) || to != (s.NextTgid == uint32(tg.pid())) {
			t.Errorf("flags do not say what the ids say: %v", e)
		}
		if !from && !to {
			follow++
			if !open[e.CPU] {
				t.Errorf("a foreigner's switch that no target began: %v", e)
			}
			if s.NextTid != 0 || s.NextTgid != 0 || s.NextComm != [16]byte{} || s.NextPrio != 0 {
				t.Errorf("a switch between foreigners tells of the next: %v %+v", e, s)
			}
		}
		open[e.CPU] = from && !to
	}
	if follow == 0 {
		t.Error("no foreigner's slice was ended, in 101 sleeps")
	}
}
