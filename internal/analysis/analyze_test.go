package analysis

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"braid/inline"
	"braid/internal/tracefile"

	"github.com/google/go-cmp/cmp"
)

// commits tells of 60 commits of 14 ms within a loop; slow is what happens in number 40.
func commits(t testing.TB, slow func(a *actor) []func()) *story {
	s := &story{t: t}
	a := s.thread(51, "worker")
	a.call("main", func() {
		for i := range 60 {
			a.call("handle", a.run(100*us), func() {
				a.call("commit", a.run(ms), func() {
					a.call("write_log", a.run(ms), a.fsync(10*ms, 1))
					if i == 40 {
						a.call("oddity", slow(a)...)
					}
				}, a.run(2*ms))
			})
			a.call("idle", a.sleep(500*ms, 0))
		}
	})
	return s
}

func near(got, want int64) bool { return abs(got-want) <= want/20+10*us }

// The method and the kernel's part in it are named, and who else had to do with it.
func TestNamesCause(t *testing.T) {
	for _, c := range []struct {
		name   string
		slow   func(a *actor) []func()
		cause  string
		excess int64
		says   []string
	}{
		{"fsync", func(a *actor) []func() { return []func(){a.fsync(180*ms, 4)} }, "fsync", 180 * ms,
			[]string{"180ms of it blocked in fsync in oddity (1 call of fsync, 4 requests, 4.00MiB)"}},
		{"cpu", func(a *actor) []func() { return []func(){a.preempted(120 * ms), a.run(ms)} }, "runnable", 120 * ms,
			[]string{"120ms of it waiting for a CPU in oddity (rival (999) had it for 120ms)"}},
		{"lock", func(a *actor) []func() { return []func(){a.sleep(90*ms, 77)} }, "sleeping", 90 * ms,
			[]string{"90.0ms of it sleeping in oddity (90.0ms until thread 77 woke it, or an interrupt while that ran)"}},
		{"fault", func(a *actor) []func() { return []func(){a.fault(60 * ms)} }, "major_fault", 60 * ms,
			[]string{"60.0ms of it in major page faults in oddity (1 fault)"}},
		{"reclaim", func(a *actor) []func() { return []func(){a.reclaim(70 * ms)} }, "reclaim", 70 * ms,
			[]string{"70.0ms of it in direct memory reclaim in oddity"}},
		{"compute", func(a *actor) []func() { return []func(){a.run(80 * ms)} }, "running", 80 * ms,
			[]string{"80.0ms of it running in oddity"}},
		{"blocked", func(a *actor) []func() { return []func(){a.block(75 * ms)} }, "blocked", 75 * ms,
			[]string{"75.0ms of it blocked for a reason that is not known in oddity"}},
		{"two", func(a *actor) []func() { return []func(){a.fsync(100*ms, 2), a.preempted(50 * ms)} }, "fsync", 100 * ms,
			[]string{"100ms of it blocked in fsync", ", 50.0ms waiting for a CPU in oddity"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := commits(t, c.slow).analyze(Options{})
			m := r.Moment
			if m == nil || m.Method != "handle" || m.Tid != 51 || !m.Unusual || m.Usual == nil || m.Usual.Calls != 60 || !near(m.Usual.MedianNs, 14100*us) {
				t.Fatalf("moment %+v", m)
			}
			if len(r.Findings) == 0 {
				t.Fatal("no findings")
			}
			f := r.Findings[0]
			if f.Method != "oddity" || f.Cause != c.cause || !near(f.ExcessNs, c.excess) || f.UsualNs != 0 || f.Basis != "moment" || f.Peers != 59 {
				t.Errorf("found %+v", f)
			}
			head := r.Explanation[0]
			for _, w := range append(c.says, "handle took ", " in thread worker (51), ", " more than its median of 1", "ms (60 calls): ") {
				if !strings.Contains(head, w) {
					t.Errorf("%q lacks %q", head, w)
				}
			}
			var chain []string
			for _, l := range r.Chain {
				chain = append(chain, l.Method)
			}
			if !slices.Equal(chain, []string{"main", "handle", "commit", "oddity"}) || !r.Chain[0].Outside || r.Chain[1].Outside {
				t.Errorf("chain %v", r.Chain)
			}
			if c := r.Chains[0]; !slices.Equal(c.Methods, []string{"handle", "commit", "oddity"}) {
				t.Errorf("chains %+v", r.Chains)
			}
			var sum int64
			for _, ns := range m.Causes {
				sum += ns
			}
			if sum != m.ToNs-m.FromNs || r.Chain[1].TotalNs != sum {
				t.Errorf("causes %v of %d ns", m.Causes, m.ToNs-m.FromNs)
			}
			if len(r.Notes) != 0 {
				t.Errorf("limits %v", r.Notes)
			}
		})
	}
}

