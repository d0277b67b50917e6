package retain

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// crashEnv makes this test binary a daemon that kills itself: STEP N, the Nth time that it comes to that step.
const crashEnv = "BRAID_TEST_CRASH"

func TestMain(m *testing.M) {
	if at := os.Getenv(crashEnv); at != "" {
		crash(at, os.Getenv(crashEnv+"_DIR"))
	}
	os.Exit(m.Run())
}

// crash puts three traces where there is room for two, and dies on the way.
func crash(at, dir string) {
	step, times, _ := strings.Cut(at, " ")
	n, _ := strconv.Atoi(times)
	s, err := Open(Options{Dir: dir, Limits: Limits{PerWeek: 2}})
	if err != nil {
		os.Exit(3)
	}
	s.step = func(name string) {
		if strings.ReplaceAll(name, " ", "-") == step {
			if n--; n == 0 {
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	for i := range 3 {
		c := candidate(i+1, 0)
		c.Time = s.now()
		if _, err := put(s, c, 1000); err != nil {
			os.Exit(4)
		}
	}
	os.Exit(5) // it should not have come so far
}

// Killed at each step, it leaves only whole traces, at most as many as allowed, and the next daemon goes on.
func TestKilled(t *testing.T) {
	for at, want := range map[string]string{
		"summary-written 1": "", "trace-given 1": "", "room-made 1": "", "in-its-place 1": "1",
		"trace-given 2": "1", "in-its-place 2": "1 2",
		"trace-given 3": "1 2", "moved-away 1": "2", "emptied 1": "2", "room-made 3": "2", "in-its-place 3": "2 3",
	} {
		t.Run(at, func(t *testing.T) {
			dir := folder(t)
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), crashEnv+"="+at, crashEnv+"_DIR="+dir)
			c.Run()
			if ws := c.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
				t.Fatalf("it was to be killed: %v", c.ProcessState)
			}
			for _, e := range files(t, filepath.Join(dir, strconv.Itoa(os.Geteuid()))) {
				if b, err := os.ReadFile(e); err != nil || strings.HasSuffix(e, ".braid") && len(b) != 1000 {
					t.Errorf("%s: %d bytes, %v", e, len(b), err)
				}
			}
			s := open(t, Options{Dir: dir, Limits: Limits{PerWeek: 2}})
			if got := severities(s); got != want {
				t.Errorf("kept %q, want %q", got, want)
			}
			for _, e := range s.List() {
				if e.Trace == "" || e.Summary == "" {
					t.Errorf("a half: %+v", e)
				}
			}
			if names, _ := list(s.tmp); len(names) != 0 {
				t.Errorf("left in .tmp: %v", names)
			}
			if _, err := put(s, candidate(9, 0), 10); err != nil {
				t.Errorf("the next trace: %v", err)
			}
		})
	}
}

// files lists all regular files below a folder.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, p)
		}
		return nil
	})
	return out
}

func mustRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts and changes owners: run it as root")
	}
}

