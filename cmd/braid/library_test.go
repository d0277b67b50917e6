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
