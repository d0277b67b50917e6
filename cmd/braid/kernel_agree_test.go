package main_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// offCPU is what a tool says of one thread.
type offCPU struct {
	outs    int   // how often it left a CPU
	waited  int64 // ns in which it had none, from its creation to its end
	unknown int64 // ns of which that is not known, because an event is missing
}

var (
	perfLine   = regexp.MustCompile(`^\[\d+\] +(\d+)\.(\d{9}): +sched:(\w+): (.*)$`)
	perfSwitch = regexp.MustCompile(`prev_pid=(\d+) .* next_pid=(\d+) `)
	perfNew    = regexp.MustCompile(`pid=(\d+) `)
	dumpSwitch = regexp.MustCompile(` switch tid=(\d+) `)
)

// perfOffCPU sums up what perf recorded.
func perfOffCPU(t *testing.T, data string) map[int]*offCPU {
	t.Helper()
	text, err := exec.Command("perf", "script", "-i", data, "--ns", "-F", "cpu,time,event,trace").Output()
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	threads := map[int]*offCPU{}
	type place struct {
		on    bool
		since int64
	}
	now := map[int]place{}
	move := func(tid int, at int64, on bool) {
		th, ok := threads[tid]
		if !ok {
			th = new(offCPU)
			threads[tid] = th
		}
		switch was, known := now[tid]; {
		case known && on && !was.on:
			th.waited += at - was.since
		case known && on == was.on:
			th.unknown += at - was.since
		}
		now[tid] = place{on, at}
	}
	for line := range strings.Lines(string(text)) {
		m := perfLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			t.Fatalf("perf script says %q", line)
		}
		at := number(m[1])*1e9 + number(m[2])
		if m[3] == "sched_wakeup_new" {
			move(int(number(perfNew.FindStringSubmatch(m[4])[1])), at, false)
			continue
		}
		s := perfSwitch.FindStringSubmatch(m[4])
		if s == nil {
			t.Fatalf("perf script says %q", line)
		}
		prev, next := int(number(s[1])), int(number(s[2]))
		move(prev, at, false)
		threads[prev].outs++
		move(next, at, true)
	}
	return threads
}

// The kernel's side agrees with perf, which records the same threads at the same time: how often each left the CPU
// exactly, and how long it had none but for what each tool's own probe takes.
func TestAgreesWithPerf(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "perf.data"), filepath.Join(dir, "out.braid")
	c := exec.Command("perf", "record", "-q", "-a", "-k", "CLOCK_MONOTONIC", "-m", "4M", "-o", data,
		"-e", "sched:sched_switch", "--filter", `prev_comm == "agree" || next_comm == "agree"`,
		"-e", "sched:sched_wakeup_new", "--filter", `comm == "agree"`,
		"--", braidBin, "record", "-o", file, "--threads", "all", "--", programs["agree"], filepath.Join(dir, "scratch"))
	c.Dir = dir
	o := finish(t, c)
	checkRecorded(t, file, o, 0)
	perf, r := perfOffCPU(t, data), report(t, file)

	outs := map[int]int{}
	for line := range strings.Lines(must(t, "dump", "--section", "events", file)) {
		if m := dumpSwitch.FindStringSubmatch(line); m != nil {
			tid, _ := strconv.Atoi(m[1])
			outs[tid]++
		}
	}
	workers := 0
	for line := range strings.Lines(o.stdout) {
		f := strings.Fields(line) // thread TID NAME
		if len(f) != 3 || f[0] != "thread" {
			t.Fatalf("the program says %q", line)
		}
		tid, _ := strconv.Atoi(f[1])
		theirs := perf[tid]
		if theirs == nil || theirs.outs < 2 {
			t.Errorf("%s: perf has nothing of thread %d", f[2], tid)
			continue
		}
		if outs[tid] != theirs.outs {
			t.Errorf("%s left the CPU %d times, perf says %d", f[2], outs[tid], theirs.outs)
		}
		for _, th := range r.Threads {
			if th.Tid != tid {
				continue
			}
			workers++
			ours := th.Runnable + th.Sleeping + th.Blocked
			slack := theirs.waited/100 + 100_000 + th.Unknown + theirs.unknown + int64(theirs.outs)*1000
			t.Logf("%-6s %4d switches, %8.3f ms without CPU, perf %8.3f ms; unknown %.3f and %.3f ms", f[2], outs[tid], ms(ours), ms(theirs.waited), ms(th.Unknown), ms(theirs.unknown))
			if diff := ours - theirs.waited; diff < -slack || diff > slack {
				t.Errorf("%s had no CPU for %.3f ms, perf says %.3f ms", f[2], ms(ours), ms(theirs.waited))
			}
			if max(th.Unknown, theirs.unknown) > th.Wall/10 { // a kernel with silent tracepoints (see the eBPF tests)
				t.Errorf("%s: of %.3f ms, %.3f and %.3f ms are unknown", f[2], ms(th.Wall), ms(th.Unknown), ms(theirs.unknown))
			}
		}
	}
	if workers != 6 {
		t.Errorf("%d workers in the report, want 6", workers)
	}
}
