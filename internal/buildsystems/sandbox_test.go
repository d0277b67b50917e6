package buildsystems

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user that runs a sandbox's commands, since root may write anywhere.
const nobody = 65534

// sandboxed runs a command as Bazel and its like do: no variables but PATH and TMPDIR, no HOME, as a user who may write
// in the output directory and in TMPDIR only. It returns the lists of files in both.
func (p *project) sandboxed(out string, words ...string) (outputs, temporary []string) {
	p.t.Helper()
	tmp := filepath.Join(filepath.Dir(out), "tmp of "+filepath.Base(out))
	for _, dir := range []string{out, tmp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			p.t.Fatal(err)
		}
	}
	c := exec.Command("/usr/bin/env", append([]string{"-i", "PATH=" + braidBin + ":/usr/bin:/bin", "TMPDIR=" + tmp}, words...)...)
	c.Dir = p.dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if text, err := c.CombinedOutput(); err != nil || len(text) > 0 {
		p.t.Fatalf("%q: %v\n%s", words, err, text)
	}
	return list(p.t, out), list(p.t, tmp)
}

// list is the names of all files below a directory.
func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// readable lets everybody into a directory below the system's temporary one.
func readable(t *testing.T, dir string) {
	t.Helper()
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSandbox compiles from a source tree that cannot be written, with nothing in the environment, into directories
// with awkward names, twice: only the declared outputs appear, and they are the same, bit by bit.
func TestSandbox(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("only root can become another user, to whom files are read-only")
	}
	for _, c := range []struct{ cc, flags string }{
		{"gcc", "-O2 -g"}, {"gcc", "-O2 -g -flto"}, {"gcc", "-O2 -g -pipe -grecord-gcc-switches"}, {"clang", "-O2 -g"},
		{"clang-19", "-O2 -g"}, {"g++", "-O1 -g"}, {"clang++", "-O1 -g"},
	} {
		t.Run(c.cc+strings.ReplaceAll(c.flags, " ", ""), func(t *testing.T) {
			p := newProject(t, "source")
			readable(t, p.dir)
			before := list(t, p.dir)
			source := "src/main.c"
			if strings.HasSuffix(c.cc, "++") {
				source = "src/jars.cc"
			}
			var objects [2][]byte
			for i, name := range []string{"one $out's \"dir", "another\nplace\xff"} {
				out := filepath.Join(filepath.Dir(p.dir), name)
				words := append([]string{"braid", "cc", c.cc}, strings.Fields(c.flags)...)
				words = append(words, "-ffile-prefix-map="+out+"=/out", "-ffile-prefix-map="+p.dir+"=/source", "-frandom-seed=pantry",
					"-MD", "-MF", out+"/x.d", "-c", source, "-o", out+"/x.o")
				outputs, temporary := p.sandboxed(out, words...)
				if !slices.Equal(outputs, []string{"x.d", "x.o"}) || len(temporary) > 0 {
					t.Errorf("outputs %q, in TMPDIR %q", outputs, temporary)
				}
				var err error
				if objects[i], err = os.ReadFile(out + "/x.o"); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(objects[0], objects[1]) {
				t.Error("two compilations of the same source differ")
			}
			if after := list(t, p.dir); !slices.Equal(before, after) {
				t.Errorf("the source tree has changed: %q", after)
			}
		})
	}
}

// TestSandboxLink links the same objects in two places: the programs are the same and hold no name of a temporary file.
func TestSandboxLink(t *testing.T) {
	// No line ends in names here: gcc -flto's own wrapper takes none.
	for _, c := range []struct{ cc, flags string }{{"g++", "-g"}, {"g++", "-flto -O2"}, {"clang++", "-fuse-ld=lld"}} {
		t.Run(strings.ReplaceAll(c.cc+c.flags, " ", ""), func(t *testing.T) {
			p := newProject(t, "source")
			readable(t, p.dir)
			linker := ""
			if strings.HasPrefix(c.cc, "clang") {
				linker = "-19"
			}
			p.run("make -j16 CC='braid cc gcc -frandom-seed=1' CXX='braid cc g++ -frandom-seed=1'")
			if strings.Contains(c.flags, "-flto") {
				p.run("braid cc gcc -flto -O2 -frandom-seed=1 -Isrc -c src/main.c -o main.o")
			}
			var programs [2][]byte
			for i, name := range []string{"one $out's \"dir", "another place\xff"} {
				out := filepath.Join(filepath.Dir(p.dir), name)
				words := append([]string{"braid", "cc", c.cc + linker}, strings.Fields(c.flags)...)
				words = append(words, "-frandom-seed=1", "main.o", "jars.o", "libsum.a", "libshelf.so", "-Wl,-rpath,"+p.dir, "-o", out+"/program")
				outputs, temporary := p.sandboxed(out, words...)
				if !slices.Equal(outputs, []string{"program"}) || len(temporary) > 0 {
					t.Errorf("outputs %q, in TMPDIR %q", outputs, temporary)
				}
				var err error
				if programs[i], err = os.ReadFile(out + "/program"); err != nil {
					t.Fatal(err)
				}
				p.run("cp '" + strings.ReplaceAll(out, "'", `'\''`) + "/program' program")
			}
			if !bytes.Equal(programs[0], programs[1]) {
				t.Error("two links of the same objects differ")
			}
			if bytes.Contains(programs[0], []byte("braid-cc-")) {
				t.Error("the program names a temporary directory")
			}
			p.check("./program")
		})
	}
}

// TestLongCommandLines: hundreds of objects on a command line of about a million bytes, and in nested response files.
func TestLongCommandLines(t *testing.T) {
	p := newProject(t, "project")
	p.run("make -j16 CC='braid cc gcc' CXX='braid cc g++'; echo 'static int none;' > empty.c; braid cc gcc -c empty.c")
	long := strings.Repeat("./", 1000) + "empty.o"
	const tail = " main.o jars.o -L. -lsum -lshelf -Wl,-rpath,'$ORIGIN' -o long"
	p.env = append(p.env, "LONG="+long)
	p.run(`words=; for i in $(seq 500); do words="$words $LONG"; done; braid cc g++ $words` + tail)
	p.check("./long")

	var inner strings.Builder
	for i := range 500 {
		fmt.Fprintf(&inner, "'%s'\n", long)
		if i%100 == 0 {
			fmt.Fprintf(&inner, "-DQUOTED_%d=\\\"a\\ b\\\"\n", i)
		}
	}
	for name, text := range map[string]string{"inner args": inner.String(), "outer": "\"@inner args\" -O1" + tail + "2\n"} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.run("braid cc g++ @outer")
	p.check("./long2")
}