func TestDiskFull(t *testing.T) {
	mustRoot(t)
	mount := t.TempDir()
	if err := unix.Mount("none", mount, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(mount, unix.MNT_DETACH)
	dir := filepath.Join(mount, "traces")
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, consentFile), "programs: *\n")
	s := open(t, Options{Dir: dir})
	first, err := put(s, candidate(1, 0), 400<<10)
	if err != nil {
		t.Fatal(err)
	}
	slot, err := s.Admit(candidate(2, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(slot.Path, bytes.Repeat([]byte("t"), 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("writing more than fits: %v", err)
	}
	// Even the summary does not fit now.
	if e, err := slot.Commit(strings.Repeat("s", 10_000)); err == nil {
		t.Errorf("kept on a full disk: %+v", e)
	}
	if s.Stats().Refused[ReasonFailed] != 1 {
		t.Errorf("counted %v", s.Stats().Refused)
	}
	if b, err := os.ReadFile(first.Trace); err != nil || len(b) != 400<<10 {
		t.Errorf("the older trace: %d bytes, %v", len(b), err)
	}
	if left := files(t, filepath.Join(dir, tmpDir)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := put(s, candidate(3, 0), 400<<10); err != nil {
		t.Errorf("once there is room again: %v", err)
	}
	// With a limit, the disk is not filled, and the least severe goes.
	s.Close()
	s = open(t, Options{Dir: dir, Limits: Limits{MinFree: 200 << 10}})
	if _, err := put(s, candidate(3, 0), 300<<10); err != nil || severities(s) != "3 3" {
		t.Errorf("%v, kept %q", err, severities(s))
	}
}

func TestReadOnlyFolder(t *testing.T) {
	mustRoot(t)
	dir := folder(t)
	s := open(t, Options{Dir: dir})
	if _, err := put(s, candidate(1, 0), 10); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, Options{Dir: dir})
	if len(s.List()) != 1 {
		t.Errorf("a folder that can only be read: kept %v", s.List())
	}
	_, err := put(s, candidate(1, 0), 10)
	if !errors.Is(err, syscall.EROFS) || s.Stats().Refused[ReasonFailed] != 1 {
		t.Errorf("%v, %v", err, s.Stats())
	}
}

// What users do in their folders harms nobody else.
func TestHostileUser(t *testing.T) {
	mustRoot(t)
	const uid = 65534
	dir := folder(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.Mkdir(victim, 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Dir: dir, Limits: Limits{PerWeek: 10}})
	var all []*Entry
	for i := range 4 {
		c := candidate(i, 0)
		c.UID = uid
		e, err := put(s, c, 10)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
		for _, suffix := range []string{traceSuffix, sideSuffix} {
			write(t, filepath.Join(victim, e.Name+suffix), "precious")
		}
	}
	user := filepath.Join(dir, strconv.Itoa(uid))
	// The folder of one is a link to a foreign one; in another, the files are links; a third holds a file of the user's; what
	// looks like a trace, and a folder for another user's traces, are forged.
	os.RemoveAll(filepath.Join(user, all[0].Name))
	os.Symlink(victim, filepath.Join(user, all[0].Name))
	for _, p := range []string{all[1].Trace, all[1].Summary} {
		os.Remove(p)
		os.Symlink(filepath.Join(victim, filepath.Base(p)), p)
	}
	mine := filepath.Join(user, all[2].Name, "mine")
	write(t, mine, "mine")
	notes := filepath.Join(user, "notes.txt")
	write(t, notes, "mine")
	forged := filepath.Join(user, "2026-11-21T12-00-00.000Z_x_y")
	os.Mkdir(forged, 0o700)
	write(t, filepath.Join(forged, filepath.Base(forged)+sideSuffix), `{"version":1,"entry":{"name":"../../0/x","uid":0}}`)
	os.Symlink(victim, filepath.Join(dir, "7"))

	s.Close()
	s = open(t, Options{Dir: dir, Limits: Limits{PerWeek: 1}})
	if got := severities(s); got != "3" {
		t.Errorf("kept %q", got)
	}
	for _, e := range s.List() {
		if e.UID != uid || filepath.Dir(filepath.Dir(e.Summary)) != user {
			t.Errorf("%+v", e)
		}
	}
	for _, p := range append(files(t, victim), mine, notes) {
		if b, err := os.ReadFile(p); err != nil || len(b) < 4 {
			t.Errorf("a foreign file: %v", err)
		}
	}
	if n := len(files(t, victim)); n != 8 {
		t.Errorf("%d foreign files, 8 before", n)
	}
	// The same while the store is open: the folder is exchanged for a link, then room has to be made.
	last := s.List()[0]
	os.RemoveAll(filepath.Dir(last.Summary))
	os.Symlink(victim, filepath.Dir(last.Summary))
	c := candidate(9, 0)
	c.UID = uid
	if _, err := put(s, c, 10); err != nil {
		t.Errorf("with a link in the way: %v", err)
	}
	if n := len(files(t, victim)); n != 8 {
		t.Errorf("%d foreign files, 8 before", n)
	}
	// A link where another user's folder should be.
	c.UID, c.Severity = 7, 10
	if e, err := put(s, c, 10); err == nil || reason(err) != "" || len(files(t, victim)) != 8 {
		t.Errorf("through a link: %+v, %v", e, err)
	}
}
