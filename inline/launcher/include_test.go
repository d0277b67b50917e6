package launcher

import (
	"path/filepath"
	"strings"
	"testing"
)

// headerProgram calls all of braid.h, also in a signal handler, and says whether the runtime is there. It is C and C++.
const headerProgram = `#include <braid.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#ifdef __cplusplus
extern "C"
#endif
int other(void);
static volatile int handled;
static void handler(int sig) { braid_thread_off(); braid_thread_on(); handled = 1 + braid_trigger("from a handler"); (void)sig; }
BRAID_NOTRACE static int hot(int x) { return x * 2; }
int main(void) {
	signal(SIGUSR1, handler);
	errno = 77;
	braid_thread_on();
	raise(SIGUSR1);
	braid_thread_off();
	int there = braid_trigger("a reason") + braid_trigger(0);
	printf("%d %d %d %d %d %d\n", __braid_api_trigger != 0, there, handled, errno, hot(1), other());
	return 0;
}
`

const headerOther = `#include <braid.h>
#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) int other(void) { braid_thread_on(); return __braid_api_thread != 0; }
`

// TestHeader: programs find braid.h, in commands that braid only passes on as well, and in dependency files that outlive the
// command.
func TestHeader(t *testing.T) {
	withCompilers(t, func(t *testing.T, s *sandbox, cc string) {
		s.extra = []string{"XDG_CACHE_HOME=" + t.TempDir()}
		s.write("main.c", headerProgram)
		s.write("other.c", headerOther)
		s.write("main.cc", headerProgram)
		s.write("other.cc", headerOther)
		run := func(want, name string) {
			t.Helper()
			if got := strings.TrimSpace(s.mustRun("./" + name)); got != want {
				t.Errorf("%s: printed %q, want %q", name, got, want)
			}
		}
		s.mustRun("braid", "cc", cc, "-O1", "-Wall", "-Wextra", "-Werror", "-MD", "-o", "c", "main.c", "other.c")
		run("1 0 1 77 2 1", "c")
		s.mustRun("braid", "cc", cplus(cc), "-O0", "-Wall", "-Wextra", "-Werror", "-o", "cc", "main.cc", "other.cc")
		run("1 0 1 77 2 1", "cc")
		s.mustRun("braid", "cc", cc, "-std=c99", "-pedantic", "-Werror", "-E", "-o", "main.i", "main.c")
		rule := s.mustRun("braid", "cc", cc, "-M", "main.c")
		var header string
		for _, word := range strings.Fields(rule) {
			if filepath.Base(word) == "braid.h" {
				header = word
			}
		}
		if s.mustRun("cat", header) == "" {
			t.Errorf("no braid.h in %q", rule)
		}
		plain := "-I" + filepath.Dir(header)
		// Without the runtime, as a whole or in a part.
		for _, mode := range []string{"-O2", "-O0 -static", "-O2 -fPIE -pie", "-O2 -fno-pic -no-pie"} {
			s.mustRun(append([]string{cc, plain, "-o", "plain", "main.c", "other.c"}, strings.Fields(mode)...)...)
			run("0 0 1 77 2 0", "plain")
		}
		s.mustRun(cc, plain, "-O2", "-fPIC", "-shared", "-o", "libother.so", "other.c")
		s.mustRun("braid", "cc", cc, "-o", "mixed", "main.c", "-L.", "-lother", "-Wl,-rpath,$ORIGIN")
		run("1 0 1 77 2 0", "mixed")
		s.mustRun("braid", "cc", cc, "-O2", "-fPIC", "-shared", "-o", "libother.so", "other.c")
		run("1 0 1 77 2 1", "mixed")
	})
}

// TestHeaderBehindOthers: a braid.h of the program's own comes first, and so do the user's variables.
func TestHeaderBehindOthers(t *testing.T) {
	s := newSandbox(t)
	s.extra = []string{"XDG_CACHE_HOME=" + t.TempDir(), "C_INCLUDE_PATH=" + s.directory + "/mine"}
	s.write("mine/braid.h", "#define MINE 1\n")
	s.write("a.c", "#include <braid.h>\nint x = MINE;\n")
	s.mustRun("braid", "cc", "gcc", "-c", "a.c")
	s.extra = []string{"XDG_CACHE_HOME=" + t.TempDir()}
	s.mustRun("braid", "cc", "gcc", "-Imine", "-c", "a.c")
	s.extra = []string{"XDG_CACHE_HOME=/dev/null/x"} // no place for it: nothing else is wrong
	s.write("b.c", "int y;\n")
	s.mustRun("braid", "cc", "gcc", "-c", "b.c")
}
