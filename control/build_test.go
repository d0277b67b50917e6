package control

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"braid/inline/runtime"
	"braid/inline/stub"
)

// The programs of this package's tests can be ones for another processor: BRAID_TEST_ARCH names it, and then they run
// under user emulation. Where there is no compiler (a guest), BRAID_TEST_BIN names a folder with the programs that a run
// elsewhere has left there (BRAID_TEST_KEEP).
var (
	testArch = cmpOr(os.Getenv("BRAID_TEST_ARCH"), "amd64")
	testBin  = os.Getenv("BRAID_TEST_BIN")
	testKeep = os.Getenv("BRAID_TEST_KEEP")
)

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// build compiles C source with stubs, step by step, so that this package's tests need no launcher.
func build(t *testing.T, src string, flags ...string) string {
	t.Helper()
	name := fmt.Sprintf("%x", sha256.Sum256([]byte(src+strings.Join(flags, " "))))[:16]
	if testBin != "" {
		return filepath.Join(testBin, name)
	}
	dir := t.TempDir()
	if testKeep != "" {
		dir = testKeep
	}
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
	bin := filepath.Join(dir, name)
	c, s, o := bin+".c", bin+".s", bin+".o"
	if err := os.WriteFile(c, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.Object(testArch)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o, rt, 0o600); err != nil {
		t.Fatal(err)
	}
	if testArch != "amd64" {
		emulator, cc := foreign(t, testArch)
		if !slices.Contains(flags, "-static-pie") {
			cc = append(cc, "-static") // a guest has no libraries
		}
		run(append(append(cc, "-O1", "-o", bin, c, o, "-pthread"), flags...)...)
		script := "#!/bin/sh\nexec " + emulator + " '" + bin + "' \"$@\"\n"
		if err := os.WriteFile(bin+".sh", []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		return bin + ".sh"
	}
	asm := run(append([]string{"gcc", "-O1", "-dp", "-fno-ipa-ra", "-S", "-o", "-", c}, flags...)...)
	var out bytes.Buffer
	if _, err := stub.Insert(&out, asm, stub.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	run(append([]string{"gcc", "-o", bin, s, o, "-pthread"}, flags...)...)
	return bin
}

// foreign returns the emulator and the compiler for another processor, with trace points that are written by hand and called by
// -finstrument-functions. They follow the protocol as stubs do.
func foreign(t *testing.T, arch string) (emulator string, cc []string) {
	t.Helper()
	points := "../inline/runtime/testdata/point_" + arch + ".S"
	trace := []string{"-finstrument-functions", "-finstrument-functions-exclude-function-list=nag", points}
	switch arch {
	case "arm64":
		return "qemu-aarch64", append([]string{"aarch64-linux-gnu-gcc"}, trace...)
	case "arm":
		return "qemu-arm", append([]string{"arm-linux-gnueabihf-gcc", "../inline/runtime/testdata/emulate_arm.c"}, trace...)
	}
	t.Fatalf("no programs for %s", arch)
	return "", nil
}
