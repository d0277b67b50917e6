package estimate

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"braid/compare/result"
	"braid/compare/workload"
)

// truth is what a synthetic machine does: ns a call of the baseline and of a trace point, and what disturbs them.
type truth struct {
	base, point float64
	byAlign     map[int]float64 // ns that a call of every arm takes more at an alignment
	launchSD    float64         // ns that chance gives a process for its life
	noise       float64         // standard deviation of a sample, as a share
	drift       float64         // how much slower everything is at the end, as a share
	outliers    float64         // share of samples that take three times as long
}

var aligns = []int{0, 16, 32, 48}

const launches, rounds, calls = 15, 3, 1_000_000

// synthesize makes the study that such a machine would give. Arms are baseline, baseline2, clock (a tenth cheaper than the
// stub) and stub-on.
func synthesize(tr truth, seed uint64) *result.Study {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &result.Study{Schema: result.Schema, Method: result.Method{Confidence: 0.95, Margin: 0.03, Aligns: aligns}}
	s.Machine.Clusters = []result.Cluster{{Name: "all"}}
	for _, a := range []struct {
		name         string
		points, cost float64
	}{{Baseline, 0, 0}, {Again, 0, 0}, {Clock, 2, tr.point * 0.9}, {StubOn, 2, tr.point}} {
		s.Arms = append(s.Arms, result.Arm{Name: a.name, Points: a.points, Ran: true})
		r := result.Series{Arm: a.name, Workload: workload.Listing, Cluster: "all"}
		for l := range launches {
			luck := tr.launchSD * rng.NormFloat64()
			for k := range rounds {
				for _, al := range aligns {
					ns := tr.base + tr.byAlign[al] + a.points*a.cost + luck
					ns *= 1 + tr.noise*rng.NormFloat64() + tr.drift*float64(l)/launches
					if rng.Float64() < tr.outliers {
						ns *= 3
					}
					r.Samples = append(r.Samples, result.Sample{Launch: l, Round: k, Align: al, Calls: calls, WallNS: int64(ns * calls * 1.01), CPUNS: int64(ns * calls)})
				}
			}
		}
		s.Series = append(s.Series, r)
	}
	return s
}

var plain = truth{base: 2, point: 9.7, byAlign: map[int]float64{16: 0.3, 48: -0.2}, launchSD: 0.05, noise: 0.01}

func TestRecoversWhatWasPutIn(t *testing.T) {
	e := Of(synthesize(plain, 1))
	if len(e.Rows) != 4 {
		t.Fatalf("%d rows", len(e.Rows))
	}
	stub := e.Find(StubOn, workload.Listing, 0, "all")
	for name, c := range map[string]struct {
		v    Value
		want float64
	}{
		"a call":   {stub.Call, 2 + 0.025 + 19.4},
		"a point":  {stub.Point, 9.7},
		"added":    {stub.Added, 19.4},
		"overhead": {stub.Overhead, 19.4 / 2.025},
		"to clock": {stub.ToClock, 1 / 0.9},
		"wall":     {stub.WallCall, 21.425 * 1.01},
	} {
		if !c.v.OK || math.Abs(c.v.Median/c.want-1) > 0.02 || c.v.Low > c.v.Median || c.v.High < c.v.Median || c.v.High-c.v.Low > 0.05*c.want {
			t.Errorf("%s: %+v, want %v", name, c.v, c.want)
		}
	}
	if stub.ToStub.OK {
		t.Error("the stub is compared with itself")
	}
	if !stub.IsSlower || stub.IsNotInferior || stub.Effect < 10 || !stub.AboveNoise {
		t.Errorf("the stub is not found to be slower: %+v", stub)
	}
	if len(stub.Aligns) != 4 || stub.Aligns[0].Count != launches || stub.Launches != launches || stub.Samples != launches*rounds*4 || stub.Dropped != 0 {
		t.Errorf("the stub has alignments %+v, %d launches, %d samples, %d dropped", stub.Aligns, stub.Launches, stub.Samples, stub.Dropped)
	}
	again := e.Find(Again, workload.Listing, 0, "all")
	if again.Point.OK || again.ToClock.OK || !again.Added.OK || math.Abs(again.Added.Median) > 0.1 || again.AboveNoise {
		t.Errorf("the baseline against itself: %+v", again)
	}
	base := e.Find(Baseline, workload.Listing, 0, "all")
	if base.Added.OK || base.Overhead.OK || !base.Call.OK || base.Slower.OK {
		t.Errorf("the baseline: %+v", base)
	}
}

func TestDeterministic(t *testing.T) {
	a, b := Of(synthesize(plain, 4)), Of(synthesize(plain, 4))
	if !reflect.DeepEqual(a, b) {
		t.Error("the same result gave two estimates")
	}
}

// Drift and outliers, which real machines have, must not move a figure.
func TestRobust(t *testing.T) {
	for name, change := range map[string]func(*truth){
		"drift":    func(tr *truth) { tr.drift = 0.02 },
		"outliers": func(tr *truth) { tr.outliers = 0.05 },
	} {
		tr := plain
		change(&tr)
		e := Of(synthesize(tr, 2))
		if p := e.Find(StubOn, workload.Listing, 0, "all").Point; !p.OK || math.Abs(p.Median/9.7-1) > 0.03 {
			t.Errorf("%s: a point costs %+v, want 9.7", name, p)
		}
	}
}

