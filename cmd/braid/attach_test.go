package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serve starts the server of testdata/target.c with n workers beside its main thread, untraced as yet, and returns the
// workers' thread ids.
func serve(t *testing.T, program string, n int) (p *running, pid int, tids []int) {
	t.Helper()
	p = start(t, exec.Command(programs[program], "serve", fmt.Sprint(n)))
	said := map[string]int{}
	for len(said) < n+1 {
		line := p.lines.find(t, "")
		var name string
		var id int
		if k, _ := fmt.Sscanf(line, "%s %d", &name, &id); k == 2 {
			said[name] = id
		}
	}
	for i := range n {
		tids = append(tids, said[fmt.Sprintf("serve-%d", i)])
	}
	return p, said["main"], tids
}

// unharmed ends a server and checks that it served to the end.
func (r *running) unharmed() {
	r.t.Helper()
	r.stdin.Close()
	r.expect("done")
	if code := r.end(); code != 0 {
		r.t.Errorf("the program ended with %d", code)
	}
}

// consistent checks that what a thread recorded is consistent: three leaves for each leaves, but for those at the edges.
func consistent(t *testing.T, r *summed) {
	t.Helper()
	leaf, leaves := r.method(t, "leaf"), r.method(t, "leaves")
	edges := 3 * len(r.recorded())
	if diff := leaf.Calls - 3*leaves.Calls; leaves.Calls == 0 || diff < -edges || diff > edges {
		t.Errorf("%d leaves with %d leaf", leaves.Calls, leaf.Calls)
	}
}

func TestAttach(t *testing.T) {
	p, pid, tids := serve(t, "target", 3)
	for _, c := range []struct {
		threads string
		want    []string
	}{
		{"main", []string{"target"}},
		{"all", []string{"serve-0", "serve-1", "serve-2", "target"}},
		{"serve-[02]", []string{"serve-0", "serve-2"}},
		{fmt.Sprint(tids[1]), []string{"serve-1"}},
		{fmt.Sprintf("main,%d", tids[2]), []string{"serve-2", "target"}},
		{"nobody-*", nil},
	} {
		t.Run(c.threads, func(t *testing.T) {
			file, _ := record(t, 0, "-p", fmt.Sprint(pid), "--for", "400ms", "--threads", c.threads)
			r := report(t, file)
			if got := r.recorded(); !slices.Equal(got, c.want) {
				t.Errorf("threads with records: %v, want %v", got, c.want)
			}
			if c.want == nil {
				return
			}
			consistent(t, r)
			states := 0
			for _, th := range r.Threads {
				if th.Pid == pid && th.Sleeping > th.Running {
					states++
				}
			}
			if states < 4 {
				t.Errorf("the kernel side saw %d sleeping threads: %+v", states, r.Threads)
			}
			checkPerfetto(t, file)
		})
	}
	p.unharmed()
}

// Ctrl-C ends a recording of a running process, which goes on; so does its end.
func TestAttachEnds(t *testing.T) {
	p, pid, _ := serve(t, "target", 1)
	file := filepath.Join(t.TempDir(), "out.braid")
	c := command(t, "record", "-o", file, "-p", fmt.Sprint(pid))
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "recording", func() bool { return traced(pid) })
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	checkRecorded(t, file, outcome{code: waitCode(t, c), stderr: errs.String()}, 0)
	if !alive(pid) {
		t.Fatal("the program ended with the recording")
	}

	file = filepath.Join(t.TempDir(), "out.braid")
	c = command(t, "record", "-o", file, "-p", fmt.Sprint(pid))
	errs.Reset()
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "recording", func() bool { return traced(pid) })
	time.Sleep(200 * time.Millisecond) // of the program's work
	p.unharmed()
	checkRecorded(t, file, outcome{code: waitCode(t, c), stderr: errs.String()}, 0)
	consistent(t, report(t, file))
}

// traced reports whether some recorder has the memory of a process open.
func traced(pid int) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return false
	}
	inode := ""
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) > 5 && strings.HasPrefix(f[5], "/memfd:braid") {
			inode = f[4]
		}
	}
	others, _ := filepath.Glob("/proc/[0-9]*/maps")
	for _, m := range others {
		if b, _ := os.ReadFile(m); m != fmt.Sprintf("/proc/%d/maps", pid) && bytes.Contains(b, []byte(" "+inode+" ")) {
			return true
		}
	}
	return false
}

func TestAttachWithoutStubs(t *testing.T) {
	p, pid, _ := serve(t, "plain", 2)
	file, o := record(t, 0, "-p", fmt.Sprint(pid), "--for", "300ms")
	if !strings.Contains(o.stderr, "carries no stubs") {
		t.Errorf("no note: %s", o.stderr)
	}
	r := report(t, file)
	if len(r.Methods) != 0 || len(r.Threads) < 3 {
		t.Errorf("methods %+v, threads %+v", r.Methods, r.Threads)
	}
	checkPerfetto(t, file)
	o = braid(t, "record", "--kernel", "none", "-p", fmt.Sprint(pid), "--for", "1s")
	if o.code != 1 || !strings.Contains(o.stderr, "no stubs") {
		t.Errorf("with nothing to record: %d, %s", o.code, o.stderr)
	}
	p.unharmed()
}

