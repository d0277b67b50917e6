package buildsystems

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// braidBin is a directory with braid in it, which everybody may read.
var braidBin string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	scratch, err := os.MkdirTemp("", "braid-buildsystems-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if err := os.Chmod(scratch, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	braidBin = filepath.Join(scratch, "bin")
	if out, err := exec.Command("go", "build", "-o", braidBin+"/braid", "braid/cmd/braid").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building braid: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// project is a fresh copy of the project, and how commands run in it.
type project struct {
	t   *testing.T
	dir string
	env []string // more variables
}

// newProject copies the project into a new directory, whose name is for a build system to handle.
func newProject(t *testing.T, name string) *project {
	t.Helper()
	return newDirectory(t, name, "testdata/pantry")
}

// newDirectory copies a directory into a new one.
func newDirectory(t *testing.T, name, from string) *project {
	t.Helper()
	p := &project{t: t, dir: filepath.Join(t.TempDir(), name)}
	if err := os.CopyFS(p.dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	p.env = []string{"TMPDIR=" + p.temporary("tmp"), "XDG_CACHE_HOME=" + p.temporary("cache"), "CCACHE_DIR=" + p.temporary("ccache")}
	return p
}

// temporary makes a directory beside the project.
func (p *project) temporary(name string) string {
	p.t.Helper()
	dir := filepath.Join(filepath.Dir(p.dir), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	return dir
}

// command is a shell command in the project's directory, with braid in PATH.
func (p *project) command(script string) *exec.Cmd {
	c := exec.Command("/bin/sh", "-ec", script)
	c.Dir = p.dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "BRAID_") && !strings.HasPrefix(e, "CCACHE_") && !strings.HasPrefix(e, "MAKE") {
			c.Env = append(c.Env, e)
		}
	}
	c.Env = append(append(c.Env, "LC_ALL=C", "PATH="+braidBin+":"+os.Getenv("PATH")), p.env...)
	return c
}

// run runs a command that must succeed, and returns its standard output.
func (p *project) run(script string) string {
	p.t.Helper()
	c := p.command(script)
	var out, messages bytes.Buffer
	c.Stdout, c.Stderr = &out, &messages
	if err := c.Run(); err != nil {
		p.t.Fatalf("%s: %v\n%s\n%s", script, err, out.String(), messages.String())
	}
	return out.String()
}

// printed is what the project's program prints.
const printed = "179\n"

// wantCalls are the calls that the program makes.
var wantCalls = map[string]int{"main": 1, "sum": 7, "shelf": 11, "jars": 1, "pantry::Jar::open(int)": 13}

// check runs the built program alone and recorded, and compares its output and the calls in the trace. A function of
// skipped must have none.
func (p *project) check(program string, skipped ...string) {
	p.t.Helper()
	calls := p.both(program, printed)
	for name, want := range wantCalls {
		for _, s := range skipped {
			if s == name {
				want = 0
			}
		}
		if calls[name] != want {
			p.t.Errorf("%s: %d calls of %s in the trace, want %d", program, calls[name], name, want)
		}
	}
}

// both runs a program alone and recorded, when it must print the same, and returns the calls in the trace.
func (p *project) both(program, want string) map[string]int {
	p.t.Helper()
	if got := p.run(program); got != want {
		p.t.Errorf("%s printed %q, want %q", program, got, want)
	}
	trace := filepath.Join(p.t.TempDir(), "trace.braid")
	if got := p.run("braid record --threads all -o '" + trace + "' -- " + program); got != want {
		p.t.Errorf("%s, recorded, printed %q, want %q", program, got, want)
	}
	return p.calls(trace)
}

// calls reads each method's number of calls off a trace.
func (p *project) calls(trace string) map[string]int {
	p.t.Helper()
	var report struct {
		Methods []struct {
			Name  string `json:"name"`
			Calls int    `json:"calls"`
		} `json:"methods"`
	}
	text := p.run("braid report --json '" + trace + "'")
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		p.t.Fatalf("%v in:\n%s", err, text)
	}
	calls := map[string]int{}
	for _, m := range report.Methods {
		calls[m.Name] += m.Calls
	}
	return calls
}

// noLitter fails the test if temporary files are left.
func (p *project) noLitter() {
	p.t.Helper()
	entries, err := os.ReadDir(p.temporary("tmp"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		p.t.Errorf("%s was left in TMPDIR", e.Name())
	}
}
