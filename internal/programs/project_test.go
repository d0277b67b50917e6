package programs

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// project is a program with tests of its own.
type project struct {
	name   string // as of the test; "": source
	source string // Debian's package
	// Both are run in the source's directory, with CC and CXX in their environment.
	build  [][]string // commands
	tests  []string   // a command
	passed string     // what it prints only if all tests pass
	// varies matches what the tests print otherwise each time: times above all.
	varies *regexp.Regexp
	// processes is how many processes with stubs the tests start, at least.
	processes int
	hot       []string // functions that the tests must have called, without parameters
	binary    string   // the file whose code's growth is told
	ring      string   // as of braid record; "" for its default
	open      int      // how many methods may be open when a process ends; 0: 60
	unwound   uint64   // how many calls end without an exit, at least
	compilers []compiler
	slow      bool
}

// sh is a shell's command.
func sh(script string) []string { return []string{"sh", "-e", "-c", script} }

// TestProjects: a program's own tests pass with stubs, recorded or not, with the same output; and what is recorded is
// sound. With all programs, the tests run without stubs first, so that it is known what to expect, and what the stubs
// cost is told: a row for docs/programs.md.
func TestProjects(t *testing.T) {
	for _, p := range projects {
		if p.slow && !everything() {
			continue
		}
		t.Run(p.title(), func(t *testing.T) {
			for _, cc := range p.compilers {
				t.Run(cc.name, func(t *testing.T) {
					t.Parallel()
					p.test(t, cc)
				})
			}
		})
	}
}

func (p *project) test(t *testing.T, cc compiler) {
	judge := cc
	if everything() {
		judge = cc.without()
	}
	bare, bareSpent := p.tree(t, judge)
	want := p.outcome(bare, run(t, bare, judge.env(), p.tests...))
	if want.code != 0 || !strings.Contains(want.stdout+want.stderr, p.passed) {
		t.Fatalf("its tests fail with %s: %+v", judge.c, want)
	}
	dir, spent := p.tree(t, cc)
	if everything() {
		if got := p.outcome(dir, run(t, dir, cc.env(), p.tests...)); got != want {
			t.Errorf("not recorded: %s", difference(got, want))
		}
	}
	options := []string{"--threads", "all"}
	if p.ring != "" {
		options = append(options, "--ring", p.ring)
	}
	got, file := recorded(t, dir, cc.env(), options, p.tests...)
	if got = p.outcome(dir, got); got != want {
		t.Errorf("recorded: %s", difference(got, want))
	}
	s := examine(t, file)
	open := p.open
	if open == 0 {
		open = 60
	}
	if len(s.processes) < p.processes || s.open > open {
		t.Errorf("records of %d processes, want %d; up to %d methods open at the end, want %d", len(s.processes), p.processes, s.open, open)
	}
	if s.stats.Unwound < p.unwound {
		t.Errorf("%d calls ended without an exit, want %d", s.stats.Unwound, p.unwound)
	}
	for _, name := range p.hot {
		if !s.called(name) {
			t.Errorf("no calls of %s", name)
		}
	}
	t.Logf("%d processes, %d threads, %d calls of %d functions, at most %d open at an end; %+v",
		len(s.processes), s.threads, total(s.calls), len(s.calls), s.open, s.stats)
	if !everything() {
		return
	}
	t.Logf("| %s | %s | passed | same | same | %d | %d | %d | %.2f | %.2f |", versionOf(t, dir), cc.name, len(s.processes),
		s.stats.Records, s.stats.Unwound, float64(codeSize(t, filepath.Join(dir, p.binary)))/float64(codeSize(t, filepath.Join(bare, p.binary))),
		spent.Seconds()/bareSpent.Seconds())
}

// tree builds the project and returns its directory, and the CPU time that building took.
func (p *project) tree(t *testing.T, cc compiler) (dir string, spent time.Duration) {
	t.Helper()
	variant := cc.name
	if p.name != "" {
		variant = p.name + "-" + variant
	}
	took := "../" + p.source + "-" + variant + ".time"
	dir = tree(t, p.source, variant, func(t testing.TB, dir string) {
		for _, words := range p.build {
			c := command(dir, cc.env(), words...)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%q: %v\n%s", words, err, out)
			}
			spent += processorTime(c)
		}
		write(t, filepath.Join(dir, took), spent.String(), 0o644)
	})
	text, err := os.ReadFile(filepath.Join(dir, took))
	if err != nil {
		t.Fatal(err)
	}
	if spent, err = time.ParseDuration(string(text)); err != nil {
		t.Fatal(err)
	}
	return dir, spent
}

func (p *project) title() string {
	if p.name != "" {
		return p.name
	}
	return p.source
}

// processorTime is what a finished command took, with all processes that it waited for.
func processorTime(c *exec.Cmd) time.Duration {
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
}

// outcome is o, of a command in directory dir, without what varies.
func (p *project) outcome(dir string, o outcome) outcome {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for _, s := range []*string{&o.stdout, &o.stderr} {
		*s = strings.ReplaceAll(*s, dir, "DIR")
		if p.varies != nil {
			*s = p.varies.ReplaceAllString(*s, "~")
		}
	}
	return o
}

// difference is where got and want part.
func difference(got, want outcome) string {
	if got.code != want.code {
		return fmt.Sprintf("exit code %d, want %d\n%s%s", got.code, want.code, got.stdout, got.stderr)
	}
	g, w := strings.Split(got.stdout+got.stderr, "\n"), strings.Split(want.stdout+want.stderr, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: %q, want %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// versionOf is a Debian source's name and version.
func versionOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "debian/changelog"))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		t.Fatalf("%s: no version in debian/changelog", dir)
	}
	return f[0] + " " + strings.Trim(f[1], "()")
}

// codeSize is the size of a file's code, in bytes.
func codeSize(t testing.TB, path string) (n uint64) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 {
			n += s.Size
		}
	}
	if n == 0 {
		t.Fatal(fmt.Errorf("%s: no code", path))
	}
	return n
}
