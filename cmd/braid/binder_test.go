//go:build binder

// Needs a kernel with binder and /dev/binder, which guests have (internal/kernels).

package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// binderCalls are a report's calls of one kind, as the documentation names them.
type binderCalls struct {
	ToPid     int    `json:"to_pid"`
	ToProcess string `json:"to_process"`
	Code      int
	OneWay    bool `json:"one_way"`
	Calls     int
	TotalNs   int64 `json:"total_ns"`
	QueuedNs  int64 `json:"queued_ns"`
	ServedNs  int64 `json:"served_ns"`
	ReplyNs   int64 `json:"reply_ns"`
	Server    struct {
		RunningNs  int64 `json:"running_ns"`
		RunnableNs int64 `json:"runnable_ns"`
		SleepingNs int64 `json:"sleeping_ns"`
	}
	Unreceived, Unanswered int
}

// startServer starts a process that serves binder calls until the test ends.
func startServer(t *testing.T) int {
	t.Helper()
	server := exec.Command(programs["binder"], "server", "2")
	stdin, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		server.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the server says %q, %v", lines.Text(), lines.Err())
	}
	go func() { // it must not have to wait for anybody who reads
		for lines.Scan() {
		}
	}()
	return server.Process.Pid
}

// TestBinder: what a recorded process waited for another, to which it talks through binder, is what it measures itself
// within 5 %; and what the other one did meanwhile is told, to whom it need be told: as its thread had to wait for a CPU.
func TestBinder(t *testing.T) {
	pid := startServer(t)
	for range 4 { // on two processors
		busy := exec.Command("sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			busy.Process.Kill()
			busy.Wait()
		})
	}
	const calls = `printf '2 70 0\n2 90 0\n3 150 0\n2 5 1\n' | `
	file, o := record(t, 0, "--kernel", "sched,wait", "--", "sh", "-c", calls+programs["binder"]+" client")
	measured := map[int]int64{}
	for line := range strings.Lines(o.stdout) {
		var code, tid, oneWay int
		var start, end int64
		if _, err := fmt.Sscanf(line, "called code=%d tid=%d start=%d end=%d oneway=%d", &code, &tid, &start, &end, &oneWay); err == nil && oneWay == 0 {
			measured[code] += end - start
		}
	}

	var r struct {
		Waits    struct{ Binder []binderCalls }
		Analysis struct{ Explanation []string }
	}
	if err := json.Unmarshal([]byte(must(t, "report", "--json", "--why", "--method", "call", file)), &r); err != nil {
		t.Fatal(err)
	}
	seen := map[int]int{}
	for _, c := range r.Waits.Binder {
		t.Logf("%+v, measured %d", c, measured[c.Code])
		if c.ToPid != pid || c.ToProcess != "binder" || c.Unreceived+c.Unanswered != 0 {
			t.Errorf("%+v", c)
		}
		if c.OneWay {
			continue
		}
		seen[c.Code] += c.Calls
		if m := measured[c.Code]; c.TotalNs*20 < m*19 || c.TotalNs > m || c.QueuedNs+c.ServedNs+c.ReplyNs != c.TotalNs {
			t.Errorf("code %d: %d ns, %d + %d + %d, the program measured %d", c.Code, c.TotalNs, c.QueuedNs, c.ServedNs, c.ReplyNs, m)
		}
		s := c.Server
		if sum := s.RunningNs + s.RunnableNs + s.SleepingNs; sum*20 < (c.QueuedNs+c.ServedNs)*19 {
			t.Errorf("code %d: only %d ns of what the server did in %d ns", c.Code, sum, c.QueuedNs+c.ServedNs)
		}
		if c.Code == 2 && s.SleepingNs < 150e6 || c.Code == 3 && (s.RunnableNs < 20e6 || s.RunningNs < 5e6) {
			t.Errorf("code %d: the server's states %+v", c.Code, s)
		}
	}
	if seen[2] != 2 || seen[3] != 1 || len(r.Waits.Binder) != 3 {
		t.Errorf("calls %+v", r.Waits.Binder)
	}
	why := strings.Join(r.Analysis.Explanation, "\n")
	// The third call took longest. Its thread had a part of two processors, beside four others.
	for _, want := range []string{"code 3", fmt.Sprintf("whose thread Binder:%d_", pid), "running for", "runnable for"} {
		if !strings.Contains(why, want) {
			t.Errorf("the explanation does not say %q:\n%s", want, why)
		}
	}
}
