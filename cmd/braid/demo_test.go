package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"braid/internal/demo"
)

// The demo works out of the box, with exact counts, and says what is missing where it is.
func TestDemo(t *testing.T) {
	want := map[string]int{}
	for name, n := range demo.Calls() {
		want[name] = int(n)
	}
	for _, root := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "demo")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(braidBin, "demo")
		c.Dir = dir
		if !root {
			openTo(t, dir)
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		o := finish(t, c)
		if o.code != 0 || strings.Contains(o.stdout, "The kernel's side is missing") == root {
			t.Fatalf("as root: %v: exit code %d, stdout %s, stderr %s", root, o.code, o.stdout, o.stderr)
		}
		file := filepath.Join(dir, "demo.braid")
		report(t, file).calls(t, want)
		checkPerfetto(t, file)
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 2 {
			t.Errorf("the folder holds %v, %v", left, err)
		}
	}
	if left := orphanPrograms(); len(left) > 0 {
		t.Errorf("eBPF programs are left behind: %v", left)
	}
}

// openTo lets nobody use a folder of a test.
func openTo(t *testing.T, dir string) {
	t.Helper()
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	for up := filepath.Dir(dir); up != os.TempDir() && len(up) > 1; up = filepath.Dir(up) { // t.TempDir is closed to others
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
