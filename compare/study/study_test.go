package study

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"braid/compare/arm"
	"braid/compare/estimate"
	"braid/compare/result"
	"braid/compare/workload"
)

func run(t *testing.T, ctx context.Context, o Options) *result.Study {
	t.Helper()
	s, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := result.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	if _, err := result.Read(strings.NewReader(b.String())); err != nil {
		t.Fatal(err)
	}
	return s
}

func point(s *result.Study, arm string) estimate.Value {
	r := estimate.Of(s).Find(arm, workload.Listing, 0, "all")
	if r == nil {
		return estimate.Value{}
	}
	return r.Point
}

func codes(s *result.Study) (out []string) {
	for _, w := range s.Warnings {
		out = append(out, w.Code)
	}
	return out
}

func info(t *testing.T, s *result.Study, name string) result.Arm {
	t.Helper()
	i := slices.IndexFunc(s.Arms, func(a result.Arm) bool { return a.Name == name })
	if i < 0 {
		t.Fatalf("there is no arm %s", name)
	}
	return s.Arms[i]
}

func TestStudyRecoversCosts(t *testing.T) {
	w := newWorld(1)
	s := run(t, t.Context(), w.options(w.cast()))
	for name, want := range map[string]float64{estimate.StubOn: 9.7, estimate.Clock: 9, "probe": 400} {
		if p := point(s, name); !p.OK || math.Abs(p.Median/want-1) > 0.02 || (p.High-p.Low)/2 > 0.03*want {
			t.Errorf("%s costs %+v, want %v", name, p, want)
		}
	}
	if !s.Complete || s.Why != "" || len(s.Warnings) != 0 || s.Method.Launches < 6 || w.opened != w.closed {
		t.Errorf("complete %v, %q, warnings %v, %d launches, %d opened, %d closed", s.Complete, s.Why, s.Warnings, s.Method.Launches, w.opened, w.closed)
	}
	if took := s.Ended.Sub(s.Started); took > 45*time.Second {
		t.Errorf("it took %v, although all intervals are narrow", took)
	}
	if a := info(t, s, "probe"); !a.Ran || a.Class != "nop" || a.Site != "nop" || a.Facts["kernel"] != "new" {
		t.Errorf("%+v", a)
	}
	// A probe's samples are short and of at least 500 calls; the baseline's take some milliseconds.
	for _, r := range s.Series {
		for _, x := range r.Samples {
			if x.Calls < 500 || r.Parameter == 0 && (x.WallNS < 2e6 || x.WallNS > 8e6) {
				t.Fatalf("%s %d: a sample of %d calls in %d ns", r.Arm, r.Parameter, x.Calls, x.WallNS)
			}
		}
	}
}

// Of many studies, 95 in 100 intervals hold what was put in, although the study stops when it likes what it sees.
func TestStudyIntervalsCover(t *testing.T) {
	const studies = 20
	hold, agree := 0, 0
	var last estimate.Value
	for i := range studies {
		w := newWorld(uint64(100 + i))
		w.luck, w.outliers = 0.05, 0.02
		c := w.cast()
		delete(c, "probe")
		o := w.options(c)
		o.Seed = uint64(i)
		o.Loads[0].Parameters = []int64{0}
		p := point(run(t, t.Context(), o), estimate.StubOn)
		if p.Low <= 9.7 && 9.7 <= p.High {
			hold++
		}
		if i > 0 && p.Low <= last.High && last.Low <= p.High {
			agree++
		}
		last = p
	}
	t.Logf("%d of %d intervals hold the cost, %d of %d pairs agree", hold, studies, agree, studies-1)
	if hold < studies*80/100 || agree < (studies-1)*95/100 {
		t.Errorf("%d of %d intervals hold the cost, %d of %d pairs agree", hold, studies, agree, studies-1)
	}
}

// What changes slowly is in all arms, and falls out.
func TestDrift(t *testing.T) {
	w := newWorld(2)
	w.drift = 0.05
	s := run(t, t.Context(), w.options(w.cast()))
	if p := point(s, estimate.StubOn); !p.OK || p.Median < 9.6 || p.Median > 9.7*1.06 {
		t.Errorf("a stub costs %+v", p)
	}
	if r := estimate.Of(s).Find(estimate.StubOn, workload.Listing, 0, "all").ToClock; !r.OK || math.Abs(r.Median*9/9.7-1) > 0.01 {
		t.Errorf("a stub costs %+v clock reads", r)
	}
}

