package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// watcher is a running braid watch.
type watcher struct {
	*running
	dir    string // of its traces
	socket string
	log    *lineReader
}

// watch starts braid watch with a configuration, to which the output is added, and waits until it is ready. Everybody
// consents.
func watch(t *testing.T, config string) *watcher {
	t.Helper()
	w := &watcher{dir: filepath.Join(t.TempDir(), "traces")}
	w.socket = filepath.Join(t.TempDir(), "s")
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.consents(t, "programs: *\nusers: *\n")
	w.again(t, config)
	return w
}

// again starts the daemon, once more perhaps, in the same folder.
func (w *watcher) again(t *testing.T, config string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "watch.yaml")
	if !strings.Contains(config, "output:") {
		config += "output:\n  dir: " + w.dir + "\n"
	}
	if err := os.WriteFile(file, []byte("version: 1\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.begin(t, command(t, "watch", "--config", file, "--socket", w.socket))
	w.said(t, `msg=watching programs=`)
}

// begin starts the daemon's process and reads its log.
func (w *watcher) begin(t *testing.T, c *exec.Cmd) {
	t.Helper()
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = out
	w.running = start(t, c)
	out.Close()
	t.Cleanup(func() { r.Close() })
	w.log = newLineReader(r)
}

func (w *watcher) consents(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "consent"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// said waits for a line of the log with a text in it, and returns what follows.
func (w *watcher) said(t *testing.T, text string) string {
	t.Helper()
	for late := time.After(hang); ; {
		select {
		case line, ok := <-w.log.lines:
			if !ok {
				t.Fatalf("braid watch ended without saying %q", text)
			}
			if _, rest, ok := strings.Cut(line, text); ok {
				return rest
			}
			t.Log(line)
		case <-late:
			t.Fatalf("braid watch did not say %q within %v", text, hang)
		}
	}
}

// wrote waits for the next trace and returns its path.
func (w *watcher) wrote(t *testing.T) string {
	t.Helper()
	_, rest, _ := strings.Cut(w.said(t, "msg=flushed"), "trace=")
	path, _, _ := strings.Cut(rest, " ")
	return path
}

// status is the part of braid status --json that the tests look at.
type watched struct {
	Daemon struct {
		Kernel string `json:"kernel"`
	} `json:"daemon"`
	Targets []struct {
		PID     int    `json:"pid"`
		Name    string `json:"name"`
		State   string `json:"state"`
		Note    string `json:"note"`
		Records uint64 `json:"records"`
		Threads []struct {
			TID  int    `json:"tid"`
			Name string `json:"name"`
			On   bool   `json:"on"`
		} `json:"threads"`
	} `json:"targets"`
	Kept struct {
		Traces  int               `json:"traces"`
		Refused map[string]uint64 `json:"refused"`
		Removed map[string]uint64 `json:"removed"`
	} `json:"kept"`
}

func (w *watcher) status(t *testing.T) (s watched) {
	t.Helper()
	if err := json.Unmarshal([]byte(must(t, "status", "--json", "--socket", w.socket)), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// follows waits until threads of a process record.
func (w *watcher) follows(t *testing.T, pid, threads int) {
	t.Helper()
	until(t, fmt.Sprintf("%d threads of %d to record", threads, pid), func() bool {
		for _, p := range w.status(t).Targets {
			on := 0
			for _, th := range p.Threads {
				if th.On {
					on++
				}
			}
			if p.PID == pid && on == threads {
				return true
			}
		}
		return false
	})
}

// ends stops the daemon, which must leave nothing behind.
func (w *watcher) ends(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := waitCode(t, w.cmd); code != 0 {
		t.Errorf("braid watch ended with %d", code)
	}
	if left := orphanPrograms(); len(left) > 0 {
		t.Errorf("eBPF programs are left behind: %v", left)
	}
	if _, err := os.Stat(w.socket); err == nil {
		t.Error("the socket is left behind")
	}
	if tmp, _ := os.ReadDir(filepath.Join(w.dir, ".tmp")); len(tmp) > 0 {
		t.Errorf("half traces are left behind: %v", tmp)
	}
}

const watchTarget = "programs:\n  - {name: target, threads: all, rings: 4, ring: 1M}\ntriggers:\n  - {name: died, crash: true}\n"

// A program that runs is found, its threads are recorded, a flush takes what they have, and they go on.
func TestWatchFlush(t *testing.T) {
	p, pid, _ := serve(t, "target", 3)
	w := watch(t, watchTarget)
	w.follows(t, pid, 4)
	flushes := 3
	if testBin != "" {
		flushes = 1 // takes long on an emulated processor
	}
	for i := range flushes {
		path := strings.TrimSpace(must(t, "flush", "--socket", w.socket, "--pid", fmt.Sprint(pid), "--why", "a test"))
		r := report(t, path)
		if got := r.recorded(); len(got) != 4 {
			t.Errorf("flush %d: threads with records: %v", i, got)
		}
		consistent(t, r)
		checkPerfetto(t, path)
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", fi.Mode(), err)
		}
	}
	w.ends(t)
	p.unharmed()
}

// A daemon that is killed leaves the program as it is. The next one takes over: what was recorded meanwhile is there.
func TestWatchKilled(t *testing.T) {
	p, pid, _ := serve(t, "target", 2)
	w := watch(t, watchTarget)
	w.follows(t, pid, 3)
	w.cmd.Process.Kill()
	w.cmd.Wait()
	if left := orphanPrograms(); len(left) > 0 {
		t.Errorf("eBPF programs are left behind: %v", left)
	}
	time.Sleep(100 * time.Millisecond) // of the program's work
	if !alive(pid) {
		t.Fatal("the program died with the daemon")
	}
	w.again(t, watchTarget)
	w.follows(t, pid, 3)
	path := strings.TrimSpace(must(t, "flush", "--socket", w.socket))
	r := report(t, path)
	if got := r.recorded(); len(got) != 3 {
		t.Errorf("threads with records: %v", got)
	}
	consistent(t, r)
	w.ends(t)
	p.unharmed()
}

// A program that starts later is found at its exec; its crash is a trigger, and the trace ends with its last method.
func TestWatchCrash(t *testing.T) {
	w := watch(t, "programs:\n  - {name: asks, threads: all, ring: 1M}\ntriggers:\n  - {name: died, crash: true}\n")
	p := start(t, exec.Command(programs["asks"]))
	pid := p.expect("main")
	w.follows(t, pid, 1) // main waits for a line, and has reached no trace point since it is watched
	fmt.Fprintln(p.stdin, "step")
	p.expect("ok")
	w.follows(t, pid, 2)
	fmt.Fprintln(p.stdin, "step")
	p.expect("ok")
	fmt.Fprintln(p.stdin, "crash")
	if code := p.end(); code != 128+int(syscall.SIGABRT) {
		t.Fatalf("the program ended with %d", code)
	}
	path := w.wrote(t)
	r := report(t, path)
	if m := r.method(t, "crash_here"); m.Cut != 1 {
		t.Errorf("crash_here: %+v", m)
	}
	if text := must(t, "report", path); !strings.HasPrefix(text, "trigger: died (crash") {
		t.Errorf("the report begins with %.80q", text)
	}
	checkPerfetto(t, path)
	w.ends(t)
}

// Without consent nothing is written, and the status says why.
func TestWatchConsent(t *testing.T) {
	p, pid, _ := serve(t, "target", 1)
	w := watch(t, watchTarget)
	w.consents(t, "programs: other\n")
	w.follows(t, pid, 2)
	o := braid(t, "flush", "--socket", w.socket)
	if o.code != 1 || !strings.Contains(o.stderr, "consent") {
		t.Errorf("braid flush ended with %d: %s", o.code, o.stderr)
	}
	s := w.status(t)
	if s.Kept.Traces != 0 || s.Kept.Refused["no_consent"] != 1 || !strings.Contains(s.Targets[0].Note, "consent") {
		t.Errorf("%+v", s)
	}
	w.consents(t, "programs: *\nusers: *\n")
	must(t, "flush", "--socket", w.socket)
	if err := os.Remove(filepath.Join(w.dir, "consent")); err != nil {
		t.Fatal(err)
	}
	if o := braid(t, "flush", "--socket", w.socket); o.code != 1 {
		t.Errorf("braid flush ended with %d after consent was taken back", o.code)
	}
	if s := w.status(t); s.Kept.Traces != 1 {
		t.Errorf("%+v", s.Kept)
	}
	w.ends(t)
	p.unharmed()
}

// A program chooses its threads and asks for flushes itself.
func TestWatchProgramAsks(t *testing.T) {
	w := watch(t, "programs:\n  - {name: asks, ring: 1M}\ntriggers:\n  - {name: asked, program: {why: \"late*\"}, cooldown: 0s}\n")
	p := start(t, exec.Command(programs["asks"]))
	pid := p.expect("main")
	w.follows(t, pid, 1)
	fmt.Fprintln(p.stdin, "step")
	p.expect("ok")
	w.follows(t, pid, 2)
	fmt.Fprintln(p.stdin, "step")
	p.expect("ok")
	fmt.Fprintln(p.stdin, "why something else") // fits no rule
	p.expect("ok")
	fmt.Fprintln(p.stdin, "why late frame")
	p.expect("ok")
	path := w.wrote(t)
	r := report(t, path)
	r.method(t, "step")
	var names []string
	for _, th := range r.Threads {
		if th.Records > 0 {
			names = append(names, th.Name)
		}
	}
	if len(names) != 2 {
		t.Errorf("threads with records: %v", names)
	}
	if text := must(t, "report", path); !strings.Contains(text, "late frame") {
		t.Errorf("the report begins with %.200q", text)
	}
	if code := p.end(); code != 0 {
		t.Errorf("the program ended with %d", code)
	}
	w.ends(t)
	if traces, _ := filepath.Glob(filepath.Join(w.dir, "0", "*", "*.braid")); len(traces) != 1 {
		t.Errorf("%d traces, want one", len(traces))
	}
}

// A method's slow calls fire, whichever way they are watched, and no fast ones. The trace has the call in it.
func TestWatchMethod(t *testing.T) {
	for _, via := range []string{"ring", "probe"} {
		t.Run(via, func(t *testing.T) {
			w := watch(t, "programs:\n  - {name: asks, threads: all, ring: 1M}\ntriggers:\n"+
				"  - {name: late, method: {name: slow, longer: 50ms, via: "+via+"}, cooldown: 0s}\n"+
				"  - {name: never, method: {name: step, longer: 50s, via: "+via+"}, cooldown: 0s}\n")
			p := start(t, exec.Command(programs["asks"]))
			pid := p.expect("main")
			w.follows(t, pid, 1)
			fmt.Fprintln(p.stdin, "step")
			p.expect("ok")
			w.follows(t, pid, 2)
			for range 2 {
				fmt.Fprintln(p.stdin, "slow")
				p.expect("ok")
				r := report(t, w.wrote(t))
				if m := r.method(t, "slow"); m.Calls == 0 || m.Total.Wall < 50e6 {
					t.Errorf("slow: %+v", m)
				}
			}
			if code := p.end(); code != 0 {
				t.Errorf("the program ended with %d", code)
			}
			w.ends(t)
			if traces, _ := filepath.Glob(filepath.Join(w.dir, "0", "*", "*.braid")); len(traces) != 2 {
				t.Errorf("%d traces, want two", len(traces))
			}
		})
	}
}

// Methods that can't be probed are watched from the rings: here, because there are too many.
func TestWatchMethodsByProbesOrRings(t *testing.T) {
	var c strings.Builder
	c.WriteString("#include <stdio.h>\n#include <unistd.h>\n")
	for i := range 20 {
		fmt.Fprintf(&c, "__attribute__((noinline)) void some%d(void) { usleep(%d); __asm__ volatile(\"\"); }\n", i, i/19*60000)
	}
	c.WriteString("int main(void) {\n  printf(\"main %d\\n\", getpid()); fflush(stdout);\n  while (getchar() != EOF) {\n")
	for i := range 20 {
		fmt.Fprintf(&c, "    some%d();\n", i)
	}
	c.WriteString("  }\n}\n")
	dir := t.TempDir()
	source, bin := filepath.Join(dir, "many.c"), filepath.Join(dir, "many")
	if err := os.WriteFile(source, []byte(c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(braidBin, "cc", "gcc", "-O2", "-o", bin, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := watch(t, "programs:\n  - {name: many, threads: all, ring: 1M}\ntriggers:\n"+
		"  - {name: late, method: {name: some*, longer: 50ms, via: probe}, cooldown: 0s}\n")
	p := start(t, exec.Command(bin))
	w.knows(t, p.expect("main"))
	until(t, "the status to say so", func() bool { return strings.Contains(w.status(t).Targets[0].Note, "from the rings") })
	fmt.Fprintln(p.stdin)
	if why := w.said(t, "msg=fired"); !strings.Contains(why, "some19 took") {
		t.Errorf("fired: %s", why)
	}
	if m := report(t, w.wrote(t)).method(t, "some19"); m.Calls == 0 {
		t.Errorf("some19: %+v", m)
	}
	w.ends(t)
	if code := p.end(); code != 0 {
		t.Errorf("the program ended with %d", code)
	}
}

// What is turned off by hand stays off until it is turned on by hand.
func TestWatchTurn(t *testing.T) {
	p, pid, tids := serve(t, "target", 3)
	w := watch(t, watchTarget)
	w.follows(t, pid, 4)
	must(t, "stop", "--socket", w.socket, "--thread", fmt.Sprint(tids[1]))
	w.follows(t, pid, 3)
	time.Sleep(2500 * time.Millisecond) // threads are chosen once a second
	w.follows(t, pid, 3)
	must(t, "start", "--socket", w.socket, "--thread", fmt.Sprint(tids[1]))
	w.follows(t, pid, 4)
	must(t, "stop", "--socket", w.socket)
	w.follows(t, pid, 0)
	must(t, "start", "--socket", w.socket)
	w.follows(t, pid, 4)
	for _, args := range [][]string{{"stop", "--thread", "nosuch"}, {"flush", "--name", "nosuch"}, {"trigger", "nosuch"}} {
		if o := braid(t, append(args, "--socket", w.socket)...); o.code != 1 || !strings.Contains(o.stderr, "braid status") {
			t.Errorf("%v ended with %d: %s", args, o.code, o.stderr)
		}
	}
	w.ends(t)
	p.unharmed()
}
