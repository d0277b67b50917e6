package main_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// libraries compiles the loader, and one traced library for each name. The libraries differ in nothing but that.
func libraries(t *testing.T, names ...string) (loader string, files []string) {
	t.Helper()
	dir := t.TempDir()
	compile := func(to string, args ...string) string {
		t.Helper()
		to = filepath.Join(dir, to)
		args = slices.Concat([]string{"cc", "gcc", "-O2", "-o", to}, args)
		if out, err := exec.Command(braidBin, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return to
	}
	for _, n := range names {
		files = append(files, compile("lib"+n+".so", "-shared", "-fPIC", "-Wl,--build-id", "-DWORK="+n, "testdata/library.c"))
	}
	return compile("loader", "testdata/loader.c", "-ldl"), files
}

// TestLibrariesAtTheSamePlace has three libraries loaded after one another at one address, the first of them twice, and
// deletes their files before the recording ends. Each call has the name that it had when it was made.
func TestLibrariesAtTheSamePlace(t *testing.T) {
	loader, lib := libraries(t, "alpha", "beta", "gamma")
	file, o := record(t, 0, "--", loader, lib[0], "101", lib[1], "103", "sleep", "200", lib[0], "107", lib[2], "109", "sleep", "200",
		"remove", lib[0], "remove", lib[1], "remove", lib[2])
	if places := strings.Fields(strings.ReplaceAll(o.stdout, "at ", "")); len(slices.Compact(places)) != 1 {
		t.Errorf("the libraries were at different places: %q", o.stdout)
	}
	r := report(t, file)
	r.calls(t, map[string]int{"alpha": 2, "beta": 1, "gamma": 1, "leaf": 101 + 103 + 107 + 109, "work": 4})
	leaves := map[string]int{}
	for _, m := range r.Methods {
		if m.Name == "leaf" {
			leaves[m.Module] += m.Calls
		}
	}
	for i, want := range []int{101 + 107, 103, 109} {
		if got := leaves[filepath.Base(lib[i])]; got != want {
			t.Errorf("%s: %d calls of leaf, want %d (%v)", filepath.Base(lib[i]), got, want, leaves)
		}
	}
}

// TestLibraryOftenReloaded loads and unloads a library more often than there is room for modules.
func TestLibraryOftenReloaded(t *testing.T) {
	loader, lib := libraries(t, "alpha")
	file, _ := record(t, 0, "--", loader, lib[0], "3", "loop", "1009")
	report(t, file).calls(t, map[string]int{"alpha": 1009, "leaf": 3 * 1009})
}

// TestLibraryGoneBetweenPolls deletes a library that was loaded for a moment only. Its calls must not be taken for those
// of the library that is loaded there afterwards, and the report says why they have no names.
func TestLibraryGoneBetweenPolls(t *testing.T) {
	loader, lib := libraries(t, "alpha", "beta")
	file, _ := record(t, 0, "--kernel", "none", "--", loader, lib[0], "5", "remove", lib[0], lib[1], "7", "sleep", "200")
	r := report(t, file)
	named := 0
	for _, m := range r.Methods {
		if m.Name == "alpha" {
			named++ // a poll came in between after all
		}
	}
	want := map[string]int{"beta": 1, "alpha": named, "leaf": 7 + 5*named, "work": 1 + named}
	r.calls(t, want)
	all := 0
	for _, m := range r.Methods {
		if m.Module == "libalpha.so" {
			all += m.Calls
		}
	}
	if all != 5+2 {
		t.Errorf("libalpha.so has %d calls, want 7: %+v", all, r.Methods)
	}
	if said := strings.Contains(strings.Join(r.Notes, "\n"), "libalpha.so was closed and deleted"); said == (named > 0) {
		t.Errorf("the notes are %q", r.Notes)
	}
}

// TestExecInThread has a thread that is not the first one execute the program again: it takes the process over.
func TestExecInThread(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "execs")
	if out, err := exec.Command(braidBin, "cc", "gcc", "-O2", "-pthread", "-o", bin, "testdata/execs.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, _ := record(t, 0, "--threads", "all", "--", bin)
	r := report(t, file)
	r.calls(t, map[string]int{"main": 2, "waits": 1, "execs": 1, "leaf": 7 + 11 + 5})
	if n := len(r.recorded()); n != 3 && n != 4 {
		t.Errorf("records of %d threads: %v", n, r.Threads)
	}
}
