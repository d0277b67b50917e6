package study

import (
	"context"
	"fmt"
	"math"
	"time"

	"braid/compare/arm"
	"braid/compare/stats"
)

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
		if r.out || x.calls > 0 || x.series.Failure != "" {
			continue
		}
		if err := c.over(ctx); err != nil {
			return err
		}
		if !c.guess(b, r.member, n) {
			c.calibrate(ctx, b, r, n)
		}
	}
	if took, most := r.fastest, c.affordable(b); b.load.whole() && r.dear() && !r.out && took > most {
		c.cannot(ctx, r.member, &arm.Unavailable{Why: fmt.Sprintf("a run takes %.0f s with it, too long for this study", took.Seconds()),
			Next: "give the study more time (--seconds), or take only this workload and few arms"})
		return nil
	}
	defer r.settle()
	if b.load.whole() || r.cells[0].series.Failure != "" {
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

// affordable is how long a measurement of a dear arm may take: it needs some launches, and gets no more than half of the time of its
// block.
func (c *conductor) affordable(b *block) time.Duration {
	return time.Duration(c.Seconds * b.load.Weight / c.weights() / 2 / stats.MinUnits * float64(time.Second))
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

// guess chooses calls for a further parameter without measuring: what tracing adds to a call is as much as with the first one. It
// is false where that is not known.
func (c *conductor) guess(b *block, m *member, n int) bool {
	base := b.baseline(m)
	if n == 0 || base == nil || base == m || m.cells[0].perCall <= 0 || base.cells[n].perCall <= 0 {
		return false
	}
	x := m.cells[n]
	x.perCall = max(base.cells[n].perCall, base.cells[n].perCall+m.cells[0].perCall-base.cells[0].perCall)
	x.calls = b.load.calls(x.perCall, b.same(m, n))
	return true
}

// same is the number of calls that a cell should have for being measured like its baseline, or 0.
func (b *block) same(m *member, n int) int64 {
	if base := b.baseline(m); b.load.SameCalls && base != nil && base != m {
		return base.cells[n].calls
	}
	return 0
}

const mostCalls = 1 << 30

// calls says how many calls a sample should have.
func (l *Load) calls(perCall float64, same int64) int64 {
	want := float64(l.Sample.Nanoseconds()) / perCall
	if same > 0 {
		want = min(float64(same), 8*want)
	}
	return int64(max(float64(l.MinCalls), min(want, mostCalls)))
}

// calibrate finds out how many calls take as long as a sample should.
func (c *conductor) calibrate(ctx context.Context, b *block, r *runner, n int) {
	l, x := b.load, r.cells[n]
	calls := max(1, l.MinCalls)
	for range 6 {
		m, ok := c.measure(ctx, b, r, n, l.aligns(n, b.launches)[0], calls)
		if !ok {
			return
		}
		c.warmUps++
		x.perCall = c.perCall(b, m)
		if l.whole() || x.perCall <= 0 {
			x.calls = calls
			return
		}
		x.calls = l.calls(x.perCall, b.same(r.member, n))
		if x.calls < 2*calls || x.slow > dearSample {
			return
		}
		calls = min(x.calls, 100*calls)
	}
}
