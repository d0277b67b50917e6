package symbols

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const libSource = `
static __attribute__((noinline)) int lib_hidden(int x) { return x * VARIANT + 1; }
__attribute__((noinline)) int lib_visible(int x) { return lib_hidden(x) * 2; }
void *lib_hidden_address(void) { return (void *)lib_hidden; }
`

// targetSource prints the addresses of its functions and what a runtime would register, then waits for its input to end.
const targetSource = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int lib_visible(int);
void *lib_hidden_address(void);
static __attribute__((noinline)) int target_hidden(int x) { return lib_visible(x) + 3; }
__attribute__((noinline)) int target_visible(int x) { return target_hidden(x) * 5; }

static int module(struct dl_phdr_info *info, size_t size, void *arg) {
	char exe[4096] = "";
	const char *name = info->dlpi_name;
	if (!*name) {
		readlink("/proc/self/exe", exe, sizeof exe - 1);
		name = exe;
	}
	printf("module %s %llx ", name, (unsigned long long)info->dlpi_addr);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		if (ph->p_type != PT_NOTE)
			continue;
		const char *p = (const char *)(info->dlpi_addr + ph->p_vaddr), *end = p + ph->p_memsz;
		while (p + 12 <= end) {
			const ElfW(Nhdr) *n = (const void *)p;
			const unsigned char *desc = (const void *)(p + 12 + ((n->n_namesz + 3) & ~3));
			if (n->n_type == 3 && n->n_namesz == 4 && !memcmp(p + 12, "GNU", 4))
				for (unsigned j = 0; j < n->n_descsz; j++)
					printf("%02x", desc[j]);
			p = (const char *)desc + ((n->n_descsz + 3) & ~3);
		}
	}
	printf("\n");
	return 0;
}

