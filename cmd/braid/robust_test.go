package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A program that is killed from outside in the middle still gives its last records.
func TestKilledFromOutside(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.braid")
	c := command(t, "record", "-o", file, "--", programs["target"], "stuck", "10007")
	var errs bytes.Buffer
	c.Stderr = &errs
	p := start(t, c)
	if err := syscall.Kill(p.expect("stuck"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code := p.end()
	checkRecorded(t, file, outcome{code: code, stderr: errs.String()}, 137)
	checkKilled(t, file, 10007, "stuck")
	checkPerfetto(t, file)
}

// A program that kills itself leaves all that it recorded until that very moment.
func TestKilledByItself(t *testing.T) {
	file, _ := record(t, 137, "--", programs["target"], "kill", "10007")
	checkKilled(t, file, 10007, "die_here")
}

func TestCrash(t *testing.T) {
	file, _ := record(t, 139, "--", programs["target"], "crash", "1009")
	checkKilled(t, file, 1009, "crash_here")
}

// checkKilled checks the exact count of before the end, and that the methods of the end are open.
func checkKilled(t *testing.T, file string, leaves int, last string) {
	t.Helper()
	r := report(t, file)
	r.calls(t, map[string]int{"main": 1, "leaves": 1, "leaf": leaves, last: 1})
	if m := r.method(t, last); m.Cut != 1 {
		t.Errorf("%s was open at the end: %+v", last, m)
	}
	if m := r.method(t, "leaves"); m.Cut != 0 {
		t.Errorf("leaves had ended: %+v", m)
	}
}

func TestCrashInFirstInstruction(t *testing.T) {
	file, o := record(t, 128+int(syscall.SIGILL), "--", programs["first"])
	if !strings.Contains(o.stderr, "no stubs") {
		t.Errorf("no note on stubs: %s", o.stderr)
	}
	if r := report(t, file); len(r.Threads) != 1 || r.Threads[0].Name != "first" {
		t.Errorf("the kernel side saw threads %+v", r.Threads)
	}
	checkPerfetto(t, file)
}

// Children are processes of their own, with their names, and exact counts.
func TestFork(t *testing.T) {
	const children = 5
	file, o := record(t, 0, "--", programs["target"], "fork", fmt.Sprint(children))
	want := map[string]int{"child": children, "leaves": children + 1, "leaf": 7}
	for i := range children {
		want["leaf"] += 100 + i
	}
	r := report(t, file)
	r.calls(t, want)
	pids := strings.Fields(strings.ReplaceAll(o.stdout, "child", ""))
	if len(pids) != children {
		t.Fatalf("the program says %q", o.stdout)
	}
	for i, pid := range pids {
		c := report(t, file, "--thread", pid)
		c.calls(t, map[string]int{"child": 1, "leaf": 100 + i})
		if len(c.Threads) != 1 || c.Threads[0].Name != fmt.Sprintf("child-%d", i) || fmt.Sprint(c.Threads[0].Pid) != pid {
			t.Errorf("child %d is %+v", i, c.Threads)
		}
	}
	tr := checkPerfetto(t, file)
	if tr == nil { // in a guest
		return
	}
	got := tr.Rows(t, `select replace(p.name, rtrim(p.name, replace(p.name, '/', '')), ''), count(*) from slice s join thread_track tt on tt.id = s.track_id join thread using (utid)
		join process p using (upid) where s.name = 'leaf' group by p.pid order by 1`)
	names := []string{"target 7"}
	for i := range children {
		names = append(names, fmt.Sprintf("child-%d %d", i, 100+i))
	}
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("processes and their leaves are %v, want %v", got, names)
	}
}

// A program that executes another traced one keeps what it recorded before, under the same process.
func TestExec(t *testing.T) {
	file, _ := record(t, 3, "--", programs["target"], "exec", programs["target"], "count", "1009", "3")
	r := report(t, file)
	r.calls(t, map[string]int{"leaf": 19 + 1009, "leaves": 2, "main": 2})
	if m := r.method(t, "main"); m.Cut != 1 {
		t.Errorf("the first main never returned: %+v", m)
	}
	checkPerfetto(t, file)
}

func TestExecOtherProgram(t *testing.T) {
	file, _ := record(t, 0, "--", programs["target"], "exec", programs["agree"], filepath.Join(t.TempDir(), "scratch"))
	r := report(t, file)
	r.calls(t, map[string]int{"leaf": 19, "main": 2})
	for _, m := range r.Methods {
		if strings.HasPrefix(m.Name, "0x") {
			t.Errorf("a method has no name: %+v", m)
		}
	}
}

func TestManyThreads(t *testing.T) {
	const threads = 200
	file, _ := record(t, 0, "--threads", "all", "--ring", "64K", "--", programs["target"], "threads", fmt.Sprint(threads))
	r := report(t, file)
	want := map[string]int{"worker": threads, "leaf": 11}
	for i := range threads {
		want["leaf"] += 1000 + i
	}
	r.calls(t, want)
	seen := 0
	for _, th := range r.Threads {
		var i int
		if n, _ := fmt.Sscanf(th.Name, "worker-%d", &i); n != 1 {
			continue
		}
		seen++
		if records := 2 * (1 + 1 + 1000 + i); th.Records != records {
			t.Errorf("%s has %d records, want %d", th.Name, th.Records, records)
		}
	}
	if seen != threads {
		t.Errorf("%d threads are named as workers, want %d", seen, threads)
	}
	checkPerfetto(t, file)
}

func TestMainThreadOnlyByDefault(t *testing.T) {
	file, _ := record(t, 0, "--", programs["target"], "threads", "3")
	r := report(t, file)
	r.calls(t, map[string]int{"worker": 0, "leaf": 11})
	if got := r.recorded(); !slices.Equal(got, []string{"target"}) {
		t.Errorf("threads with records: %v", got)
	}
}

// A library that was loaded late and is gone when the recording ends still has its names.
func TestDlopen(t *testing.T) {
	file, _ := record(t, 0, "--", programs["target"], "dlopen", programs["plugin.so"])
	r := report(t, file)
	r.calls(t, map[string]int{"plugin_enter": 1, "plugin_leaf": 503, "leaf": 13})
	if m := r.method(t, "plugin_leaf"); !strings.HasSuffix(m.Module, "plugin.so") {
		t.Errorf("plugin_leaf is in %q", m.Module)
	}
	checkPerfetto(t, file)
}

func TestCannotStart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		program string
		code    int
		says    string
	}{
		{"no-such-program-anywhere", 127, "not found"},
		{filepath.Join(dir, "missing"), 127, "no such file"},
		{write("script", "#!/no/such/interpreter\n", 0o755), 127, "no such file"},
		{write("text", "hello", 0o644), 126, "permission denied"},
		{write("junk", "\x7fELF and nothing else", 0o755), 126, "exec format error"},
		{dir, 126, "is a directory"},
	} {
		out := filepath.Join(t.TempDir(), "out.braid")
		o := braid(t, "record", "-o", out, "--", c.program)
		if o.code != c.code || !strings.Contains(o.stderr, c.says) || !strings.Contains(o.stderr, filepath.Base(c.program)) {
			t.Errorf("%s: exit code %d, %q; want %d, %q", c.program, o.code, o.stderr, c.code, c.says)
		}
		if left, _ := filepath.Glob(filepath.Dir(out) + "/*"); len(left) > 0 {
			t.Errorf("%s: %v is left", c.program, left)
		}
	}
	if left := orphanPrograms(); len(left) > 0 {
		t.Errorf("eBPF programs are left behind: %v", left)
	}
}

