package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// For guests, which have no compiler (internal/kernels):
//
//   - BRAID_TEST_KEEP=DIR makes TestBuildForOtherProcessors leave its programs in DIR/arm64 and DIR/arm.
//   - BRAID_TEST_BIN=DIR makes all other tests use braid and the programs in DIR.
//   - BRAID_TEST_PERFETTO=DIR: see perfetto_test.go.
var (
	testKeep = os.Getenv("BRAID_TEST_KEEP")
	testBin  = os.Getenv("BRAID_TEST_BIN")
)

// program is one that the tests record.
type program struct {
	name    string
	plain   bool // without stubs
	library bool // a guest has none
	args    []string
}

var sources = []program{
	{name: "known", args: []string{"testdata/known.c"}},
	{name: "target", args: []string{"testdata/target.c", "-ldl"}},
	{name: "agree", args: []string{"testdata/agree.c"}},
	{name: "asks", args: []string{"testdata/asks.c"}},
	{name: "plugin.so", library: true, args: []string{"-shared", "-fPIC", "testdata/plugin.c"}},
	{name: "plain", plain: true, args: []string{"testdata/target.c", "-ldl"}},
	{name: "faults", args: []string{"testdata/faults.c"}},
	{name: "sampled", args: []string{"testdata/sampled.c"}},
	{name: "waits", args: []string{"testdata/waits.c"}},
	// A zygote with stubs, which has the app's code; and one without, which loads it.
	{name: "zygote64", args: []string{"-DLINKED", standIn + "zygote.c", standIn + "app.c"}},
	{name: "zygote", plain: true, library: true, args: []string{standIn + "zygote.c", "-ldl"}},
	{name: "libapp.so", library: true, args: []string{"-shared", "-fPIC", standIn + "app.c"}},
	{name: "binder", args: []string{"../../bpf/testdata/binder.c"}},
}

const standIn = "../../internal/targets/testdata/"

// prepare makes braid and the programs that the tests record, or finds them.
func prepare() error {
	if err := os.Chmod(scratch, 0o755); err != nil {
		return err
	}
	dir := testBin
	if dir == "" {
		dir = scratch
		braidBin = filepath.Join(dir, "braid")
		if out, err := exec.Command("go", "build", "-o", braidBin, ".").CombinedOutput(); err != nil {
			return fmt.Errorf("building braid: %w\n%s", err, out)
		}
		if err := buildPrograms(sources, dir, "gcc"); err != nil {
			return err
		}
		first := filepath.Join(dir, "first") // the processor's own assembly
		if out, err := exec.Command("gcc", "-nostdlib", "-static", "-o", first, "testdata/first.S").CombinedOutput(); err != nil {
			return fmt.Errorf("building first: %w\n%s", err, out)
		}
	}
	braidBin = filepath.Join(dir, "braid")
	names := []string{"first"}
	for _, p := range sources {
		names = append(names, p.name)
	}
	for _, name := range names {
		programs[name] = filepath.Join(dir, name)
	}
	return nil
}

// buildPrograms compiles for what gcc compiles for, with the braid in scratch. Options come before the sources.
func buildPrograms(list []program, dir, gcc string, options ...string) error {
	include, err := filepath.Abs("../../inline/include")
	if err != nil {
		return err
	}
	static := slices.Contains(options, "-static")
	for _, p := range list {
		if static && p.library {
			continue
		}
		cc := []string{braidBin, "cc"}
		if p.plain {
			cc = nil
		}
		cc = slices.Concat(cc, []string{gcc, "-O2", "-Wall", "-Werror", "-pthread", "-I" + include}, options,
			[]string{"-o", filepath.Join(dir, p.name)}, p.args)
		if out, err := exec.Command(cc[0], cc[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", p.name, err, out)
		}
	}
	return nil
}

// The programs of these tests can be built for the processors of phones, 64 and 32 bits, without libraries.
func TestBuildForOtherProcessors(t *testing.T) {
	keep, list := testKeep, sources
	if keep == "" {
		keep, list = t.TempDir(), sources[:1]
	}
	for arch, gcc := range map[string]string{"arm64": "aarch64-linux-gnu-gcc", "arm": "arm-linux-gnueabihf-gcc"} {
		dir := filepath.Join(keep, arch)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		// A warning: dlopen in a static program needs the libraries that it was linked with.
		if err := buildPrograms(list, dir, gcc, "-static", "-Wno-error"); err != nil {
			t.Error(err)
		}
	}
}
