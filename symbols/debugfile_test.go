package symbols

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// split builds a program, and returns it with its debug file and a stripped copy.
func split(t *testing.T, flags ...string) (full, debug, stripped string) {
	t.Helper()
	full = compile(t, source(t, "prog.c", cProgram), "prog", append([]string{"-g"}, flags...)...)
	debug, stripped = full+".debug", filepath.Join(filepath.Dir(full), "bin", "prog")
	run(t, "objcopy", "--only-keep-debug", full, debug)
	if err := os.Mkdir(filepath.Dir(stripped), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "strip", "-o", stripped, full)
	return full, debug, stripped
}

// module describes a file as its runtime would.
func module(t *testing.T, path string) Module {
	t.Helper()
	m := Registered(path, 0x10000, nil)
	m.BuildID = readImage(t, path).BuildID
	return m
}

// loadOne makes a table of one module and returns what became of it.
func loadOne(t *testing.T, m Module, opts Options) ModuleInfo {
	t.Helper()
	return NewTable([]Module{m}, opts).Modules()[0]
}

func TestStripped(t *testing.T) {
	_, _, stripped := split(t, "-no-pie", "-static")
	got := loadOne(t, module(t, stripped), Options{})
	if got.Image.Len() != 0 || got.Err == nil || !strings.Contains(got.Err.Error(), ErrStripped.Error()) {
		t.Errorf("%d functions, error %v", got.Image.Len(), got.Err)
	}
}

func TestDebugFileByBuildID(t *testing.T) {
	full, debug, stripped := split(t)
	want := rawNames(readImage(t, full))
	m := module(t, stripped)
	root := t.TempDir()
	place := filepath.Join(root, ".build-id", m.BuildID[:2], m.BuildID[2:]+".debug")
	copyFile(t, debug, place)

	got := loadOne(t, m, Options{DebugRoots: []string{"/nonexistent", root}})
	if diff := cmp.Diff(want, rawNames(got.Image)); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(got.Image.Sources, place) {
		t.Errorf("sources %v", got.Image.Sources)
	}
	if got := loadOne(t, m, Options{DebugRoots: []string{root}, NoDebugFiles: true}); got.Image.Len() >= len(want) {
		t.Errorf("%d functions without debug files", got.Image.Len())
	}

	// The program is gone, its debug file is enough.
	if err := os.Remove(stripped); err != nil {
		t.Fatal(err)
	}
	got = loadOne(t, m, Options{DebugRoots: []string{root}})
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	names := rawNames(got.Image)
	for addr, name := range want {
		if names[addr] != name {
			t.Errorf("%#x is %q, want %q", addr, names[addr], name)
		}
	}

	// A debug file of another build under the right name is not used.
	other := compile(t, source(t, "prog.c", cProgram), "other", "-g", "-O2")
	copyFile(t, other, place)
	copyFile(t, full, stripped)
	run(t, "strip", stripped)
	got = loadOne(t, m, Options{DebugRoots: []string{root}})
	if len(got.Image.Problems) != 1 || !strings.Contains(got.Image.Problems[0].Error(), "its build id is "+readelfBuildID(t, other)) {
		t.Errorf("problems: %v", got.Image.Problems)
	}
}

func TestDebugLink(t *testing.T) {
	for _, c := range []struct{ name, dir string }{
		{"beside", "."},
		{"hidden directory", ".debug"},
		{"debug root", "root"},
	} {
		t.Run(c.name, func(t *testing.T) {
			full, debug, stripped := split(t, "-Wl,--build-id=none")
			run(t, "objcopy", "--add-gnu-debuglink="+debug, stripped)
			root := t.TempDir()
			dir := filepath.Join(filepath.Dir(stripped), c.dir)
			if c.dir == "root" {
				dir = filepath.Join(root, filepath.Dir(stripped))
			}
			place := copyFile(t, debug, filepath.Join(dir, filepath.Base(debug)))
			opts := Options{DebugRoots: []string{root}}

			got := loadOne(t, module(t, stripped), opts)
			if diff := cmp.Diff(rawNames(readImage(t, full)), rawNames(got.Image)); diff != "" {
				t.Error(diff)
			}

			// One byte more, and the CRC is wrong.
			b, err := os.ReadFile(place)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(place, append(b, 0), 0o644); err != nil {
				t.Fatal(err)
			}
			got = loadOne(t, module(t, stripped), opts)
			if len(got.Image.Problems) != 1 || !strings.Contains(got.Image.Problems[0].Error(), "its CRC is ") {
				t.Errorf("problems: %v", got.Image.Problems)
			}
		})
	}
}

