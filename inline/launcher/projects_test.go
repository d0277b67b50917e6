package launcher

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// debianSource unpacks the Debian source of a package for this test alone.
func debianSource(t *testing.T, name string) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), name)
	script, err := filepath.Abs("../../scripts/debsrc")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(script, name, directory).CombinedOutput(); err != nil {
		t.Fatalf("unpacking the source of %s: %v\n%s", name, err, out)
	}
	return directory
}

// projectCompilers are those that real programs are built with.
var projectCompilers = []string{"gcc", "clang"}

// TestLua builds Debian's Lua, unmodified, as C and as C++, as an archive, a shared object and programs, and runs a
// script on it (see there). Debian's package has no test suite.
func TestLua(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/exercise.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, cc := range projectCompilers {
		t.Run(cc, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.directory = debianSource(t, "lua5.4")
			// What debian/rules does: a header, and a libtool that is set up for the compiler.
			s.write("src/lua5.4-deb-multiarch.h", "#define DEB_HOST_MULTIARCH \"x86_64-linux-gnu\"\n")
			system, err := exec.LookPath("libtool")
			if err != nil {
				t.Fatalf("%v; apt-get install libtool-bin", err)
			}
			text, err := os.ReadFile(system)
			if err != nil {
				t.Fatal(err)
			}
			driver, driverPlus := "braid cc "+cc, "braid cc "+cplus(cc)
			s.write("debian/lt", strings.NewReplacer("\nCC=\"gcc\"\n", "\nCC=\""+driver+"\"\n",
				"\nCC=\"g++\"\n", "\nCC=\""+driverPlus+"\"\n").Replace(string(text)))
			if err := os.Chmod(filepath.Join(s.directory, "debian/lt"), 0o755); err != nil {
				t.Fatal(err)
			}
			variables := []string{"V=5.4", "MYLIBS=", "SYSCFLAGS=-DLUA_USE_LINUX", "LIBTOOL=" + s.directory + "/debian/lt --silent",
				"CC=" + driver + " -std=gnu99", "CXX=" + driverPlus, "MYCFLAGS=-O2", "MYCXXFLAGS=-O2"}
			s.mustRun(append([]string{"make", "-s", "-j4", "-C", "src", "o"}, variables...)...)
			// Serially: Debian's rule for the two libraries is not fit for -j, with any compiler.
			s.mustRun(append([]string{"make", "-s", "-C", "src", "SYSLIBS=-Wl,-E -ldl", "all"}, variables...)...)

			script, err := filepath.Abs("testdata/exercise.lua")
			if err != nil {
				t.Fatal(err)
			}
			if got := s.mustRun("src/lua5.4", script); got != string(want) {
				t.Errorf("the script printed:\n%s", got)
			}
			for _, file := range []string{"src/lua5.4", "src/luac5.4", "src/.libs/liblua5.4.so", "src/.libs/liblua5.4-c++.so"} {
				if n := s.stubs(file); n < 300 {
					t.Errorf("%s: %d stubs", file, n)
				}
			}
			s.noLitter()
		})
	}
}

// TestZlib builds Debian's zlib, unmodified, with its configure script, and has it check itself: static, shared, and
// with 64-bit offsets.
func TestZlib(t *testing.T) {
	t.Parallel()
	for _, cc := range projectCompilers {
		t.Run(cc, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			s.directory = debianSource(t, "zlib")
			s.extra = []string{"CC=braid cc " + cc}
			s.mustRun("./configure")
			s.mustRun("make", "-s", "-j4")
			out := s.mustRun("make", "-s", "check")
			for _, test := range []string{"zlib test OK", "zlib shared test OK", "zlib 64-bit test OK"} {
				if !strings.Contains(out, test) {
					t.Errorf("no %q in:\n%s", test, out)
				}
			}
			for _, file := range []string{"minigzip", "example", "libz.so"} {
				if n := s.stubs(file); n < 200 {
					t.Errorf("%s: %d stubs", file, n)
				}
			}
			s.noLitter()
		})
	}
}
