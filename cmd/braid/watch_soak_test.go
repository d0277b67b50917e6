package main_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// soakFor is how long TestWatchSoak goes on; make soak passes more.
var soakFor = flag.Duration("soak", 10*time.Second, "how long the soak test of braid watch lasts")

// sample is what both sides hold at a moment.
type sample struct {
	daemon holdings
	shared []uint64 // of each target: memory that its area has, bytes
	files  []int    // descriptors of each target
}

// soakTargets take part: one is idle, one busy, one in between. A fourth comes and goes.
const soakTargets = 3

func (w *watcher) sample(t *testing.T, all []*victim) (s sample) {
	t.Helper()
	s.daemon = holds(t, w.cmd.Process.Pid)
	for _, v := range all {
		s.shared = append(s.shared, sharedMemory(t, v.pid))
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", v.pid))
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, len(fds))
	}
	return s
}

// sharedMemory is how much memory a process has mapped that it shares, bytes.
func sharedMemory(t *testing.T, pid int) (n uint64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "RssShmem:")
	if _, err := fmt.Sscanf(rest, "%d kB", &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// Days of starting, stopping and flushing leave nothing behind on either side: what both hold is the same at the end as after
// the first cycles, and does not grow in between.
func TestWatchSoak(t *testing.T) {
	w := watchIn(t, filepath.Join(t.TempDir(), "traces"),
		"programs:\n  - {name: faults, threads: all, rings: 3, ring: 256K}\ntriggers:\n  - {name: died, crash: true}\n",
		"  keep: worst\n  limits: {per_week: 12, per_program: 12, per_trigger: 0}\n")
	var all []*victim
	for i := range soakTargets {
		all = append(all, newVictim(t, i+1, []time.Duration{5 * time.Millisecond, 50 * time.Microsecond, 200 * time.Microsecond}[i]))
	}
	for _, v := range all {
		w.has(t, v)
	}
	var swapped, wrote []time.Duration
	cycles, flushes := 0, 0
	do := func(args ...string) {
		t.Helper()
		must(t, append(args, "--socket", w.socket)...)
	}
	cycle := func() {
		v := all[cycles%len(all)]
		pid := fmt.Sprint(v.pid)
		do("flush", "--pid", pid)
		v.do("after 3")
		do("stop", "--pid", pid)
		v.do("before 3")
		do("start", "--pid", pid)
		v.do("after 3")
		do("flush")
		flushes += 1 + len(all)
		if cycles%4 == 3 { // a target that comes and goes
			guest := newVictim(t, 1, 100*time.Microsecond)
			w.has(t, guest)
			do("flush", "--pid", fmt.Sprint(guest.pid))
			guest.unharmed()
			flushes++
		}
		cycles++
	}
	begin := time.Now()
	for cycles < 4 {
		cycle()
	}
	var samples []sample
	look := func() {
		until(t, "targets that ended to be forgotten", func() bool { return len(w.status(t).Targets) == len(all) })
		s := w.sample(t, all)
		// The newest traces are still being analysed, which takes memory for a while.
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			now := w.sample(t, all)
			if s.daemon.files = min(s.daemon.files, now.daemon.files); now.daemon.resident < s.daemon.resident {
				s.daemon.resident = now.daemon.resident
			}
			if len(samples) == 0 && time.Until(end) < 16*time.Second || len(samples) > 0 && like(samples[0].daemon, s.daemon) {
				break
			}
		}
		samples = append(samples, s)
		for _, line := range w.taken() {
			for what, to := range map[string]*[]time.Duration{"swapped": &swapped, "wrote": &wrote} {
				if d, ok := durationIn(line, what); ok {
					*to = append(*to, d)
				}
			}
		}
	}
	look()
	for part := 1; part <= 3; part++ {
		for n := 0; n < 2 || time.Since(begin) < *soakFor*time.Duration(part)/3; n++ {
			cycle()
		}
		look()
	}
	t.Logf("%d cycles, %d flushes in %v; median: %v until all threads had swapped, %v to write", cycles, flushes, time.Since(begin).Round(time.Second),
		median(swapped), median(wrote))
	for _, s := range samples {
		t.Logf("the daemon: %v; programs: %v bytes shared, %v files", s.daemon, s.shared, s.files)
	}
	flat(t, samples)
	for _, v := range all {
		until(t, "the main thread to record again", func() bool {
			v.do("after 3") // it reaches a trace point
			return w.recordedBy(t, v.pid) == min(v.threads+1, 3)
		})
		threes(t, report(t, w.flush(t, v.pid)))
	}
	if s := w.status(t); s.Kept.Traces > 12 {
		t.Errorf("%d traces are kept", s.Kept.Traces)
	}
	w.ends(t)
	for _, v := range all {
		if n := sharedMemory(t, v.pid); n > 8<<20 {
			t.Errorf("process %d is left with %d bytes of its area", v.pid, n)
		}
		v.unharmed()
	}
}

