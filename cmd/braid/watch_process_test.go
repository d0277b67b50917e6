package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program that executes another one, or itself, is watched anew. Until then its last records can be had.
func TestWatchExec(t *testing.T) {
	w := watch(t, watchFaults)
	v := newVictim(t, 0, 0)
	w.knows(t, v.pid)
	v.do("before 101")
	fmt.Fprintln(v.stdin, "exec "+programs["faults"])
	if pid := v.expect("main"); pid != v.pid {
		t.Fatalf("process %d became %d", v.pid, pid)
	}
	r := report(t, w.flush(t, v.pid))
	r.calls(t, map[string]int{"before": 1, "leaf": 101})
	w.said(t, fmt.Sprintf("msg=ended pid=%d ", v.pid))
	w.said(t, fmt.Sprintf("msg=watching pid=%d ", v.pid))
	v.do("after 211")
	report(t, w.flush(t, v.pid)).calls(t, map[string]int{"before": 0, "after": 1, "leaf": 211})
	w.ends(t)
	v.unharmed()
}

// A program that executes one without stubs, or one that nobody asked for, is watched no more.
func TestWatchExecOther(t *testing.T) {
	w := watch(t, watchFaults)
	v := newVictim(t, 0, 0)
	w.knows(t, v.pid)
	v.do("before 3")
	fmt.Fprintln(v.stdin, "exec /bin/cat")
	w.said(t, fmt.Sprintf("msg=ended pid=%d ", v.pid))
	if s := w.status(t); len(s.Targets) != 0 {
		t.Errorf("%+v", s.Targets)
	}
	fmt.Fprintln(v.stdin, "purr 7")
	if n := v.expect("purr"); n != 7 {
		t.Errorf("cat says %d", n)
	}
	if code := v.end(); code != 0 {
		t.Errorf("cat ended with %d", code)
	}
	w.ends(t)
}

// A child of a watched program is watched as a program of its own.
func TestWatchFork(t *testing.T) {
	w := watch(t, watchFaults)
	v := newVictim(t, 1, 0)
	w.has(t, v)
	fmt.Fprintln(v.stdin, "fork")
	child := -1
	for n := 0; n < 2; { // the answers of both come in any order
		word, number, _ := strings.Cut(v.lines.find(t, ""), " ")
		n++
		if word == "child" {
			fmt.Sscan(number, &child)
		}
	}
	w.follows(t, child, 1)
	r := report(t, w.flush(t, child))
	if got := r.recorded(); len(got) != 1 || r.Threads[0].Pid != child {
		t.Errorf("threads with records: %v: %+v", got, r.Threads)
	}
	threes(t, r)
	threes(t, report(t, w.flush(t, v.pid)))
	if status := v.do("reap"); status != 0 {
		t.Errorf("the child ended with status %#x", status)
	}
	w.said(t, fmt.Sprintf("msg=ended pid=%d ", child))
	w.ends(t)
	v.unharmed()
}

// One request for more programs than are written at a time gets a trace of each.
func TestWatchFlushAll(t *testing.T) {
	w := watch(t, watchFaults)
	var all []*victim
	for range 6 {
		all = append(all, newVictim(t, 1, 100*time.Microsecond))
	}
	for _, v := range all {
		w.has(t, v)
	}
	paths := strings.Fields(must(t, "flush", "--socket", w.socket))
	if len(paths) != len(all) {
		t.Errorf("%d traces of %d programs: %v", len(paths), len(all), paths)
	}
	for _, p := range paths {
		threes(t, report(t, p))
	}
	w.ends(t)
	for _, v := range all {
		v.unharmed()
	}
}

// A program that writes garbage into its own area neither harms the daemon nor another program's trace.
func TestWatchHostile(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "hostile")
	if out, err := exec.Command(braidBin, "cc", "gcc", "-O2", "-o", bin, "../../control/testdata/hostile.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := watchIn(t, filepath.Join(t.TempDir(), "traces"), "programs:\n  - {name: faults, threads: all, rings: 4, ring: 1M}\n"+
		"  - {name: hostile, threads: all, rings: 4, ring: 64K}\n"+
		"triggers:\n  - {name: slow, method: {name: once, longer: 1ms}, cooldown: 0s, programs: [hostile]}\n"+
		"  - {name: asked, program: true, cooldown: 0s, programs: [hostile]}\n", "  limits: {per_program: 0, per_trigger: 0, per_week: 0}\n")
	v := newVictim(t, 2, 100*time.Microsecond)
	w.has(t, v)
	h := start(t, exec.Command(bin))
	if line := h.lines.find(t, "ready"); line != "" {
		t.Fatal(line)
	}
	w.knows(t, h.cmd.Process.Pid)
	report(t, w.flush(t, h.cmd.Process.Pid))
	before := memoryOf(t, w.cmd.Process.Pid)
	fmt.Fprint(h.stdin, "x")
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
		if o := braid(t, "flush", "--socket", w.socket, "--pid", fmt.Sprint(h.cmd.Process.Pid)); o.code == 0 {
			if r := braid(t, "report", strings.TrimSpace(o.stdout)); r.code != 0 && r.code != 3 {
				t.Fatalf("braid report of the hostile program ended with %d: %s", r.code, r.stderr)
			}
		}
		threes(t, report(t, w.flush(t, v.pid)))
		v.do("after 3")
	}
	after := memoryOf(t, w.cmd.Process.Pid)
	t.Logf("the daemon: %d MiB before, %d MiB after", before>>20, after>>20)
	if after > before+100<<20 {
		t.Errorf("the daemon has grown from %d to %d MiB", before>>20, after>>20)
	}
	if !alive(h.cmd.Process.Pid) {
		t.Error("the hostile program has ended")
	}
	h.cmd.Process.Kill()
	h.cmd.Wait()
	w.ends(t)
	v.unharmed()
}

// memoryOf is how much memory a process has, bytes.
func memoryOf(t *testing.T, pid int) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident uint64
	fmt.Sscan(string(b), &size, &resident)
	return resident * uint64(os.Getpagesize())
}
