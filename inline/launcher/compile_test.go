package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// compilers are those to test with. clang is one that needs a second run for some messages (see clangKeepsParsing),
// clang-19 one that does not.
var compilers = []string{"gcc", "clang", "clang-19"}

// cplus is the C++ driver that goes with a C driver.
func cplus(compiler string) string {
	return strings.NewReplacer("gcc", "g++", "clang", "clang++").Replace(compiler)
}

// withCompilers runs a test with each compiler, in a sandbox with the testdata.
func withCompilers(t *testing.T, test func(t *testing.T, s *sandbox, cc string)) {
	for _, cc := range compilers {
		t.Run(cc, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.addTestdata()
			test(t, s, cc)
			s.noLitter()
		})
	}
}

func (s *sandbox) addTestdata() {
	entries, err := os.ReadDir("testdata")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join("testdata", e.Name()))
		if err != nil {
			s.t.Fatal(err)
		}
		s.write(e.Name(), string(text))
	}
}

// program runs a program that was built from main.c and part.c.
func (s *sandbox) program(name string) {
	s.t.Helper()
	if got := s.mustRun("./" + name); got != "336\n" { // part(42): (42 + 42) << 2
		s.t.Errorf("%s printed %q", name, got)
	}
}

func TestBuild(t *testing.T) {
	builds := map[string][]string{
		"one command":       {"-O2 -o OUT main.c part.c"},
		"optimised off":     {"-O0 -o OUT main.c part.c"},
		"separately":        {"-O2 -c main.c", "-O2 -c -o p.o part.c", "-o OUT main.o p.o"},
		"several at once":   {"-O1 -c main.c part.c", "main.o part.o -o OUT"},
		"pipe":              {"-pipe -O2 main.c part.c -o OUT"},
		"debug information": {"-g -O2 -c main.c", "-g3 -gdwarf-4 -O1 -c part.c", "-g -o OUT main.o part.o"},
		"static":            {"-O2 -static -o OUT main.c part.c"},
		"static pie":        {"-O2 -static-pie -fPIE -o OUT main.c part.c"},
		"no pie":            {"-O2 -fno-pic -no-pie -o OUT main.c part.c"},
		"pie":               {"-O2 -fPIE -pie -o OUT main.c part.c"},
		"native":            {"-O3 -march=native -o OUT main.c part.c"},
		"sections":          {"-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections -o OUT main.c part.c"},
		"profiling":         {"-O2 -pg -o OUT main.c part.c"},
		"protection":        {"-O2 -fcf-protection=full -fstack-protector-all -fno-plt -o OUT main.c part.c"},
		"shared object":     {"-O2 -fPIC -shared -o libpart.so part.c", "-O2 -o OUT main.c -L. -lpart -Wl,-rpath,."},
		"language named":    {"-O2 -o OUT -x c main.c part.c"},
		"split debug":       {"-O2 -g -gsplit-dwarf -o OUT main.c part.c"},
		"coverage":          {"-O1 --coverage -o OUT main.c part.c"},
		"by -S":             {"-O2 -S main.c part.c", "-c main.s", "-o OUT main.o part.s"},
		"preprocessed":      {"-E -o main.i main.c", "-E -o part.i part.c", "-O2 -o OUT main.i part.i"},
		"save temps":        {"-O2 -save-temps -o OUT main.c part.c"},
		"response file":     {"@args"},
	}
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.write("args", "-O2 '-o'\nOUT @more")
		s.write("more", "main.c \"part.c\"")
		for name, commands := range builds {
			t.Run(name, func(t *testing.T) {
				s.t = t
				for _, c := range commands {
					s.mustRun(append([]string{"braid", "cc", cc}, strings.Fields(c)...)...)
				}
				if n := s.stubs("OUT"); n < 3 {
					t.Errorf("%d stubs in the program", n)
				}
				if !strings.Contains(s.mustRun("nm", "OUT"), "__braid_") {
					t.Error("no runtime in the program")
				}
				s.program("OUT")
				if err := os.Remove(filepath.Join(s.directory, "OUT")); err != nil {
					t.Error(err)
				}
			})
		}
		s.t = t
	})
}