int main(int argc, char **argv) {
	printf("function target_hidden %p\n", (void *)target_hidden);
	printf("function target_visible %p\n", (void *)target_visible);
	printf("function main %p\n", (void *)main);
	printf("function lib_hidden %p\n", lib_hidden_address());
	printf("function lib_visible %p\n", dlsym(RTLD_DEFAULT, "lib_visible"));
	printf("function qsort %p\n", dlsym(RTLD_DEFAULT, "qsort"));
	dl_iterate_phdr(module, 0);
	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return target_visible(argc) == 12345;
}
`

// target is a running program and what it said about itself.
type target struct {
	dir        string
	lib        string
	pid        int
	functions  map[string]uint64
	registered []Module
	stop       func() // ends the program and waits for it
}

func buildTarget(t *testing.T, flags ...string) *target {
	t.Helper()
	src := source(t, "target.c", targetSource)
	tg := &target{dir: filepath.Dir(src), functions: make(map[string]uint64)}
	tg.lib = buildLib(t, tg.dir, "lib thing.so", 7)
	run(t, "gcc", append(append([]string{"-O1", "-Wl,--build-id"}, flags...), "-o", filepath.Join(tg.dir, "target"), src, tg.lib,
		"-ldl", "-Wl,-rpath,"+tg.dir)...)
	return tg
}

func buildLib(t *testing.T, dir, name string, variant int) string {
	t.Helper()
	src := source(t, "lib.c", libSource)
	lib := filepath.Join(dir, name)
	run(t, "gcc", "-O1", "-fPIC", "-shared", "-Wl,--build-id", fmt.Sprintf("-DVARIANT=%d", variant), "-o", lib, src)
	return lib
}

func startTarget(t *testing.T, flags ...string) *target {
	t.Helper()
	tg := buildTarget(t, flags...)
	cmd := exec.Command(filepath.Join(tg.dir, "target"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tg.pid = cmd.Process.Pid
	stopped := false
	tg.stop = func() {
		if !stopped {
			in.Close()
			cmd.Wait()
		}
		stopped = true
	}
	t.Cleanup(tg.stop)
	for sc := bufio.NewScanner(out); sc.Scan() && sc.Text() != "ready"; {
		kind, rest, _ := strings.Cut(sc.Text(), " ")
		var addr uint64
		switch kind {
		case "function":
			var name string
			if _, err := fmt.Sscanf(rest, "%s %v", &name, &addr); err != nil {
				t.Fatalf("target said %q: %v", sc.Text(), err)
			}
			tg.functions[name] = addr
		case "module": // the path may have spaces
			path, last := rest[:strings.LastIndex(rest, " ")], rest[strings.LastIndex(rest, " ")+1:]
			i := strings.LastIndex(path, " ")
			if _, err := fmt.Sscanf(path[i+1:], "%x", &addr); err != nil {
				t.Fatalf("target said %q: %v", sc.Text(), err)
			}
			id, err := hex.DecodeString(last)
			if err != nil {
				t.Fatalf("target said %q: %v", sc.Text(), err)
			}
			tg.registered = append(tg.registered, Registered(path[:i], addr, id))
		}
	}
	if len(tg.functions) != 6 || len(tg.registered) < 4 {
		t.Fatalf("the target said too little: %v %v", tg.functions, tg.registered)
	}
	return tg
}

// check looks all functions up, by their entry and by an address inside.
func (tg *target) check(t *testing.T, table *Table, names ...string) {
	t.Helper()
	for _, name := range names {
		addr := tg.functions[name]
		for _, a := range []uint64{addr, addr + 1} {
			s, ok := table.Lookup(a)
			if !ok || s.Name != name || s.Addr != addr || s.Size == 0 {
				t.Errorf("%s is at %#x, Lookup(%#x) = %+v, %v", name, addr, a, s, ok)
			}
		}
	}
	if t.Failed() {
		for _, m := range table.Modules() {
			t.Logf("%s bias %#x %v: %v", m.Path, m.Bias, m.Ranges, m.Err)
		}
	}
}

var (
	inTarget = []string{"target_hidden", "target_visible", "main"}
	inLib    = []string{"lib_hidden", "lib_visible"}
	all      = append(append([]string{"qsort"}, inTarget...), inLib...)
)

func TestLiveProcess(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"pie", []string{"-fPIE", "-pie"}},
		{"nopie", []string{"-fno-PIE", "-no-pie"}},
		// Segments whose addresses are not their offsets in the file.
		{"based", []string{"-fno-PIE", "-no-pie", "-Wl,-Ttext-segment=0x12345000"}},
		{"moved text", []string{"-fPIE", "-pie", "-Wl,-Ttext=0x777000", "-Wl,-z,noseparate-code"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tg := startTarget(t, c.flags...)
			mods, err := ReadModules(tg.pid)
			if err != nil {
				t.Fatal(err)
			}
			tg.check(t, NewTable(mods, Options{}), all...)
			// The runtime's own description gives the same, and so do both when the process is gone.
			tg.check(t, NewTable(tg.registered, Options{}), all...)
			tg.stop()
			tg.check(t, NewTable(mods, Options{}), all...)
			table := NewTable(tg.registered, Options{})
			tg.check(t, table, all...)
			for _, name := range all {
				if s, ok := table.Resolve32(uint32(tg.functions[name])); !ok || s.Name != name || s.Addr != tg.functions[name] {
					t.Errorf("Resolve32 of %s = %+v, %v", name, s, ok)
				}
			}
		})
	}
}

func TestDeletedFile(t *testing.T) {
	tg := startTarget(t)
	before, err := ReadModules(tg.pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{tg.lib, filepath.Join(tg.dir, "target")} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	mods, err := ReadModules(tg.pid)
	if err != nil {
		t.Fatal(err)
	}
	deleted := 0
	for _, m := range mods {
		if m.Deleted {
			deleted++
		}
	}
	if deleted != 2 {
		t.Errorf("%d deleted modules, want 2", deleted)
	}
	// Through the process they can still be read, also with what was known before.
	tg.check(t, NewTable(mods, Options{}), all...)
	tg.check(t, NewTable(before, Options{}), all...)

	tg.stop()
	table := NewTable(mods, Options{})
	tg.check(t, table, "qsort")
	checkUnresolved(t, tg, table, "lib_hidden", "lib thing.so", ErrDeleted)
	checkUnresolved(t, tg, table, "main", "target", ErrDeleted)
}

func TestReplacedFile(t *testing.T) {
	tg := startTarget(t)
	mods, err := ReadModules(tg.pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(buildLib(t, tg.dir, "other.so", 8), tg.lib); err != nil {
		t.Fatal(err)
	}
	tg.check(t, NewTable(mods, Options{}), all...)
	tg.stop()
	for _, mods := range [][]Module{mods, tg.registered} {
		table := NewTable(mods, Options{})
		checkUnresolved(t, tg, table, "lib_hidden", "lib thing.so", ErrReplaced)
		tg.check(t, table, inTarget...)
	}
}

// checkUnresolved expects a function to be rendered as module+offset and its module to have a reason.
func checkUnresolved(t *testing.T, tg *target, table *Table, name, module string, reason error) {
	t.Helper()
	addr := tg.functions[name]
	s, ok := table.Lookup(addr)
	if ok || s.Module >= 0 && !errors.Is(table.Modules()[s.Module].Err, reason) || s.Addr != addr || s.Raw != "" {
		t.Errorf("%s resolved to %+v", name, s)
	}
	if s.Module < 0 { // a registered module without file has no ranges
		if want := fmt.Sprintf("[unknown]+%#x", addr); s.Name != want {
			t.Errorf("%s is rendered %q, want %q", name, s.Name, want)
		}
		return
	}
	m := table.Modules()[s.Module]
	if want := fmt.Sprintf("%s+%#x", module, addr-m.Bias); s.Name != want {
		t.Errorf("%s is rendered %q, want %q", name, s.Name, want)
	}
}

// TestReplacedWithoutBuildID has nothing to tell files by but inode, size and time.
func TestReplacedWithoutBuildID(t *testing.T) {
	src := source(t, "prog.c", cProgram)
	path := compile(t, src, "prog", "-Wl,--build-id=none")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	m := Registered(path, 0, nil)
	m.File = fileID(st)
	if got := loadOne(t, m, Options{}); got.Err != nil {
		t.Errorf("the same file: %v", got.Err)
	}
	// Another build under the same name.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	compile(t, src, "prog", "-Wl,--build-id=none", "-O2")
	if got := loadOne(t, m, Options{}); !errors.Is(got.Err, ErrReplaced) {
		t.Errorf("another file: %v", got.Err)
	}
	// A build id where there was none.
	compile(t, src, "prog")
	if got := loadOne(t, m, Options{}); !errors.Is(got.Err, ErrReplaced) {
		t.Errorf("another file with a build id: %v", got.Err)
	}
}

// TestRootOption finds files that were copied from another machine.
func TestRootOption(t *testing.T) {
	src := source(t, "prog.c", cProgram)
	root := t.TempDir()
	m := module(t, compile(t, src, "prog"))
	copyFile(t, m.Path, filepath.Join(root, "opt/app/prog"))
	m.Path = "/opt/app/prog"
	if got := loadOne(t, m, Options{Root: root}); got.Err != nil || got.Image.Len() == 0 {
		t.Errorf("%+v", got)
	}
	if got := loadOne(t, m, Options{}); !errors.Is(got.Err, os.ErrNotExist) {
		t.Errorf("without the root: %v", got.Err)
	}
}
