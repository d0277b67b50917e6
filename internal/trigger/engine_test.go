package trigger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// history is what one leaf is told, by target and time. For an occurrence true says that it met the limit; for a level
// false says that it no longer does.
type history map[int]map[uint64]bool

// reference decides rules from whole histories, moment by moment, by the definitions in Engine's comment.
type reference struct {
	end    uint64
	leaves map[*Condition]history
}

// observed is when a leaf is true from one target's observations.
func (r *reference) observed(c *Condition, target int) []bool {
	out := make([]bool, r.end+1)
	on := false
	for t := range out {
		met, told := r.leaves[c][target][uint64(t)]
		if c.level() {
			if told {
				on = met
			}
			out[t] = on
		} else if told && met {
			for k := t; k < len(out) && k <= t+int(c.lasting()); k++ {
				out[k] = true
			}
		}
	}
	return out
}

// longer makes each moment of truth count for a while.
func longer(in []bool, within time.Duration) []bool {
	out := slices.Clone(in)
	for t, v := range in {
		for k := t; v && k < len(in) && k <= t+int(within); k++ {
			out[k] = true
		}
	}
	return out
}

func (r *reference) truth(c *Condition, target int) []bool {
	base := make([]bool, r.end+1)
	if len(c.Members) == 0 {
		own, sys := longer(r.observed(c, target), c.Within), longer(r.observed(c, 0), c.Within)
		for t := range base {
			base[t] = own[t] || sys[t]
		}
	} else {
		count := make([]int, len(base))
		for _, m := range c.Members {
			for t, v := range longer(r.truth(m, target), c.Within) {
				if v {
					count[t]++
				}
			}
		}
		for t, n := range count {
			base[t] = n == len(c.Members) || c.Kind == Any && n > 0
		}
	}
	out, since := make([]bool, len(base)), 0
	for t, v := range base {
		if !v {
			since = t + 1
		}
		out[t] = v && t-since >= int(c.For)
	}
	return out
}

func (r *reference) fires(rule *Rule, targets []int) (out []string) {
	truth, fired, ready := map[int][]bool{}, map[int]bool{}, map[int]int{}
	for _, p := range targets {
		truth[p] = r.truth(rule.When, p)
	}
	for t := range int(r.end) + 1 {
		for _, p := range targets {
			switch {
			case !truth[p][t]:
				fired[p] = false
			case fired[p] || p != 0 && truth[0][t] || t < ready[p]:
			default:
				fired[p], ready[p] = true, t+int(rule.Cooldown)
				out = append(out, fmt.Sprintf("%d:%d", t, p))
			}
		}
	}
	return out
}

// randomCondition makes one of few kinds with times of few ns.
func randomCondition(r *rand.Rand, depth int, id *int) *Condition {
	*id++
	c := &Condition{ID: *id, Kind: Fsync, Longer: 1}
	if r.IntN(3) == 0 {
		c.For = time.Duration(r.IntN(12))
	}
	if r.IntN(2) == 0 {
		c.Within = time.Duration(r.IntN(12))
	}
	switch k := r.IntN(6); {
	case depth > 0 && k < 3:
		c.Kind = []Kind{All, Any}[r.IntN(2)]
		for range 2 + r.IntN(2) {
			c.Members = append(c.Members, randomCondition(r, depth-1, id))
		}
	case k == 3:
		c.Kind, c.Above = Thermal, 1
	case k == 4:
		c.Kind, c.Window, c.Stall = Pressure, time.Duration(r.IntN(9)), 1
	}
	return c
}

// TestEngineAgainstReference compares the engine, which looks only when something changes, with one that looks at each
// moment of a whole history.
func TestEngineAgainstReference(t *testing.T) {
	targets := []int{0, 1, 2}
	total := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		id := 0
		rule := &Rule{Name: "r", Cooldown: time.Duration(r.IntN(3) * r.IntN(20)), When: randomCondition(r, 2, &id)}
		ref := &reference{end: 400, leaves: map[*Condition]history{}}
		var leaves []*Condition
		rule.When.Leaves(func(c *Condition) {
			leaves = append(leaves, c)
			ref.leaves[c] = history{0: {}, 1: {}, 2: {}}
		})
		e := NewEngine(&Config{Rules: []*Rule{rule}})
		var got []string
		note := func(fired []Fired) {
			for _, f := range fired {
				got = append(got, fmt.Sprintf("%d:%d", f.Time, f.Target))
			}
		}
		often := r.IntN(3)
		for now := uint64(1); now <= ref.end; now++ {
			switch {
			case r.IntN(4) == 0: // at most one thing at a time
				c, p := leaves[r.IntN(len(leaves))], targets[r.IntN(3)]
				met := r.IntN(3) > 0
				ref.leaves[c][p][now] = met
				o := Observation{Time: now, Target: p, Kind: c.Kind, Condition: c.ID}
				if met {
					o.Value = 2
				}
				note(e.Observe(o))
			case often > 0 && r.IntN(often*8) == 0: // ticks say nothing new
				note(e.Tick(now))
			}
		}
		note(e.Tick(ref.end))
		want := ref.fires(rule, targets)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: fired at %v, want %v (time:target)\n%s", seed, got, want, tree(rule.When, "  "))
		}
		total += len(want)
	}
	if total < 10000 {
		t.Errorf("only %d times something fired: the sequences test little", total)
	}
}