// TestSharedObject: a shared object has its own runtime, is loaded and unloaded again.
func TestSharedObject(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.write("load.c", `#include <dlfcn.h>
#include <stdio.h>
int main(void) {
	for (int i = 0; i < 3; i++) {
		void *h = dlopen("./libpart.so", RTLD_NOW);
		int (*part)(int) = (int (*)(int))dlsym(h, "part");
		if (!part) { puts(dlerror()); return 1; }
		printf("%d\n", part(42));
		dlclose(h);
	}
}
`)
		s.mustRun("braid", "cc", cc, "-O2", "-fPIC", "-shared", "-o", "libpart.so", "part.c", "-Wl,-z,defs")
		s.mustRun("braid", "cc", cc, "-O2", "-o", "load", "load.c")
		for _, program := range []string{"load", "plain"} {
			if program == "plain" { // only the object has stubs
				s.mustRun(cc, "-O2", "-o", "plain", "load.c")
			}
			if got := s.mustRun("./" + program); got != "336\n336\n336\n" {
				t.Errorf("%s: %q", program, got)
			}
		}
	})
}

// TestWithoutRuntime: objects with stubs work in a program that has no runtime.
func TestWithoutRuntime(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.mustRun("braid", "cc", cc, "-O2", "-c", "main.c", "part.c")
		s.mustRun(cc, "-o", "OUT", "main.o", "part.o")
		s.program("OUT")
		s.mustRun("braid", "cc", "--no-runtime", cc, "-o", "OUT", "main.o", "part.o")
		s.program("OUT")
		if strings.Contains(s.mustRun("nm", "OUT"), "T __braid_") {
			t.Error("--no-runtime linked the runtime")
		}
		// Relocatable output has none either, or the final link would have two.
		s.mustRun("braid", "cc", cc, "-r", "-nostdlib", "-o", "both.o", "main.o", "part.o")
		s.mustRun("braid", "cc", cc, "-o", "OUT", "both.o")
		s.program("OUT")
	})
}

func TestCPlusPlus(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		for _, level := range []string{"-O0", "-O2"} {
			s.mustRun("braid", "cc", cplus(cc), level, "-o", "OUT", "thing.cc")
			if got := s.mustRun("./OUT"); got != "3\nmore than two 5\n" {
				t.Errorf("%s: printed %q", level, got)
			}
			if n := s.stubs("OUT"); n < 4 {
				t.Errorf("%s: %d stubs", level, n)
			}
		}
		s.mustRun("braid", "cc", "--only", "ns::thrower", cplus(cc), "-O0", "-c", "thing.cc")
		if n := s.stubs("thing.o"); n != 3 { // entry, return, and where an exception lands to run a destructor
			t.Errorf("%d stubs with one function chosen, want 3", n)
		}
	})
}

// TestChoice counts stubs in a file whose three functions have one entry and one exit each.
func TestChoice(t *testing.T) {
	const source = `#include "braid.h"
int a_one(int x) { return x + 1; }
int a_two(int x) { return x + 2; }
int b_one(int x) { return x + 3; }
`
	header, err := filepath.Abs("../include")
	if err != nil {
		t.Fatal(err)
	}
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.write("x.c", source)
		s.write("marked.c", strings.Replace(source, "int b_one", "BRAID_NOTRACE int b_one", 1))
		s.write("list", "a_one\nb_*\n")
		for _, c := range []struct {
			options, environment, file string
			want                       int
		}{
			{"", "", "x.c", 6},
			{"", "", "marked.c", 4},
			{"--only b_one", "", "marked.c", 0},
			{"--only a_*", "", "x.c", 4},
			{"--only a_* --skip *two", "", "x.c", 2},
			{"--only a_one --only b_one", "", "x.c", 4},
			{"--list list", "", "x.c", 2},
			{"", "BRAID_CC_ONLY=b_one", "x.c", 2},
			{"", "BRAID_CC_SKIP=b_one,a_two", "x.c", 2},
			{"--skip *", "", "x.c", 0},
		} {
			s.extra = []string{c.environment}
			words := append([]string{"braid", "cc"}, strings.Fields(c.options)...)
			s.mustRun(append(words, cc, "-O1", "-I", header, "-c", c.file, "-o", "x.o")...)
			if got := s.stubs("x.o"); got != c.want {
				t.Errorf("%+v: %d stubs", c, got)
			}
		}
		s.extra = nil
	})
}

