package constructs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"braid/control"
	"braid/inline/runtime"
)

// chains are the stacks that a program of testdata/parts/gdb.cc can have, innermost first, as far as they are its own.
var chains = []string{
	"main", "leaf main", "outer main", "middle outer main", "leaf middle outer main",
	"catcher main", "jumps catcher main", "handler main", "thrower handler main",
}

// TestDebugger has gdb step through a traced program instruction by instruction, stubs included. At each its backtrace
// must be a chain of callers that the source has, and at each in a function of the program's own a line of it.
func TestDebugger(t *testing.T) {
	source, err := filepath.Abs("testdata/parts/gdb.cc")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/parts/steps.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, cc := range []string{"g++", "clang++"} {
		for _, level := range levels() {
			t.Run(cc+level, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				must(t, dir, braidBin, "cc", cc, "-g", level, source, "-o", "program")
				file := filepath.Join(dir, "steps.py")
				settings := functions(must(t, dir, "nm", "-S", "program"))
				if err := os.WriteFile(file, append(settings, script...), 0o600); err != nil {
					t.Fatal(err)
				}
				s, err := control.NewSession(runtime.PolicyAll, ringBytes)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				o, err := run(dir, []string{s.Env()}, "gdb", "-nx", "-batch", "-x", file, "./program")
				if err != nil {
					t.Fatal(err)
				}
				checkSteps(t, o.output)
			})
		}
	}
}

// functions gives the script the places of the program's functions and of what was split off them, from nm's output.
func functions(symbols string) []byte {
	out := []byte("RANGES = []\n")
	for line := range strings.Lines(symbols) {
		f := strings.Fields(line)
		if len(f) != 4 || !ownFunction(strings.TrimSuffix(f[3], ".cold")) {
			continue
		}
		out = fmt.Appendf(out, "RANGES.append((0x%s, 0x%s))\n", f[0], f[1])
		if f[3] == "main" {
			out = fmt.Appendf(out, "MAIN = 0x%s\n", f[0])
		}
	}
	return out
}

// checkSteps reads the script's output.
func checkSteps(t *testing.T, output string) {
	seen := map[string]int{}
	wrong := 0
	for line := range strings.Lines(output) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "at ")
		if !ok || strings.HasPrefix(rest, "0 done") || strings.Contains(rest, " done ") {
			continue
		}
		number, chain, _ := strings.Cut(rest, " ")
		names := strings.Fields(chain)
		i := slices.IndexFunc(names, ownFunction)
		if i < 0 {
			i = len(names)
		}
		own := strings.Join(names[i:], " ")
		seen[own]++
		// What is not the program's own, in front, is what it calls.
		if !slices.Contains(chains, own) || i == 0 && number == "0" {
			if wrong++; wrong <= 5 {
				t.Errorf("backtrace %q at line %s", chain, number)
			}
		}
	}
	if wrong > 5 {
		t.Errorf("%d wrong backtraces in all", wrong)
	}
	for _, c := range chains {
		if seen[c] == 0 {
			t.Errorf("never in %q", c)
		}
	}
	if t.Failed() {
		t.Logf("%v\n%.2000s", seen, output)
	}
}

func ownFunction(name string) bool {
	return slices.ContainsFunc(chains, func(c string) bool { first, _, _ := strings.Cut(c, " "); return first == name })
}
