package control

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"braid/inline"
	"braid/inline/runtime"
	"braid/internal/counter"
)

func count(s inline.Segment) (entries, exits int) {
	for i := len(s.Slots) - 1; i >= 0; i-- {
		switch uint32(s.Slots[i]) {
		case 0:
			exits++
		case 1, 2:
			i--
			entries++
		default:
			entries++
		}
	}
	return
}

// drain collects every thread of a session whose processes are gone.
func drain(t *testing.T, s *Session) []Segment {
	t.Helper()
	areas, err := s.Areas()
	if err != nil {
		t.Fatal(err)
	}
	var out []Segment
	for _, a := range areas {
		for _, th := range a.Threads() {
			if !th.Recorded() {
				continue
			}
			seg, err := th.Collect(nil)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, seg)
			th.Release()
		}
		a.Close()
	}
	return out
}

func TestSessionKeepsRecordsOfADeadProcess(t *testing.T) {
	for _, flags := range [][]string{nil, {"-static"}, {"-no-pie"}, {"-static-pie"}} {
		bin := build(t, "loop", flags...)
		s, err := NewSession(runtime.PolicyMain, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(bin, "9973")
		c.Env = append(os.Environ(), s.Env())
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", flags, err, out)
		}
		segs := drain(t, s)
		if len(segs) != 1 {
			t.Fatalf("%v: %d segments, want 1", flags, len(segs))
		}
		if e, x := count(segs[0].Segment); e != 9974 || x != 9974 || !segs[0].Exact || !segs[0].Complete {
			t.Errorf("%v: %d entries, %d exits, exact %v, complete %v; want 9974 of both, exact and complete", flags, e, x, segs[0].Exact, segs[0].Complete)
		}
		s.Close()
	}
}

func TestWrappedRingHoldsTheNewest(t *testing.T) {
	bin := build(t, "loop")
	s, err := NewSession(runtime.PolicyMain, 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := exec.Command(bin, "9973")
	c.Env = append(os.Environ(), s.Env())
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	seg := drain(t, s)[0]
	if len(seg.Slots) != 512 || seg.Complete {
		t.Fatalf("%d slots, complete %v; want 512 of a wrapped ring", len(seg.Slots), seg.Complete)
	}
	if e, x := count(seg.Segment); e != 255 || x != 257 { // main's exit is the last record
		t.Errorf("%d entries and %d exits, want 255 and 257", e, x)
	}
}

func TestProgramRunsWithoutARecorder(t *testing.T) {
	bin := build(t, "loop")
	if out, err := exec.Command(bin, "100").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestAttach arms a running program that no recorder launched, and stops it where it does not answer: in pause().
func TestAttach(t *testing.T) {
	bin := build(t, "beat")
	c := exec.Command(bin)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { c.Process.Kill(); c.Wait() }()
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		areas, err := Attach(c.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if len(areas) != 1 {
			t.Fatalf("%d areas, want 1", len(areas))
		}
		a := areas[0]
		from := counter.Now()
		a.Arm(runtime.PolicyAll, 1<<20)
		var th *Thread
		for range 1000 {
			if ts := a.Threads(); len(ts) == 1 {
				th = ts[0]
				if !th.On() {
					th.Start()
				}
				if th.On() {
					break
				}
			}
			time.Sleep(time.Millisecond)
		}
		if th == nil || !th.On() || th.Tid != c.Process.Pid {
			t.Fatalf("round %d: the thread did not start", round)
		}
		time.Sleep(50 * time.Millisecond)
		if n := StopAll(areas, 5*time.Second); n != 0 {
			t.Errorf("round %d: %d threads did not stop", round, n)
		}
		seg, err := th.Collect(nil)
		if err != nil {
			t.Fatal(err)
		}
		e, x := count(seg.Segment)
		if e < 2 || e-x > 1 || x-e > 1 || !seg.Exact {
			t.Errorf("round %d: %d entries, %d exits, exact %v", round, e, x, seg.Exact)
		}
		for _, v := range seg.Slots {
			if d := uint32(v>>32) - uint32(from); d > 1<<31 {
				t.Fatalf("round %d: a record is older than the start", round)
			}
		}
		th.Release()
		a.Close()
	}
	if _, err := Attach(os.Getpid()); err == nil || !strings.Contains(err.Error(), "braid cc") {
		t.Errorf("attaching to a program without stubs: %v", err)
	}
}

func TestKilledInTheMiddle(t *testing.T) {
	bin := build(t, "loop")
	s, err := NewSession(runtime.PolicyMain, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := exec.Command(bin, "997", "wait")
	c.Env = append(os.Environ(), s.Env())
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	c.Process.Signal(syscall.SIGKILL)
	c.Wait()
	seg := drain(t, s)[0]
	if e, x := count(seg.Segment); e != 998 || x != 997 || !seg.Gone {
		t.Errorf("%d entries, %d exits, gone %v; want 998 and 997: main never returned", e, x, seg.Gone)
	}
}

func TestThreadsAndForks(t *testing.T) {
	bin := build(t, "threads")
	s, err := NewSession(runtime.PolicyAll, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := exec.Command(bin)
	c.Env = append(os.Environ(), s.Env())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	segs := drain(t, s)
	if len(segs) != 1+211+7 {
		t.Fatalf("%d segments, want 219", len(segs))
	}
	all := 0
	for _, g := range segs {
		e, _ := count(g.Segment)
		all += e
	}
	if want := 1 + (211+7)*102; all != want {
		t.Errorf("%d entries, want %d", all, want)
	}
}
