package launcher

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// headerDirectory matches what clang's -### says of the directory of braid.h.
var headerDirectory = regexp.MustCompile(` "-c(xx)?-isystem" "[^"]*/braid/include-[0-9a-f]+"`)

// temporaryName matches what differs from run to run, and offsets into code, which stubs move.
var temporaryName = regexp.MustCompile(`/cc[A-Za-z0-9]{6}\b|/[A-Za-z_]+-[0-9a-f]{6,10}\b|\(\.text\+0x[0-9a-f]+\)`)

// TestMessages: exit code, standard output and standard error are the compiler's own.
func TestMessages(t *testing.T) {
	sources := map[string]string{
		"warn.c":    "int f(int x) { int unused; if (x = 3) return 1; }\nint g(void) { return f(\"s\"); }\n",
		"error.c":   "int f(void) { return x; }\nint g(void { return 1; }\n",
		"asmbad.c":  "int f(int x) { __asm__(\"frobnicate %0\" : : \"r\"(x)); return x; }\nint g(int x) { return x; }\n",
		"asmwarn.c": "void f(void) { __asm__(\".warning \\\"be careful\\\"\"); }\nint main(void) { f(); return 0; }\n",
		"asmbad.S":  "#define X nonsense\n\tX %eax\n\tret\n",
		"undef.c":   "int absent(int);\nint main(void) { return absent(1); }\n",
		"cpp.c":     "#include \"absent.h\"\n#warning careful\n#error stop\n",
		"warning.c": "#warning careful\nint x;\nint main(void) { return x; }\n",
		"empty.c":   "",
		"good.c":    "int main(void) { return 0; }\n",
		"bad.cc":    "template <class T> struct S { typename T::x y; };\nS<int> s;\n",
		"args":      "-Wall 'warn.c' -c",
	}
	commands := []string{
		"-Wall -Wextra -c warn.c", "-Wall -Werror -c warn.c", "-c error.c", "-c error.c good.c -Wall warn.c",
		"-c asmbad.c", "-pipe -c asmbad.c", "-g -O2 -save-temps -c asmbad.c", "-c asmwarn.c", "-pipe -c asmwarn.c",
		"asmwarn.c -o OUT", "-save-temps -c asmwarn.c", "-c asmbad.S", "-c asmbad.S good.c", "undef.c -o OUT", "-c cpp.c",
		"-c warning.c", "warning.c -o OUT", "-c empty.c", "empty.c -o OUT", "-c absent.c", "-c", "", "-o", "good.c -o", "-c good.c -x",
		"-funknown-option -c good.c", "-Wunknown-warning -c good.c", "-Wall -Wa,--unknown-as-option -c good.c",
		"-Wl,--unknown-ld-option good.c -o OUT", "good.c -lunknown -o OUT", "-c good.c -o absent/x.o", "-c good.c good.c -o x.o",
		"--version", "-dumpversion", "-dumpmachine", "-print-search-dirs", "-print-file-name=libc.so", "-print-prog-name=as",
		"-print-prog-name=ld", "-### -c good.c", "-E warn.c", "-E -dM empty.c", "-M warn.c", "-MM warn.c", "-fsyntax-only -Wall warn.c",
		"@args", "@absent", "-fdiagnostics-color=always -Wall -c warn.c", "-fdiagnostics-color=always -c asmbad.c",
		"-S -o - error.c", "-S -Wall warn.c", "-S asmbad.c", "-fsyntax-only bad.cc", "-c bad.cc", "-m32 -c good.c", "-std=c89 -pedantic -c warn.c",
		"-c -x c -", "-Wall -x c -c - -o x.o", "-x nonsense good.c", "--help", "-Wl,--version", "-march=nonsense -c good.c",
		"-D -c good.c", "-I absent -c good.c -Wmissing-include-dirs", "-c good.c -L. -lm", "-Wall -c good.c -Wl,-z,now -no-pie",
	}
	const stdin = "int f(int x) { int y; if (x = 3) return 1; }\n"
	for _, cc := range compilers {
		t.Run(cc, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			for name, text := range sources {
				s.write(name, text)
			}
			for _, c := range commands {
				plain := s.run(stdin, append([]string{cc}, strings.Fields(c)...)...)
				traced := s.run(stdin, append([]string{"braid", "cc", cc}, strings.Fields(c)...)...)
				for _, o := range []*outcome{&plain, &traced} {
					o.stdout = temporaryName.ReplaceAllString(o.stdout, "TEMPORARY")
					o.stderr = temporaryName.ReplaceAllString(o.stderr, "TEMPORARY")
				}
				traced.stderr = headerDirectory.ReplaceAllString(traced.stderr, "")
				if plain != traced {
					t.Errorf("%s:\nplain:      %d\n%s\n%s\nwith braid: %d\n%s\n%s", c, plain.code, plain.stdout, plain.stderr,
						traced.code, traced.stdout, traced.stderr)
				}
			}
			s.noLitter()
		})
	}
}

