package ctl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// daemon remembers what it was asked.
type daemon struct {
	calls atomic.Int64
	last  atomic.Value
	gate  chan struct{} // if not nil, Flush waits for it, or for the context
	ended chan struct{} // closed when a waiting Flush's context ends
}

func (d *daemon) note(format string, args ...any) {
	d.calls.Add(1)
	d.last.Store(fmt.Sprintf(format, args...))
}

func (d *daemon) Status(context.Context) (*Status, error) {
	n := d.calls.Add(1)
	return &Status{Daemon: Daemon{PID: int(n), Version: "test"}, Targets: []Target{{PID: 7, Name: "app"}}}, nil
}

func (d *daemon) Start(_ context.Context, s Selection) (int, error) {
	d.note("start %+v", s)
	if s.PID == 404 {
		return 0, fmt.Errorf("process 404: %w", ErrNotFound)
	}
	return 3, nil
}

func (d *daemon) Stop(_ context.Context, s Selection) (int, error) {
	d.note("stop %+v", s)
	return 2, nil
}

func (d *daemon) Flush(ctx context.Context, s Selection, why string) ([]Flushed, error) {
	d.note("flush %+v %s", s, why)
	if d.gate != nil {
		select {
		case <-d.gate:
		case <-ctx.Done():
			close(d.ended)
			return nil, ctx.Err()
		}
	}
	return []Flushed{{PID: 7, Name: "app", Path: "/x", Records: 5, Bytes: 40}}, nil
}

func (d *daemon) Trigger(_ context.Context, name string, s Selection, why string) ([]Flushed, error) {
	d.note("trigger %s %+v %s", name, s, why)
	return nil, errors.New("the disk is full")
}

