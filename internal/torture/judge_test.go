package torture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJudge: the runner finds what it is there to find. The programs break the rules on purpose.
func TestJudge(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	target := Targets["amd64"]
	target.Compilers = target.Compilers[:1]
	runner, err := NewRunner(braid(t, root), t.TempDir(), target)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		source string
		want   Verdict
		detail string
	}{
		"passes":       {`__attribute__((noipa)) int f(int a) { return a; } int main(void) { return f(0); }`, Passed, ""},
		"prints":       {`#include <stdio.h>` + "\n" + `int main(void) { puts("hello"); return 0; }`, Passed, ""},
		"prints place": {`#include <stdio.h>` + "\n" + `int main(int n, char **v) { printf("%p", (void *)v); return 0; }`, Passed, ""},
		"exits deep":   {`#include <stdlib.h>` + "\n" + `__attribute__((noipa)) void f(void) { exit(0); } int main(void) { f(); }`, Passed, ""},
		"fails anyway": {`int main(void) { return 3; }`, Unsupported, "ends with 3"},
		"no C":         {`int main(void) { return; } }`, Unsupported, "does not build"},
		// A value in a register that a call clobbers.
		"register": {`__attribute__((noipa)) void f(void) {} int main(void) { long v = 42; ` +
			`__asm__ volatile("subq $128, %%rsp; movq %0, %%r11; call f; movq %%r11, %0; addq $128, %%rsp" : "+r"(v) :: "r11", "rax", "rcx", "rdx", "cc", "memory"); return v != 42; }`,
			OffFails, "ends with 1"},
		// A function that is left by inline assembly: the stub of its return is passed by.
		"left": {`__attribute__((noipa, optimize("omit-frame-pointer"))) void f(void) { __asm__ volatile("ret"); } ` +
			`int main(void) { f(); return 0; }`, TraceWrong, "main has returned, open is: main"},
	} {
		t.Run(name, func(t *testing.T) {
			source := filepath.Join(t.TempDir(), "a.c")
			if err := os.WriteFile(source, []byte(c.source), 0o666); err != nil {
				t.Fatal(err)
			}
			got, err := runner.Judge(&Case{Program{Suite: "own", Name: name, Sources: []string{source}}, target.Compilers[0], "-O2"})
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != c.want || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%s: %s, want %s: %s", got.Verdict, got.Detail, c.want, c.detail)
			}
		})
	}
}