// TestInlineAssemblyWarning: a file whose inline assembly draws a warning gets its stubs all the same.
func TestInlineAssemblyWarning(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.write("w.c", "void f(void) { __asm__(\".warning \\\"be careful\\\"\"); }\n")
		o := s.run("", "braid", "cc", cc, "-O2", "-c", "w.c")
		if o.code != 0 || strings.Count(o.stderr, "be careful") == 0 || s.stubs("w.o") != 2 {
			t.Errorf("%d stubs, %+v", s.stubs("w.o"), o)
		}
	})
}

func TestUsage(t *testing.T) {
	s := newSandbox(t)
	if o := s.run("", "braid", "cc", "--help"); o.code != 0 || o.stdout != Usage || o.stderr != "" {
		t.Errorf("%+v", o)
	}
	for line := range strings.Lines(Usage) {
		if len(line) > 81 {
			t.Errorf("the help has a line of more than 80 columns: %s", line)
		}
	}
	for want, words := range map[int][]string{
		exitUsage:    {"--frob", "gcc"},
		exitNotFound: {"gcc-absent"},
		3:            {"sh", "-c", "exit 3"},
	} {
		if o := s.run("", append([]string{"braid", "cc"}, words...)...); o.code != want {
			t.Errorf("%q: %+v", words, o)
		}
	}
	s.write("gcc", "#!/bin/sh\n")
	if o := s.run("", "braid", "cc", "./gcc", "-c", "x.c"); o.code != exitNoRun {
		t.Errorf("a compiler that is not executable: %+v", o)
	}
	s.write("a.c", "int f(int x) { return x; }\n")
	o := s.run("", "braid", "cc", "--verbose", "gcc", "-c", "a.c")
	if !strings.Contains(o.stderr, "-dp") || !strings.Contains(o.stderr, "a.c: stubs in 1 functions, at 1 exits") {
		t.Errorf("--verbose: %+v", o)
	}
	s.noLitter()
}

// fakeCompiler puts a shell script called gcc into the sandbox.
func (s *sandbox) fakeCompiler(script string) {
	s.t.Helper()
	s.write("gcc", "#!/bin/sh\n"+script)
	if err := os.Chmod(filepath.Join(s.directory, "gcc"), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// TestCompilerDies: braid cc ends as the compiler did.
func TestCompilerDies(t *testing.T) {
	for name, want := range map[string]syscall.Signal{
		"KILL": unix.SIGKILL, "SEGV": unix.SIGSEGV, "TERM": unix.SIGTERM, "ABRT": unix.SIGABRT, "INT": unix.SIGINT,
		"PIPE": unix.SIGPIPE, "XCPU": unix.SIGXCPU,
	} {
		s := newSandbox(t)
		s.fakeCompiler("ulimit -c 0; kill -" + name + " $$\n")
		cmd := exec.Command(filepath.Join(s.bin, "braid"), "cc", "./gcc", "-c", "x.c")
		cmd.Dir, cmd.Env = s.directory, s.environment()
		out, _ := cmd.CombinedOutput()
		ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ws.Signaled() || ws.Signal() != want || ws.CoreDump() || len(out) > 0 {
			t.Errorf("%s: %v, output %q", name, cmd.ProcessState, out)
		}
		s.noLitter()
	}
	s := newSandbox(t)
	s.fakeCompiler("exit 77\n")
	if o := s.run("", "braid", "cc", "./gcc", "-c", "x.c"); o.code != 77 {
		t.Errorf("%+v", o)
	}
}

// TestSignals: a signal to braid cc alone ends the compiler, leaves no file, and ends braid cc by the same signal.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		s := newSandbox(t)
		s.fakeCompiler("ls \"$TMPDIR\" > listing; touch started; exec sleep 600\n")
		cmd := exec.Command(filepath.Join(s.bin, "braid"), "cc", "./gcc", "-c", "x.c")
		cmd.Dir, cmd.Env = s.directory, s.environment()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(s.directory, "started")); err == nil {
				break
			}
			if time.Now().After(deadline) {
				_ = cmd.Process.Kill()
				t.Fatal("the compiler did not start")
			}
		}
		if !strings.Contains(s.read("listing"), "braid-cc-") {
			t.Error("no temporary directory while compiling: this test shows nothing")
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != sig {
			t.Errorf("%v: ended with %v", sig, cmd.ProcessState)
		}
		s.noLitter()
	}
}
