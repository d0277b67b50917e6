package main_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// zygote is a running stand-in for Android's zygote; see its source.
type zygote struct {
	*running
	pid  int
	conn *net.UnixConn
}

// startZygote starts the stand-in. Either it has stubs and the app's code itself, or it has none and loads a traced library.
func startZygote(t *testing.T, stubbed bool) *zygote {
	t.Helper()
	bin, library := programs["zygote"], programs["libapp.so"]
	if stubbed {
		bin, library = programs["zygote64"], "-"
	}
	dir := t.TempDir()
	c := exec.Command(bin, filepath.Join(dir, "zygote"), library, strings.Repeat("-", 100))
	c.Stderr = os.Stderr
	z := &zygote{running: start(t, c)}
	z.pid = z.expect("ready")
	var err error
	z.conn, err = net.DialUnix("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "client"), Net: "unixgram"},
		&net.UnixAddr{Name: filepath.Join(dir, "zygote"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.conn.Close() })
	return z
}

// app starts an app, and its sibling if how says so, and returns their process ids.
func (z *zygote) app(name string, uid, frames int, how string) (pid, sibling int) {
	z.t.Helper()
	if _, err := fmt.Fprintf(z.conn, "%s %d %d %s", name, uid, frames, how); err != nil {
		z.t.Fatal(err)
	}
	b := make([]byte, 64)
	n, err := z.conn.Read(b)
	if err != nil {
		z.t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(b[:n]), &pid, &sibling); err != nil {
		z.t.Fatal(err)
	}
	if frames == 0 {
		z.t.Cleanup(func() {
			for _, p := range []int{pid, sibling} {
				if p != 0 {
					syscall.Kill(p, syscall.SIGKILL)
				}
			}
		})
	}
	return pid, sibling
}

// recordApp starts braid record and returns when it waits for a process.
func recordApp(t *testing.T, args ...string) (r *running, errs *lineReader, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "app.braid")
	c := command(t, append([]string{"record", "-o", file}, args...)...)
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = pw
	r = start(t, c)
	pw.Close()
	t.Cleanup(func() { pr.Close() })
	return r, newLineReader(pr), file
}

