package constructs

import (
	"path/filepath"
	"strings"
	"testing"
)

// step is one command that builds a program from testdata/parts. CC and CXX are the compilers, PARTS that directory;
// "-" before them means without stubs.
type step string

// builds are programs that take more than one command. The first part is the one with the expected tree.
var builds = []struct {
	name  string
	part  string
	steps []step
}{
	{"shared library", "library_main.c", []step{"CC LEVEL -fPIC -shared PARTS/library.c -o libx.so",
		"CC LEVEL PARTS/library_main.c -L. -lx -Wl,-rpath,. -o OUT"}},
	{"only the library has stubs", "library_alone.c", []step{"CC LEVEL -fPIC -shared PARTS/library.c -o libx.so",
		"-CC LEVEL PARTS/library_alone.c -L. -lx -Wl,-rpath,. -o OUT"}},
	{"inline functions, the copy with stubs", "merged.cc", []step{"CXX LEVEL -c PARTS/merged.cc -o a.o", "-CXX LEVEL -c PARTS/merged_other.cc -o b.o",
		"CXX a.o b.o -o OUT"}},
	{"inline functions, the copy without", "merged_without.cc", []step{"CXX LEVEL -c PARTS/merged_without.cc -o a.o", "-CXX LEVEL -c PARTS/merged_other.cc -o b.o",
		"CXX b.o a.o -o OUT"}},
	{"C++ linked by the C driver", "options.cc", []step{"CXX LEVEL -c PARTS/options.cc -o a.o", "CC a.o -o OUT -lstdc++"}},
	{"archive", "options.c", []step{"CC LEVEL -c PARTS/options.c -o a.o", "ar rcs liba.a a.o", "CC -Wl,--whole-archive liba.a -Wl,--no-whole-archive -o OUT"}},
	{"assembly in between", "options.cc", []step{"CXX LEVEL -S PARTS/options.cc -o a.s", "CXX -c a.s -o a.o", "CXX a.o -o OUT"}},
	{"relocatable link", "options.c", []step{"CC LEVEL -c PARTS/options.c -o a.o", "CC -r -nostdlib a.o -o b.o", "CC b.o -o OUT"}},
}

// TestBuilds builds programs in several steps.
func TestBuilds(t *testing.T) {
	parts, err := filepath.Abs("testdata/parts")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range builds {
		s, err := readSpec(filepath.Join(parts, b.part))
		if err != nil {
			t.Fatal(err)
		}
		for _, cc := range []string{"gcc", "clang"} {
			for _, level := range levels() {
				c := setting{compiler: cc, level: level}
				t.Run(b.name+" "+c.String(), func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					for _, stubs := range []bool{false, true} {
						for _, words := range b.steps {
							must(t, dir, words.words(c, parts, stubs)...)
						}
					}
					judge(t, s, c, dir)
				})
			}
		}
	}
}

func (s step) words(c setting, parts string, stubs bool) (out []string) {
	words, plain := strings.CutPrefix(string(s), "-")
	program := "plain"
	if stubs {
		program = "stubs"
	}
	for i, w := range strings.Fields(words) {
		if (w == "CC" || w == "CXX") && i == 0 && stubs && !plain {
			out = append(out, braidBin, "cc")
		}
		switch w {
		case "CC":
			w = c.compiler
		case "CXX":
			w = (&spec{file: ".cc"}).driver(c)
		case "LEVEL":
			w = c.level
		case "OUT":
			w = program
		}
		out = append(out, strings.Replace(w, "PARTS", parts, 1))
	}
	return out
}

// TestProfileUse compiles with a profile, which has gcc move what never ran.
func TestProfileUse(t *testing.T) {
	s, err := readSpec("testdata/parts/options.c")
	if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs(s.file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	must(t, dir, "gcc", "-O2", "-fprofile-generate", source, "-o", "profiled")
	must(t, dir, "./profiled")
	for _, cc := range [][]string{{"gcc"}, {braidBin, "cc", "gcc"}} {
		out := map[int]string{1: "plain", 3: "stubs"}[len(cc)]
		must(t, dir, append(cc, "-O2", "-fprofile-use=profiled-options.gcda", "-freorder-blocks-and-partition", source, "-o", out)...)
	}
	if !strings.Contains(must(t, dir, "nm", "stubs"), "main.cold") {
		t.Error("gcc has moved nothing")
	}
	judge(t, s, setting{compiler: "gcc", level: "-O2"}, dir)
}

// TestSplitStack: functions that move to another stack by themselves get no stubs, and braid says so.
func TestSplitStack(t *testing.T) {
	dir := t.TempDir()
	source, err := filepath.Abs("testdata/parts/library.c")
	if err != nil {
		t.Fatal(err)
	}
	if said := must(t, dir, braidBin, "cc", "gcc", "-O2", "-fsplit-stack", "-c", source, "-o", "a.o"); !strings.Contains(said, "split") {
		t.Errorf("braid cc said %q", said)
	}
	if strings.Contains(must(t, dir, "nm", "a.o"), "__braid") {
		t.Error("there are stubs")
	}
}

// TestPatchableEntry: nops that are to be replaced while the program runs stay a function's first instructions.
func TestPatchableEntry(t *testing.T) {
	source, err := filepath.Abs("testdata/parts/library.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, cc := range []string{"gcc", "clang"} {
		dir := t.TempDir()
		must(t, dir, braidBin, "cc", cc, "-O2", "-fpatchable-function-entry=5", "-fcf-protection=none", "-c", source, "-o", "a.o")
		_, code, _ := strings.Cut(must(t, dir, "objdump", "-d", "a.o"), "<inner>:\n")
		bytes := 0
		for line := range strings.Lines(code) {
			if !strings.Contains(line, "nop") {
				break
			}
			bytes += len(strings.Fields(strings.Split(line, "\t")[1]))
		}
		if bytes != 5 {
			t.Errorf("%s: %d bytes of nops at the function's beginning, want 5\n%s", cc, bytes, code)
		}
	}
}
