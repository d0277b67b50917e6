package probe

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// target is the test's own program, at work.
type target struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// targetPath is testdata/target.c, compiled by TestMain, or what BRAID_TEST_TARGET names, for guests without a compiler.
var targetPath = os.Getenv("BRAID_TEST_TARGET")

func TestMain(m *testing.M) {
	if targetPath != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "braid-probe-")
	if err != nil {
		panic(err)
	}
	targetPath = filepath.Join(dir, "target")
	out, err := exec.Command("gcc", "-O2", "-fno-optimize-sibling-calls", "-Wall", "-Werror", "-o", targetPath, "testdata/target.c").CombinedOutput()
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func start(t *testing.T) *target {
	t.Helper()
	p := &target{t: t, cmd: exec.Command(targetPath)}
	p.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	runtime.LockOSThread() // for Pdeathsig
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	p.call("nothing", 0) // it runs, and is past its loader
	return p
}

func (p *target) pid() int { return p.cmd.Process.Pid }

// call calls a function so often, and returns how many watch the static probes.
func (p *target) call(function string, calls int) (watchers int) {
	p.t.Helper()
	fmt.Fprintf(p.in, "%s %d\n", function, calls)
	if !p.out.Scan() {
		p.t.Fatalf("the target ended in %s", function)
	}
	if _, err := fmt.Sscan(p.out.Text(), &watchers); err != nil {
		p.t.Fatal(err)
	}
	return watchers
}

func (p *target) stop() {
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the target: %v", err)
	}
	runtime.UnlockOSThread()
}

func open(t *testing.T, o Options) *Tracer {
	t.Helper()
	tr, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

func entries(t *testing.T, functions ...string) []Site {
	t.Helper()
	sites, err := Entries(targetPath, functions)
	if err != nil {
		t.Fatal(err)
	}
	return sites
}

func take(t *testing.T, tr *Tracer, want Counts) {
	t.Helper()
	got, err := tr.Take()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("counts are %+v, want %+v", got, want)
	}
}

func attach(t *testing.T, tr *Tracer, p *target, sites []Site) {
	t.Helper()
	if err := tr.Attach(p.pid(), targetPath, sites); err != nil {
		t.Fatal(err)
	}
}

func detach(t *testing.T, tr *Tracer) {
	t.Helper()
	if err := tr.Detach(); err != nil {
		t.Fatal(err)
	}
}

// kinds that the running kernel has. That it lacks one must be because of its version.
func kinds(t *testing.T) (have []Kind) {
	t.Helper()
	kernel, err := KernelVersion()
	if err != nil {
		t.Fatal(err)
	}
	since := map[Kind][2]int{Multi: {6, 6}, Session: {6, 13}}
	for _, k := range []Kind{Entry, Return, Pair, Multi, Session, Static} {
		want := kernel.Since(since[k][0], since[k][1])
		switch err := Supported(k); {
		case err == nil:
			have = append(have, k)
		case want || !errors.Is(err, ErrNoKind):
			t.Errorf("%s on Linux %v: %v", k, kernel, err)
		}
	}
	return have
}

// What is decoded must be what the kernel does, for every instruction of the target.
func TestClassesAreTheKernels(t *testing.T) {
	kernel, err := KernelVersion()
	if err != nil {
		t.Fatal(err)
	}
	tr := open(t, Options{Kind: Static}) // the fastest to detach, and without returns
	for _, f := range functionsOf(t) {
		site := entries(t, f)
		class, err := Classify(runtime.GOARCH, site[0].Code, site[0].Address, kernel)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		p := start(t)
		err = tr.Attach(p.pid(), targetPath, site)
		if class == Refused || err != nil {
			if class != Refused || err == nil {
				t.Errorf("%s (%s) should be %s, and Attach says %v", f, site[0].Text(runtime.GOARCH), class, err)
			}
			detach(t, tr)
			continue
		}
		p.call(f, 3)
		take(t, tr, Counts{Events: 3})
		states, stepping, err := Look(p.pid(), targetPath, site)
		if err != nil {
			t.Fatal(err)
		}
		if (states[0] == Called) != (class == Call) || stepping != (class == Stepped) || states[0] == Untouched {
			t.Errorf("%s (%s) should be %s, and is %s, stepping %v", f, site[0].Text(runtime.GOARCH), class, states[0], stepping)
		}
		t.Logf("%-20s %-30s %s, %s", f, site[0].Text(runtime.GOARCH), class, states[0])
		detach(t, tr)
		if states, _, err := Look(p.pid(), targetPath, site); err != nil || states[0] != Untouched {
			t.Errorf("%s is %v after Detach: %v", f, states, err)
		}
	}
}

// functionsOf lists the functions that the target defines by a macro.
func functionsOf(t *testing.T) (names []string) {
	t.Helper()
	source, err := os.ReadFile("testdata/target.c")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(source)) {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "\tF("), ",")
		if !ok || !strings.HasPrefix(line, "\tF(") {
			continue
		}
		if _, err := Entries(targetPath, []string{name}); err == nil { // the other processor's are not there
			names = append(names, name)
		}
	}
	if len(names) < 10 {
		t.Fatalf("the target has only %v", names)
	}
	slices.Sort(names)
	return slices.Compact(names) // some names are both processors'
}
