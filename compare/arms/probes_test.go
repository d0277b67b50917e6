package arms

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"braid/compare/arm"
	"braid/compare/probe"
	"braid/compare/result"
	"braid/compare/workload"
)

func probeEnvironment(t *testing.T) *arm.Env {
	t.Helper()
	dir := t.TempDir()
	set, err := workload.Unpack(dir, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	return &arm.Env{Dir: dir, Workloads: set, Root: true, Cache: map[string]string{}}
}

func probes() (out []*arm.Arm) {
	for _, a := range arm.All() {
		if a.Group == result.GroupProbe && !strings.HasSuffix(a.Name, "-all") {
			out = append(out, a)
		}
	}
	return out
}

// available says whether the running kernel has what an arm needs; if not, that must be for its version.
func available(t *testing.T, env *arm.Env, a *arm.Arm) bool {
	t.Helper()
	err := a.Check(t.Context(), env)
	var u *arm.Unavailable
	if err == nil || errors.As(err, &u) && errors.Is(probe.Supported(probe.Kind(strings.Split(a.Name, "-")[0])), probe.ErrNoKind) {
		return err == nil
	}
	t.Fatalf("%s: %v", a.Name, err)
	return false
}

// Each arm records each call of its own process once, at each alignment, also where it has to empty its ring in between; and
// the functions are as they were once its probes are out.
func TestProbesRecordExactly(t *testing.T) {
	env := probeEnvironment(t)
	classes := map[string]bool{}
	for i, a := range probes() {
		if !available(t, env, a) {
			continue
		}
		for j, w := range a.Workloads {
			if w == workload.Call && i > 1 {
				continue // it calls the same functions as listing
			}
			testProbe(t, env, a, arm.Work{Workload: w, CPU: 0, Aligns: []int{0, 48}}, (i+j)%2, classes)
		}
	}
	if left, err := filepath.Glob(env.Dir + "/probes-*"); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	kernel, err := probe.KernelVersion()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"single-stepped stp", "single-stepped mov"}
	if runtime.GOARCH == "amd64" {
		want = []string{"emulated push", "emulated nop", "single-stepped xor"}
		if kernel.Since(6, 18) {
			want = append(want, "nop turned into a call")
		}
	}
	for _, c := range want {
		if !classes[c] {
			t.Errorf("no arm is on %q: %v", c, classes)
		}
	}
}

// testProbe runs an arm twice at one of its alignments and once at the other.
func testProbe(t *testing.T, env *arm.Env, a *arm.Arm, w arm.Work, nth int, classes map[string]bool) {
	s, err := a.Open(t.Context(), env, w)
	if err != nil {
		t.Errorf("%s: %v", a.Name, err)
		return
	}
	predicted := s.Facts()[arm.FactClass]
	p := s.(*probing)
	p.ring = 4096 // records are taken in parts
	r := workload.Request{Parameter: 16, Align: w.Aligns[nth], Calls: 320}
	for i := range 3 { // what workloads don't round up
		m, err := s.Run(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
		if m.Calls != r.Calls || m.WallNS <= 0 || m.CPUNS <= 0 || m.Expected != uint64(m.Calls)*uint64(a.Points) || m.Recorded != m.Expected {
			t.Errorf("%s on %s: %+v", a.Name, w.Workload, m)
		}
		if i == 1 {
			r.Align, r.Calls = w.Aligns[1-nth], 480
		}
	}
	if _, err := s.Run(t.Context(), workload.Request{Align: 16, Calls: 10}); err == nil {
		t.Errorf("%s runs at an alignment that it was not opened for", a.Name)
	}
	if err := p.tracer.Detach(); err != nil {
		t.Errorf("%s: %v", a.Name, err)
	}
	states, _, err := probe.Look(p.process.PID(), p.process.Path(), slices.Concat(p.sites[0], p.sites[48]))
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(states, func(s probe.State) bool { return s != probe.Untouched }) {
		t.Errorf("%s left probes: %v", a.Name, states)
	}
	if reply, err := p.process.Run(r); err != nil || reply.Calls != r.Calls {
		t.Errorf("%s: without probes: %+v, %v", a.Name, reply, err)
	}
	if c, err := p.tracer.Take(); err != nil || c != (probe.Counts{}) {
		t.Errorf("%s goes on recording: %+v, %v", a.Name, c, err)
	}
	f := s.Facts()
	classes[f[arm.FactClass]] = true
	if f[arm.FactSite] == "" || f[arm.FactClass] != predicted {
		t.Errorf("%s was said to be %q, and is %v", a.Name, predicted, f)
	}
	t.Logf("%s on %s: %v", a.Name, w.Workload, f)
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", a.Name, err)
	}
}

// A workload that ends takes its arm along, and nothing else; nothing is left behind.
func TestProbeOfDeadWorkload(t *testing.T) {
	env := probeEnvironment(t)
	a := probes()[0]
	s, err := a.Open(t.Context(), env, arm.Work{Workload: workload.Listing, CPU: 0, Aligns: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	p := s.(*probing)
	victim, err := os.FindProcess(p.process.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), workload.Request{Calls: 10}); err == nil {
		t.Error("a dead workload was measured")
	}
	if err := s.Close(); err == nil {
		t.Error("nobody says that the workload was killed")
	}
	if n := p.tracer.Attached(); n != 0 {
		t.Errorf("%d links are left", n)
	}
}

func TestProbesNeedRoot(t *testing.T) {
	for _, a := range probes() {
		var u *arm.Unavailable
		if err := a.Check(t.Context(), &arm.Env{}); !errors.As(err, &u) || u.Next == "" {
			t.Errorf("%s without root: %v", a.Name, err)
		}
	}
}

// Few arms are part of a quick study, and names and titles tell them apart.
func TestProbeNames(t *testing.T) {
	quick, n := 0, 0
	for _, a := range probes() {
		n++
		if a.Quick {
			quick++
		}
		if p := strings.Split(a.Name, "-"); len(p) < 2 || p[1] != "count" && p[1] != "record" {
			t.Errorf("an arm is called %s", a.Name)
		}
	}
	if n != 32 || quick != 5 {
		t.Errorf("%d arms of probes, %d quick", n, quick)
	}
}

// What a point costs in each arm, in CPU time of the thread; only to look at.
func BenchmarkProbes(b *testing.B) {
	dir := b.TempDir()
	set, err := workload.Unpack(dir, runtime.GOARCH)
	if err != nil {
		b.Fatal(err)
	}
	env := &arm.Env{Dir: dir, Workloads: set, Root: true}
	for _, a := range probes() {
		b.Run(a.Name, func(b *testing.B) {
			if err := a.Check(b.Context(), env); err != nil {
				b.Skip(err)
			}
			s, err := a.Open(b.Context(), env, arm.Work{Workload: workload.Listing, CPU: 0, Aligns: []int{0}})
			if err != nil {
				b.Fatal(err)
			}
			var costs []float64
			for range 9 {
				m, err := s.Run(b.Context(), workload.Request{Calls: 2000})
				if err != nil {
					b.Fatal(err)
				}
				costs = append(costs, float64(m.CPUNS)/float64(m.Calls)/a.Points)
			}
			slices.Sort(costs)
			b.ReportMetric(costs[len(costs)/2], "ns/point")
			b.ReportMetric(0, "ns/op")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
