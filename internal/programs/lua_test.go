package programs

import (
	"path/filepath"
	"strings"
	"testing"
)

// optimised is how Debian optimises. withoutTailCalls makes every call one that returns: with a tail call, the callee's
// caller is to callgrind the function that made the tail call, to braid the one that it returns to.
const (
	optimised        = "-O2"
	withoutTailCalls = "-O2 -fno-optimize-sibling-calls"
)

// lua builds Debian's Lua interpreter as a static program, and returns its path. The same sources once more as C++, and
// as shared objects, are a matter of package launcher's tests.
func lua(t *testing.T, cc compiler, flags string) string {
	t.Helper()
	dir := tree(t, "lua5.4", cc.name+strings.ReplaceAll(flags, " ", ""), func(t testing.TB, dir string) {
		// debian/rules makes this header.
		write(t, filepath.Join(dir, "src/lua5.4-deb-multiarch.h"), "#define DEB_HOST_MULTIARCH \"x86_64-linux-gnu\"\n", 0o644)
		tool := filepath.Join(dir, "c-only-libtool")
		write(t, tool, "#!/bin/sh\ncase \" $* \" in *' --tag=CXX '*) exit 0 ;; esac\nexec libtool --silent \"$@\"\n", 0o755)
		variables := []string{"V=5.4", "MYLIBS=", "SYSCFLAGS=-DLUA_USE_LINUX", "SYSLIBS=-Wl,-E -ldl", "MYLDFLAGS=",
			"LIBTOOL=" + tool, "CC=" + cc.c + " -std=gnu99", "MYCFLAGS=" + flags}
		// Its rule for several targets is not fit for -j, with any compiler: objects first.
		mustRun(t, dir, nil, append([]string{"make", "-s", "-j2", "-C", "src", "o"}, variables...)...)
		mustRun(t, dir, nil, append([]string{"make", "-s", "-C", "src", "lua5.4"}, variables...)...)
	})
	return filepath.Join(dir, "src/lua5.4")
}

// scripts are the Lua scripts in testdata.
func scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(files + "/*.lua")
	if err != nil || len(list) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	return list
}

// TestLuaBehaves: with stubs, recorded or not, a script prints just what it prints without.
func TestLuaBehaves(t *testing.T) {
	want := map[string]outcome{}
	for _, script := range scripts(t) {
		o := run(t, t.TempDir(), nil, lua(t, plain, optimised), script)
		if last := lastOf(o.stdout); last != "done" || o.stderr != "" {
			t.Fatalf("%s fails without stubs: %+v", filepath.Base(script), o)
		}
		want[script] = o
	}
	withCompilers(t, func(t *testing.T, cc compiler) {
		bin := lua(t, cc, optimised)
		for _, script := range scripts(t) {
			name := filepath.Base(script)
			if got := run(t, t.TempDir(), nil, bin, script); got != want[script] {
				t.Errorf("%s, not recorded: %+v, want %+v", name, got, want[script])
			}
			got, _ := recorded(t, t.TempDir(), nil, []string{"--threads", "all"}, bin, script)
			if got != want[script] {
				t.Errorf("%s, recorded: %+v, want %+v", name, got, want[script])
			}
		}
	})
}

// lastOf is a text's last line.
func lastOf(s string) string {
	_, last, _ := cutLastLine(s)
	return last
}

// TestLuaCounts: braid counts each function's calls as callgrind does.
func TestLuaCounts(t *testing.T) { luaExact(t, optimised, false) }

// TestLuaPairs: braid sees the same callers of each function as callgrind, also where errors and coroutines jump out of
// many functions at once.
func TestLuaPairs(t *testing.T) { luaExact(t, withoutTailCalls, true) }

func luaExact(t *testing.T, flags string, pairs bool) {
	withCompilers(t, func(t *testing.T, cc compiler) {
		if pairs && cc != gcc && !everything() {
			return // callgrind takes its time; the counts are compared with both
		}
		bin := lua(t, cc, flags)
		images := []*image{openImage(t, bin)}
		for _, script := range scripts(t) {
			t.Run(filepath.Base(script), func(t *testing.T) {
				o, c := exact(t, t.TempDir(), nil, images, 1, pairs, bin, script, "short")
				if o.code != 0 || lastOf(o.stdout) != "done" {
					t.Errorf("%+v", o)
				}
				allEnded(t, c)
			})
		}
	})
}
