package buildsystems

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// workCalls are the calls that testdata/beside/work.c makes.
var workCalls = map[string]int{"main": 1, "worker": 2, "count": 202, "peek": 1, "add": 1}

// TestBeside builds a program with options that put much of their own into it. It must run as without stubs, alone and
// recorded, and be traced.
func TestBeside(t *testing.T) {
	for _, c := range []struct {
		flags     string
		compilers string
		untraced  bool
	}{
		{flags: "-O1 -fsanitize=address -g"},
		{flags: "-O2 -fsanitize=undefined"},
		{flags: "-O1 -fsanitize=thread -g"},
		{flags: "-O0 --coverage"},
		{flags: "-O1 -pg"},
		{flags: "-O2 -fprofile-generate", compilers: "gcc"},
		{flags: "-O2 -fprofile-instr-generate", compilers: "clang clang-19"},
		{flags: "-O2 -flto=auto", compilers: "gcc"},
		{flags: "-O2 -flto -fuse-linker-plugin", compilers: "gcc"},
		{flags: "-O2 -flto -fno-use-linker-plugin -flto-partition=none", compilers: "gcc"},
		{flags: "-O2 -flto=thin -fuse-ld=lld-19", compilers: "clang-19", untraced: true},
		{flags: "-O2 -fsplit-stack", compilers: "gcc", untraced: true},
		{flags: "-O2 -mcmodel=large -fno-pie -no-pie", compilers: "gcc clang-19"},
		{flags: "-O2 -mcmodel=medium", compilers: "gcc clang-19"},
		{flags: "-O3 -static-pie -fcf-protection=full -fstack-protector-all -gsplit-dwarf -ffunction-sections"},
	} {
		if c.compilers == "" {
			c.compilers = "gcc clang clang-19"
		}
		for cc := range strings.FieldsSeq(c.compilers) {
			t.Run(cc+" "+strings.ReplaceAll(c.flags, "=", " "), func(t *testing.T) {
				t.Parallel()
				p := newDirectory(t, "work", "testdata/beside")
				p.run("braid cc " + cc + " " + c.flags + " -c work.c; braid cc " + cc + " " + c.flags + " work.o -pthread -o work")
				calls := p.both("./work", "202\n")
				for name, want := range workCalls {
					if c.untraced {
						want = 0
					}
					if calls[name] != want {
						t.Errorf("%d calls of %s, want %d", calls[name], name, want)
					}
				}
				p.noLitter()
			})
		}
	}
}

// TestSanitizersFind: what a sanitizer reports is what it reports without stubs, and nothing else.
func TestSanitizersFind(t *testing.T) {
	for _, c := range []struct{ flags, fault, report string }{
		{"-O1 -g -fsanitize=address", "overrun", "heap-buffer-overflow"},
		{"-O1 -g -fsanitize=undefined", "overflow", "signed integer overflow"},
		{"-O1 -g -fsanitize=thread", "race", "data race"},
	} {
		for _, cc := range []string{"gcc", "clang", "clang-19"} {
			t.Run(cc+" "+c.fault, func(t *testing.T) {
				t.Parallel()
				p := newDirectory(t, "work", "testdata/beside")
				var outcomes [3]string
				for i, build := range []string{"", "braid cc ", "braid cc "} {
					p.run(build + cc + " " + c.flags + " work.c -pthread -o work")
					command := "./work " + c.fault
					if i == 2 {
						command = "braid record -o '" + filepath.Join(t.TempDir(), "x.braid") + "' -- " + command
					}
					outcomes[i] = summaries(p.command(command))
				}
				if !strings.Contains(outcomes[0], c.report) || outcomes[1] != outcomes[0] || outcomes[2] != outcomes[0] {
					t.Errorf("plain:\n%s\nwith stubs:\n%s\nrecorded:\n%s", outcomes[0], outcomes[1], outcomes[2])
				}
			})
		}
	}
}

// summaries runs a program and returns the kinds and places of a sanitizer's reports: the lines that name the source.
func summaries(c *exec.Cmd) string {
	out, _ := c.CombinedOutput() // it fails where it reports
	var lines []string
	for line := range strings.Lines(string(out)) {
		if i := strings.Index(line, "work.c:"); i >= 0 && (strings.Contains(line, "SUMMARY") || strings.Contains(line, "runtime error")) {
			lines = append(lines, strings.TrimSpace(line[max(0, strings.Index(line, ": ")):]))
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}
