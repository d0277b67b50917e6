package stub

import (
	"path/filepath"
	"strings"
	"testing"
)

var (
	armGCC   = toolchain{"arm", []string{"arm-linux-gnueabihf-gcc"}, []string{"qemu-arm", "-L", "/usr/arm-linux-gnueabihf"}}
	armClang = toolchain{"arm", []string{"clang-19", "--target=armv7a-linux-gnueabihf"}, armGCC.run}
	// armEmulate reads the counter in place of the emulator, which does not know it. It is no subject of stubs.
	armEmulate = "../runtime/testdata/emulate_arm.c"
)

// no128 leaves out what a 32-bit processor has no type for.
const no128 = "-D__int128=long long"

// TestArmWithoutRuntime links stubs with no runtime at all.
func TestArmWithoutRuntime(t *testing.T) {
	for _, tc := range []toolchain{armGCC, armClang} {
		for _, set := range []string{"-marm", "-mthumb"} {
			for _, level := range testLevels() {
				for _, mode := range [][]string{{"-fPIE", "-pie"}, {"-fno-pic", "-no-pie", "-static"}, {"-fPIC", "-g"}} {
					if level != "-O2" && mode[0] != "-fPIE" {
						continue
					}
					flags := append([]string{level, set, no128, "-DNARROW"}, mode...)
					if tc.gcc() {
						flags = append(flags, "-DNESTED")
					}
					bin, r := tc.build(t, Options{}, "constructs.c", []string{"-lm"}, flags...)
					if len(r.Skipped) > 1 || r.Entries < 24 || r.Exits < r.Entries-3 || r.Resumes < 1 {
						t.Errorf("%s %v: %+v", tc.compiler, flags, r)
					}
					command(t, append(tc.run, bin)...)
				}
			}
		}
	}
}

// narrow leaves out what differs between a program and its 32-bit form: clang does not say on arm whether a function that takes
// a label's address jumps or calls, so that this one gets no stubs, and it calls a pure function twice.
func narrow(tc toolchain, tree string) string {
	if !tc.gcc() {
		tree = strings.NewReplacer("  goto_\n", "", "  rmixed\n", "").Replace(tree)
	}
	return withoutSix(tree)
}

// TestArmTrees compares what a program records with what the same program records on amd64.
func TestArmTrees(t *testing.T) {
	emulate := filepath.Join(t.TempDir(), "emulate.o")
	command(t, "arm-linux-gnueabihf-gcc", "-O1", "-c", "-o", emulate, armEmulate)
	for _, c := range []struct{ native, cross toolchain }{{nativeGCC, armGCC}, {nativeClang, armClang}} {
		for _, source := range []string{"constructs.c", "testdata/throws.cc"} {
			native, cross := c.native, c.cross
			nativeRing, crossRing := native.ring(t), cross.ring(t)
			more := "-DNARROW"
			if source != "constructs.c" {
				native, cross = native.cxx(), cross.cxx()
				more = "-fno-optimize-sibling-calls" // arm's constructors return a value, and make other tail calls
			}
			for _, level := range testLevels() {
				flags := []string{level, "-static", "-fno-pic", "-no-pie", more}
				if c.native.gcc() && source == "constructs.c" {
					flags = append(flags, "-DNESTED")
				}
				bin, _ := native.build(t, Options{}, source, []string{nativeRing, "-lm"}, flags...)
				_, ring := native.recorded(t, bin)
				want := narrow(c.cross, tree(t, ring, functions(t, bin)))
				for _, set := range []string{"-marm", "-mthumb"} {
					bin, _ = cross.build(t, Options{}, source, []string{crossRing, emulate, "-lm"}, append(flags, set, no128)...)
					_, ring = cross.recorded(t, bin)
					if got := narrow(c.cross, tree(t, ring, functions(t, bin))); got != want {
						t.Errorf("%s %s %v:\n%s\non amd64:\n%s", cross.compiler, source, append(flags, set), got, want)
					}
				}
			}
		}
	}
}
