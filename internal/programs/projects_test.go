package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// project is a program with tests of its own.
type project struct {
	source string
	build  [][]string // commands; CC is in their environment
	tests  []string   // a command
	passed string     // what it prints only if all tests pass
	// processes is how many processes with stubs the tests start, at least.
	processes int
	slow      bool
}

var projects = []project{
	{
		source: "bzip2", build: [][]string{{"sh", "-c", `make -s CC="$CC" bzip2 libbz2.a`}}, tests: []string{"sh", "-c", `make CC="$CC" test`},
		passed: "cmp sample3.tst sample3.ref", processes: 6,
	},
	{
		source: "mawk", build: [][]string{{"./configure"}, {"make", "-s", "-j2"}}, tests: []string{"make", "-s", "check"},
		passed: "results consistent", processes: 40, slow: true,
	},
}

// TestProjects: a program's own tests pass with stubs, recorded or not, with the same output.
func TestProjects(t *testing.T) {
	for _, p := range projects {
		if p.slow && !everything() {
			continue
		}
		t.Run(p.source, func(t *testing.T) {
			withCompilers(t, func(t *testing.T, cc compiler) {
				env := []string{"CC=" + cc.c}
				dir := tree(t, p.source, cc.name, func(t *testing.T, dir string) {
					for _, command := range p.build {
						mustRun(t, dir, env, command...)
					}
				})
				want := run(t, dir, env, p.tests...)
				if want.code != 0 || !strings.Contains(want.stdout, p.passed) {
					t.Fatalf("its tests fail: %+v", want)
				}
				got, file := recorded(t, dir, env, nil, p.tests...)
				if got != want {
					t.Errorf("recorded: %+v\nwant: %+v", got, want)
				}
				if n := threadsIn(t, file); n < p.processes {
					t.Errorf("records of %d processes, want %d", n, p.processes)
				}
			})
		})
	}
}

// threadsIn is how many threads have records in a trace.
func threadsIn(t *testing.T, file string) int {
	t.Helper()
	r, err := tracefile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tr, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	return len(tr.Threads)
}

// dash builds Debian's shell and returns its path.
func dash(t *testing.T, cc compiler, flags string) string {
	t.Helper()
	dir := tree(t, "dash", cc.name+strings.ReplaceAll(flags, " ", ""), func(t *testing.T, dir string) {
		mustRun(t, dir, []string{"CC=" + cc.c, "CFLAGS=" + flags}, "./configure", "--quiet", "--disable-dependency-tracking")
		mustRun(t, dir, nil, "make", "-s", "-j2")
	})
	return filepath.Join(dir, "src/dash")
}

// TestShell: a shell, which forks in every way there is, does with stubs what it does without, recorded or not; and a
// script in which it forks not at all has callgrind's counts.
func TestShell(t *testing.T) {
	script, err := filepath.Abs("testdata/shell.sh")
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(filepath.Dir(script), "shell-alone.sh")
	if _, err := os.Stat("/bin/dash"); err != nil {
		t.Fatalf("%v: Debian's own is what the outcome is compared with", err)
	}
	want, wantAlone := run(t, t.TempDir(), nil, "/bin/dash", script), run(t, t.TempDir(), nil, "/bin/dash", alone)
	if want.code != 9 || lastOf(want.stdout) != "replaced" || wantAlone.code != 0 || lastOf(wantAlone.stdout) != "bye" {
		t.Fatalf("a script fails without stubs: %+v %+v", want, wantAlone)
	}
	withCompilers(t, func(t *testing.T, cc compiler) {
		bin := dash(t, cc, withoutTailCalls)
		if got := run(t, t.TempDir(), nil, bin, script); got != want {
			t.Errorf("not recorded: %+v, want %+v", got, want)
		}
		got, file := recorded(t, t.TempDir(), nil, nil, bin, script)
		if got != want {
			t.Errorf("recorded: %+v, want %+v", got, want)
		}
		if n := threadsIn(t, file); n < 40 {
			t.Errorf("records of %d processes", n)
		}
		o, _ := exact(t, t.TempDir(), nil, []*image{openImage(t, bin)}, 1, true, bin, alone)
		if o != wantAlone {
			t.Errorf("under callgrind: %+v, want %+v", o, wantAlone)
		}
	})
}