func TestAssemblyOutput(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.mustRun("braid", "cc", cc, "-O2", "-S", "part.c")
		text := s.read("part.s")
		n := s.stubs("part.s")
		if n < 3 {
			t.Errorf("%d stubs in the assembly", n)
		}
		if strings.Contains(text, "[c=") {
			t.Error("gcc's annotations are left")
		}
		if out := s.mustRun("braid", "cc", cc, "-O2", "-S", "part.c", "-o", "-"); out != text {
			t.Error("-o - differs from -o FILE")
		}
		s.mustRun("braid", "cc", cc, "-O2", "-S", "part.c", "-o", "other.asm")
		if s.read("other.asm") != text {
			t.Error("-o FILE differs from the default")
		}
		s.mustRun("braid", "cc", cc, "-O2", "-S", "part.c", "-o", "/dev/null")
		s.mustRun("braid", "cc", cc, "-O2", "-S", "main.c", "part.c")
		if s.read("part.s") != text || s.stubs("main.s") == 0 {
			t.Error("two sources at once")
		}
		// Assembled again, by name and through the preprocessor: no second set of stubs.
		s.mustRun("braid", "cc", cc, "-c", "part.s")
		if got := s.stubs("part.o"); got != n {
			t.Errorf("%d stubs after assembling %d", got, n)
		}
		s.write("again.S", text)
		s.mustRun("braid", "cc", cc, "-c", "again.S", "main.c")
		if got := s.stubs("again.o"); got != n {
			t.Errorf("%d stubs after preprocessing and assembling %d", got, n)
		}
	})
}

// TestHandWritten: assembly is left alone, also next to C in one command.
func TestHandWritten(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		for _, flags := range [][]string{{"-O2"}, {"-O2", "-g"}, {"-O2", "-pipe"}} {
			s.mustRun(append([]string{"braid", "cc", cc, "-c", "main.c", "hand.S"}, flags...)...)
			if n := s.stubs("hand.o"); n != 0 {
				t.Errorf("%d stubs in hand-written assembly", n)
			}
			if n := s.stubs("main.o"); n == 0 {
				t.Error("no stubs in the C file next to it")
			}
		}
		s.mustRun("braid", "cc", cc, "main.c", "hand.S", "-o", "OUT")
		if got := s.mustRun("./OUT"); got != "43\n" {
			t.Errorf("printed %q", got)
		}
	})
}

// TestStandardInput compiles what comes through a pipe.
func TestStandardInput(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		o := s.run(s.read("part.c"), "braid", "cc", cc, "-O2", "-x", "c", "-c", "-o", "stdin.o", "-")
		if o.code != 0 || s.stubs("stdin.o") < 3 {
			t.Errorf("%+v", o)
		}
		o = s.run(s.read("part.c"), "braid", "cc", cc, "-O2", "-x", "c", "-S", "-")
		if o.code != 0 || s.stubs("-.s") < 3 {
			t.Errorf("-S: %+v", o)
		}
		s.mustRun("braid", "cc", cc, "-O2", "-c", "main.c")
		o = s.run(s.read("part.c"), "braid", "cc", cc, "-O2", "main.o", "-x", "c", "-", "-o", "OUT")
		if o.code != 0 {
			t.Errorf("%+v", o)
		}
		s.program("OUT")
	})
}

// TestPrecompiledHeader: what the launcher adds does not make a precompiled header unfit.
func TestPrecompiledHeader(t *testing.T) {
	s := newSandbox(t)
	s.write("pre.h", "static inline int in_header(int x) { return x + 1; }\n")
	s.write("use.c", "#include \"pre.h\"\nint use(int x) { return in_header(x); }\n")
	s.mustRun("braid", "cc", "gcc", "-O2", "pre.h")
	o := s.run("", "braid", "cc", "gcc", "-O2", "-Winvalid-pch", "-H", "-c", "use.c")
	if o.code != 0 || !strings.Contains(o.stderr, "! pre.h.gch") || s.stubs("use.o") != 2 {
		t.Errorf("%+v", o)
	}
}