func tree(c *Condition, indent string) string {
	s := fmt.Sprintf("%s%d %s for %d within %d lasting %d\n", indent, c.ID, c.Kind, c.For, c.Within, c.lasting())
	for _, m := range c.Members {
		s += tree(m, indent+"  ")
	}
	return s
}

func engineFor(t *testing.T, triggers string) *Engine {
	t.Helper()
	c, err := Parse("test", []byte("version: 1\nprograms: [{name: \"*\"}]\ntriggers:\n"+triggers))
	if err != nil {
		t.Fatal(err)
	}
	return NewEngine(c)
}

func TestFiredSaysWhatWasMeasured(t *testing.T) {
	e := engineFor(t, `
  - name: slow-disk
    severity: 4
    cooldown: 10s
    all:
      - fsync: {longer: 100ms}
      - pressure: {resource: io, stall: 150ms}
`)
	if f := e.Observe(Observation{Time: 5e9, Target: 7, Tid: 8, Kind: Fsync, Value: 312e6}); len(f) != 0 {
		t.Fatalf("fired %v from one of two conditions", f)
	}
	f := e.Observe(Observation{Time: 5.5e9, Kind: Pressure, Subject: "io", Value: 200e6})
	if len(f) != 1 || f[0].Target != 7 || f[0].Time != 5.5e9 || f[0].Rule.Name != "slow-disk" {
		t.Fatalf("fired %+v, want slow-disk for process 7", f)
	}
	if want := "fsync took 312ms (limit 100ms); io pressure: some tasks stalled for 200ms within 2s"; f[0].Reason != want {
		t.Errorf("reason %q, want %q", f[0].Reason, want)
	}
	if v := f[0].Values; v["fsync_ns"] != 312e6 || v["fsync_limit_ns"] != 100e6 || v["io_pressure_ns"] != 200e6 || v["io_pressure_limit_ns"] != 150e6 {
		t.Errorf("values %v", v)
	}
	if f := e.Observe(Observation{Time: 9e9, Target: 7, Kind: Fsync, Value: 312e6}); len(f) != 0 {
		t.Errorf("fired %+v: the pressure is over", f)
	}
	e.Observe(Observation{Time: 9.1e9, Kind: Pressure, Subject: "io", Value: 200e6})
	if s := e.Stats(); s.Suppressed["slow-disk"] != 1 || s.Fired["slow-disk"] != 1 {
		t.Errorf("stats %+v, want one that fired and one in the cooldown", s)
	}
	if f := e.Tick(15.5e9); len(f) != 0 {
		t.Errorf("fired %+v after the cooldown, though all is over", f)
	}
	if n := len(e.rules[0].all); n != 1 {
		t.Errorf("%d instances are kept, want the system's alone", n)
	}
}

func TestPatternsChooseObservations(t *testing.T) {
	e := engineFor(t, `
  - {name: m, cooldown: 0s, method: {name: "draw*", longer: 1ms}}
  - {name: p, cooldown: 0s, program: {why: "slow*"}}
  - {name: s, cooldown: 0s, signal: SIGUSR1}
  - {name: c, cooldown: 0s, crash: true}
`)
	now := uint64(0)
	for _, c := range []struct {
		o    Observation
		want string
	}{
		{Observation{Kind: Method, Subject: "drawAll(int)", Value: 1e6}, "m"},
		{Observation{Kind: Method, Subject: "drawAll(int)", Value: 1e6 - 1}, ""},
		{Observation{Kind: Method, Subject: "redraw", Value: 1e9}, ""},
		{Observation{Kind: Method, Condition: 2, Subject: "draw", Value: 1e9}, ""},
		{Observation{Kind: ProgramAsks, Subject: "slow start"}, "p"},
		{Observation{Kind: ProgramAsks, Subject: "fast"}, ""},
		{Observation{Kind: Signal, Value: 10}, "s"},
		{Observation{Kind: Signal, Value: 12}, ""},
		{Observation{Kind: Crash, Value: 11}, "c"},
	} {
		now += 1e6
		c.o.Time, c.o.Target = now, 3
		got := ""
		for _, f := range e.Observe(c.o) {
			got += f.Rule.Name
		}
		if got != c.want {
			t.Errorf("%+v fired %q, want %q", c.o, got, c.want)
		}
	}
}

// TestEngineMemoryIsBounded sends observations of many processes that never end.
func TestEngineMemoryIsBounded(t *testing.T) {
	e := engineFor(t, `
  - {name: a, cooldown: 1h, fsync: {longer: 1ms}, within: 1h}
`)
	for i := range 6000 {
		e.Observe(Observation{Time: uint64(i + 1), Target: i + 1, Kind: Fsync, Value: 1e9})
	}
	if s := e.rules[0]; len(s.all) > maxTargets+1 || len(s.cooled) > 4*maxTargets || e.Stats().Evicted == 0 {
		t.Errorf("%d processes and %d cooldowns are kept, %d evicted", len(s.all), len(s.cooled), e.Stats().Evicted)
	}
	for i := range 6000 {
		e.Forget(i + 1)
	}
	if s := e.rules[0]; len(s.all) != 1 || len(s.cooled) != 0 {
		t.Errorf("%d processes and %d cooldowns are left", len(s.all), len(s.cooled))
	}
}
