package targets

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestFinder(t *testing.T) {
	const name = "braid-finder-x"
	bin := filepath.Join(t.TempDir(), name)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, bin); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(bin, "100")
	if err := c.Start(); err != nil { // returns when it has executed
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	f := NewFinder(Choice{Package: name})
	now := time.Now()
	find := func() (all []int) {
		for range 3 {
			now = now.Add(time.Second)
			found, err := f.Scan(now)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range found {
				all = append(all, p.Pid)
			}
		}
		return all
	}
	if got := find(); len(got) != 1 || got[0] != c.Process.Pid {
		t.Errorf("found %v, want %d once", got, c.Process.Pid)
	}
	if !f.Found(c.Process.Pid) {
		t.Error("it is not known as found")
	}
	f.Forget(c.Process.Pid)
	if got := find(); len(got) != 1 {
		t.Errorf("found %v once it was forgotten, want %d", got, c.Process.Pid)
	}
	if p, v := f.Look(os.Getpid()); v != No || p.Pid != os.Getpid() || p.UID != os.Geteuid() || p.Comm == "" || p.Exe == "" {
		t.Errorf("this test: %v %+v", v, p)
	}
	if _, ok := Read(2); ok {
		if _, err := os.Readlink("/proc/2/exe"); err != nil {
			t.Error("read a kernel thread as a process")
		}
	}
}

func TestInstalled(t *testing.T) {
	old := packagesList
	defer func() { packagesList = old }()
	packagesList = filepath.Join(t.TempDir(), "packages.list")
	if in, known := Installed("a.b"); in || known {
		t.Error("there is no list")
	}
	if err := os.WriteFile(packagesList, []byte("com.example.app 10123 0 /data/user/0/com.example.app default\ncom.x 10124 1 /x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"com.example.app": true, "com.example.app:remote": true, "com.example": false} {
		if in, known := Installed(name); in != want || !known {
			t.Errorf("%s: %v %v", name, in, known)
		}
	}
}
