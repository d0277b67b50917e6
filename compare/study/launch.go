package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"braid/compare/arm"
	"braid/compare/estimate"
	"braid/compare/result"
	"braid/compare/stats"
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
		c.progress(b, "starting "+m.arm.Title)
		s, err := m.arm.Open(ctx, c.Env, arm.Work{Workload: b.load.Name, CPU: b.cluster.PinnedTo, Aligns: b.load.Aligns, Command: b.load.Command})
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
		c.progress(b, "warming up "+r.arm.Title)
		if err := c.warmUp(ctx, b, r); err != nil {
			return err
		}
	}
	for round := range b.load.Rounds {
		c.progress(b, "measuring")
		if err := c.round(ctx, b, running, round); err != nil {
			return err
		}
	}
	return nil
}

func (c *conductor) progress(b *block, step string) {
	c.Progress(Progress{Workload: b.load.Name, Cluster: b.cluster.Name, Launch: b.launches, Step: step, Share: c.share()})
}

// cannot notes that an arm does not run on a workload. What it can't run at all it says here at the latest.
func (c *conductor) cannot(ctx context.Context, m *member, err error) {
	if ctx.Err() != nil {
		return
	}
	if u, ok := errors.AsType[*arm.Unavailable](err); ok && m.info.WhyNot == "" {
		m.info.WhyNot, m.info.NextStep = u.Why, u.Next
	}
	m.fail(err.Error())
}