// processes returns the processes of which the report has threads with records.
func (r *summed) processes() (pids []int) {
	for _, th := range r.Threads {
		if th.Records > 0 && !slices.Contains(pids, th.Pid) {
			pids = append(pids, th.Pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// ended waits for the end of a recording, which must have gone well, and returns its report.
func ended(t *testing.T, r *running, errs *lineReader, file string) *summed {
	t.Helper()
	summary := "braid: " + errs.find(t, "braid: ")
	for strings.HasPrefix(summary, "braid: note: ") {
		t.Log(summary)
		summary = "braid: " + errs.find(t, "braid: ")
	}
	checkRecorded(t, file, outcome{code: waitCode(t, r.cmd), stderr: summary}, 0)
	return report(t, file)
}

const (
	appName = "com.example.braid.standin"
	appUID  = 10_123
	nFrames = 211
)

// TestPackageFromItsStart records an app that is still to come, with its component, of a zygote that has other children.
func TestPackageFromItsStart(t *testing.T) {
	for _, stubbed := range []bool{false, true} {
		if !stubbed && testBin != "" {
			continue // a guest has no libraries
		}
		for _, kernel := range []string{"sched", "none"} {
			t.Run(fmt.Sprintf("stubbed=%v/kernel=%s", stubbed, kernel), func(t *testing.T) {
				z := startZygote(t, stubbed)
				r, errs, file := recordApp(t, "--package", appName, "--threads", "all", "--kernel", kernel)
				errs.find(t, "braid: waiting for a process")
				other, _ := z.app("org.sample.braid.standin", appUID+1, 50, "") // ends in the same 15 bytes
				pid, sibling := z.app(appName, appUID, nFrames, "rs")
				s := ended(t, r, errs, file)
				want := []int{pid, sibling}
				slices.Sort(want)
				if got := s.processes(); !slices.Equal(got, want) {
					t.Errorf("methods of processes %v, want %v", got, want)
				}
				s.calls(t, map[string]int{"on_start": 2, "on_frame": 2 * nFrames, "render_frame": 2 * nFrames, "on_transact": 4 * nFrames})
				noted := func(note string) bool {
					return slices.ContainsFunc(s.Notes, func(n string) bool { return strings.Contains(n, note) })
				}
				// It may have begun threads before its name was read, and on a very slow machine ended.
				unread := noted(fmt.Sprintf("process %d was recorded for the end of its name", other))
				for _, th := range s.Threads {
					if th.Pid == z.pid || th.Pid == other && th.Records > 0 {
						t.Errorf("a thread of another process: %+v", th)
					}
				}
				note := fmt.Sprintf("process %d (org.sample.braid.standin)", other)
				if kernel != "none" && !unread && !noted(note) {
					t.Errorf("no note of the process of a similar name: %q", s.Notes)
				}
				for _, p := range want {
					for _, name := range []string{"RenderThread", fmt.Sprintf("Binder:%d_1", p), fmt.Sprintf("Binder:%d_2", p)} {
						if !slices.ContainsFunc(s.Threads, func(th thread) bool { return th.Pid == p && th.Name == name && th.Records > 0 }) {
							t.Errorf("process %d has no thread %s with records", p, name)
						}
					}
				}
			})
		}
	}
}

// TestPackageRunning chooses among processes that run.
func TestPackageRunning(t *testing.T) {
	z := startZygote(t, false)
	pid, sibling := z.app(appName, appUID, 0, "s")
	other, _ := z.app("com.example.other", appUID+1, 0, "")
	server, _ := z.app("system_server", 1000, 0, "")
	for _, c := range []struct {
		args []string
		want []int
	}{
		{[]string{"--package", appName}, []int{pid, sibling}},
		{[]string{"--package", appName, "--component", "remote,main", "--kernel", "none"}, []int{pid, sibling}},
		{[]string{"--package", appName, "--component", ":remote", "--kernel", "none"}, []int{sibling}},
		{[]string{"--package", appName, "--component", "main", "--uid", "u0_a123"}, []int{pid}},
		{[]string{"--uid", "u0_a124"}, []int{other}},
		{[]string{"--uid", fmt.Sprint(appUID), "--kernel", "none"}, []int{pid, sibling}},
		{[]string{"--package", "system_server", "--kernel", "none"}, []int{server}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			file, _ := record(t, 0, append(c.args, "--for", "150ms", "--threads", "main,RenderThread")...)
			s := report(t, file)
			slices.Sort(c.want)
			if got := s.processes(); !slices.Equal(got, c.want) {
				t.Errorf("methods of processes %v, want %v", got, c.want)
			}
			for _, th := range s.Threads {
				if strings.HasPrefix(th.Name, "Binder:") && th.Records > 0 {
					t.Errorf("records of a thread that was not asked for: %+v", th)
				}
			}
		})
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--package", "com.example.braid.stadnin"}, []string{`no process named "com.example.braid.stadnin" in 200ms`, appName}},
		{[]string{"--package", appName, "--uid", "u0_a124"}, []string{`of user 10124 in 200ms`}},
		{[]string{"--package", appName, "--component", ":push"}, []string{`standin:push" in 200ms`, appName}},
	} {
		o := braid(t, append([]string{"record", "--wait", "200ms"}, c.args...)...)
		for _, want := range c.want {
			if o.code != 1 || !strings.Contains(o.stderr, want) {
				t.Errorf("%v: code %d, want 1, and %q in %q", c.args, o.code, want, o.stderr)
			}
		}
	}
}

// TestPackageFollowsDaemon checks that a process is followed that leaves its session and its parents, which have ended by
// the time anybody could look.
func TestPackageFollowsDaemon(t *testing.T) {
	z := startZygote(t, true)
	r, errs, file := recordApp(t, "--package", appName, "--kernel", "sched")
	errs.find(t, "braid: waiting")
	pid, _ := z.app(appName, appUID, nFrames, "rd")
	s := ended(t, r, errs, file)
	if i := slices.IndexFunc(s.Threads, func(th thread) bool { return th.Name == "left-behind" }); i < 0 || s.Threads[i].Records == 0 || s.Threads[i].Pid == pid {
		t.Errorf("no records of the daemon: %+v", s.Threads)
	}
	if n := s.method(t, "daemon_step").Calls; n == 0 || n > nFrames {
		t.Errorf("%d steps of the daemon, which made %d", n, nFrames)
	}
}

func TestPackageInterrupted(t *testing.T) {
	r, errs, _ := recordApp(t, "--package", "com.example.nobody")
	errs.find(t, "braid: waiting")
	r.cmd.Process.Signal(os.Interrupt)
	if code := waitCode(t, r.cmd); code != 1 {
		t.Errorf("ended with %d, want 1", code)
	}
	errs.find(t, "braid: nothing to record")
}

func TestPackageUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--package", "a.b", "-p", "1"}, {"--package", "a.b", "--", "true"}, {"--component", ":x"}, {"--package", "a.b:c", "--component", ":x"},
		{"--package", "a.*"}, {"--uid", "nobody-there"}, {"--uid", "u0_a10000"}, {"--wait", "3s", "--", "true"}, {"--package", "a.b", "--wait", "0s"},
	} {
		if o := braid(t, append([]string{"record"}, args...)...); o.code != 2 {
			t.Errorf("%v: code %d, want 2: %s", args, o.code, o.stderr)
		}
	}
}

// TestWatchPackage checks that braid watch finds an app that zygote starts while it runs, and its component, by a pattern
// that no thread's name tells.
func TestWatchPackage(t *testing.T) {
	for _, name := range []string{appName, "com.example.braid.*"} {
		t.Run(name, func(t *testing.T) {
			z := startZygote(t, false)
			w := watch(t, "programs:\n  - package: \""+name+"\"\ntriggers:\n  - {name: died, crash: true}\n")
			z.app("com.other.braid.standin", appUID+1, 0, "")
			pid, sibling := z.app(appName, appUID, 0, "s")
			want := []int{pid}
			if strings.Contains(name, "*") {
				want = append(want, sibling)
			}
			slices.Sort(want)
			until(t, "the app is watched", func() bool { return len(w.status(t).Targets) >= len(want) })
			var got []int
			for _, target := range w.status(t).Targets {
				got = append(got, target.PID)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("watched are %v, want %v", got, want)
			}
			w.ends(t)
		})
	}
}
