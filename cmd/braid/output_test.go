package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A full disk leaves the old file intact and no half one, says so, and the program's exit code stands.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	file := filepath.Join(dir, "out.braid")
	small := braid(t, "record", "-o", file, "--", programs["target"], "count", "101", "7")
	checkRecorded(t, file, small, 7)
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{7, 0} {
		o := braid(t, "record", "-o", file, "--", programs["target"], "count", "200003", fmt.Sprint(code))
		want := code
		if code == 0 {
			want = 1 // the program was fine, the recording was not
		}
		if o.code != want || !strings.Contains(o.summary(), "no space left on device") || !strings.HasPrefix(o.summary(), "braid: no trace was written") {
			t.Errorf("the program ends with %d: exit code %d, %s", code, o.code, o.stderr)
		}
		now, err := os.ReadFile(file)
		if err != nil || string(now) != string(old) {
			t.Errorf("the old file is not as it was: %v", err)
		}
		if all, _ := os.ReadDir(dir); len(all) != 1 {
			t.Errorf("%v is in the folder", all)
		}
	}
	report(t, file).calls(t, map[string]int{"leaf": 101})

	// Exports are written aside as well.
	big, _ := record(t, 0, "--", programs["target"], "count", "200003")
	exported := filepath.Join(dir, "old.pftrace")
	if err := os.WriteFile(exported, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := braid(t, "export", big, "-o", exported)
	if b, _ := os.ReadFile(exported); o.code != 1 || !strings.Contains(o.stderr, "no space left on device") || string(b) != "old" {
		t.Errorf("export: exit code %d, %s; the old file holds %q", o.code, o.stderr, b)
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("%v is in the folder", all)
	}
	if left := orphanPrograms(); len(left) > 0 {
		t.Errorf("eBPF programs are left behind: %v", left)
	}
}

// Where the trace can't be written, the program does not even start.
func TestOutputMissingFolder(t *testing.T) {
	dir := t.TempDir()
	o := braid(t, "record", "-o", filepath.Join(dir, "no", "out.braid"), "--", "touch", filepath.Join(dir, "ran"))
	if o.code != 1 || !strings.Contains(o.stderr, filepath.Join(dir, "no")) || !strings.Contains(o.stderr, "no such file or directory") {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
	if all, _ := os.ReadDir(dir); len(all) != 0 {
		t.Errorf("%v is in the folder", all)
	}
}

func TestOutputDefaultName(t *testing.T) {
	c := command(t, "record", "--kernel", "none", "--", programs["target"], "count", "3")
	o := finish(t, c)
	checkRecorded(t, "target.braid", o, 0)
	report(t, filepath.Join(c.Dir, "target.braid")).calls(t, map[string]int{"leaf": 3})
	if all, _ := os.ReadDir(c.Dir); len(all) != 1 {
		t.Errorf("%v is in the folder", all)
	}
}