// round measures all arms once, for each parameter and alignment.
func (c *conductor) round(ctx context.Context, b *block, running []*runner, round int) error {
	var order []int
	for n := range b.load.Parameters {
		order = append(order, n)
	}
	for _, n := range shuffled(c, order) {
		for _, align := range shuffled(c, b.load.aligns(n, b.launches)) {
			for _, r := range shuffled(c, running) {
				if r.out || b.skip(r.member, n) {
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

// steadyWindow is how many measurements make the medians that are compared; mostWarmUps is when it is given up. Where a
// measurement takes more than slowRun with everything around it, single ones are compared.
const (
	steadyWindow = 3
	mostWarmUps  = 24
	slowRun      = 50 * time.Millisecond
)

// warmUp calibrates what is not calibrated, and then measures until the median is stable. Whole processes begin cold each time,
// as users see them: they run once, so that their files are in memory.
func (c *conductor) warmUp(ctx context.Context, b *block, r *runner) error {
	for n, x := range r.cells {
		if r.out || b.skip(r.member, n) || x.calls > 0 {
			continue
		}
		if err := c.over(ctx); err != nil {
			return err
		}
		c.calibrate(ctx, b, r, n)
	}
	if b.load.whole() || len(r.cells) == 0 || b.skip(r.member, 0) {
		return nil
	}
	var took []float64
	for !r.out {
		if err := c.over(ctx); err != nil {
			return err
		}
		x, ok := c.measure(ctx, b, r, 0, b.load.Aligns[0], r.cells[0].calls)
		if !ok {
			return nil
		}
		c.warmUps++
		took = append(took, c.perCall(b, x))
		window := steadyWindow
		if r.cells[0].slow > slowRun {
			window = 1
		}
		if steady(took, window, c.StableShare) {
			return nil
		}
		if len(took) >= mostWarmUps*window/steadyWindow {
			c.unsteady++
			return nil
		}
	}
	return nil
}

// steady says whether the median of the last measurements is that of those before them.
func steady(v []float64, window int, share float64) bool {
	n := len(v)
	if n < 2*window {
		return false
	}
	last, before := stats.Median(v[n-window:]), stats.Median(v[n-2*window:n-window])
	return math.Abs(last-before) <= share*before
}

// perCall is a measurement's time in ns a call.
func (c *conductor) perCall(b *block, m arm.Measured) float64 {
	t := m.CPUNS
	if b.load.wall() || t <= 0 {
		t = m.WallNS
	}
	return float64(t) / float64(max(1, m.Calls))
}

const mostCalls = 1 << 30

// calibrate finds out how many calls take as long as a sample should.
func (c *conductor) calibrate(ctx context.Context, b *block, r *runner, n int) {
	l, x := b.load, r.cells[n]
	target := float64(l.Sample.Nanoseconds())
	calls := max(1, l.MinCalls)
	same := int64(0) // as many as the baseline, if that is how it should be
	if base := b.baseline(r.member); l.SameCalls && base != nil && base != r.member {
		same = base.cells[n].calls
	}
	for range 6 {
		m, ok := c.measure(ctx, b, r, n, l.aligns(n, b.launches)[0], calls)
		if !ok {
			return
		}
		c.warmUps++
		x.perCall = c.perCall(b, m)
		if l.whole() || x.perCall <= 0 {
			x.calls = max(1, calls)
			return
		}
		want := target / x.perCall
		if same > 0 {
			want = min(float64(same), 8*want)
		}
		x.calls = int64(max(float64(l.MinCalls), min(want, mostCalls)))
		if x.calls < 2*calls || x.slow > dearSample {
			return
		}
		calls = min(x.calls, 100*calls)
	}
}

// measure runs one measurement and checks its events. ok is false if the arm failed, or the context ended.
func (c *conductor) measure(ctx context.Context, b *block, r *runner, n, align int, calls int64) (arm.Measured, bool) {
	x := r.cells[n]
	began := c.Now()
	m, err := r.session.Run(ctx, workload.Request{Parameter: x.parameter, Align: align, Calls: calls})
	x.slow = c.Now().Sub(began)
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

// Reasons for discarding a sample.
const (
	stolen    = "stolen"    // the hypervisor took the processor
	preempted = "preempted" // other programs ran on it
	frequency = "frequency" // it ran at another rate than before
	throttled = "throttled" // it slowed down because of heat
)

// sample takes a sample, and takes it again if it was disturbed.
func (c *conductor) sample(ctx context.Context, b *block, r *runner, n, align, round int) {
	const tries = 3
	x := r.cells[n]
	for try := 1; ; try++ {
		before := c.Watch.Read(b.cluster.PinnedTo)
		m, ok := c.measure(ctx, b, r, n, align, x.calls)
		if !ok {
			return
		}
		after := c.Watch.Read(b.cluster.PinnedTo)
		s := result.Sample{Launch: b.launches, Round: round, Align: align, Calls: m.Calls, WallNS: m.WallNS, CPUNS: m.CPUNS,
			Expected: m.Expected, Recorded: m.Recorded, StolenNS: after.StolenNS - before.StolenNS, KHz: after.KHz, Celsius: after.Celsius,
			CacheMisses: m.CacheMisses, Bytes: m.Bytes}
		s.Discarded = b.disturbed(s, before.Throttles != after.Throttles)
		last := try == tries || x.slow > dearSample
		if last && s.Discarded == preempted {
			s.Discarded = "" // the thread's own time does not count that of others: on a busy machine it is the best there is
		}
		x.series.Samples = append(x.series.Samples, s)
		if s.Discarded == "" {
			return
		}
		c.discards[discard{r.arm.Name, b.load.Name, s.Discarded}]++
		if last || c.over(ctx) != nil {
			return
		}
	}
}

// disturbed says what disturbed a sample, or "".
func (b *block) disturbed(s result.Sample, hot bool) string {
	if s.StolenNS*100 > s.WallNS { // more than a hundredth; it is counted in steps of 10 ms
		return stolen
	}
	if hot {
		return throttled
	}
	if s.KHz > 0 && !b.load.wall() {
		usual := make([]float64, len(b.khz))
		for i, k := range b.khz {
			usual[i] = float64(k)
		}
		b.khz = append(b.khz, s.KHz)
		b.khz = b.khz[max(0, len(b.khz)-32):]
		if m := stats.Median(usual); len(usual) >= 8 && math.Abs(float64(s.KHz)-m) > 0.05*m {
			return frequency
		}
	}
	if !b.load.wall() && s.CPUNS > 0 && s.WallNS-s.CPUNS > s.WallNS/10+int64(50*time.Microsecond) {
		return preempted
	}
	return ""
}