func TestAttachNonexistent(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	c := command(t, "record", "-p", fmt.Sprint(gone.Process.Pid))
	o := finish(t, c)
	if o.code != 1 || !strings.Contains(o.stderr, fmt.Sprintf("process %d does not exist", gone.Process.Pid)) {
		t.Errorf("%d, %s", o.code, o.stderr)
	}
	if left, _ := os.ReadDir(c.Dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// Two recorders would take each other's threads away: the second one is refused, until the first has ended.
func TestSecondRecorder(t *testing.T) {
	for _, launched := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "out.braid")
		var p *running
		var first *exec.Cmd
		var pid int
		if launched {
			p = start(t, command(t, "record", "-o", file, "--", programs["target"], "serve", "1"))
			pid = p.expect("main")
		} else {
			p, pid, _ = serve(t, "target", 1)
			first = command(t, "record", "-o", file, "-p", fmt.Sprint(pid))
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "recording", func() bool { return traced(pid) })
		}
		o := braid(t, "record", "--for", "200ms", "-p", fmt.Sprint(pid))
		if o.code != 1 || !strings.Contains(o.stderr, fmt.Sprintf("process %d: another braid is recording it", pid)) {
			t.Errorf("launched %v: exit code %d, %s", launched, o.code, o.stderr)
		}
		if first != nil {
			if err := first.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := waitCode(t, first); code != 0 {
				t.Errorf("the first recorder ended with %d", code)
			}
			again, _ := record(t, 0, "--for", "200ms", "-p", fmt.Sprint(pid))
			consistent(t, report(t, again))
		}
		p.unharmed()
		consistent(t, report(t, file))
	}
}

// A recorder that is killed harms nobody, and its target can be recorded again.
func TestRecorderKilled(t *testing.T) {
	dir := t.TempDir()
	c := command(t, "record", "-o", filepath.Join(dir, "lost.braid"), "--threads", "all", "--", programs["target"], "serve", "2")
	p := start(t, c)
	pid := p.expect("main")
	p.expect("warm")
	c.Process.Kill()
	c.Wait()
	if left := orphanPrograms(); len(left) > 0 {
		t.Errorf("eBPF programs are left behind: %v", left)
	}
	if !alive(pid) {
		t.Fatal("the program died with its recorder")
	}
	for range 2 {
		file, _ := record(t, 0, "-p", fmt.Sprint(pid), "--for", "300ms", "--threads", "all")
		r := report(t, file)
		// The thread that waits for the end of stdin has still been on since the first recorder: it may be there, too.
		if got, want := slices.Compact(r.recorded()), []string{"serve-0", "serve-1", "target"}; !slices.Equal(got, want) {
			t.Errorf("threads with records: %v, want %v", got, want)
		}
		consistent(t, r)
	}
	p.stdin.Close()
	p.expect("done")
	until(t, "the program's end", func() bool { return !alive(pid) })
}

// --for ends the recording of a program that goes on; braid still waits for its end, and ends with its exit code.
func TestFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.braid")
	c := command(t, "record", "-o", file, "--for", "300ms", "--", programs["target"], "serve", "1")
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, c)
	pid := p.expect("main")
	lines := newLineReader(pipe)
	summary := lines.find(t, "braid: ")
	for strings.HasPrefix(summary, "note: ") {
		summary = lines.find(t, "braid: ")
	}
	summary = "braid: " + summary
	if !alive(pid) {
		t.Error("the program has ended")
	}
	consistent(t, report(t, file)) // the file is there while the program goes on
	p.stdin.Close()
	p.expect("done")
	checkRecorded(t, file, outcome{code: p.end(), stderr: summary}, 0)
}

// Without root, methods are recorded; of one's own processes only.
func TestWithoutRoot(t *testing.T) {
	dir := t.TempDir()
	openTo(t, dir)
	asNobody := func(c *exec.Cmd) *exec.Cmd {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		c.Dir = dir
		return c
	}
	for i, c := range []struct {
		flags []string
		note  bool
	}{{[]string{"--kernel", "none"}, false}, {nil, true}} {
		file := filepath.Join(dir, fmt.Sprintf("%d.braid", i))
		args := slices.Concat([]string{"record", "-o", file}, c.flags, []string{"--", programs["target"], "fork", "2"})
		o := finish(t, asNobody(exec.Command(braidBin, args...)))
		checkRecorded(t, file, o, 0)
		if strings.Contains(o.stderr, "braid: note: no kernel events") != c.note {
			t.Errorf("flags %v: stderr is %s", c.flags, o.stderr)
		}
		r := report(t, file)
		r.calls(t, map[string]int{"leaf": 7 + 100 + 101, "child": 2})
		for _, m := range r.Methods {
			if m.Total.Unknown != m.Total.Wall {
				t.Errorf("without kernel events %s has states: %+v", m.Name, m.Total)
			}
		}
		checkPerfetto(t, file)
	}
	o := finish(t, asNobody(exec.Command(braidBin, "record", "-o", filepath.Join(dir, "no.braid"), "--kernel", "sched", "--", programs["target"], "count", "1")))
	if o.code != 1 || !strings.Contains(o.stderr, "root") {
		t.Errorf("kernel events were asked for: %d, %s", o.code, o.stderr)
	}

	root, pid, _ := serve(t, "target", 1)
	o = finish(t, asNobody(exec.Command(braidBin, "record", "--for", "1s", "-p", fmt.Sprint(pid))))
	if o.code != 1 || !strings.Contains(o.stderr, "run braid as root") {
		t.Errorf("root's process, as nobody: %d, %s", o.code, o.stderr)
	}
	root.unharmed()

	own := start(t, asNobody(exec.Command(programs["target"], "serve", "1")))
	pid = own.expect("main")
	own.expect("warm")
	file := filepath.Join(dir, "own.braid")
	o = finish(t, asNobody(exec.Command(braidBin, "record", "-o", file, "--threads", "all", "--for", "300ms", "-p", fmt.Sprint(pid))))
	checkRecorded(t, file, o, 0)
	r := report(t, file)
	if got := r.recorded(); !slices.Equal(got, []string{"serve-0", "target"}) {
		t.Errorf("threads with records: %v", got)
	}
	consistent(t, r)
	own.unharmed()
}
