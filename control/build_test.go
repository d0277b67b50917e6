package control

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"braid/inline/runtime"
	"braid/inline/stub"
)

// For scripts/test-guests, which runs these tests where there is no compiler:
//
//   - BRAID_TEST_KEEP=DIR makes TestBuildForOtherProcessors leave its programs in DIR/arm64 and DIR/arm.
//   - BRAID_TEST_BIN=DIR makes all other tests use the programs in DIR.
//   - BRAID_TEST_SHARE=N has them repeat things N times less often. An emulated processor is slow.
var (
	testKeep = os.Getenv("BRAID_TEST_KEEP")
	testBin  = os.Getenv("BRAID_TEST_BIN")
)

// repeats returns how often to do what is done n times on a processor that is not emulated.
func repeats(t *testing.T, n int) int {
	t.Helper()
	share := os.Getenv("BRAID_TEST_SHARE")
	if share == "" {
		return n
	}
	by, err := strconv.Atoi(share)
	if err != nil || by < 1 {
		t.Fatalf("BRAID_TEST_SHARE=%s", share)
	}
	return max(1, n/by)
}

// build returns the program of testdata/NAME.c, with stubs.
func build(t *testing.T, name string, flags ...string) string {
	t.Helper()
	if testBin == "" {
		return compile(t, filepath.Join(t.TempDir(), name), "amd64", name, flags...)
	}
	if slices.Contains(flags, "-static-pie") {
		name += "-static-pie"
	}
	return filepath.Join(testBin, name) // static otherwise: a guest has no libraries
}

var compilers = map[string]string{"amd64": "gcc", "arm64": "aarch64-linux-gnu-gcc", "arm": "arm-linux-gnueabihf-gcc"}

// compile builds bin from testdata/NAME.c, step by step, so that this package's tests need no launcher.
func compile(t *testing.T, bin, arch, name string, flags ...string) string {
	t.Helper()
	run := func(args ...string) []byte {
		t.Helper()
		var out, errs bytes.Buffer
		c := exec.Command(args[0], args[1:]...)
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, errs.Bytes())
		}
		return out.Bytes()
	}
	work := t.TempDir()
	s, o := filepath.Join(work, "stubs.s"), filepath.Join(work, "runtime.o")
	cc := []string{compilers[arch], "-O1", "-dp", "-fno-ipa-ra"}
	source, trapped := strings.CutSuffix(name, "-trapped")
	asm := run(append(append(cc, "-S", "-o", "-", "testdata/"+source+".c"), flags...)...)
	var out bytes.Buffer
	if r, err := stub.Insert(&out, asm, stub.Options{Arch: arch}); err != nil || len(r.Skipped) != 0 {
		t.Fatalf("%s for %s: %v, no stubs in %v", name, arch, err, r.Skipped)
	}
	stubs := out.Bytes()
	if trapped {
		stubs = traps(stubs, arch)
	}
	if err := os.WriteFile(s, stubs, 0o600); err != nil {
		t.Fatal(err)
	}
	if source == "race" {
		run("../inline/runtime/generate.sh", work, arch, "-include", abs(t, "testdata/race.h"))
		o = filepath.Join(work, "runtime_"+arch+".o")
	} else if rt, err := runtime.Object(arch); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(o, rt, 0o600); err != nil {
		t.Fatal(err)
	}
	run(append([]string{compilers[arch], "-o", bin, s, o, "-pthread"}, flags...)...)
	return bin
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// traps puts a trap before each instruction of the stubs' recording halves. Between arm64's exclusive load and store there
// is none: coming back from it would make the store fail each time.
func traps(asm []byte, arch string) []byte {
	trap := map[string]string{"amd64": "\tint3\n", "arm64": "\tbrk\t#1\n", "arm": ""}[arch] // arm's stubs are all one exclusive
	var out bytes.Buffer
	inside, exclusive := false, false
	for line := range bytes.Lines(asm) {
		text := string(line)
		switch {
		case strings.HasPrefix(text, ".Lbraid_n"):
			inside = true
		case inside && text[0] == '\t' && text[1] != '.' && !exclusive:
			out.WriteString(trap)
		}
		if strings.HasPrefix(text, ".Lbraid_s") || strings.HasPrefix(text, "\tb\t.Lbraid_d") || strings.HasPrefix(text, "\tjmp\t.Lbraid_d") {
			inside = false
		}
		exclusive = exclusive && !strings.HasPrefix(text, "\tstxp") || strings.HasPrefix(text, "\tldxp")
		out.Write(line)
	}
	return out.Bytes()
}

// TestBuildForOtherProcessors builds the programs of all tests for arm64 and arm. Those that end by themselves must run
// untraced. They can't be recorded here: under user emulation a program reads another counter than this recorder.
func TestBuildForOtherProcessors(t *testing.T) {
	sources, err := filepath.Glob("testdata/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	for arch, emulator := range map[string]string{"arm64": "qemu-aarch64", "arm": "qemu-arm"} {
		dir := t.TempDir()
		if testKeep != "" {
			dir = filepath.Join(testKeep, arch)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, source := range sources {
			name := strings.TrimSuffix(filepath.Base(source), ".c")
			compile(t, filepath.Join(dir, name), arch, name, "-static")
		}
		compile(t, filepath.Join(dir, "race-trapped"), arch, "race-trapped", "-static")
		flags := []string{"-static-pie"}
		if arch == "arm" { // Debian's libc for arm has no static PIE; the other instruction set in its place
			flags = []string{"-static", "-marm"}
		}
		compile(t, filepath.Join(dir, "loop-static-pie"), arch, "loop", flags...)
		for _, name := range []string{"loop", "loop-static-pie", "signals"} {
			if out, err := exec.Command(emulator, filepath.Join(dir, name), "997").CombinedOutput(); err != nil {
				t.Errorf("%s for %s: %v: %s", name, arch, err, out)
			}
		}
	}
}
