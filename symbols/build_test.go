package symbols

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a tool and returns its standard output.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// source writes a source file into a new directory, in which tests build.
func source(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// compile compiles a source with gcc or g++ to a file beside it.
func compile(t testing.TB, src, out string, flags ...string) string {
	t.Helper()
	cc := "gcc"
	if filepath.Ext(src) == ".cc" {
		cc = "g++"
	}
	out = filepath.Join(filepath.Dir(src), out)
	run(t, cc, append(append([]string{"-O1", "-Wl,--build-id"}, flags...), "-o", out, src)...)
	return out
}

// copyFile copies a file with its mode.
func copyFile(t testing.TB, from, to string) string {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// readImage reads an ELF file with its own tables.
func readImage(t testing.TB, path string) *Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	img, err := ReadImage(f, st.Size())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, p := range img.Problems {
		t.Errorf("%s: %v", path, p)
	}
	return img
}

// rawNames returns the names of an image's functions by address.
func rawNames(img *Image) map[uint64]string {
	names := make(map[uint64]string)
	for f := range img.Functions() {
		names[f.Addr] = f.Raw
	}
	return names
}

// addrOf finds a function by its raw name.
func addrOf(t testing.TB, img *Image, raw string) uint64 {
	t.Helper()
	for f := range img.Functions() {
		if f.Raw == raw {
			return f.Addr
		}
	}
	t.Fatalf("no function %s", raw)
	return 0
}
