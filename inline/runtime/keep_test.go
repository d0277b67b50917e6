package runtime

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// target is a processor that programs are linked and run for.
type target struct {
	goarch string
	ccs    [][]string // compilers with the flags that choose the processor and the linker
	runs   [][]string // what a program is run under
	modes  []string   // kinds of programs for the first compiler and object; the others make two of them
	also   []string   // sources that its programs need besides
	shared []string   // flags that its libraries need besides
}

var everyMode = []string{"-static", "-static-pie", "-pie -fPIE", "-no-pie", "shared"}

// small limits the size of files and so that of an area, to 2 GiB: an emulator takes seconds to move one of 64 GiB.
var small = slices.Clip([]string{"prlimit", "--fsize=34359738368"})

var targets = []target{
	{"amd64", [][]string{{"gcc"}, {"clang-19", "-fuse-ld=lld-19"}, {"gcc", "-fcf-protection=full", "-Wl,-z,ibt,-z,shstk"}},
		[][]string{{}}, everyMode, nil, nil},
	{"arm64", [][]string{{"aarch64-linux-gnu-gcc"}, {"clang-19", "--target=aarch64-linux-gnu", "-fuse-ld=lld-19"},
		{"aarch64-linux-gnu-gcc", "-mbranch-protection=standard"}},
		[][]string{append(small, "qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", "cortex-a57"),
			append(small, "qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", "max,sve-default-vector-length=64")}, everyMode, nil, nil},
	{"arm", [][]string{{"arm-linux-gnueabihf-gcc", "-marm"}, {"arm-linux-gnueabihf-gcc", "-mthumb"},
		{"clang-19", "--target=armv7a-linux-gnueabihf", "-fuse-ld=lld-19"}},
		[][]string{{"qemu-arm", "-L", "/usr/arm-linux-gnueabihf"}},
		[]string{"-static", "-pie -fPIE", "-no-pie", "shared"}, // no -static-pie: Debian has no rcrt1.o for it
		[]string{"testdata/emulate_arm.c"}, []string{"-Wl,--defsym,__braid_emulated_counter=1"}},
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestLinksAndKeeps links both objects into programs of every kind, for every processor, with the linkers' warnings as
// errors, and has them go through the slow path with known values in all registers.
func TestLinksAndKeeps(t *testing.T) {
	for _, g := range targets {
		t.Run(g.goarch, func(t *testing.T) {
			dir := t.TempDir()
			for _, o := range []struct {
				name   string
				object func(string) ([]byte, error)
				flags  []string
			}{{"tls.o", Object, nil}, {"word.o", WordObject, []string{"-DBRAID_WORD"}}} {
				b, err := o.object(g.goarch)
				if err != nil {
					t.Fatal(err)
				}
				rt := filepath.Join(dir, o.name)
				if err := os.WriteFile(rt, b, 0o600); err != nil {
					t.Fatal(err)
				}
				for i, cc := range g.ccs {
					modes := g.modes
					if i > 0 || o.flags != nil {
						modes = []string{"-pie -fPIE", "shared"}
					}
					for _, mode := range modes {
						bin := g.link(t, dir, rt, append(cc[:len(cc):len(cc)], o.flags...), mode)
						for _, r := range g.runs {
							if out := run(t, append(r[:len(r):len(r)], bin...)...); out != "kept\n" {
								t.Errorf("%s, %v %s: %q", o.name, cc, mode, out)
							}
						}
					}
				}
			}
		})
	}
}

// link builds keep.c with a runtime and returns the command that runs it.
func (g *target) link(t *testing.T, dir, rt string, cc []string, mode string) []string {
	t.Helper()
	bin := filepath.Join(dir, "keep")
	flags := append(cc, "-O1", "-Wall", "-Wextra", "-Werror", "-Wl,--fatal-warnings", "-pthread")
	sources := []string{"testdata/keep.c", "testdata/keep_" + g.goarch + ".S", rt}
	if mode != "shared" {
		run(t, append(append(append(flags, strings.Fields(mode)...), "-o", bin), append(sources, g.also...)...)...)
		return []string{bin}
	}
	lib := filepath.Join(dir, "keep.so")
	run(t, append(append(append(flags, "-shared", "-fPIC", "-DKEEP_SHARED", "-o", lib), g.shared...), sources...)...)
	run(t, append(append(flags, "-rdynamic", "-o", bin, "testdata/keep_main.c", "-ldl"), g.also...)...)
	return []string{bin, lib}
}

// TestProperties links the objects where every input must say that it keeps to BTI, or that it may be called by the
// integer interface of both of arm's float ABIs.
func TestProperties(t *testing.T) {
	dir := t.TempDir()
	c := filepath.Join(dir, "floats.c")
	if err := os.WriteFile(c, []byte("float add(float a, float b) { return a + b; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	strict := []string{"-shared", "-nostdlib", "-fPIC", "-Wl,--fatal-warnings", "-o", filepath.Join(dir, "out.so"), c}
	for _, o := range []string{"runtime_", "runtime_word_"} {
		for _, cc := range [][]string{
			{o + "arm64.o", "aarch64-linux-gnu-gcc", "-mbranch-protection=standard", "-Wl,-z,force-bti"},
			{o + "arm64.o", "clang-19", "--target=aarch64-linux-gnu", "-mbranch-protection=standard", "-fuse-ld=lld-19", "-Wl,-z,force-bti"},
			{o + "arm.o", "arm-linux-gnueabihf-gcc", "-mfloat-abi=hard"},
			{o + "arm.o", "arm-linux-gnueabihf-gcc", "-mfloat-abi=softfp"},
			{o + "arm.o", "clang-19", "--target=armv7a-linux-gnueabihf", "-fuse-ld=lld-19"},
			{o + "arm.o", "clang-19", "--target=armv7a-linux-gnueabi", "-mfloat-abi=softfp", "-fuse-ld=lld-19"},
			{o + "arm.o", "clang-19", "--target=armv7a-linux-gnueabi", "-mfloat-abi=soft", "-fuse-ld=lld-19"},
		} {
			run(t, append(append(cc[1:], strict...), cc[0])...)
		}
	}
}