// serve runs a server and returns its socket.
func serve(t *testing.T, h Handler, tune func(*Server)) (string, *Server) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run", "watch.sock")
	s, err := Listen(path, h)
	if err != nil {
		t.Fatal(err)
	}
	if tune != nil {
		tune(s)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return path, s
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func code(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestCommands(t *testing.T) {
	d := &daemon{}
	path, _ := serve(t, d, nil)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", st.Mode(), err)
	}
	c := dial(t, path)
	for _, x := range []struct {
		req  Request
		last string
		code Code
		want Response
	}{
		{Request{Command: CmdStart, Selection: Selection{PID: 7, Thread: "main*"}}, "start {PID:7 Program: Thread:main*}", "", Response{Threads: 3}},
		{Request{Command: CmdStop, Selection: Selection{Program: "app"}}, "stop {PID:0 Program:app Thread:}", "", Response{Threads: 2}},
		{Request{Command: CmdFlush, Why: "it hung"}, "flush {PID:0 Program: Thread:} it hung", "",
			Response{Flushed: []Flushed{{PID: 7, Name: "app", Path: "/x", Records: 5, Bytes: 40}}}},
		{Request{Command: CmdTrigger, Name: "slow"}, "trigger slow {PID:0 Program: Thread:} ", CodeFailed, Response{}},
		{Request{Command: CmdStart, Selection: Selection{PID: 404}}, "start {PID:404 Program: Thread:}", CodeNotFound, Response{}},
	} {
		resp, err := c.Do(t.Context(), x.req)
		if code(err) != x.code || (err == nil) != (x.code == "") {
			t.Errorf("%+v: %v", x.req, err)
		}
		if x.code == CodeNotFound && !errors.Is(err, ErrNotFound) {
			t.Errorf("%v is not ErrNotFound", err)
		}
		if got := d.last.Load(); got != x.last {
			t.Errorf("asked %q, want %q", got, x.last)
		}
		x.want.Version = Version
		if err == nil && fmt.Sprintf("%+v", *resp) != fmt.Sprintf("%+v", x.want) {
			t.Errorf("answer %+v, want %+v", *resp, x.want)
		}
	}
	resp, err := c.Do(t.Context(), Request{Command: CmdStatus})
	if err != nil || len(resp.Status.Targets) != 1 || resp.Status.Targets[0].Name != "app" {
		t.Errorf("status: %+v, %v", resp, err)
	}
	if _, err := c.Do(t.Context(), Request{Command: "reboot"}); code(err) != CodeBadRequest {
		t.Errorf("unknown command: %v", err)
	}
}

func TestSubscribe(t *testing.T) {
	d := &daemon{}
	path, s := serve(t, d, nil)
	enough := errors.New("enough")
	var pids []int
	err := dial(t, path).Subscribe(t.Context(), 100*time.Millisecond, func(st *Status) error {
		if pids = append(pids, st.Daemon.PID); len(pids) == 3 {
			return enough
		}
		return nil
	})
	if err != enough || fmt.Sprint(pids) != "[1 2 3]" {
		t.Errorf("%v, %v", pids, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = dial(t, path).Subscribe(ctx, time.Minute, func(*Status) error { cancel(); return nil })
	if err != context.Canceled {
		t.Errorf("ended by its context: %v", err)
	}
	if err := dial(t, path).Subscribe(t.Context(), time.Millisecond, nil); code(err) != CodeBadRequest {
		t.Errorf("too often: %v", err)
	}
	// The daemon ends: so does the subscription.
	c := dial(t, path)
	got := make(chan error, 1)
	first := make(chan bool, 1)
	go func() {
		got <- c.Subscribe(context.Background(), time.Minute, func(*Status) error { first <- true; return nil })
	}()
	<-first
	s.Close()
	if err := <-got; err == nil {
		t.Error("the subscription ended without an error")
	}
	if _, err := Dial(t.Context(), path); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("after the daemon's end: %v", err)
	}
}

// A client that goes ends what it asked for; a daemon that ends does not wait for it.
func TestClientGoes(t *testing.T) {
	d := &daemon{gate: make(chan struct{}), ended: make(chan struct{})}
	path, s := serve(t, d, nil)
	c := dial(t, path)
	go c.Do(context.Background(), Request{Command: CmdFlush})
	for d.calls.Load() == 0 {
		runtime.Gosched()
	}
	s.Close()
	<-d.ended
}

func TestOneDaemon(t *testing.T) {
	path, _ := serve(t, &daemon{}, nil)
	if _, err := Listen(path, &daemon{}); !errors.Is(err, ErrRuns) {
		t.Errorf("a second daemon: %v", err)
	}
	dial(t, path) // the first is as it was
	plain := filepath.Join(t.TempDir(), "file")
	os.WriteFile(plain, []byte("precious"), 0o600)
	if _, err := Listen(plain, &daemon{}); err == nil {
		t.Error("a file was replaced by a socket")
	}
}

const deadEnv = "BRAID_TEST_DEAD_DAEMON"

func TestMain(m *testing.M) {
	if path := os.Getenv(deadEnv); path != "" {
		if _, err := Listen(path, &daemon{}); err != nil {
			os.Exit(3)
		}
		unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
	os.Exit(m.Run())
}

func TestDeadDaemonsSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watch.sock")
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), deadEnv+"="+path)
	if err := c.Run(); err == nil || c.ProcessState.ExitCode() >= 0 {
		t.Fatalf("it was to be killed: %v", err)
	}
	if _, err := Dial(t.Context(), path); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("a dead daemon's socket: %v", err)
	}
	s, err := Listen(path, &daemon{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go s.Serve()
	if _, err := dial(t, path).Do(t.Context(), Request{Command: CmdStatus}); err != nil {
		t.Error(err)
	}
}

// dialAs connects as another user. The thread that becomes that user ends with its goroutine.
func dialAs(t *testing.T, uid int, path string) net.Conn {
	t.Helper()
	fds := make(chan int)
	go func() {
		runtime.LockOSThread()
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); err == nil && e != 0 {
			err = e
		}
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		}
		if err != nil {
			t.Errorf("connecting as user %d: %v", uid, err)
			fd = -1
		}
		fds <- fd
	}()
	fd := <-fds
	if fd < 0 {
		t.FailNow()
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test becomes other users: run it as root")
	}
	d := &daemon{}
	const own = 12345
	path, _ := serve(t, d, func(s *Server) { s.uids = []uint32{0, own} })
	for p := path; p != "/"; p = filepath.Dir(p) {
		if st, err := os.Stat(p); err != nil || st.Mode()&1 == 0 {
			if err := os.Chmod(p, 0o777); err != nil { // as if the socket's mode did not protect it
				t.Fatal(err)
			}
		}
	}
	for uid, want := range map[int]Code{65534: CodeDenied, own: "", 0: ""} {
		c := dialAs(t, uid, path)
		before := d.calls.Load()
		io.WriteString(c, `{"v":1,"cmd":"status"}`+"\n")
		line, err := bufio.NewReader(c).ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeResponse(line); code(err) != want {
			t.Errorf("user %d: %v, want %q", uid, err, want)
		}
		if asked := d.calls.Load() - before; (asked == 1) != (want == "") {
			t.Errorf("user %d: the handler was asked %d times", uid, asked)
		}
		c.Close()
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"v":1,"cmd":"status"}`))
	f.Add([]byte(`{"v":1,"cmd":"start","pid":7,"program":"a*","thread":"main"}`))
	f.Add([]byte(`{"v":1,"cmd":"trigger","name":"slow","why":"x"}`))
	f.Add([]byte(`{"v":1,"cmd":"subscribe","interval_ms":100}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := DecodeRequest(line)
		if err != nil {
			if code(err) == "" || r != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			return
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeRequest(b)
		if err != nil || *again != *r {
			t.Fatalf("%s\n%+v\n%+v: %v", b, r, again, err)
		}
	})
}

func FuzzResponse(f *testing.F) {
	f.Add([]byte(`{"v":1,"status":{"daemon":{"pid":1,"version":"\u001b[2J"},"targets":[{"name":"\t\u0000ä","threads":[{}]}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := DecodeResponse(line)
		if err != nil || r.Status == nil {
			return
		}
		checkTable(t, r.Status)
	})
}
