package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"braid/compare/arm"
	"braid/compare/estimate"
	"braid/compare/workload"
)

// runner is a member with its session, for one launch.
type runner struct {
	*member
	session arm.Session
}

// launch starts a block's arms, warms them up, and takes rounds of samples. The error is errTime: what was sampled before stands.
func (c *conductor) launch(ctx context.Context, b *block) (err error) {
	began := c.Now()
	defer func() {
		took := c.Now().Sub(began)
		b.spent += took
		b.longest = max(b.longest, took)
		b.launches++
		c.launches++
		c.judge(b)
	}()
	var running []*runner
	defer func() { c.closeAll(ctx, running) }()
	for _, m := range shuffled(c, b.wanted()) {
		if err := c.over(ctx); err != nil {
			return err
		}
		c.progress(b, "starting "+m.arm.Name)
		s, err := m.arm.Open(ctx, c.Env, arm.Work{Workload: b.load.Name, CPU: b.cluster.PinnedTo, Aligns: b.load.Aligns, Command: b.load.Command,
			Functions: b.load.Functions})
		if err != nil {
			c.cannot(ctx, m, err)
			continue
		}
		running = append(running, &runner{m, s})
	}
	// The baseline first: how many calls it needs says how many the others do.
	i := slices.IndexFunc(running, func(r *runner) bool { return r.arm.Name == estimate.Baseline })
	if i < 0 {
		return nil // there is nothing to compare with
	}
	running[0], running[i] = running[i], running[0]
	for _, r := range running {
		c.progress(b, "warming up "+r.arm.Name)
		if err := c.warmUp(ctx, b, r); err != nil {
			return err
		}
	}
	for round := range b.load.Rounds {
		c.progress(b, "measuring")
		if err := c.round(ctx, b, running, round, began); err != nil {
			return err
		}
	}
	return nil
}

func (c *conductor) progress(b *block, step string) {
	c.Progress(Progress{Workload: b.load.Name, Cluster: b.cluster.Name, Launch: b.launches, Step: step, Share: c.share()})
}

// cannot notes that an arm does not run on a workload: it failed, or it can't run there at all.
func (c *conductor) cannot(ctx context.Context, m *member, err error) {
	if ctx.Err() != nil {
		return
	}
	u, ok := errors.AsType[*arm.Unavailable](err)
	if !ok {
		m.fail(err.Error())
		return
	}
	m.out = true
	if m.info.WhyNot == "" {
		m.info.WhyNot, m.info.NextStep = u.Why, u.Next
	}
}

// round measures all arms once, for each parameter and alignment. The first parameter, which tells most, comes first. A launch
// that has had its time by then goes on with the arms that take little, and leaves the rest to the next ones, which begin with
// another parameter each; one that has had it twice ends.
func (c *conductor) round(ctx context.Context, b *block, running []*runner, round int, began time.Time) error {
	rest := len(b.load.Parameters) - 1
	for i := range b.load.Parameters {
		n := 0
		if i > 0 {
			n = 1 + (i-1+b.launches)%rest
		}
		took, allowed := c.Now().Sub(began), c.allowance(b)
		further := i > 0 || round > 0
		if further && took > 2*allowed {
			return nil
		}
		for _, align := range shuffled(c, b.load.aligns(n, b.launches)) {
			for _, r := range shuffled(c, running) {
				if r.out || b.skip(r.member, n, round, align) || further && took > allowed && r.dear() {
					continue
				}
				if err := c.over(ctx); err != nil {
					return err
				}
				c.sample(ctx, b, r, n, align, round)
			}
		}
	}
	return nil
}

// allowance is how long a launch may go on beginning new parameters, so that there is time for enough launches.
func (c *conductor) allowance(b *block) time.Duration {
	return time.Duration(c.Seconds * b.load.Weight / c.weights() / float64(c.MinLaunches+1) * float64(time.Second))
}

// weights are those of all blocks together.
func (c *conductor) weights() (sum float64) {
	for _, b := range c.blocks {
		sum += b.load.Weight
	}
	return sum
}

// measure runs one measurement and checks its events. ok is false if the arm failed, or the context ended.
func (c *conductor) measure(ctx context.Context, b *block, r *runner, n, align int, calls int64) (arm.Measured, bool) {
	x := r.cells[n]
	began := c.Now()
	m, err := r.session.Run(ctx, workload.Request{Parameter: x.parameter, Align: align, Calls: calls})
	x.slow = c.Now().Sub(began)
	if r.fastest == 0 || x.slow < r.fastest {
		r.fastest = x.slow
	}
	switch {
	case ctx.Err() != nil:
		return m, false // whatever it is, the end was the cause
	case err != nil:
		r.fail(err.Error())
		return m, false
	case m.Calls <= 0 || m.WallNS <= 0:
		r.fail(fmt.Sprintf("the workload says that it made %d calls in %d ns", m.Calls, m.WallNS))
		return m, false
	}
	x.series.Expected += m.Expected
	x.series.Recorded += m.Recorded
	if m.Expected != m.Recorded && r.session.Facts()[arm.FactEstimated] == "" {
		x.series.Failure = fmt.Sprintf("%d of %d events were recorded", m.Recorded, m.Expected)
		return m, false
	}
	return m, true
}

// closeAll ends the sessions and asks those who count late.
func (c *conductor) closeAll(ctx context.Context, running []*runner) {
	for _, r := range running {
		r.note()
		err := r.session.Close()
		if ctx.Err() != nil {
			continue // killed
		}
		if err != nil {
			r.fail("at the end: " + err.Error())
			continue
		}
		late, ok := r.session.(arm.Late)
		if !ok || r.out {
			continue
		}
		expected, recorded, err := late.Total()
		if err != nil {
			r.fail(err.Error())
			continue
		}
		s := &r.cells[0].series
		s.Expected += expected
		s.Recorded += recorded
		if expected != recorded && r.info.Facts[arm.FactEstimated] == "" {
			r.fail(fmt.Sprintf("%d of %d events were recorded", recorded, expected))
		}
	}
}

// note keeps what the session says about itself. What it said first, on the first workload, stands.
func (r *runner) note() {
	for k, v := range r.session.Facts() {
		if r.info.Facts == nil {
			r.info.Facts = map[string]string{}
		}
		if _, known := r.info.Facts[k]; !known {
			r.info.Facts[k] = v
		}
	}
	r.info.Site, r.info.Class = r.info.Facts[arm.FactSite], r.info.Facts[arm.FactClass]
	r.info.Estimated = r.info.Facts[arm.FactEstimated] != ""
}
