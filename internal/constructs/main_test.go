package constructs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	scratch  string // of this run
	braidBin string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "braid-constructs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	braidBin = filepath.Join(scratch, "braid")
	if out, err := exec.Command("go", "build", "-o", braidBin, "braid/cmd/braid").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building braid: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// everything reports whether all levels and variants are wanted, not only those that fit the time of each change.
func everything() bool { return os.Getenv("BRAID_TEST_PROGRAMS") == "all" }

// levels are the optimisation levels to test.
func levels() []string {
	if everything() {
		return []string{"-O0", "-O1", "-O2", "-O3", "-Os"}
	}
	return []string{"-O0", "-O2"}
}

// patience bounds one run of a compiler or a program. It is only reached by one that hangs.
const patience = 30 * time.Second

// outcome is what a finished command left. code is 128 + signal if it was killed.
type outcome struct {
	code   int
	output string // both streams
}

// run runs a command in directory dir with more variables in its environment.
func run(dir string, env []string, words ...string) (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	var out bytes.Buffer
	c.Stdout, c.Stderr, c.Dir = &out, &out, dir
	c.WaitDelay = time.Second // for what a program leaves running with its streams open
	c.Env = append(append(os.Environ(), "LC_ALL=C"), env...)
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return outcome{}, fmt.Errorf("%s: still running after %v", strings.Join(words, " "), patience)
	case err != nil && !errors.As(err, &exit):
		return outcome{}, fmt.Errorf("%s: %w", strings.Join(words, " "), err)
	}
	code := c.ProcessState.ExitCode()
	if code < 0 {
		code = 128 + signalOf(c.ProcessState)
	}
	return outcome{code, out.String()}, nil
}

// must runs a command that has to succeed, and returns what it printed.
func must(t *testing.T, dir string, words ...string) string {
	t.Helper()
	o, err := run(dir, nil, words...)
	if err != nil {
		t.Fatal(err)
	}
	if o.code != 0 {
		t.Fatalf("%s: exit code %d\n%s", strings.Join(words, " "), o.code, o.output)
	}
	return o.output
}
