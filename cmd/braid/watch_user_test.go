package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A user without privileges watches programs of their own: methods alone, and what is missing is said. Files are theirs.
func TestWatchAsUser(t *testing.T) {
	home := t.TempDir()
	for dir := home; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) { // others may pass
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	own := exec.Command(programs["faults"], "1", "100")
	own.SysProcAttr = as
	v := victimOf(t, own, 1)
	other := newVictim(t, 1, 100*time.Microsecond) // root's

	w := &watcher{dir: filepath.Join(home, "traces"), socket: filepath.Join(home, "s")}
	config := filepath.Join(home, "watch.yaml")
	if err := os.WriteFile(config, []byte("version: 1\n"+watchFaults+"output:\n  dir: "+w.dir+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := command(t, "watch", "--config", config, "--socket", w.socket)
	c.SysProcAttr, c.Dir = as, home
	w.begin(t, c)
	if why := w.said(t, `msg="no kernel events`); !strings.Contains(why, "CAP_BPF") && !strings.Contains(why, "root") {
		t.Errorf("what is missing is not said:%s", why)
	}
	w.has(t, v)
	if why := w.said(t, fmt.Sprintf(`msg="can't be watched" pid=%d`, other.pid)); !strings.Contains(why, "root") {
		t.Errorf("why root's program is not watched is not said:%s", why)
	}
	o := braid(t, "flush", "--socket", w.socket) // root may ask; consent is the user's to give
	if o.code != 1 || !strings.Contains(o.stderr, "consent") {
		t.Errorf("braid flush ended with %d: %s", o.code, o.stderr)
	}
	w.consents(t, "programs: faults\n")
	if err := os.Chown(filepath.Join(w.dir, "consent"), nobody, nobody); err != nil {
		t.Fatal(err)
	}
	path := w.flush(t, v.pid)
	r := report(t, path)
	threes(t, r)
	if text := must(t, "report", path); !strings.Contains(text, "no kernel events") {
		t.Errorf("the report does not say that there are no kernel events: %.300s", text)
	}
	if k := w.status(t).Daemon.Kernel; k == "on" || k == "" {
		t.Errorf("the status says that the kernel side is %q", k)
	}
	for dir := path; dir != w.dir; dir = filepath.Dir(dir) {
		var st syscall.Stat_t
		if err := syscall.Stat(dir, &st); err != nil || st.Uid != nobody || st.Mode&0o077 != 0 {
			t.Errorf("%s: %v, user %d, mode %o", dir, err, st.Uid, st.Mode&0o777)
		}
	}
	time.Sleep(5 * time.Second) // it looks at all processes once a second
	if n := w.count("can't be watched"); n > 0 {
		t.Errorf("the log says %d times more that a program can't be watched", n)
	}
	w.ends(t)
	v.unharmed()
	other.unharmed()
}
