package workload

import (
	"archive/tar"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/ulikunitz/xz"
)

//go:embed programs_*.tar.xz
var programs embed.FS

//go:embed src
var source embed.FS

// Set is the programs, unpacked into a folder. Its methods may be called by several goroutines.
type Set struct {
	dir      string
	emulator []string // what runs the program that starts others; tests for other processors have one
}

// ErrProcessor says that there are no programs for a processor.
var ErrProcessor = errors.New("no workloads for this processor")

// Unpack writes the programs for a processor, in Go's naming, into a folder of their own below dir. The folder belongs to the
// caller. Its file system must allow to execute programs; the IO workload writes there too.
func Unpack(dir, goarch string) (*Set, error) {
	b, err := programs.ReadFile("programs_" + goarch + ".tar.xz")
	if err != nil {
		return nil, fmt.Errorf("%w (%s): there are some for amd64, arm64 and arm", ErrProcessor, goarch)
	}
	s := &Set{dir: filepath.Join(dir, "workload-"+goarch)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("unpacking the workloads: %w", err)
	}
	x, err := xz.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("unpacking the workloads: %w", err)
	}
	for t := tar.NewReader(x); ; {
		h, err := t.Next()
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking the workloads: %w", err)
		}
		if err := unpackOne(filepath.Join(s.dir, filepath.Base(h.Name)), t); err != nil {
			return nil, fmt.Errorf("unpacking the workloads: %w", err)
		}
	}
}

func unpackOne(path string, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o700)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Path returns the executable whose functions a workload traces: what a probe is put into.
func (s *Set) Path(workload string, v Variant) string {
	if workload == Startup {
		return filepath.Join(s.dir, "lua_"+string(v))
	}
	return s.driver()
}

func (s *Set) driver() string { return filepath.Join(s.dir, "workload") }

// Has reports whether a workload exists in a variant.
func Has(workload string, v Variant) bool {
	switch workload {
	case Listing, Call, Matrix, Schedule, IO:
		return slices.Contains([]Variant{Plain, Stub, Clock, Handler, GetTime, USDT, Nop5, Push, Other}, v)
	case Startup:
		return slices.Contains([]Variant{Plain, Stub, Handler}, v)
	case Command:
		return v == Plain
	}
	return false
}

// Source writes the C source of the workloads into a folder and returns the paths of the files to compile, for arms that
// must compile on the machine. One compilation of the whole, as in
//
//	cc -O2 -fno-optimize-sibling-calls -o PROGRAM FILES... -lpthread
//
// makes a program with Plain's functions under Plain's names, for Start.Path. In the functions stand the macros
// TRACED_ENTER(function) and TRACED_LEAVE(function), which are empty unless the compiler's options, or a header that they
// include (-include), define them.
func (s *Set) Source(dir string) ([]string, error) {
	names, err := source.ReadDir("src")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range names {
		b, err := source.ReadFile("src/" + n.Name())
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, n.Name())
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return nil, fmt.Errorf("writing the workloads' source: %w", err)
		}
		if slices.Contains([]string{"external.c", "driver.c", "program.c"}, n.Name()) {
			out = append(out, path)
		}
	}
	return out, nil
}
