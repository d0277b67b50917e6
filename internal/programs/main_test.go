package programs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var (
	scratch  string // of this run, or BRAID_TEST_PROGRAMS_DIR
	braidBin string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if scratch = os.Getenv("BRAID_TEST_PROGRAMS_DIR"); scratch == "" {
		if scratch, err = os.MkdirTemp("", "braid-programs-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(scratch)
	}
	braidBin = filepath.Join(scratch, "bin", "braid")
	if out, err := exec.Command("go", "build", "-o", braidBin, "braid/cmd/braid").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building braid: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// everything reports whether the slow programs are wanted, too.
func everything() bool { return os.Getenv("BRAID_TEST_PROGRAMS") == "all" }

// compiler is a way to compile C and C++.
type compiler struct {
	name    string
	c, plus string
}

var (
	plain = compiler{"plain", "gcc", "g++"}
	gcc   = compiler{"gcc", "braid cc gcc", "braid cc g++"}
	clang = compiler{"clang", "braid cc clang", "braid cc clang++"}

	traced = []compiler{gcc, clang}
)

// without is the same compiler without stubs.
func (cc compiler) without() compiler {
	return compiler{"plain-" + cc.name, strings.TrimPrefix(cc.c, "braid cc "), strings.TrimPrefix(cc.plus, "braid cc ")}
}

// env is how a build is told of the compiler.
func (cc compiler) env() []string { return []string{"CC=" + cc.c, "CXX=" + cc.plus} }

// withCompilers runs a test for each compiler that inserts stubs, at the same time. t must have nothing left to do.
func withCompilers(t *testing.T, f func(t *testing.T, cc compiler)) {
	for _, cc := range traced {
		t.Run(cc.name, func(t *testing.T) {
			t.Parallel()
			f(t, cc)
		})
	}
}

// outcome is what a finished command left.
type outcome struct {
	code           int
	stdout, stderr string
}

// command is a process in directory dir, with braid in PATH and more variables in its environment.
func command(dir string, env []string, words ...string) *exec.Cmd {
	c := exec.Command(words[0], words[1:]...)
	if words[0] == "braid" {
		c.Path, c.Err = braidBin, nil
	}
	c.Dir = dir
	c.Env = append(os.Environ(), "LC_ALL=C", "PATH="+filepath.Dir(braidBin)+":"+os.Getenv("PATH"))
	c.Env = append(c.Env, env...)
	return c
}

func run(t testing.TB, dir string, env []string, words ...string) outcome {
	t.Helper()
	c := command(dir, env, words...)
	var out, messages bytes.Buffer
	c.Stdout, c.Stderr = &out, &messages
	if err := c.Run(); c.ProcessState == nil {
		t.Fatalf("%q: %v", words, err)
	}
	return outcome{c.ProcessState.ExitCode(), out.String(), messages.String()}
}

func mustRun(t testing.TB, dir string, env []string, words ...string) string {
	t.Helper()
	o := run(t, dir, env, words...)
	if o.code != 0 {
		t.Fatalf("%q: exit code %d\n%s\n%s", words, o.code, o.stdout, o.stderr)
	}
	return o.stdout
}

// recorded runs a command under braid record, and returns what it printed and the trace file.
func recorded(t *testing.T, dir string, env, options []string, words ...string) (o outcome, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "trace.braid")
	args := append([]string{"braid", "record", "-o", file}, options...)
	o = run(t, dir, env, append(append(args, "--"), words...)...)
	text, summary, ok := cutLastLine(o.stderr)
	if !ok || !strings.HasPrefix(summary, "braid: ") || !strings.Contains(summary, " records of ") {
		t.Fatalf("%q: no summary at the end of:\n%s%s", words, o.stdout, o.stderr)
	}
	if !strings.Contains(summary, "nothing lost") {
		t.Errorf("%q: %s", words, summary)
	}
	o.stderr = text
	return o, file
}

// cutLastLine separates a text's last line from what comes before.
func cutLastLine(s string) (before, last string, ok bool) {
	s, ok = strings.CutSuffix(s, "\n")
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		return s[:i+1], s[i+1:], ok
	}
	return "", s, ok
}

// trees are the built source trees, by name.
var trees sync.Map

// tree returns the unpacked source of a Debian package after prepare has been run in it, once for all tests that ask
// for this package and variant. Tests must leave the tree as it is. In BRAID_TEST_PROGRAMS_DIR trees stay, and are taken
// as they are by the next run.
func tree(t testing.TB, source, variant string, prepare func(t testing.TB, dir string)) string {
	t.Helper()
	type built struct {
		once sync.Once
		ok   bool
	}
	dir := filepath.Join(scratch, source+"-"+variant)
	v, _ := trees.LoadOrStore(dir, new(built))
	b := v.(*built)
	b.once.Do(func() {
		ready := dir + ".ready"
		if _, err := os.Stat(ready); err == nil {
			b.ok = true
			return
		}
		if out, err := exec.Command("../../scripts/debsrc", source, dir).CombinedOutput(); err != nil {
			t.Fatalf("unpacking the source of %s: %v\n%s", source, err, out)
		}
		prepare(t, dir)
		write(t, ready, "", 0o644)
		b.ok = true
	})
	if !b.ok {
		t.Fatalf("%s was not built for %s: see the test that tried first", source, variant)
	}
	return dir
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