// recordedBy is how many threads of a process record.
func (w *watcher) recordedBy(t *testing.T, pid int) (n int) {
	t.Helper()
	for _, p := range w.status(t).Targets {
		for _, th := range p.Threads {
			if p.PID == pid && th.On {
				n++
			}
		}
	}
	return n
}

// like reports whether a daemon holds no more than before.
func like(a, b holdings) bool {
	return b.files <= a.files && b.areas <= a.areas && b.bpf == a.bpf && b.keys <= a.keys+8 && b.mappings <= a.mappings+30 &&
		b.threads <= a.threads+8 && b.resident <= a.resident+32<<20
}

// flat checks that the last sample is like the first. Threads in between write into one ring or the other, so memory may
// be more by a ring each; a line that rises at every sample is a leak all the same.
func flat(t *testing.T, samples []sample) {
	t.Helper()
	first, last := samples[0], samples[len(samples)-1]
	a, b := first.daemon, last.daemon
	if !like(a, b) {
		t.Errorf("the daemon held %v, and now %v", a, b)
	}
	for i := range first.shared {
		const ring = 256 << 10
		if last.shared[i] > first.shared[i]+4*ring {
			t.Errorf("program %d had %d bytes of shared memory, and now %d", i, first.shared[i], last.shared[i])
		}
		if last.files[i] > first.files[i] {
			t.Errorf("program %d had %d descriptors, and now %d", i, first.files[i], last.files[i])
		}
	}
}

// taken takes the lines of the log so far.
func (w *watcher) taken() (lines []string) {
	for {
		select {
		case line := <-w.log.lines:
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

// durationIn finds a field of a log line.
func durationIn(line, field string) (time.Duration, bool) {
	m := regexp.MustCompile(` ` + field + `=(\S+)`).FindStringSubmatch(line)
	if m == nil {
		return 0, false
	}
	d, err := time.ParseDuration(m[1])
	return d, err == nil
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// What a flush of two full rings of 32 MiB takes, of threads that do nothing but record. It is said, and depends on the machine.
func TestWatchTimes(t *testing.T) {
	w := watch(t, "programs:\n  - {name: faults, threads: [\"work-*\"], rings: 2, ring: 32M}\ntriggers:\n  - {name: died, crash: true}\n")
	v := newVictim(t, 2, 0)
	w.follows(t, v.pid, 2)
	times := map[string][]time.Duration{}
	for range 5 {
		time.Sleep(time.Second) // rings fill up
		w.flush(t, v.pid)
		line := w.said(t, "msg=flushed")
		for _, what := range []string{"swapped", "copied", "wrote"} {
			d, ok := durationIn(line, what)
			if !ok {
				t.Fatalf("the log does not say %s: %s", what, line)
			}
			times[what] = append(times[what], d)
		}
	}
	t.Logf("median of two busy threads with 32 MiB each: %v until both had swapped, %v until all was copied, %v to write",
		median(times["swapped"]), median(times["copied"]), median(times["wrote"]))
	w.ends(t)
	v.end()
}
