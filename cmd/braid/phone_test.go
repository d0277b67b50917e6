package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// phone is a root folder as a phone has it: no /tmp, /var and /run, and /data/local/tmp.
func phone(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, dir := range []string{"proc", "sys", "dev", "data/local/tmp", "system"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"proc", "sys", "dev"} {
		to := filepath.Join(root, dir)
		if err := syscall.Mount("/"+dir, to, "", syscall.MS_BIND|syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("", to, "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(to, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	if err := os.WriteFile(filepath.Join(root, "system/build.prop"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(braidBin)
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "data/local/tmp/braid-bin"), b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command(braidBin, "cc", "gcc", "-O2", "-static", "-pthread", "-I../../inline/include", "-o",
		filepath.Join(root, "data/local/tmp/app"), "testdata/target.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return root
}

// inPhone is a braid command within such a root.
func inPhone(root string, args ...string) *exec.Cmd {
	c := exec.Command("/data/local/tmp/braid-bin", args...)
	c.Dir = "/data/local/tmp"
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	c.Env = []string{"PATH=/system/bin"}
	return c
}

// TestNoTmp runs braid where there is no /tmp, no /var and no home.
func TestNoTmp(t *testing.T) {
	root := phone(t)
	must := func(args ...string) string {
		t.Helper()
		o := finish(t, inPhone(root, args...))
		if o.code != 0 {
			t.Fatalf("braid %v ended with %d: %s", args, o.code, o.stderr)
		}
		return o.stdout
	}
	must("record", "-o", "app.braid", "--", "./app", "count", "7")
	if r := parseReport(t, must("report", "--json", "--top", "0", "app.braid")); r.method(t, "leaf").Calls == 0 {
		t.Error("no calls of leaf")
	}
	must("export", "-o", "app.perfetto-trace", "app.braid")
	must("dump", "app.braid")
	if o := finish(t, inPhone(root, "doctor", "--json")); o.code > 1 || !strings.HasPrefix(o.stdout, "{") {
		t.Errorf("doctor: %d %s", o.code, o.stderr)
	}

	config := "version: 1\nprograms:\n  - {name: app}\ntriggers:\n  - {name: died, crash: true}\n"
	if err := os.WriteFile(filepath.Join(root, "data/local/tmp/watch.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &watcher{}
	w.begin(t, inPhone(root, "watch", "--config", "watch.yaml"))
	w.said(t, "msg=watching programs=")
	if s := must("status"); !strings.Contains(s, "/data/local/tmp/braid/traces") {
		t.Errorf("traces are not where a phone has room: %s", s)
	}
	w.ends(t)

	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"data", "dev", "proc", "sys", "system"}; !slices.Equal(names, want) {
		t.Errorf("the root has %v, want %v", names, want)
	}
}
