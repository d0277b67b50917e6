package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// slowCalls counts the calls of the slow path in an object: one in each stub, whatever the processor.
func (s *sandbox) slowCalls(object string) int {
	s.t.Helper()
	n := 0
	for line := range strings.Lines(s.mustRun("readelf", "-rW", object)) {
		if strings.Contains(line, "__braid_slow") {
			n++
		}
	}
	return n
}

// TestCross builds with cross compilers: stubs get into the objects, the runtime into the programs, and they run.
func TestCross(t *testing.T) {
	const arm64, arm = "qemu-aarch64 -L /usr/aarch64-linux-gnu", "qemu-arm -L /usr/arm-linux-gnueabihf"
	for _, c := range []struct{ compiler, emulator string }{
		{"aarch64-linux-gnu-gcc -O2", arm64},
		{"aarch64-linux-gnu-gcc -O0 -g -mbranch-protection=standard", arm64},
		{"aarch64-linux-gnu-gcc -O2 -flto", arm64},
		{"aarch64-linux-gnu-gcc -O1 -static-pie", arm64},
		{"clang --target=aarch64-linux-gnu -O2", arm64},
		{"clang -target aarch64-linux-gnu -O1 -fno-integrated-as", arm64},
		{"clang-19 --target=aarch64-linux-gnu -O2 -g -fuse-ld=lld", arm64},
		{"arm-linux-gnueabihf-gcc -O2", arm},
		{"arm-linux-gnueabihf-gcc -O1 -marm -static", arm},
		{"clang --target=arm-linux-gnueabihf -O2 -fno-integrated-as", arm},
		{"clang-19 --target=armv7a-linux-gnueabihf -O2 -mthumb -fuse-ld=lld -static", arm},
	} {
		// gcc leaves a file behind where TMPDIR has a "=", which the name of the test becomes a part of.
		t.Run(strings.ReplaceAll(c.compiler, "=", " "), func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.addTestdata()
			braid := append([]string{"braid", "cc"}, strings.Fields(c.compiler)...)
			o := s.run("", append(braid, "-c", "main.c", "part.c")...)
			if o.code != 0 || strings.Contains(o.stderr, "braid") {
				t.Fatalf("%+v", o)
			}
			if n := s.slowCalls("part.o"); n < 3 && !strings.Contains(c.compiler, "-flto") {
				t.Errorf("%d stubs in an object", n)
			}
			s.mustRun(append(braid, "main.o", "part.o", "-o", "OUT")...)
			if !strings.Contains(s.mustRun("readelf", "-sW", "OUT"), "__braid_slow") {
				t.Error("no runtime in the program")
			}
			if got := s.mustRun(append(strings.Fields(c.emulator), "./OUT")...); got != "336\n" {
				t.Errorf("printed %q", got)
			}
			s.write("bad.c", "void bad(void) { __asm__(\"frobnicate\"); }\n")
			plain := s.run("", append(strings.Fields(c.compiler), "-c", "bad.c")...)
			traced := s.run("", append(braid, "-c", "bad.c")...)
			for _, o := range []*outcome{&plain, &traced} {
				o.stderr = temporaryName.ReplaceAllString(o.stderr, "TEMPORARY")
			}
			if plain != traced {
				t.Errorf("plain:\n%+v\nwith braid:\n%+v", plain, traced)
			}
			s.noLitter()
		})
	}
}

// TestAndroid: the NDK's compilers are scripts that are named after their target.
func TestAndroid(t *testing.T) {
	s := newSandbox(t)
	s.write("part.c", "int half(int x) { return x / 2; }\nint part(int x) { return half(x) + 1; }\n")
	for name, options := range map[string]string{
		"aarch64-linux-android30-clang":    "--block slot:2",
		"armv7a-linux-androideabi30-clang": "",
		"x86_64-linux-android30-clang":     "",
	} {
		script := "#!/bin/sh\nexec clang-19 --target=" + strings.TrimSuffix(name, "-clang") + " \"$@\"\n"
		s.write(name, script)
		if err := os.Chmod(filepath.Join(s.directory, name), 0o755); err != nil {
			t.Fatal(err)
		}
		words := append([]string{"braid", "cc"}, strings.Fields(options)...)
		o := s.run("", append(words, "./"+name, "-O2", "-fPIC", "-c", "part.c")...)
		if o.code != 0 || o.stderr != "" || s.slowCalls("part.o") < 3 {
			t.Errorf("%s: %d stubs, %+v", name, s.slowCalls("part.o"), o)
		}
	}
	s.noLitter()
}

// TestNoSuchBlock: who asks for a way to the control block that the processor does not have is told.
func TestNoSuchBlock(t *testing.T) {
	s := newSandbox(t)
	s.addTestdata()
	o := s.run("", "braid", "cc", "--block", "reg:x19", "gcc", "-c", "part.c")
	if o.code != 0 || !strings.Contains(o.stderr, "--block reg:x19+0:") || s.slowCalls("part.o") != 0 {
		t.Errorf("%+v", o)
	}
	if o := s.run("", "braid", "cc", "--block", "door", "gcc", "-c", "part.c"); o.code != exitUsage {
		t.Errorf("%+v", o)
	}
}

// TestSplitStack: a program with split stacks is built without stubs, and that is said aloud.
func TestSplitStack(t *testing.T) {
	s := newSandbox(t)
	s.addTestdata()
	o := s.run("", "braid", "cc", "gcc", "-O2", "-fsplit-stack", "main.c", "part.c", "-o", "OUT")
	if o.code != 0 || !strings.Contains(o.stderr, "-fsplit-stack: no stubs") {
		t.Errorf("%+v", o)
	}
	s.program("OUT")
	o = s.run("", "braid", "cc", "gcc", "-O2", "-fsplit-stack", "-c", "part.c")
	if o.code != 0 || !strings.Contains(o.stderr, "-fsplit-stack: no stubs") || s.stubs("part.o") != 0 {
		t.Errorf("%d stubs, %+v", s.stubs("part.o"), o)
	}
}