// TestLinkTimeOptimisation: gcc's code is generated at the link, and gets its stubs there; clang's gets none.
func TestLinkTimeOptimisation(t *testing.T) {
	for _, flags := range []string{"-flto", "-flto -ffat-lto-objects", "-flto=2"} {
		s := newSandbox(t)
		s.addTestdata()
		words := append([]string{"braid", "cc", "gcc", "-O2"}, strings.Fields(flags)...)
		s.mustRun(append(words, "-c", "main.c")...)
		s.mustRun(append(words, "-c", "part.c")...)
		for _, link := range [][]string{words, {"braid", "cc", "gcc"}} {
			s.mustRun(append(link, "main.o", "part.o", "-o", "OUT")...)
			if n := s.stubs("OUT"); n < 3 {
				t.Errorf("%s: %d stubs", flags, n)
			}
			s.program("OUT")
		}
		s.noLitter()
	}
	s := newSandbox(t)
	s.addTestdata()
	s.mustRun("braid", "cc", "clang-19", "-O2", "-flto", "-c", "main.c")
	s.mustRun("clang-19", "-O2", "-flto", "-c", "main.c", "-o", "plain.o")
	if s.read("main.o") != s.read("plain.o") {
		t.Error("clang -flto is not left alone")
	}
}

// TestAwkwardNames: spaces, quotes and dollars, in sources, outputs and TMPDIR.
func TestAwkwardNames(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.temporary = filepath.Join(s.directory, `tm"p 'x $HOME`)
		if err := os.Mkdir(s.temporary, 0o755); err != nil {
			t.Fatal(err)
		}
		name := s.write(`a b/it's "$x".c`, "int odd(int x) { return x; }\nint main(void) { return odd(0); }\n")
		s.mustRun("braid", "cc", cc, "-O1", "-g", "-c", name, "-o", "o u't.o")
		s.mustRun("braid", "cc", cc, "-O1", name, "-o", "o u't")
		if n := s.stubs("o u't.o"); n != 4 {
			t.Errorf("%d stubs", n)
		}
		s.mustRun("./o u't")
	})
}

// TestParallelMake builds forty files, eight at a time.
func TestParallelMake(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		var objects, calls strings.Builder
		for i := range 40 {
			s.write(fmt.Sprintf("f%d.c", i), fmt.Sprintf("int f%d(int x) { return x + %d; }\n", i, i))
			fmt.Fprintf(&objects, " f%d.o", i)
			fmt.Fprintf(&calls, "int f%d(int);\n", i)
		}
		calls.WriteString("#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 0")
		for i := range 40 {
			fmt.Fprintf(&calls, "+f%d(1)", i)
		}
		calls.WriteString("); }\n")
		s.write("all.c", calls.String())
		s.write("Makefile", "all: all.o"+objects.String()+"\n\t$(CC) $(CFLAGS) -o $@ $^\n")
		s.mustRun("make", "-s", "-j8", "CC=braid cc "+cc, "CFLAGS=-O1 -MMD")
		if got := s.mustRun("./all"); got != "820\n" {
			t.Errorf("printed %q", got)
		}
	})
}

// TestCcache: the same command twice is a hit; with another choice of functions it is not.
func TestCcache(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.extra = []string{"CCACHE_DIR=" + t.TempDir(), "XDG_CACHE_HOME=" + t.TempDir()}
		hits := regexp.MustCompile(`Hits: +(\d+) */`)
		count := func() string { return hits.FindStringSubmatch(s.mustRun("ccache", "-s"))[1] }
		compile := func(options ...string) int {
			words := append([]string{"braid", "cc"}, options...)
			s.mustRun(append(words, "ccache", cc, "-O2", "-c", "part.c")...)
			return s.stubs("part.o")
		}
		n := compile()
		if again := compile(); again != n || n < 3 || count() != "1" {
			t.Errorf("%d stubs, then %d, %s hits", n, again, count())
		}
		if got := compile("--only", "part"); got >= n || got == 0 || count() != "1" {
			t.Errorf("%d stubs with one function chosen, %s hits", got, count())
		}
	})
}
