package study

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"braid/compare/arm"
	"braid/compare/estimate"
	"braid/compare/machine"
	"braid/compare/result"
	"braid/compare/workload"
)

// world is a synthetic machine: it has its own clock, and arms whose costs are known.
type world struct {
	t        time.Time
	rng      *rand.Rand
	base     float64 // ns of a call without work
	noise    float64 // standard deviation of a sample, as a share
	luck     float64 // of a process, in ns a call
	outliers float64 // share of samples that take three times as long
	drift    float64 // how much slower everything gets in a minute, as a share
	steal    float64 // share of samples during which 10 ms are stolen
	stolen   int64
	opened   int
	closed   int
	runs     int
	order    []string // arms in the order of their measurements
	cancel   func()   // called after so many runs, if set
	after    int
}

func newWorld(seed uint64) *world {
	return &world{t: time.Unix(1000, 0), rng: rand.New(rand.NewPCG(seed, 9)), base: 2, noise: 0.01, luck: 0.01}
}

func (w *world) Read(int) machine.Condition { return machine.Condition{StolenNS: w.stolen} }

// fake is an arm of a world.
type fake struct {
	w       *world
	name    string
	point   float64 // ns
	lose    int     // the measurement, counted from 1, that loses an event
	die     int     // the measurement that fails
	late    bool
	facts   map[string]string
	cold    int // measurements in which a process gets a good deal faster
	attach  time.Duration
	refuses error
}

func (f *fake) arm(group string, points float64) *arm.Arm {
	return &arm.Arm{Name: f.name, Title: f.name, Group: group, Points: points, Workloads: []string{workload.Listing, workload.Matrix, workload.Command},
		Open: func(_ context.Context, _ *arm.Env, w arm.Work) (arm.Session, error) {
			if f.refuses != nil {
				return nil, f.refuses
			}
			f.w.opened++
			return &session{fake: f, points: points, luck: f.w.luck * f.w.rng.NormFloat64()}, nil
		}}
}

type session struct {
	*fake
	points float64
	luck   float64
	runs   int
	total  uint64
}

func (s *session) Run(_ context.Context, r workload.Request) (arm.Measured, error) {
	s.runs++
	s.w.runs++
	s.w.order = append(s.w.order, s.name)
	if s.w.cancel != nil && s.w.runs == s.w.after {
		s.w.cancel()
	}
	if s.runs == s.die {
		return arm.Measured{}, errors.New("killed by a signal")
	}
	calls := max(10, r.Calls/10*10)
	ns := s.w.base + 5*float64(r.Parameter) + 0.1*float64(r.Align)/16 + s.points*s.point + s.luck
	minute := s.w.t.Sub(time.Unix(1000, 0)).Minutes()
	ns *= math.Exp(s.w.noise*s.w.rng.NormFloat64()) * (1 + s.w.drift*minute)
	if s.cold > 0 {
		ns *= 1 + 2*math.Exp(-float64(s.runs)/float64(s.cold))
	}
	if s.w.rng.Float64() < s.w.outliers {
		ns *= 3
	}
	took := int64(ns * float64(calls))
	m := arm.Measured{Reply: workload.Reply{Calls: calls, WallNS: took + 1000, CPUNS: took}}
	if s.w.rng.Float64() < s.w.steal {
		s.w.stolen += 10_000_000
		m.WallNS += 10_000_000
		m.CPUNS *= 3
	}
	s.w.t = s.w.t.Add(time.Duration(m.WallNS) + 200*time.Microsecond + s.attach)
	if s.points > 0 {
		n := uint64(s.points * float64(calls))
		s.total += n
		if !s.late {
			m.Expected, m.Recorded = n, n
		}
		if s.runs == s.lose {
			m.Recorded--
		}
	}
	return m, nil
}

func (s *session) Facts() map[string]string { return s.facts }
func (s *session) Close() error             { s.w.closed++; s.w.t = s.w.t.Add(10 * time.Millisecond); return nil }

// lateSession counts at the end, and loses an event if the arm should lose any.
type lateSession struct{ *session }

func (s lateSession) Total() (uint64, uint64, error) { return s.total, s.total - 1, nil }

// cast is the arms of a study: names to costs of a point in ns.
func (w *world) cast() map[string]*fake {
	return map[string]*fake{
		estimate.Baseline: {w: w, name: estimate.Baseline},
		estimate.Again:    {w: w, name: estimate.Again},
		estimate.Clock:    {w: w, name: estimate.Clock, point: 9},
		estimate.StubOn:   {w: w, name: estimate.StubOn, point: 9.7},
		"probe":           {w: w, name: "probe", point: 400, attach: 5 * time.Millisecond, facts: map[string]string{"class": "nop", "site": "nop", "kernel": "new"}},
	}
}

func (w *world) options(c map[string]*fake) Options {
	o := Options{Watch: w, Seconds: 60, Seed: 1, Quick: true, Env: &arm.Env{Root: true}, Now: func() time.Time { return w.t },
		Clusters: []result.Cluster{{Name: "all", CPUs: []int{0, 1}, PinnedTo: 1}},
		Loads: []Load{{Name: workload.Listing, Parameters: []int64{0, 100}, Aligns: []int{0, 16, 32, 48}, Sample: 4 * time.Millisecond,
			MinCalls: 500, Rounds: 2, Weight: 1}}}
	o.Machine = result.Machine{Arch: "amd64", CPUs: 2, CounterSteady: true, Clusters: o.Clusters}
	groups := map[string]string{estimate.Baseline: result.GroupFloor, estimate.Again: result.GroupFloor, estimate.Clock: result.GroupFloor,
		estimate.StubOn: result.GroupInline}
	for name, f := range c {
		points := 2.0
		if f.point == 0 {
			points = 0
		}
		group := groups[name]
		if group == "" {
			group = result.GroupProbe
		}
		o.Arms = append(o.Arms, f.arm(group, points))
	}
	arm.Sort(o.Arms)
	return o
}