// Arms take turns in an order that is drawn anew, and the seed decides it.
func TestOrder(t *testing.T) {
	order := func(seed uint64) []string {
		w := newWorld(1)
		o := w.options(w.cast())
		o.Seed, o.MaxLaunches = seed, 2
		run(t, t.Context(), o)
		return w.order
	}
	a, b, c := order(1), order(1), order(2)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("the seed does not decide the order")
	}
	turns := map[string]int{}
	for i := len(a) - 50; i < len(a); i++ { // of the last round
		turns[a[i-1]+" "+a[i]]++
	}
	if len(turns) < 10 {
		t.Errorf("arms follow each other always the same way: %v", turns)
	}
}

func TestDisturbed(t *testing.T) {
	w := newWorld(3)
	w.steal = 0.1
	s := run(t, t.Context(), w.options(w.cast()))
	if p := point(s, estimate.StubOn); !p.OK || math.Abs(p.Median/9.7-1) > 0.02 {
		t.Errorf("a stub costs %+v", p)
	}
	marked, counted := 0, 0
	for _, r := range s.Series {
		for _, x := range r.Samples {
			if x.Discarded != "" {
				marked++
			}
			if (x.StolenNS > 0) != (x.Discarded == stolen) {
				t.Fatalf("%+v", x)
			}
		}
	}
	for _, d := range s.Discards {
		if d.Why != stolen || d.Workload != workload.Listing || d.Arm == "" {
			t.Errorf("%+v", d)
		}
		counted += d.Samples
	}
	if marked == 0 || marked != counted {
		t.Errorf("%d samples are marked, %d counted", marked, counted)
	}
}

func TestWarmUp(t *testing.T) {
	w := newWorld(4)
	c := w.cast()
	c[estimate.StubOn].cold = 3
	s := run(t, t.Context(), w.options(c))
	if p := point(s, estimate.StubOn); !p.OK || math.Abs(p.Median/9.7-1) > 0.02 {
		t.Errorf("a stub that begins cold costs %+v", p)
	}
	if s.Method.WarmUps == 0 {
		t.Error("nothing was warmed up")
	}
	w = newWorld(4)
	w.noise = 0.5
	if s = run(t, t.Context(), w.options(w.cast())); s.Method.Unsteady == 0 || !slices.Contains(codes(s), "noisy") {
		t.Errorf("a noisy machine was steady: %d, %v", s.Method.Unsteady, codes(s))
	}
	if s.Complete && s.Why == "" {
		t.Error("a noisy machine gave narrow intervals")
	}
}

func TestFailures(t *testing.T) {
	w := newWorld(5)
	c := w.cast()
	c[estimate.StubOn].lose = 12
	c["probe"].die = 12
	c["absent"] = &fake{w: w, name: "absent", point: 1, refuses: &arm.Unavailable{Why: "it is not installed", Next: "install it"}}
	s := run(t, t.Context(), w.options(c))
	e := estimate.Of(s)
	for name, want := range map[string]string{estimate.StubOn: "events were recorded", "probe": "killed by a signal"} {
		failed := false
		for _, r := range e.Rows {
			if r.Arm == name && r.Failure != "" {
				failed = failed || strings.Contains(r.Failure, want) && !r.Point.OK && !r.Call.OK
			}
		}
		if !failed {
			t.Errorf("%s did not fail with %q", name, want)
		}
	}
	if p := point(s, estimate.Clock); !p.OK {
		t.Error("others failed with them")
	}
	if a := info(t, s, "absent"); a.Ran || a.WhyNot != "it is not installed" || a.NextStep != "install it" {
		t.Errorf("%+v", a)
	}
	if !slices.Contains(codes(s), "failed") || w.opened != w.closed {
		t.Errorf("%v; %d opened, %d closed", codes(s), w.opened, w.closed)
	}
}

func TestLate(t *testing.T) {
	w := newWorld(6)
	c := w.cast()
	c["probe"].late = true
	o := w.options(c)
	probe := o.Arms[slices.IndexFunc(o.Arms, func(a *arm.Arm) bool { return a.Name == "probe" })]
	open := probe.Open
	probe.Open = func(ctx context.Context, e *arm.Env, wk arm.Work) (arm.Session, error) {
		s, err := open(ctx, e, wk)
		return lateSession{s.(*session)}, err
	}
	s := run(t, t.Context(), o)
	r := estimate.Of(s).Find("probe", workload.Listing, 0, "all")
	if r == nil || !strings.Contains(r.Failure, "events were recorded") || r.Point.OK {
		t.Errorf("%+v", r)
	}
	// Where it says that its counts are estimates, they are not held against it.
	w = newWorld(6)
	c = w.cast()
	c["probe"].lose, c["probe"].facts = 5, map[string]string{arm.FactEstimated: "the tool does not say"}
	s = run(t, t.Context(), w.options(c))
	if a := info(t, s, "probe"); !a.Estimated || !point(s, "probe").OK {
		t.Errorf("%+v", a)
	}
}