// A method that does what it always does, but more often, is named with how often.
func TestCalledOften(t *testing.T) {
	r := commits(t, func(a *actor) []func() {
		var all []func()
		for range 200 {
			all = append(all, func() { a.call("step", a.run(ms)) })
		}
		return all
	}).analyze(Options{})
	if f := r.Findings[0]; f.Method != "step" || f.Calls != 200 || f.UsualCalls != 0 {
		t.Errorf("%+v", f)
	}
	if text := strings.Join(r.Explanation, "\n"); !strings.Contains(text, "step was called 200 times, usually 0 within one handle.") {
		t.Error(text)
	}
}

// Who ended a wait is named with the method that it was in, if it is recorded, too.
func TestWaker(t *testing.T) {
	s := &story{t: t}
	a, b := s.thread(51, "worker"), s.thread(52, "holder")
	b.call("main", func() {
		for i := range 30 {
			a.call("turn", a.run(ms), func() {
				if i == 20 {
					a.sleep(50*ms, 52)()
				}
			})
			b.call("work", b.run(ms))
		}
		b.call("hold", b.run(a.now-b.now+10*ms)) // it begins at 30 ms; turn 20 wakes up at 71 ms
	})
	r := s.analyze(Options{})
	f := r.Findings[0]
	if f.Method != "turn" || f.Cause != "sleeping" || len(f.Who) != 1 || f.Who[0].Tid != 52 || f.Who[0].Method != "hold" {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(r.Explanation[0], "(50.0ms until holder (52) woke it in hold)") {
		t.Error(r.Explanation)
	}
}

// A trigger leads to its call, although others are slower.
func TestTrigger(t *testing.T) {
	build := func() *story {
		s := &story{t: t}
		a := s.thread(51, "worker")
		b := s.thread(52, "other")
		for i := range 50 {
			a.call("small", a.run(ms), func() {
				if i == 30 {
					a.fsync(20*ms, 1)()
				}
			})
			a.run(10 * ms)()
			b.call("large", b.run(10*ms), func() {
				if i == 20 {
					b.run(400 * ms)()
				}
			})
		}
		return s
	}
	at := start + 31*11*ms + 10*ms // the call is over, the trigger is a little late
	for _, c := range []struct {
		name    string
		trigger *tracefile.Trigger
		around  Around
		method  string
		note    string
	}{
		{"none", nil, Around{}, "large", ""},
		{"method", &tracefile.Trigger{TimeNs: uint64(at), Method: "small"}, Around{}, "small", ""},
		{"thread", &tracefile.Trigger{TimeNs: uint64(at), Pid: pid, Tid: 51}, Around{}, "small", ""},
		{"gone method", &tracefile.Trigger{TimeNs: uint64(at), Tid: 51, Method: "gone*"}, Around{}, "small", "no call of gone\\* was recorded at that time; other methods were looked at"},
		{"gone thread", &tracefile.Trigger{TimeNs: uint64(at), Tid: 77}, Around{}, "large", "no call of thread 77 was recorded at that time; other threads were looked at"},
		{"asked at trigger", &tracefile.Trigger{TimeNs: uint64(at), Tid: 52}, Around{Method: "small"}, "small", ""},
		{"asked, not at trigger", &tracefile.Trigger{TimeNs: uint64(start + 100*second)}, Around{Method: "small"}, "small", "no such call was recorded at that time; the whole recording was looked at"},
		{"time", nil, Around{From: start + 5*ms, To: start + 5*ms, Thread: "work*"}, "small", "no such call was open at that time; those within a second of it were looked at"},
		{"asked by name", nil, Around{Thread: "work*"}, "small", ""},
		{"asked by number", nil, Around{Thread: "51"}, "small", ""},
		{"asked", nil, Around{Method: "sm*"}, "small", ""},
		{"asked thread", nil, Around{Tid: 51}, "small", ""},
		{"ignored", &tracefile.Trigger{TimeNs: uint64(at), Method: "small"}, Around{IgnoreTrigger: true}, "large", ""},
	} {
		s := build()
		s.meta.Trigger = c.trigger
		r := s.analyze(Options{Around: c.around})
		if r.Moment == nil || r.Moment.Method != c.method || !r.Moment.Unusual {
			t.Errorf("%s: %+v", c.name, r.Moment)
		}
		if c.note == "" && len(r.Notes) > 0 || c.note != "" && !slices.Contains(r.Notes, c.note) {
			t.Errorf("%s: limits %q", c.name, r.Notes)
		}
		if d := cmp.Diff(c.trigger, r.Trigger); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// What a few calls can not tell is not told.
func TestTooFew(t *testing.T) {
	s := &story{t: t}
	a := s.thread(51, "worker")
	for range 3 {
		a.call("rare", a.run(ms))
	}
	a.call("rare", a.fsync(50*ms, 1))
	r := s.analyze(Options{})
	if m := r.Moment; m == nil || m.Usual != nil || m.Unusual || m.Method != "rare" {
		t.Fatalf("%+v", m)
	}
	if want := "rare took 50.0ms in thread worker (51); with 4 whole calls in the recording, nobody can say whether that is much: 50.0ms of it blocked in fsync in itself"; !strings.HasPrefix(r.Explanation[0], want) {
		t.Error(r.Explanation[0])
	}
	if len(r.Findings) == 0 || r.Findings[0].Basis != "none" || len(r.Notes) == 0 || !strings.Contains(r.Notes[0], "too few calls") {
		t.Errorf("%+v, %v", r.Findings, r.Notes)
	}
}

// The moment's method has few calls, its callees have many: they are compared with themselves.
func TestOwnCalls(t *testing.T) {
	s := &story{t: t}
	a := s.thread(51, "worker")
	for i := range 2 {
		a.call("batch", func() {
			for k := range 100 {
				a.call("item", a.run(ms), func() {
					if i == 1 && k == 70 {
						a.fault(300 * ms)()
					}
				})
			}
		})
	}
	r := s.analyze(Options{Around: Around{Method: "batch"}})
	if f := r.Findings[0]; r.Moment.Method != "batch" || f.Method != "item" || f.Cause != "major_fault" || f.Basis != "method" || !near(f.ExcessNs, 300*ms) {
		t.Errorf("%+v %+v", r.Moment, f)
	}
	if len(r.Findings) != 1 { // its running is as usual
		t.Errorf("%+v", r.Findings)
	}
}

func TestUsualMoment(t *testing.T) {
	s := &story{t: t}
	a := s.thread(51, "worker")
	for i := range int64(50) {
		a.call("steady", a.run(10*ms+i*10*us))
	}
	r := s.analyze(Options{})
	if r.Moment.Unusual || !strings.Contains(r.Explanation[0], "steady took 10.5ms in thread worker (51), which is not unusual: its median is 10.") {
		t.Errorf("%+v %v", r.Moment, r.Explanation)
	}
}

// Without kernel events it is known which method, and that the rest is not known.
func TestSilentKernel(t *testing.T) {
	s := commits(t, func(a *actor) []func() { return []func(){a.fsync(180*ms, 4)} })
	s.silent = true
	r := s.analyze(Options{Around: Around{Method: "commit"}})
	f := r.Findings[0]
	if f.Method != "oddity" || f.Cause != "unknown" || !strings.Contains(r.Explanation[0], "180ms of it in an unknown state in oddity") {
		t.Errorf("%+v %v", f, r.Explanation)
	}
	if !slices.Contains(r.Notes, "no kernel events cover the moment: whether the thread ran or waited is not known") {
		t.Error(r.Notes)
	}
}

// A call that is open when the recording ends is one that has become slow, too.
func TestOpenCall(t *testing.T) {
	s := &story{t: t}
	a := s.thread(51, "worker")
	for range 30 {
		a.call("turn", a.run(5*ms))
	}
	a.slots = inline.AppendEntry(a.slots, uint64(a.now), s.method("turn"))
	a.slots = inline.AppendEntry(a.slots, uint64(a.now), s.method("wait"))
	a.sleep(3*second, 0)()
	r := s.analyze(Options{})
	if m := r.Moment; !m.Open || m.Method != "turn" || !m.Unusual || r.Findings[0].Method != "wait" || r.Findings[0].Cause != "sleeping" {
		t.Errorf("%+v %+v", m, r.Findings)
	}
	if !strings.HasPrefix(r.Explanation[0], "turn had not ended after 3.00s") {
		t.Error(r.Explanation[0])
	}
}

// Recursion, direct and through others, does not make the chain longer, nor count time twice.
func TestFolds(t *testing.T) {
	s := &story{t: t}
	a := s.thread(51, "worker")
	var down func(n int) func()
	down = func(n int) func() {
		return func() {
			a.call("visit", a.run(ms), func() {
				if n > 0 {
					a.call("each", down(n-1))
				}
			})
		}
	}
	for i := range 30 {
		n := 3
		if i == 10 {
			n = 400
		}
		a.call("parse", down(n))
	}
	r := s.analyze(Options{})
	var chain []string
	for _, l := range r.Chain {
		chain = append(chain, l.Method)
	}
	if !slices.Equal(chain, []string{"parse", "visit", "each"}) {
		t.Errorf("%v", chain)
	}
	if v := r.Chain[1]; v.Calls != 1 || v.Recursive != 400 || !near(v.TotalNs, 401*ms) || v.SelfNs != v.TotalNs {
		t.Errorf("%+v", v)
	}
	if f := r.Findings[0]; f.Method != "visit" || f.Calls != 401 || f.UsualCalls != 4 {
		t.Errorf("%+v", f)
	}
}

func TestNoCalls(t *testing.T) {
	s := &story{t: t}
	s.thread(51, "worker").run(ms)()
	r := s.analyze(Options{Signatures: Builtin()})
	if r.Moment != nil || len(r.Explanation) != 1 {
		t.Errorf("%+v", r)
	}
	b, err := json.Marshal(r)
	if err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v", b, err)
	}
}

// The sums by cause are those that the report gets by state.
func TestAgreesWithReport(t *testing.T) {
	s := commits(t, func(a *actor) []func() {
		return []func(){a.fsync(20*ms, 2), a.preempted(ms), a.sleep(ms, 51), a.fault(2 * ms), a.block(3 * ms)}
	})
	tr := s.load()
	r, err := Analyze(tr, Options{Top: 100})
	if err != nil {
		t.Fatal(err)
	}
	states := statesOf(t, tr)
	if len(r.Methods) != len(states) {
		t.Errorf("%d methods, %d", len(r.Methods), len(states))
	}
	for _, m := range r.Methods {
		by := map[string]int64{}
		for cause, ns := range m.Self {
			switch cause {
			case "fsync", "major_fault", "read", "write", "other_io":
				cause = "blocked"
			}
			by[cause] += ns
		}
		for state, ns := range states[m.Method] {
			if by[state] != ns {
				t.Errorf("%s: %s %d, the report says %d", m.Method, state, by[state], ns)
			}
		}
	}
}
