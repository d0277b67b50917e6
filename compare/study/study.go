// Package study conducts a study: it runs arms on workloads and collects samples.
//
// # Method
//
//  1. A block is a workload on a cluster of processors. Blocks take turns, so that each gets its share of the time.
//  2. In each turn, a launch, the programs of all arms are started anew: what chance gives a process (where its memory lies)
//     differs between launches, and is not taken for the arm's cost.
//  3. In a launch each arm runs until the median of its last measurements is stable.
//  4. Then come rounds. In each round, for each parameter and each alignment of the measured function, all arms are measured one
//     after the other, in an order drawn anew, on the same processor. So what changes slowly (heat, other load) is in all of
//     them, and falls out of differences.
//  5. Before the first sample, calls are chosen for each arm so that a sample takes some milliseconds.
//  6. Around each sample frequency, heat and stolen time are read. A sample that was disturbed is kept in the result, marked, with
//     the reason, and taken again.
//  7. An arm is left out of further launches once its interval is narrow. The study ends when all are, or the time is up.
//
// An arm's error ends the arm on that workload, and never the study.
package study

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"braid/compare/arm"
	"braid/compare/machine"
	"braid/compare/result"
	"braid/compare/stats"
)

// Options say what to study. All fields are needed but those with a default.
type Options struct {
	Arms     []*arm.Arm // the baselines of all of them are among them
	Loads    []Load
	Clusters []result.Cluster // to measure on: PinnedTo of each
	Machine  result.Machine
	Env      *arm.Env
	Watch    Watcher // default: the machine is not watched
	// Syscall measures what a bare system call costs on a processor, ns. It is called before and after everything else.
	Syscall func(cpu int) (float64, error) // default: it is not measured

	Version     string
	Quick       bool
	Seconds     float64 // limit of the whole
	Margin      float64 // default 0.03
	Confidence  float64 // default 0.95
	StableShare float64 // default 0.05
	Width       float64 // default 0.02
	MinLaunches int     // default 8; no figure is taken for narrow before
	MaxLaunches int     // default: no limit
	Seed        uint64
	Command     []string
	Functions   []string // of Command, as Load's

	Now      func() time.Time // default time.Now
	Progress func(Progress)   // called between measurements, from Run's goroutine; default: not at all
}

// Watcher says what may disturb a measurement on a processor.
type Watcher interface {
	Read(cpu int) machine.Condition
}

type nobodyWatches struct{}

func (nobodyWatches) Read(int) machine.Condition { return machine.Condition{} }

// Progress is how far a study is.
type Progress struct {
	Workload string
	Cluster  string
	Launch   int // from 0
	Step     string
	Share    float64 // of the time, 0 to 1
}

// conductor is a study at work.
type conductor struct {
	Options
	rng      *rand.Rand
	began    time.Time
	deadline time.Time
	arms     []result.Arm // like Options.Arms
	blocks   []*block
	discards map[discard]int
	launches int
	warmUps  int
	unsteady int
}

type discard struct{ arm, workload, why string }

// errTime ends a launch when the time is up.
var errTime = errors.New("the time is up")

// Run conducts a study. The result is never nil: when the context ends it is what there is so far. The error says that there
// can be no figure at all, like a baseline that does not run.
func Run(ctx context.Context, o Options) (*result.Study, error) {
	c := &conductor{Options: o, discards: map[discard]int{}, rng: rand.New(rand.NewPCG(o.Seed, 0x6272616964))}
	c.defaults()
	c.began = c.Now()
	c.deadline = c.began.Add(time.Duration(c.Seconds * float64(time.Second)))
	// What hangs must not hang the study. Launches end by themselves before this.
	ctx, cancel := context.WithTimeout(ctx, time.Duration((c.Seconds*1.02+2)*float64(time.Second)))
	defer cancel()
	c.check(ctx)
	c.plan()
	c.floor(func(k *result.Cluster) *float64 { return &k.SyscallNS })
	for b := c.next(); b != nil && ctx.Err() == nil; b = c.next() {
		if err := c.launch(ctx, b); err != nil {
			break // the time is up
		}
	}
	c.floor(func(k *result.Cluster) *float64 { return &k.SyscallAfterNS })
	s := c.finish(ctx)
	if ctx.Err() != nil {
		return s, nil
	}
	return s, noBaseline(s)
}

