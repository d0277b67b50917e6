package ctl

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

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
