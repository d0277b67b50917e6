package bpf

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"braid/internal/cpus"
	"braid/internal/kevent"
)

// littleFirst declares CPU 0 little and the others big, whatever they are.
func littleFirst() (all []cpus.CPU) {
	for cpu := range runtime.NumCPU() {
		capacity := 1024
		if cpu == 0 {
			capacity = 512
		}
		all = append(all, cpus.CPU{ID: cpu, Online: true, Capacity: capacity})
	}
	return all
}

// idleWord is what Idle events say, at each of their changes and at each beginning of the target's running on CPU 0.
type idleWord struct {
	at   uint64
	idle uint64
}

// whileOnLittle goes through the events in order of time and returns the changes of the word of idle CPUs while the
// thread ran on CPU 0, and when it ran there.
func whileOnLittle(events []event, tid uint32) (changes []idleWord, ran [][2]uint64) {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b event) int { return int(int64(a.Time) - int64(b.Time)) })
	var idle, since uint64
	for _, e := range events {
		switch e.Kind {
		case kevent.KindIdle:
			now := kevent.DecodeIdle(e.body).Idle
			if now != idle && since != 0 {
				changes = append(changes, idleWord{e.Time, now})
			}
			idle = now
		case kevent.KindSwitch:
			if kevent.DecodeSwitch(e.body).NextTid == tid && e.CPU == 0 {
				since = e.Time
				changes = append(changes, idleWord{e.Time, idle})
			} else if e.Tid == tid && since != 0 {
				ran = append(ran, [2]uint64{since, e.Time})
				since = 0
			}
		}
	}
	return changes, ran
}

// TestIdleOfBigger runs a target on CPU 0, which is declared little, while CPU 1 is busy all the time: then CPU 1 is never
// told to be idle.
func TestIdleOfBigger(t *testing.T) {
	r := load(t, Options{Units: []string{UnitSched}, CPUs: littleFirst()})
	spinner := startTarget(t, "spin", "1")
	spinner.run()
	spinner.expect("spinning")
	events, tid := runOnLittle(t, r, 150)
	changes, ran := whileOnLittle(events, tid)
	if len(ran) == 0 {
		t.Fatal("the target never ran on CPU 0")
	}
	for _, c := range changes {
		if c.idle&2 != 0 {
			t.Errorf("at %d CPU 1 is idle (%b), although a program spins there", c.at, c.idle)
		}
	}
	want := kevent.Affinity{Allowed: 1}
	if n := count(events, kevent.KindAffinity, func(e event) bool { return e.Tid == tid && kevent.DecodeAffinity(e.body) == want }); n != 1 {
		t.Errorf("it was told %d times that the target may use CPU 0 only, want once", n)
	}
}

// TestIdleAgreesWithFtrace compares when CPU 1 is idle, while a target runs on CPU 0, with what ftrace saw. A process on
// CPU 1 sleeps and wakes up all the time.
//
// Where tracepoints are now and then silent in the idle task's context (see compareFtrace), either side may miss most of it:
// there, one recording of several has to have what ftrace saw.
func TestIdleAgreesWithFtrace(t *testing.T) {
	tries := 5
	if os.Getenv("BRAID_TEST_STRICT") != "" {
		tries = 1
	}
	var last string
	for range tries {
		t.Run("recording", func(t *testing.T) { last = idleAgainstFtrace(t, tries == 1) })
		if last == "" {
			return
		}
		t.Log(last)
	}
	t.Error(last)
}

// idleAgainstFtrace makes one such recording, and returns how the two disagree, or "". Unless it is strict, ftrace may have missed
// changes.
func idleAgainstFtrace(t *testing.T, strict bool) string {
	r := load(t, Options{Units: []string{UnitSched}, CPUs: littleFirst()})
	f := startFtrace(t, "sched/sched_switch")
	sleeper := startTarget(t, "doze", "1")
	sleeper.run()
	sleeper.expect("dozing")
	events, tid := runOnLittle(t, r, 400)
	theirs := f.stop()
	changes, ran := whileOnLittle(events, tid)

	onLittle := func(at uint64) bool {
		return slices.ContainsFunc(ran, func(r [2]uint64) bool { return at > r[0] && at < r[1] })
	}
	state := map[bool]string{true: "idle", false: "busy"}
	var got, want []ftraceEvent
	idle := uint64(2) // neither
	for _, c := range changes {
		if now := c.idle >> 1 & 1; now != idle {
			if idle = now; onLittle(c.at) {
				got = append(got, ftraceEvent{time: c.at, cpu: 1, name: state[now == 1]})
			}
		}
	}
	was := ""
	for _, e := range theirs {
		if e.cpu != 1 {
			continue
		}
		if now := state[e.b == 0]; now != was {
			if was = now; onLittle(e.time) {
				want = append(want, ftraceEvent{time: e.time, cpu: 1, name: now})
			}
		}
	}
	pairs, missing := align(got, want, 2_000_000)
	t.Logf("%d changes of CPU 1 agree, while the target ran on CPU 0 %d times; %d are on one side only", len(pairs), len(ran), len(missing))
	// At the edges of each time that the target ran, the two recordings may disagree on which side a change is.
	n := len(want) - len(pairs)
	if strict {
		n = len(missing)
	}
	if n > 2*len(ran)+len(want)/20 {
		return fmt.Sprintf("%d of %d changes are on one side only: %v", len(missing), len(want), missing[:min(10, len(missing))])
	}
	return ""
}

// TestIdleIsQuietOnEqualCPUs: where all CPUs are alike, nothing is told unless a target waits behind others.
func TestIdleIsQuietOnEqualCPUs(t *testing.T) {
	alike := littleFirst()
	alike[0].Capacity = 1024
	r := load(t, Options{Units: []string{UnitSched}, CPUs: alike})
	events, tid := runOnLittle(t, r, 100)
	behind := count(events, kevent.KindSwitch, func(e event) bool { return e.Tid == tid && e.Flags&kevent.FlagPreempted != 0 }) +
		count(events, kevent.KindWaking, func(e event) bool { return e.Flags&kevent.FlagBehind != 0 }) +
		count(events, kevent.KindMigrate, func(e event) bool { return e.Flags&kevent.FlagBehind != 0 })
	n := count(events, kevent.KindIdle, func(event) bool { return true })
	if behind == 0 && n > 0 {
		t.Errorf("%d times it was told which CPUs are idle, and nobody waited", n)
	}
	t.Logf("%d times the target waited behind others, %d times it was told which CPUs are idle", behind, n)
}

// runOnLittle records a target that runs on CPU 0 for a time, and returns all events and its main thread.
func runOnLittle(t *testing.T, r *Recorder, ms int) ([]event, uint32) {
	t.Helper()
	tg := startTarget(t, "run", "0", strconv.Itoa(ms))
	if err := r.AddTarget(tg.pid()); err != nil {
		t.Fatal(err)
	}
	tg.run()
	tg.results()
	return stopAndRead(t, r), uint32(tg.pid())
}
