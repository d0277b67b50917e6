//go:build guest

// These tests change the machine. internal/kernels runs them in guests.

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Whatever the setting: root has everything, and others their own methods.
func TestParanoid(t *testing.T) {
	const setting = "/proc/sys/kernel/perf_event_paranoid"
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(setting, before, 0) })
	dir := t.TempDir()
	openTo(t, dir)
	for _, level := range []string{"-1", "2", "4"} {
		if err := os.WriteFile(setting, []byte(level), 0); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "root"+level)
		checkForks(t, file, braid(t, "record", "-o", file, "--", programs["target"], "fork", "2"), true)
		c := exec.Command(braidBin, "record", "-o", filepath.Join(dir, "other"+level), "--", programs["target"], "fork", "2")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		c.Dir = dir
		checkForks(t, filepath.Join(dir, "other"+level), finish(t, c), false)
	}
}

// A kernel that keeps its integrity can be recorded, one that keeps its memory to itself can't. This is not undone.
func TestLockdown(t *testing.T) {
	const file = "/sys/kernel/security/lockdown"
	if _, err := os.Stat(file); err != nil {
		if err := unix.Mount("security", "/sys/kernel/security", "securityfs", 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		level  string
		kernel bool
	}{{"integrity", true}, {"confidentiality", false}} {
		if err := os.WriteFile(file, []byte(c.level), 0); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out.braid")
		o := braid(t, "record", "-o", out, "--", programs["target"], "fork", "2")
		checkForks(t, out, o, c.kernel)
		if !c.kernel && !strings.Contains(o.stderr, "the kernel is locked down (confidentiality)") {
			t.Errorf("no word of lockdown: %s", o.stderr)
		}
		doctor := must(t, "doctor")
		if !strings.Contains(doctor, c.level) {
			t.Errorf("the doctor sees nothing of %s:\n%s", c.level, doctor)
		}
	}
}
