package arms

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"braid/compare/arm"
	"braid/compare/probe"
	"braid/compare/workload"
)

// Every call of Lua's functions is met once, at its entry and its return, by one link for all of them.
func TestCoverLua(t *testing.T) {
	env := probeEnvironment(t)
	a := named(t, "session-count-all")
	if probe.Supported(probe.Session) != nil {
		a = named(t, "pair-count-all")
	}
	s, err := a.Open(t.Context(), env, arm.Work{Workload: workload.Startup, CPU: 0, Aligns: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Run(t.Context(), workload.Request{Calls: 1})
	if err != nil || m.Calls < 300_000 || m.Expected != 2*uint64(m.Calls) || m.Recorded != m.Expected {
		t.Errorf("%+v, %v", m, err)
	}
	if f := s.Facts(); f["functions"] == "" || !strings.HasPrefix(f[arm.FactClass], f["functions"]+" functions: ") {
		t.Errorf("%v", f)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(env.Dir, "*", "lua_[0-9]*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

const caller = `
#include <math.h>
__attribute__((noipa)) void leaf_a(void) { }
__attribute__((noipa)) void leaf_b(void) { leaf_a(); }
__attribute__((noipa)) double other(double x) { return sin(x); }
int main(void)
{
	for (volatile int i = 0; i < 1009; i++)
		leaf_b();
	for (volatile int i = 0; i < 101; i++)
		other(i);
	return 0;
}
`

// Only the functions that were chosen are met, in the program and in its library, and only in the measured process: others that run the
// same files meet nothing.
func TestCoverCommand(t *testing.T) {
	env := probeEnvironment(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("p.c", []byte(caller), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O2", "-o", "program", "p.c", "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		arm       string
		functions []string
		events    uint64
	}{
		{"pair-count-all", []string{"leaf_*"}, 2 * 2 * 1009},
		{"pair-record-all", []string{"leaf_a", "other"}, 2 * (1009 + 101)},
		{"session-record-all", []string{"leaf_b"}, 2 * 1009},
		{"session-count-all", []string{"main", "libm:sin*"}, 0},
	} {
		a := named(t, c.arm)
		if a.Check(t.Context(), env) != nil {
			continue
		}
		s, err := a.Open(t.Context(), env, arm.Work{Workload: workload.Command, CPU: 0, Aligns: []int{0}, Command: []string{"./program"}, Functions: c.functions})
		if err != nil {
			t.Errorf("%s: %v", c.arm, err)
			continue
		}
		if out, err := exec.Command("./program").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		m, err := s.Run(t.Context(), workload.Request{Calls: 3})
		if err != nil || m.Calls != 3 || m.Recorded != m.Expected || m.Recorded != 3*c.events && c.events > 0 || m.Recorded < 3*2 {
			t.Errorf("%s on %v: %+v, %v", c.arm, c.functions, m, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	a := named(t, "pair-count-all")
	for functions, want := range map[string]string{"nothing": "no functions", "libz:*": "not linked", "/nowhere:*": "no such file"} {
		var u *arm.Unavailable
		s, err := a.Open(t.Context(), env, arm.Work{Workload: workload.Command, CPU: 0, Command: []string{"./program"}, Functions: []string{functions}})
		if !errors.As(err, &u) || !strings.Contains(u.Why, want) {
			t.Errorf("%s: %v", functions, err)
		}
		if err == nil {
			s.Close()
		}
	}
	if left, err := filepath.Glob(filepath.Join(env.Dir, "probes-*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Libraries are found where the dynamic linker finds them.
func TestFileOf(t *testing.T) {
	path, err := fileOf("gcc", "libc")
	if err != nil {
		t.Fatal(err)
	}
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if name, err := e.DynString(elf.DT_SONAME); err != nil || len(name) != 1 || !strings.HasPrefix(name[0], "libc.so") {
		t.Errorf("%s is called %v, %v", path, name, err)
	}
	if program, err := fileOf("gcc", ""); err != nil || !filepath.IsAbs(program) {
		t.Errorf("%s, %v", program, err)
	}
}
