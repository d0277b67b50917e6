package symbols

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readelfFuncs returns the defined functions of one symbol table, as "address size name" lines.
func readelfFuncs(t testing.TB, path, table string) map[string]bool {
	t.Helper()
	funcs := make(map[string]bool)
	in := false
	for line := range strings.Lines(run(t, "readelf", "-W", "--symbols", path)) {
		if strings.HasPrefix(line, "Symbol table ") {
			in = strings.Contains(line, "'"+table+"'")
		}
		f := strings.Fields(line)
		if !in || len(f) < 8 || f[3] != "FUNC" && f[3] != "IFUNC" || f[6] == "UND" || f[6] == "ABS" {
			continue
		}
		addr, err1 := strconv.ParseUint(f[1], 16, 64)
		size, err2 := strconv.ParseUint(f[2], 0, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("readelf: %q", line)
		}
		name, _, _ := strings.Cut(f[7], "@")
		funcs[fmt.Sprintf("%x %d %s", addr, size, name)] = true
	}
	if len(funcs) == 0 {
		t.Fatalf("readelf shows no function in %s of %s", table, path)
	}
	return funcs
}

// checkAgainstReadelf compares all function symbols of one table, and then that the image has one for each address.
func checkAgainstReadelf(t *testing.T, path, table string, typ elf.SectionType) {
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
	l, err := newImageReader(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	if !l.readTable(l.elf, typ, table) {
		t.Fatalf("no functions: %v", l.img.Problems)
	}
	got, addrs := make(map[string]bool), make(map[uint64]bool)
	for i := range l.syms.syms {
		s := &l.syms.syms[i]
		if s.rank&rankNoType != 0 {
			continue
		}
		name, _, _ := strings.Cut(l.syms.nameOf(s), "@")
		got[fmt.Sprintf("%x %d %s", s.addr, s.size, name)] = true
		addrs[s.addr] = true
	}
	if diff := cmp.Diff(readelfFuncs(t, path, table), got); diff != "" {
		t.Errorf("functions that readelf has (-) and we have (+):\n%s", diff)
	}
	img := l.finish()
	for fn := range img.Functions() {
		delete(addrs, fn.Addr)
	}
	if len(addrs) != 0 {
		t.Errorf("%d addresses of functions were lost: %v", len(addrs), addrs)
	}
	t.Logf("%s: %d symbols, %d functions", filepath.Base(path), len(got), img.Len())
}

func TestLibrariesAgainstReadelf(t *testing.T) {
	for _, lib := range []string{"libc.so.6", "libstdc++.so.6", "libm.so.6"} {
		t.Run(lib, func(t *testing.T) {
			path := strings.TrimSpace(run(t, "g++", "-print-file-name="+lib))
			checkAgainstReadelf(t, path, ".dynsym", elf.SHT_DYNSYM)
		})
	}
}

const cProgram = `
#include <stdio.h>
#include <stdlib.h>
static __attribute__((noinline)) int hidden(int x) { return x * 3 + rand(); }
__attribute__((noinline)) int visible(int x) { return hidden(x) + 1; }
__attribute__((noinline, weak)) int weak_one(int x) { return visible(x) * 2; }
int alias_of_visible(int) __attribute__((alias("visible")));
__asm__(".text\n.globl from_assembly\nfrom_assembly:\n\tret\n");
int main(int argc, char **argv) { return weak_one(argc) == 42; }
`

func TestProgramsAgainstReadelf(t *testing.T) {
	src := source(t, "prog.c", cProgram)
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"pie", []string{"-fPIE", "-pie"}},
		{"nopie", []string{"-fno-PIE", "-no-pie"}},
		{"shared", []string{"-fPIC", "-shared"}},
		{"static", []string{"-static"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := compile(t, src, c.name, c.flags...)
			checkAgainstReadelf(t, path, ".symtab", elf.SHT_SYMTAB)
			img := readImage(t, path)
			if diff := cmp.Diff(readelfBuildID(t, path), img.BuildID); diff != "" {
				t.Error(diff)
			}
			// A label in assembly counts as a function, and of two names for one address the longer is taken.
			addrOf(t, img, "from_assembly")
			addrOf(t, img, "alias_of_visible")
		})
	}
}

func readelfBuildID(t testing.TB, path string) string {
	t.Helper()
	_, id, ok := strings.Cut(run(t, "readelf", "-n", path), "Build ID: ")
	if !ok {
		t.Fatalf("%s has no build id", path)
	}
	id, _, _ = strings.Cut(id, "\n")
	return id
}

func TestReadImageRefuses(t *testing.T) {
	dir := t.TempDir()
	src := source(t, "prog.c", cProgram)
	object := filepath.Join(dir, "prog.o")
	run(t, "gcc", "-c", "-o", object, src)
	b, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, data, want string }{
		{"empty", "", "not an ELF file"},
		{"script", "#!/bin/sh\nexit 0 # and some more text\n", "not an ELF file"},
		{"object", string(b), "ELF: a file of type ET_REL is never mapped as a program"},
		{"cut", string(b[:40]), "ELF: file header is beyond the end of the file (48) at offset 0x10"},
	} {
		_, err := ReadImage(strings.NewReader(c.data), int64(len(c.data)))
		if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