func TestNoStubs(t *testing.T) {
	file, o := record(t, 7, "--", programs["plain"], "count", "10", "7")
	if !strings.Contains(o.stderr, "braid: note: the target carries no stubs") {
		t.Errorf("no note: %s", o.stderr)
	}
	r := report(t, file)
	if len(r.Methods) != 0 || len(r.Threads) != 1 || r.Threads[0].Name != "plain" || r.Threads[0].Running == 0 {
		t.Errorf("methods %+v, threads %+v", r.Methods, r.Threads)
	}
	if len(r.Notes) == 0 || !strings.Contains(must(t, "report", file), "no stubs") {
		t.Error("the report does not say that there are no stubs")
	}
	checkPerfetto(t, file)
}

func TestExitCodes(t *testing.T) {
	for _, code := range []int{0, 1, 2, 3, 7, 255} {
		record(t, code, "--", programs["target"], "count", "3", fmt.Sprint(code))
	}
}

// The target has braid's own stdin, stdout and stderr, byte for byte.
func TestStreams(t *testing.T) {
	var all, turned []byte
	for i := range 50_000 {
		b := byte(i) ^ byte(i>>8)
		all, turned = append(all, b), append(turned, ^b)
	}
	file := filepath.Join(t.TempDir(), "out.braid")
	c := command(t, "record", "-o", file, "--", programs["target"], "copy")
	c.Stdin = bytes.NewReader(all)
	o := finish(t, c)
	if o.stdout != string(all) {
		t.Errorf("stdout has %d bytes, which are not stdin's %d", len(o.stdout), len(all))
	}
	rest, ok := strings.CutPrefix(o.stderr, string(turned))
	if !ok || strings.Count(rest, "\n") != 1 {
		t.Fatalf("stderr is not the program's %d bytes and one line: %q", len(turned), rest)
	}
	o.stderr = rest
	checkRecorded(t, file, o, 0)
}

// A terminal's Ctrl-C goes to braid and the program alike.
func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		story string
		code  int
		calls map[string]int
	}{
		{"interrupted", 5, map[string]int{"leaf": 17}}, // it ends in its own way
		{"stuck", 130, map[string]int{"leaf": 0, "stuck": 1}},
	} {
		file := filepath.Join(t.TempDir(), "out.braid")
		cmd := command(t, "record", "-o", file, "--", programs["target"], c.story)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		var errs bytes.Buffer
		cmd.Stderr = &errs
		p := start(t, cmd)
		p.expect(map[string]string{"interrupted": "main", "stuck": "stuck"}[c.story])
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		checkRecorded(t, file, outcome{code: p.end(), stderr: errs.String()}, c.code)
		report(t, file).calls(t, c.calls)
	}
}

// SIGTERM to braid alone ends the program too.
func TestTerminate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.braid")
	cmd := command(t, "record", "-o", file, "--", programs["target"], "stuck", "23")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	p := start(t, cmd)
	p.expect("stuck")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	checkRecorded(t, file, outcome{code: p.end(), stderr: errs.String()}, 143)
	checkKilled(t, file, 23, "stuck")
}
