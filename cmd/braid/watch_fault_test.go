package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// victim is a running testdata/faults.c.
type victim struct {
	*running
	pid, threads int
}

// victims starts the program with threads that pause for a time between two pieces of work.
func newVictim(t *testing.T, threads int, pause time.Duration) *victim {
	t.Helper()
	return victimOf(t, exec.Command(programs["faults"], fmt.Sprint(threads), fmt.Sprint(pause.Microseconds())), threads)
}

func victimOf(t *testing.T, c *exec.Cmd, threads int) *victim {
	t.Helper()
	v := &victim{running: start(t, c), threads: threads}
	v.pid = v.expect("main")
	return v
}

// do has the main thread do what a line says, and returns the number that it answers.
func (v *victim) do(line string) int {
	v.t.Helper()
	fmt.Fprintln(v.stdin, line)
	return v.expect("ok")
}

// unharmed ends the program and checks what each thread has computed.
func (v *victim) unharmed() {
	v.t.Helper()
	v.stdin.Close()
	for i := range v.threads + 1 {
		name := fmt.Sprintf("work-%d ", i)
		if i == v.threads {
			name = "mine-0 "
		}
		n, sum, _ := strings.Cut(v.lines.find(v.t, name), " ")
		done, err := strconv.ParseUint(n, 10, 64)
		if err != nil {
			v.t.Fatal(err)
		}
		want := uint32(0)
		for range done {
			want = want*1664525 + 1013904223
		}
		if sum != fmt.Sprint(want) {
			v.t.Errorf("%sof process %d computed %s in %d steps, want %d", name, v.pid, sum, done, want)
		}
	}
	if code := v.end(); code != 0 {
		v.t.Errorf("process %d ended with %d", v.pid, code)
	}
}

const watchFaults = "programs:\n  - {name: faults, threads: all, rings: 4, ring: 1M}\ntriggers:\n  - {name: died, crash: true, cooldown: 0s}\n"

// knows waits until a process is watched, whatever its threads do.
func (w *watcher) knows(t *testing.T, pid int) {
	t.Helper()
	until(t, fmt.Sprintf("%d to be watched", pid), func() bool {
		for _, p := range w.status(t).Targets {
			if p.PID == pid {
				return true
			}
		}
		return false
	})
}

// has waits until all threads of a process record.
func (w *watcher) has(t *testing.T, v *victim) {
	t.Helper()
	w.knows(t, v.pid)
	v.do("before 3")
	w.follows(t, v.pid, v.threads+1)
}

// flush asks for a trace of a process and returns its path.
func (w *watcher) flush(t *testing.T, pid int) string {
	t.Helper()
	return strings.TrimSpace(must(t, "flush", "--socket", w.socket, "--pid", fmt.Sprint(pid)))
}

// asleep reports whether a process's main thread waits.
func asleep(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "S")
}

// threes checks the numbers of calls of methods: three leaf for each leaves, but at the edges of rings.
func threes(t *testing.T, r *summed) {
	t.Helper()
	leaf, leaves := r.method(t, "leaf"), r.method(t, "leaves")
	edges := 3 * len(r.recorded())
	if diff := leaf.Calls - 3*leaves.Calls; leaves.Calls == 0 || diff < -edges || diff > edges {
		t.Errorf("%d leaves with %d leaf", leaves.Calls, leaf.Calls)
	}
}

// A program that is killed without a word still gives its last records, all of them.
func TestWatchTargetKilled(t *testing.T) {
	w := watch(t, watchFaults)
	v := newVictim(t, 0, 0)
	w.knows(t, v.pid)
	v.do("before 1009")
	until(t, "it to wait", func() bool { return asleep(v.pid) })
	if err := syscall.Kill(v.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := v.end(); code != 137 {
		t.Fatalf("the program ended with %d", code)
	}
	r := report(t, w.wrote(t))
	r.calls(t, map[string]int{"before": 1, "leaf": 1009})
	if m := r.method(t, "next_line"); m.Cut != 1 {
		t.Errorf("next_line was open at the end: %+v", m)
	}
	w.said(t, "msg=ended")
	w.ends(t)
}

// What a thread does after a flush that found it waiting is in the next flush, and so on.
func TestWatchResting(t *testing.T) {
	w := watch(t, watchFaults)
	v := newVictim(t, 0, 0)
	w.knows(t, v.pid)
	v.do("before 101")
	report(t, w.flush(t, v.pid)).calls(t, map[string]int{"before": 1, "after": 0, "leaf": 101})
	v.do("after 211")
	time.Sleep(500 * time.Millisecond) // the daemon looks at it meanwhile
	last := func(want map[string]int) {
		t.Helper()
		r := report(t, w.flush(t, v.pid))
		for _, name := range []string{"before", "after"} { // and perhaps what the ring held that it was in when it was last seen
			if n := want[name]; n > 0 && r.method(t, name).Calls < n {
				t.Errorf("%s: %+v, want %d calls", name, r.method(t, name), n)
			}
		}
	}
	last(map[string]int{"after": 1})
	v.do("before 307")
	v.do("before 307")
	v.do("after 401")
	last(map[string]int{"before": 2, "after": 1})
	last(nil)
	w.ends(t)
	v.unharmed()
}

// A program that is stopped gives what its threads had recorded until then, and afterwards what they did when they went on.
func TestWatchStopped(t *testing.T) {
	w := watch(t, watchFaults)
	v := newVictim(t, 2, 200*time.Microsecond)
	w.has(t, v)
	frozen(t, w, v, func() { syscall.Kill(v.pid, syscall.SIGSTOP) }, func() { syscall.Kill(v.pid, syscall.SIGCONT) })
	w.ends(t)
	v.unharmed()
}

// So does one that is frozen with its cgroup.
func TestWatchFrozen(t *testing.T) {
	group := newCgroup(t)
	put := func(file, text string) {
		if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	w := watch(t, watchFaults)
	v := newVictim(t, 2, 200*time.Microsecond)
	t.Cleanup(func() { put("cgroup.kill", "1") })
	put("cgroup.procs", fmt.Sprint(v.pid))
	w.has(t, v)
	frozen(t, w, v, func() {
		put("cgroup.freeze", "1")
		until(t, "the cgroup to freeze", func() bool {
			b, _ := os.ReadFile(filepath.Join(group, "cgroup.events"))
			return strings.Contains(string(b), "frozen 1")
		})
	}, func() { put("cgroup.freeze", "0") })
	w.ends(t)
	v.unharmed()
}

// frozen flushes a program while it stands still, twice, and after it went on.
func frozen(t *testing.T, w *watcher, v *victim, freeze, thaw func()) {
	t.Helper()
	freeze()
	for range 2 {
		r := report(t, w.flush(t, v.pid))
		if got := r.recorded(); len(got) != 3 {
			t.Errorf("threads with records: %v", got)
		}
		threes(t, r)
	}
	thaw()
	v.do("after 3")
	r := report(t, w.flush(t, v.pid))
	r.method(t, "after")
	threes(t, r)
	v.do("before 3")
	r = report(t, w.flush(t, v.pid))
	r.calls(t, map[string]int{"before": 1}) // and perhaps what the ring held that the main thread was in when it was last seen
	if got := r.recorded(); len(got) != 3 {
		t.Errorf("threads with records after it went on: %v", got)
	}
	threes(t, r)
}
