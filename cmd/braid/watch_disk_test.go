package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mounted mounts a file system in memory and returns its folder.
func mounted(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("braid-test", dir, "tmpfs", 0, options+",mode=755"); err != nil {
		t.Fatalf("mounting a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// watchIn starts braid watch with a folder of traces. More is more of the output's settings.
func watchIn(t *testing.T, dir, config, more string) *watcher {
	t.Helper()
	w := &watcher{dir: dir, socket: filepath.Join(t.TempDir(), "s")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.consents(t, "programs: *\nusers: *\n")
	w.again(t, config+"output:\n  dir: "+dir+"\n"+more)
	return w
}

// refuses checks that a flush fails, and that it, the log and the status say why.
func (w *watcher) refuses(t *testing.T, pid int, why string) {
	t.Helper()
	o := braid(t, "flush", "--socket", w.socket, "--pid", fmt.Sprint(pid))
	if o.code != 1 || o.stdout != "" || !strings.Contains(o.stderr, why) {
		t.Errorf("braid flush ended with %d: %q, %q; want %q", o.code, o.stdout, o.stderr, why)
	}
	if said := w.said(t, `msg="no trace"`); !strings.Contains(said, why) {
		t.Errorf("the log says%s, want %q", said, why)
	}
	if s := w.status(t); len(s.Targets) != 1 || !strings.Contains(s.Targets[0].Note, why) {
		t.Errorf("the status says %+v, want %q", s.Targets, why)
	}
	if left, err := os.ReadDir(filepath.Join(w.dir, ".tmp")); err != nil || len(left) > 0 {
		t.Errorf("left of what could not be written: %v, %v", left, err)
	}
}

// A full disk costs a trace and nothing else.
func TestWatchDiskFull(t *testing.T) {
	dir := mounted(t, "size=32m,nr_inodes=64")
	w := watchIn(t, dir, watchFaults, "")
	v := newVictim(t, 1, 50*time.Microsecond)
	w.has(t, v)
	threes(t, report(t, w.flush(t, v.pid)))
	ballast := filepath.Join(dir, "ballast")
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ballast, make([]byte, int64(st.Bavail)*st.Bsize-16<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	w.refuses(t, v.pid, "no space left on device")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	threes(t, report(t, w.flush(t, v.pid)))
	var files []string
	for i := range 100 { // nothing can be created any more, though there is room
		name := filepath.Join(dir, fmt.Sprint("f", i))
		if os.WriteFile(name, nil, 0o600) != nil {
			break
		}
		files = append(files, name)
	}
	w.refuses(t, v.pid, "no space left on device")
	if err := os.Remove(files[0]); err != nil { // a folder can be made, and no file in it
		t.Fatal(err)
	}
	w.refuses(t, v.pid, "no space left on device")
	for _, f := range files[1:] {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	threes(t, report(t, w.flush(t, v.pid)))
	if s := w.status(t); s.Kept.Traces != 3 || s.Targets[0].Note != "" {
		t.Errorf("%+v", s)
	}
	w.ends(t)
	v.unharmed()
}

// A folder that can't be written to any more is said, and used again once it can. With one at its start, the daemon ends.
func TestWatchReadOnly(t *testing.T) {
	dir := mounted(t, "size=32m")
	again := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	w := watchIn(t, dir, watchFaults, "")
	v := newVictim(t, 1, 50*time.Microsecond)
	w.has(t, v)
	again(unix.MS_RDONLY)
	w.refuses(t, v.pid, "read-only file system")
	again(0)
	threes(t, report(t, w.flush(t, v.pid)))
	w.ends(t)
	if err := os.RemoveAll(filepath.Join(dir, ".tmp")); err != nil {
		t.Fatal(err)
	}
	again(unix.MS_RDONLY)
	o := braid(t, "watch", "--name", "faults", "--dir", dir, "--socket", w.socket)
	if o.code != 1 || !strings.Contains(o.stderr, "read-only file system") || !strings.Contains(o.stderr, dir) || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("braid watch ended with %d: %s", o.code, o.stderr)
	}
	again(0)
	v.unharmed()
}

// Where there is no room for all, the oldest of the least severe goes first.
func TestWatchLimits(t *testing.T) {
	const config = "programs:\n  - {name: faults, threads: all, rings: 4, ring: 64K}\ntriggers:\n" +
		"  - {name: minor, severity: 1, socket: true}\n  - {name: major, severity: 4, socket: true}\n"
	for _, c := range []struct{ name, more, reason string }{
		{"number", "  keep: worst\n  limits: {per_program: 3, per_trigger: 0}\n", "per_program"},
		{"quota", "  keep: worst\n  quota: 5M\n  limits: {per_program: 0, per_trigger: 0, per_week: 0}\n", "quota"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := watchIn(t, filepath.Join(t.TempDir(), "traces"), config, c.more)
			v := newVictim(t, 1, 50*time.Microsecond)
			w.has(t, v)
			fired := func(name string) string {
				t.Helper()
				v.do("after 3")
				return strings.TrimSpace(must(t, "trigger", "--socket", w.socket, name))
			}
			minors := []string{fired("minor")}
			majors := []string{fired("major")}
			for w.status(t).Kept.Removed[c.reason] == 0 && len(minors) < 200 {
				minors = append(minors, fired("minor"))
			}
			majors = append(majors, fired("major"))
			for _, path := range majors {
				threes(t, report(t, path))
			}
			gone := 0
			for i, path := range minors {
				if _, err := os.Stat(path); err == nil {
					continue
				}
				if gone++; gone != i+1 {
					t.Errorf("the minor trace %d of %d went before an older one", i, len(minors))
				}
			}
			s := w.status(t)
			if gone == 0 || uint64(gone) != s.Kept.Removed[c.reason] || s.Kept.Traces != len(minors)+len(majors)-gone {
				t.Errorf("%d of %d minor traces are gone, the status says %+v", gone, len(minors), s.Kept)
			}
			w.ends(t)
			v.unharmed()
		})
	}
}
