package control

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"braid/inline/runtime"
)

// TestRecorderThatIsKilled is no test: TestTakeover runs it in a process of its own, with the id of a traced one.
func TestRecorderThatIsKilled(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv("BRAID_TEST_TAKEN"))
	if err != nil {
		return
	}
	areas, err := Attach(pid)
	if err != nil {
		t.Fatal(err)
	}
	a := areas[0]
	a.Arm(runtime.PolicyAll, 1<<20)
	buf := make([]uint64, 1<<17)
	for rounds, told := 0, false; ; {
		on := 0
		for _, th := range a.Threads() {
			if !th.On() {
				th.Start()
			}
			if th.RequestSwap() == nil && th.Swapped() {
				if _, err := th.CollectOld(buf); err != nil {
					t.Fatal(err)
				}
				th.ReleaseOld()
			}
			th.Note()
			if th.On() {
				on++
			}
		}
		if on == 3 {
			rounds++
		}
		if rounds > 100 && !told {
			fmt.Fprint(os.Stderr, "busy")
			told = true
		}
	}
}

// TestTakeover kills recorders that swap a program's rings, at any moment, and goes on where they were.
func TestTakeover(t *testing.T) {
	p := run(t, "", 3, 50, 0, 1, "")
	buf := make([]uint64, 1<<17)
	pending := 0
	for round := range repeats(t, 11) {
		r := exec.Command(os.Args[0], "-test.run=^TestRecorderThatIsKilled$")
		r.Env = append(os.Environ(), "BRAID_TEST_TAKEN="+strconv.Itoa(p.Process.Pid))
		out, err := r.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		if n, err := out.Read(make([]byte, 4)); n != 4 {
			t.Fatalf("the other recorder: %v", err)
		}
		if _, err := Attach(p.Process.Pid); !errors.Is(err, ErrBusy) {
			t.Fatalf("attaching beside another recorder: %v", err)
		}
		time.Sleep(time.Duration(round*37) * time.Microsecond)
		r.Process.Kill()
		r.Wait()
		areas, err := Attach(p.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		a := areas[0]
		a.Arm(runtime.PolicyAll, 1<<20)
		threads := a.Threads()
		if len(threads) != 3 {
			t.Fatalf("%d threads", len(threads))
		}
		for _, th := range threads {
			if !th.On() {
				t.Fatal("a thread that was on is off")
			}
			if len(th.cur.anchors) != 0 || th.cur.start == 0 {
				t.Fatalf("taken over with anchors %v, begin %d", th.cur.anchors, th.cur.start)
			}
			c := newChain(p.names)
			if th.swap.asked {
				pending++
			}
			if round%2 == 0 && th.Swapped() { // left by the other one, or as it had asked
				takeOld(t, th, c, buf)
			}
			for range 20 {
				if err := th.RequestSwap(); err != nil {
					t.Fatal(err)
				}
				until(t, "a thread that was taken over goes on", th.Swapped)
				takeOld(t, th, c, buf)
			}
			if len(th.rings) > 2 {
				t.Fatalf("%d rings: %+v", len(th.rings), th.rings)
			}
			if round%3 == 0 {
				if err := th.RequestSwap(); err != nil { // for the next recorder
					t.Fatal(err)
				}
			}
		}
		if round%3 == 1 {
			if n := StopAll(areas, 10*time.Second); n != 0 {
				t.Fatalf("%d threads did not stop", n)
			}
			for _, th := range threads {
				takeRest(t, th, newChain(p.names), buf)
				th.Release()
			}
		}
		a.Close()
	}
	t.Logf("%d swaps were pending when a recorder was killed", pending)
}

// TestAsked has a program turn its thread on and off, and trigger.
func TestAsked(t *testing.T) {
	p := start(t, build(t, "asks"), "")
	tell := func(what string) string {
		t.Helper()
		if _, err := p.in.Write([]byte(what)); err != nil {
			t.Fatal(err)
		}
		var answer [4]byte
		if _, err := p.out.Read(answer[:]); err != nil {
			t.Fatal(err)
		}
		return string(answer[:3])
	}
	if got := tell("t"); got != "no " {
		t.Errorf("a trigger without a recorder: %q", got)
	}
	areas, err := Attach(p.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	a := areas[0]
	defer a.Close()
	a.Arm(runtime.PolicyNone, 64<<10)
	if got := tell("t"); got != "yes" {
		t.Errorf("a trigger with a recorder: %q", got)
	}
	const why = "too ?[31mslow, and more words than there is any room for in the sixty-four"
	seq, got, tid, at, lost := a.Trigger()
	if seq != 1 || got != why[:63] || tid != p.Process.Pid || at == 0 || lost != 0 {
		t.Errorf("trigger %d: %q by %d at %d, %d lost", seq, got, tid, at, lost)
	}
	th := a.Threads()[0]
	for _, c := range []struct {
		tell  string
		asked uint32
		on    bool
	}{{"o", runtime.APIOn, true}, {"f", runtime.APIOff, false}, {"t", runtime.APIOff, false}, {"o", runtime.APIOn, true}} {
		if th.Asked() == 0 && c.tell != "o" {
			t.Errorf("asked for nothing before %s", c.tell)
		}
		tell(c.tell)
		if th.Asked() != int(c.asked) || th.On() != c.on {
			t.Errorf("told %s: asked %d, on %v", c.tell, th.Asked(), th.On())
		}
	}
	if n := StopAll(areas, 0); n != 1 {
		t.Errorf("%d threads that wait for a word did not stop", n)
	}
	a.Arm(runtime.PolicyNone, 64<<10)
	if tell("t"); !th.Stopped() { // its next trace point
		t.Error("it did not stop")
	}
	if tell("o"); th.On() {
		t.Error("a thread that the recorder has stopped has turned itself on")
	}
}

// TestStartedByItself has a thread whose ring has wrapped turn itself off and on again. What it records then is not taken for
// what an earlier lap left.
func TestStartedByItself(t *testing.T) {
	p := start(t, build(t, "asks"), "")
	a := attach(t, p, runtime.PolicyNone, 4096, 0)
	tell := func(what string) {
		t.Helper()
		if _, err := p.in.Write([]byte(what)); err != nil {
			t.Fatal(err)
		}
		for range what {
			if _, err := p.out.Read(make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tell("o")
	for range 600 { // two slots each, in 512
		tell("t")
	}
	tell("foo")
	StopAll([]*Area{a}, 0)
	tell("t")
	th := a.Threads()[0]
	s, err := th.Collect(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Slots) != 2+2+1 || !s.Complete || !s.Exact { // the stop is answered by an entry
		t.Errorf("%d slots, complete %v, exact %v; want 5 of a ring that was begun anew", len(s.Slots), s.Complete, s.Exact)
	}
}
