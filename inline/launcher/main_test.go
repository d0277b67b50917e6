package launcher

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runAsBraid is the environment variable that makes the test binary behave as braid.
const runAsBraid = "LAUNCHER_TEST_RUN_AS_BRAID"

func TestMain(m *testing.M) {
	if IsAssembler() {
		os.Exit(AssemblerMain())
	}
	if os.Getenv(runAsBraid) != "" {
		args := os.Args[1:]
		if len(args) > 0 && args[0] == "cc" {
			os.Exit(Main(args[1:], os.Stdin, os.Stdout, os.Stderr))
		}
		os.Exit(99)
	}
	os.Exit(m.Run())
}

// sandbox is a directory to compile in, with its own directory for temporary files.
type sandbox struct {
	t         testing.TB
	directory string
	temporary string
	bin       string // holds a link called braid
	extra     []string
}

func newSandbox(t testing.TB) *sandbox {
	t.Helper()
	s := &sandbox{t: t, directory: t.TempDir(), temporary: t.TempDir(), bin: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(s.bin, "braid")); err != nil {
		t.Fatal(err)
	}
	return s
}

// environment is the process's, with braid in PATH and the sandbox's own TMPDIR.
func (s *sandbox) environment() []string {
	env := []string{}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "BRAID_") && !strings.HasPrefix(e, "LC_") && !strings.HasPrefix(e, "LANG") {
			env = append(env, e)
		}
	}
	env = append(env, runAsBraid+"=1", "TMPDIR="+s.temporary, "LC_ALL=C", "PATH="+s.bin+":"+os.Getenv("PATH"))
	return append(env, s.extra...)
}

// write makes a file in the sandbox and returns its name.
func (s *sandbox) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// read returns a file's content.
func (s *sandbox) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.directory, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// outcome is what a command did.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs a command in the sandbox, standard input given.
func (s *sandbox) run(stdin string, words ...string) outcome {
	s.t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	if words[0] == "braid" {
		cmd = exec.Command(filepath.Join(s.bin, "braid"), words[1:]...)
		cmd.Args[0] = "braid"
	}
	var out, messages bytes.Buffer
	cmd.Dir, cmd.Env = s.directory, s.environment()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &messages
	err := cmd.Run()
	if cmd.ProcessState == nil {
		s.t.Fatalf("%q: %v", words, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), messages.String()}
}

// mustRun runs a command that must succeed and returns its standard output.
func (s *sandbox) mustRun(words ...string) string {
	s.t.Helper()
	o := s.run("", words...)
	if o.code != 0 {
		s.t.Fatalf("%q: exit code %d\n%s%s", words, o.code, o.stdout, o.stderr)
	}
	return o.stdout
}

// noLitter fails the test if temporary files are left.
func (s *sandbox) noLitter() {
	s.t.Helper()
	entries, err := os.ReadDir(s.temporary)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		s.t.Errorf("%s was left in TMPDIR", e.Name())
	}
}

// stubs counts the counter reads, which are in every stub, in an object file, program or assembly text.
func (s *sandbox) stubs(name string) int {
	s.t.Helper()
	if filepath.Ext(name) == ".s" {
		return strings.Count(s.read(name), "rdtsc")
	}
	return strings.Count(s.mustRun("objdump", "-d", "--no-show-raw-insn", name), "rdtsc")
}