func TestInterrupted(t *testing.T) {
	w := newWorld(7)
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel, w.after = cancel, 400
	s := run(t, ctx, w.options(w.cast()))
	if s.Complete || s.Why != "interrupted" || w.opened != w.closed || w.runs > w.after {
		t.Errorf("complete %v, %q, %d opened, %d closed, %d measurements", s.Complete, s.Why, w.opened, w.closed, w.runs)
	}
	if p := point(s, estimate.StubOn); !p.OK {
		t.Error("what was sampled until then gives no figure")
	}
	w = newWorld(7)
	cancel()
	s, err := Run(ctx, w.options(w.cast()))
	if err != nil || s.Complete || len(s.Series) != 0 || info(t, s, estimate.StubOn).Ran {
		t.Errorf("%v, %+v", err, s)
	}
}

func TestTimeIsUp(t *testing.T) {
	w := newWorld(8)
	w.noise = 0.3
	o := w.options(w.cast())
	o.Seconds = 5
	s := run(t, t.Context(), o)
	if took := s.Ended.Sub(s.Started).Seconds(); took > 5.5 {
		t.Errorf("a study of 5 seconds took %v", took)
	}
	if !strings.Contains(s.Why, "time was up") {
		t.Errorf("%q", s.Why)
	}
}

// A bare system call is measured before and after everything, on the processor that is; what makes it dear is said.
func TestSystemCall(t *testing.T) {
	w := newWorld(1)
	o := w.options(w.cast())
	o.Seconds = 5
	o.Machine.MitigationNote = "meltdown (PTI)"
	runs, before := 0, []int{}
	o.Syscall = func(cpu int) (float64, error) {
		if cpu != 1 {
			t.Errorf("on processor %d", cpu)
		}
		before = append(before, w.runs-runs)
		runs = w.runs
		return 150 + float64(len(before)), nil
	}
	s := run(t, t.Context(), o)
	if c := s.Machine.Clusters[0]; c.SyscallNS != 151 || c.SyscallAfterNS != 152 || len(before) != 2 || before[0] != 0 || before[1] == 0 {
		t.Errorf("%+v, after %v measurements", c, before)
	}
	if !slices.Contains(codes(s), "mitigations") {
		t.Errorf("warnings: %v", codes(s))
	}
}

// An arm with which a run of a whole program takes too long is left out, and says so; the others have the time.
func TestTooLong(t *testing.T) {
	w := newWorld(13)
	c := w.cast()
	c["probe"].attach = 20 * time.Second
	o := w.options(c)
	o.Loads = []Load{CommandLoad([]string{"x"}, []string{"*"})}
	s := run(t, t.Context(), o)
	if a := info(t, s, "probe"); a.Ran || !strings.Contains(a.WhyNot, "a run takes 20 s") || a.NextStep == "" {
		t.Errorf("%+v", a)
	}
	if r := estimate.Of(s).Find(estimate.StubOn, workload.Command, 0, "all"); r == nil || r.Launches < 8 {
		t.Errorf("the stub: %+v", r)
	}
	if s.Method.Functions != nil {
		t.Errorf("functions: %v", s.Method.Functions)
	}
}

func TestNotRoot(t *testing.T) {
	w := newWorld(9)
	o := w.options(w.cast())
	o.Env.Root, o.MaxLaunches = false, 3
	s := run(t, t.Context(), o)
	if a := info(t, s, "probe"); a.Ran || !strings.Contains(a.WhyNot, "root") || a.NextStep == "" || !slices.Contains(codes(s), "not-root") {
		t.Errorf("%+v, %v", a, codes(s))
	}
}

func TestNoBaseline(t *testing.T) {
	w := newWorld(10)
	c := w.cast()
	c[estimate.Baseline].refuses = errors.New("no such file")
	if s, err := Run(t.Context(), w.options(c)); err == nil || !strings.Contains(err.Error(), "no such file") || s == nil {
		t.Errorf("%v", err)
	}
}