// floor measures a system call on each processor that is studied, and keeps it in a field of the machine's cluster. What can't be measured
// stays 0.
func (c *conductor) floor(field func(*result.Cluster) *float64) {
	if c.Syscall == nil {
		return
	}
	for _, k := range c.Clusters {
		i := slices.IndexFunc(c.Machine.Clusters, func(m result.Cluster) bool { return m.Name == k.Name })
		if ns, err := c.Syscall(k.PinnedTo); err == nil && i >= 0 {
			*field(&c.Machine.Clusters[i]) = ns
		}
	}
}

func (c *conductor) defaults() {
	for _, d := range []struct {
		v *float64
		d float64
	}{{&c.Margin, 0.03}, {&c.Confidence, 0.95}, {&c.StableShare, 0.05}, {&c.Width, 0.02}} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	if c.MinLaunches == 0 {
		c.MinLaunches = 8
	}
	if c.Watch == nil {
		c.Watch = nobodyWatches{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
}

// check asks each arm whether it can run here.
func (c *conductor) check(ctx context.Context) {
	for _, a := range c.Arms {
		r := result.Arm{Name: a.Name, Title: a.Title, Group: a.Group, Baseline: a.Baseline, Points: a.Points}
		c.Progress(Progress{Step: "checking " + a.Name, Share: c.share()})
		var err error
		switch {
		case ctx.Err() != nil:
			err = &arm.Unavailable{Why: "the study was broken off"}
		case !slices.ContainsFunc(c.Loads, func(l Load) bool { return l.Has(a) }):
			err = &arm.Unavailable{Why: "it can not run any of the workloads"}
		case a.Group == result.GroupProbe && !c.Env.Root:
			err = &arm.Unavailable{Why: "probes need root", Next: "run braid compare as root"}
		case a.Check != nil:
			err = a.Check(ctx, c.Env)
		}
		r.Ran = err == nil
		r.WhyNot, r.NextStep = reasons(err)
		c.arms = append(c.arms, r)
	}
}

// reasons splits an error into why an arm can't run, and what to do.
func reasons(err error) (why, next string) {
	if u, ok := errors.AsType[*arm.Unavailable](err); ok {
		return u.Why, u.Next
	}
	if err != nil {
		return err.Error(), ""
	}
	return "", ""
}

// plan makes a block for each workload on each cluster.
func (c *conductor) plan() {
	for i := range c.Loads {
		for j := range c.Clusters {
			b := &block{load: &c.Loads[i], cluster: &c.Clusters[j]}
			for k, a := range c.Arms {
				if c.arms[k].Ran && c.Loads[i].Has(a) {
					b.members = append(b.members, newMember(a, &c.arms[k], b.load))
				}
			}
			c.blocks = append(c.blocks, b)
		}
	}
}

// next chooses the block that got the least of its share of the time, or nil if there is nothing left to do in time.
func (c *conductor) next() *block {
	var best *block
	for _, b := range c.blocks {
		if b.done || c.MaxLaunches > 0 && b.launches >= c.MaxLaunches {
			continue
		}
		// A launch that is cut off still has its first parameter, most likely; but a few whole ones are needed for an interval.
		if left := c.deadline.Sub(c.Now()); left <= 0 || b.launches >= stats.MinUnits && left < b.longest/2 {
			continue
		}
		if best == nil || b.turn() < best.turn() {
			best = b
		}
	}
	return best
}

func (c *conductor) share() float64 {
	return min(1, c.Now().Sub(c.began).Seconds()/c.Seconds)
}

// over says whether a launch has to end now.
func (c *conductor) over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", errTime, err)
	}
	if !c.Now().Before(c.deadline) {
		return errTime
	}
	return nil
}

// shuffled returns the values in an order drawn anew.
func shuffled[T any](c *conductor, v []T) []T {
	out := slices.Clone(v)
	c.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
