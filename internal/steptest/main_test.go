package steptest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	scratch  string // of this run
	braidBin string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "braid-steps-"); err != nil {
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

// build compiles the program that is stepped through, with stubs or without.
func build(t *testing.T, stubs bool, cc, plus, level string) string {
	t.Helper()
	dir := t.TempDir()
	run := func(compiler string, args ...string) {
		t.Helper()
		words := append([]string{compiler, level, "-pthread"}, args...)
		if stubs {
			words = append([]string{braidBin, "cc"}, words...)
		}
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
	}
	object := func(name string) string { return filepath.Join(dir, name) }
	run(cc, "-c", "-o", object("marks.o"), "testdata/marks.S")
	run(cc, "-c", "-o", object("steps.o"), "testdata/steps.c")
	run(cc, "-c", "-o", object("targets.o"), "testdata/targets.c")
	run(plus, "-c", "-o", object("thrown.o"), "testdata/thrown.cc")
	run(plus, "-o", object("steps"), object("marks.o"), object("steps.o"), object("targets.o"), object("thrown.o"))
	return object("steps")
}