// miniDebug does what Fedora's rpm macros do (find-debuginfo.sh, add_minidebug).
func miniDebug(t *testing.T, full, debug, stripped string, xzFlags ...string) {
	t.Helper()
	dynamic := make(map[string]bool)
	for line := range strings.Lines(run(t, "nm", "-D", full, "--format=posix", "--defined-only")) {
		dynamic[strings.Fields(line)[0]] = true
	}
	var keep strings.Builder
	for line := range strings.Lines(run(t, "nm", full, "--format=posix", "--defined-only")) {
		if f := strings.Fields(line); strings.ContainsAny(f[1], "TtD") && !dynamic[f[0]] {
			fmt.Fprintln(&keep, f[0])
		}
	}
	keepFile, mini := debug+".keep", debug+".mini"
	if err := os.WriteFile(keepFile, []byte(keep.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "objcopy", "-S", "--remove-section", ".gdb_index", "--remove-section", ".comment", "--keep-symbols="+keepFile, debug, mini)
	run(t, "xz", append(append([]string{"-k", "-f"}, xzFlags...), mini)...)
	run(t, "objcopy", "--add-section", ".gnu_debugdata="+mini+".xz", stripped)
}

func TestMiniDebugInfo(t *testing.T) {
	for _, flags := range [][]string{
		{"-6"},
		{"--check=crc32", "--block-size=1024"},
		{"--check=sha256"},
		{"--check=none", "--lzma2=dict=1536MiB"}, // the dictionary that it declares is not allocated
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			// -rdynamic: half of the functions are in .dynsym only, the static ones in the mini debug info only.
			full, debug, stripped := split(t, "-rdynamic")
			miniDebug(t, full, debug, stripped, flags...)
			img := readImage(t, stripped)
			if diff := cmp.Diff(cFunctions(readImage(t, full)), cFunctions(img)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{".dynsym", ".gnu_debugdata"}, img.Sources); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// cFunctions are the functions of cProgram, those of the C library's start-up code left out.
func cFunctions(img *Image) map[string]uint64 {
	funcs := make(map[string]uint64)
	for f := range img.Functions() {
		switch f.Raw {
		case "hidden", "visible", "weak_one", "alias_of_visible", "main":
			funcs[f.Raw] = f.Addr
		}
	}
	return funcs
}

func TestXZErrors(t *testing.T) {
	path := source(t, "zeros", string(make([]byte, 200<<10)))
	run(t, "xz", path)
	good, err := os.ReadFile(path + ".xz")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := unpackXZ(good, 200<<10); err != nil || len(out) != 200<<10 {
		t.Fatalf("%d bytes, %v", len(out), err)
	}
	if _, err := unpackXZ(good, 200<<10-1); err == nil || err.Error() != "xz: more than 204799 bytes" {
		t.Errorf("a bomb: %v", err)
	}
	// Every byte up to the index is checked by something.
	for i := range len(good) - 24 { // an index of 12 bytes and a footer of 12
		bad := slices.Clone(good)
		bad[i] ^= 0x10
		if out, err := unpackXZ(bad, 64<<20); err == nil {
			t.Errorf("byte %d of %d changed: %d bytes unpacked without an error", i, len(good), len(out))
		}
	}
	for _, n := range []int{0, 5, 12, 13, 24, len(good) / 2} {
		if _, err := unpackXZ(good[:n], 64<<20); err == nil {
			t.Errorf("cut to %d bytes: no error", n)
		}
	}
}

func TestOpenInStaysInRoot(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr/lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "usr/lib/a.so"), []byte("inside"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/lib", filepath.Join(root, "lib")); err != nil { // absolute, as containers have them
		t.Fatal(err)
	}
	if err := os.Symlink("../../../../../../../../etc/hostname", filepath.Join(root, "escape")); err != nil {
		t.Fatal(err)
	}
	f, err := openIn(root, "/lib/a.so")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 6)
	if _, err := f.Read(b); err != nil || string(b) != "inside" {
		t.Errorf("%q, %v", b, err)
	}
	if f, err := openIn(root, "/escape"); err == nil {
		f.Close()
		t.Error("a symbolic link led out of the root")
	}
	if f, err := openIn("", "/dev/zero"); err == nil {
		f.Close()
		t.Error("a device was opened")
	}
}