// Of many studies of the same machine, 95 in 100 intervals hold the truth, and two studies agree.
func TestIntervalsCover(t *testing.T) {
	const studies = 40
	point, ratio, agree := 0, 0, 0
	var last Value
	for i := range studies {
		stub := Of(synthesize(plain, uint64(100+i))).Find(StubOn, workload.Listing, 0, "all")
		if stub.Point.Low <= 9.7 && 9.7 <= stub.Point.High {
			point++
		}
		if stub.ToClock.Low <= 1/0.9 && 1/0.9 <= stub.ToClock.High {
			ratio++
		}
		if i > 0 && stub.Point.Low <= last.High && last.Low <= stub.Point.High {
			agree++
		}
		last = stub.Point
	}
	t.Logf("of %d intervals, %d hold the cost, %d the ratio; %d pairs overlap", studies, point, ratio, agree)
	if point < studies*88/100 || ratio < studies*88/100 || agree < (studies-1)*95/100 {
		t.Errorf("of %d intervals, %d hold the cost, %d the ratio; %d pairs of studies overlap", studies, point, ratio, agree)
	}
}

// A stub that is off costs nothing here: it must not be called slower more often than the tests' level says.
func TestNoFalseAlarm(t *testing.T) {
	tr := plain
	tr.point = 0
	slower, inferior := 0, 0
	for i := range 40 {
		stub := Of(synthesize(tr, uint64(500+i))).Find(StubOn, workload.Listing, 0, "all")
		if stub.IsSlower {
			slower++
		}
		if !stub.IsNotInferior {
			inferior++
		}
	}
	if slower > 6 || inferior > 6 {
		t.Errorf("an arm without cost is slower in %d of 40 studies, and not shown to be non-inferior in %d", slower, inferior)
	}
}

func series(s *result.Study, arm string) *result.Series {
	i := slices.IndexFunc(s.Series, func(r result.Series) bool { return r.Arm == arm })
	return &s.Series[i]
}

func TestWhatIsNotUsed(t *testing.T) {
	s := synthesize(plain, 3)
	stub := series(s, StubOn)
	for i := range stub.Samples {
		if stub.Samples[i].Launch == 2 {
			stub.Samples[i].CPUNS *= 50
			stub.Samples[i].Discarded = "stolen"
		}
	}
	// The last launch was broken off after its first alignment, the one before it after three.
	stub.Samples = slices.DeleteFunc(stub.Samples, func(x result.Sample) bool {
		return x.Launch == launches-1 && x.Align > 0 || x.Launch == launches-2 && x.Align == 48
	})
	row := Of(s).Find(StubOn, workload.Listing, 0, "all")
	if row.Launches != launches-2 || row.Dropped != rounds*4+rounds || math.Abs(row.Point.Median/9.7-1) > 0.02 {
		t.Errorf("%d launches, %d dropped, %+v", row.Launches, row.Dropped, row.Point)
	}

	stub.Failure = "12 of 13 events were recorded"
	e := Of(s)
	if row = e.Find(StubOn, workload.Listing, 0, "all"); row.Failure == "" || row.Point.OK || row.Call.OK {
		t.Errorf("a failed arm has a figure: %+v", row)
	}
	series(s, Baseline).Failure = "died"
	if row = Of(s).Find(Clock, workload.Listing, 0, "all"); row.Failure == "" || row.Point.OK {
		t.Errorf("an arm without a baseline has a figure: %+v", row)
	}
	s = synthesize(plain, 3)
	for i := range series(s, Clock).Samples {
		series(s, Clock).Samples[i].Discarded = "stolen"
	}
	if row = Of(s).Find(Clock, workload.Listing, 0, "all"); row.Failure == "" {
		t.Errorf("an arm whose samples were all discarded: %+v", row)
	}
}

// A launch that lacks the slowest alignment does not look faster for it.
func TestMissingAlignment(t *testing.T) {
	tr := truth{base: 2, point: 10, byAlign: map[int]float64{48: 8}}
	s := synthesize(tr, 1)
	for i := range s.Series {
		r := &s.Series[i]
		r.Samples = slices.DeleteFunc(r.Samples, func(x result.Sample) bool { return x.Launch%2 == 1 && x.Align == 48 })
	}
	if c := Of(s).Find(StubOn, workload.Listing, 0, "all").Call; c.Median != 24 || c.Low != 24 || c.High != 24 {
		t.Errorf("a call takes %+v, want 24 always", c)
	}
}

// Of the user's own program nobody knows the calls: what is recorded are its trace points.
func TestCommand(t *testing.T) {
	s := synthesize(plain, 6)
	for i := range s.Series {
		r := &s.Series[i]
		r.Workload = workload.Command
		for j := range r.Samples {
			x := &r.Samples[j]
			x.Calls = 1
			if r.Arm == StubOn {
				x.Expected, x.Recorded = 2*calls, 2*calls
			}
		}
	}
	e := Of(s)
	stub := e.Find(StubOn, workload.Command, 0, "all")
	if !stub.Wall || math.Abs(stub.Point.Median/9.8-1) > 0.02 || stub.ToClock.OK || math.Abs(stub.Call.Median/(21.425*1.01*calls)-1) > 0.02 {
		t.Errorf("%+v", stub)
	}
	if c := e.Find(Clock, workload.Command, 0, "all"); c.Point.OK {
		t.Errorf("what records nothing has trace points: %+v", c)
	}
}

func TestBox(t *testing.T) {
	b := boxOf([]float64{1, 2, 3, 4, 5, 6, 7, 8, 100})
	if b.Median != 5 || b.Q1 != 3 || b.Q3 != 7 || b.Low != 1 || b.High != 8 || !slices.Equal(b.Outliers, []float64{100}) || b.N != 9 {
		t.Errorf("%+v", b)
	}
}