// Blocks share the time by weight, and each gets some.
func TestBlocks(t *testing.T) {
	w := newWorld(11)
	w.noise = 0.3 // never narrow
	o := w.options(w.cast())
	o.Loads = append(o.Loads, Load{Name: workload.Matrix, Parameters: []int64{16, 32}, Aligns: []int{0}, Sample: 10 * time.Millisecond, MinCalls: 500,
		Rounds: 1, Weight: 0.25, SameCalls: true})
	o.Clusters = []result.Cluster{{Name: "big", CPUs: []int{1}, PinnedTo: 1}, {Name: "little", CPUs: []int{0}, PinnedTo: 0}}
	o.Machine.Clusters = o.Clusters
	s := run(t, t.Context(), o)
	launches := map[string]int{}
	for _, r := range s.Series {
		for _, x := range r.Samples {
			k := r.Workload + " " + r.Cluster
			launches[k] = max(launches[k], x.Launch+1)
		}
		if r.Workload == workload.Matrix && r.Arm == estimate.StubOn {
			b := s.Series[slices.IndexFunc(s.Series, func(b result.Series) bool {
				return b.Arm == estimate.Baseline && b.Workload == r.Workload && b.Parameter == r.Parameter && b.Cluster == r.Cluster
			})]
			if r.Samples[0].Calls != b.Samples[0].Calls {
				t.Errorf("a stub was measured with %d calls, the baseline with %d", r.Samples[0].Calls, b.Samples[0].Calls)
			}
		}
	}
	if len(launches) != 4 || launches["listing big"] < 2*launches["matrix big"] || launches["matrix little"] < 1 {
		t.Errorf("%v", launches)
	}
}

// Arms that take long around each measurement get fewer samples, and everything still has a figure in time.
func TestSlowArms(t *testing.T) {
	w := newWorld(12)
	c := w.cast()
	for _, n := range []string{"slow-a", "slow-b", "slow-c"} {
		c[n] = &fake{w: w, name: n, point: 600, attach: 400 * time.Millisecond}
	}
	o := w.options(c)
	o.Seconds = 50
	o.Loads[0].Parameters = []int64{0, 1, 10, 100, 1000}
	s := run(t, t.Context(), o)
	if took := s.Ended.Sub(s.Started).Seconds(); took > 51 {
		t.Errorf("it took %v seconds", took)
	}
	e := estimate.Of(s)
	for _, r := range e.Rows {
		want := map[string]float64{"slow-a": 600, "slow-b": 600, "slow-c": 600, "probe": 400, estimate.StubOn: 9.7}[r.Arm]
		if r.Parameter == 0 && want > 0 && (!r.Point.OK || math.Abs(r.Point.Median/want-1) > 0.05) {
			t.Errorf("%s costs %+v after %d launches, want %v", r.Arm, r.Point, r.Launches, want)
		}
		if !strings.HasPrefix(r.Arm, "slow") && !r.Call.OK {
			t.Errorf("%s with %d has no figure", r.Arm, r.Parameter)
		}
	}
}

// By default, dear arms run where they tell something.
func TestDearArmsWhereTheyTell(t *testing.T) {
	where := map[*arm.Arm][]string{
		{Name: "stub-on", Group: result.GroupInline}:          {workload.Listing, workload.Call, workload.Matrix, workload.Startup, workload.Schedule, workload.IO},
		{Name: "uftrace", Group: result.GroupExternal}:        {workload.Call, workload.Startup, workload.Schedule, workload.IO},
		{Name: "pair-count-push", Group: result.GroupProbe}:   {workload.Listing, workload.Call, workload.Matrix, workload.Schedule, workload.IO},
		{Name: "multi-record-push", Group: result.GroupProbe}: {workload.Listing, workload.Matrix, workload.Schedule, workload.IO},
		{Name: "session-count-all", Group: result.GroupProbe}: {workload.Listing, workload.Matrix, workload.Startup, workload.Schedule, workload.IO},
	}
	for a, want := range where {
		var got []string
		for _, l := range Loads(false) {
			if l.Has(a) {
				got = append(got, l.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s runs %v by default, not %v", a.Name, got, want)
		}
	}
}

// What takes long may lose a little: other tracers' sessions would have no sample otherwise on a busy host.
func TestStolen(t *testing.T) {
	for _, c := range []struct {
		wall, took time.Duration
		stolen     int64
		want       string
	}{
		{4 * time.Millisecond, 5 * time.Millisecond, 0, ""},
		{4 * time.Millisecond, 5 * time.Millisecond, 10e6, stolen},
		{4 * time.Millisecond, 300 * time.Millisecond, 10e6, ""},
		{4 * time.Millisecond, 300 * time.Millisecond, 20e6, stolen},
		{6 * time.Second, 6 * time.Second, 200e6, ""},
		{6 * time.Second, 6 * time.Second, 400e6, stolen},
	} {
		b := &block{load: &Load{Name: workload.Startup}}
		s := result.Sample{WallNS: c.wall.Nanoseconds(), CPUNS: c.wall.Nanoseconds(), StolenNS: c.stolen}
		if got := b.disturbed(s, c.took, false); got != c.want {
			t.Errorf("%v in %v with %d ns stolen: %q, not %q", c.wall, c.took, c.stolen, got, c.want)
		}
	}
}
