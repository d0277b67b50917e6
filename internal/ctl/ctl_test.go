package ctl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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
	path, s := serve(t, d, func(s *Server) { s.uids = []uint32{0, own} })
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
	_ = s
}

// raw sends bytes and returns all answers until the server closes.
func raw(t *testing.T, path string, b []byte, half bool) []byte {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		c.Write(b)
		if half {
			c.(*net.UnixConn).CloseWrite()
		}
	}()
	out, _ := io.ReadAll(c)
	return out
}

func TestBadClients(t *testing.T) {
	d := &daemon{}
	path, _ := serve(t, d, func(s *Server) { s.line, s.idle = 50*time.Millisecond, 100*time.Millisecond })
	for name, x := range map[string]struct {
		send string
		half bool
		want string // in the answer
	}{
		"oversize":          {strings.Repeat("x", 1<<20), false, "longer than"},
		"slow loris":        {`{"v":1,`, false, "did not end within"},
		"silent":            {"", false, ""},
		"cut":               {`{"v":1,"cmd":"sta`, true, "has no end"},
		"two in one write":  {`{"v":1,"cmd":"status"}` + "\n" + `{"v":1,"cmd":"stop"}` + "\n", true, `"threads":2`},
		"unknown field":     {`{"v":1,"cmd":"status","sudo":1}` + "\n", true, "unknown field"},
		"other version":     {`{"v":2,"cmd":"status","new":1}` + "\n", true, `"code":"version"`},
		"no version":        {`{"cmd":"status"}` + "\n", true, "no version"},
		"two objects":       {`{"v":1,"cmd":"status"}{}` + "\n", true, `bad_request`},
		"not UTF-8":         {`{"v":1,"cmd":"flush","why":"` + "\xff\"}\n", true, "UTF-8"},
		"control character": {`{"v":1,"cmd":"flush","why":"\u001b[2J"}` + "\n", true, "control character"},
		"wrong field":       {`{"v":1,"cmd":"status","pid":1}` + "\n", true, "takes no"},
		"negative pid":      {`{"v":1,"cmd":"stop","pid":-1}` + "\n", true, "no process id"},
		"null":              {"null\n", true, "no version"},
		"empty line":        {"\n", true, "bad_request"},
	} {
		got := raw(t, path, []byte(x.send), x.half)
		if !strings.Contains(string(got), x.want) || x.want == "" && len(got) > 0 {
			t.Errorf("%s: answer %q, want %q", name, got, x.want)
		}
	}
	if _, err := dial(t, path).Do(t.Context(), Request{Command: CmdStatus}); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

func TestTooManyClients(t *testing.T) {
	path, _ := serve(t, &daemon{}, nil)
	var all []*Client
	for range maxClients {
		c := dial(t, path)
		if _, err := c.Do(t.Context(), Request{Command: CmdStatus}); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	c := dial(t, path)
	if _, err := c.receive(t.Context()); code(err) != CodeBusy {
		t.Errorf("one too many: %v", err)
	}
	for _, c := range all {
		c.Close()
	}
	for { // once the server has seen that, there is room again
		if _, err := dial(t, path).Do(t.Context(), Request{Command: CmdStatus}); err == nil {
			break
		} else if code(err) != CodeBusy {
			t.Fatal(err)
		}
	}
}

// A subscriber that reads nothing is closed when its answers do not fit anywhere any more.
func TestDeafSubscriber(t *testing.T) {
	big := make([]Target, 20_000)
	path, s := serve(t, bigStatus{&daemon{}, &Status{Targets: big}}, func(s *Server) { s.write = 50 * time.Millisecond })
	c := dial(t, path)
	if err := c.send(t.Context(), Request{Command: CmdSubscribe, IntervalMs: 100}); err != nil {
		t.Fatal(err)
	}
	clients := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.clients)
	}
	for clients() == 0 {
		time.Sleep(time.Millisecond)
	}
	for clients() > 0 {
		time.Sleep(time.Millisecond)
	}
}

type bigStatus struct {
	*daemon
	status *Status
}

func (b bigStatus) Status(context.Context) (*Status, error) { return b.status, nil }

// Random bytes, and requests with random changes, on a live server, with clients that go at any moment.
func TestRandomClients(t *testing.T) {
	d := &daemon{}
	path, _ := serve(t, d, func(s *Server) {
		s.line, s.idle, s.write = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
	})
	r := rand.New(rand.NewPCG(4, 4))
	good := []string{`{"v":1,"cmd":"status"}`, `{"v":1,"cmd":"flush","why":"x"}`, `{"v":1,"cmd":"subscribe","interval_ms":100}`,
		`{"v":1,"cmd":"trigger","name":"slow","pid":7}`}
	for range 500 {
		b := []byte(good[r.IntN(len(good))] + "\n" + good[r.IntN(len(good))] + "\n")
		for range r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		if r.IntN(4) == 0 {
			b = make([]byte, r.IntN(2*MaxRequest))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(b[:r.IntN(len(b)+1)])
		if r.IntN(2) == 0 {
			c.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
			c.Read(make([]byte, 1+r.IntN(200)))
		}
		c.Close()
	}
	for {
		if _, err := dial(t, path).Do(t.Context(), Request{Command: CmdStatus}); err == nil {
			break
		} else if code(err) != CodeBusy {
			t.Fatal(err)
		}
	}
	if d.calls.Load() < 10 {
		t.Errorf("only %d requests came through", d.calls.Load())
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
