package study

import (
	"context"
	"math"
	"time"

	"braid/compare/result"
	"braid/compare/stats"
)

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
		s.Discarded = b.disturbed(s, x.slow, before.Throttles != after.Throttles)
		// On a busy machine trying again is of no use: the time is better spent on more samples.
		b.busy += (map[bool]float64{true: 1}[s.Discarded == preempted] - b.busy) / 32
		last := try == tries || x.slow > dearSample || s.Discarded == preempted && b.busy > 0.25
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

// disturbed says what disturbed a sample, or "". It took so long with everything around it, which is when time was stolen.
func (b *block) disturbed(s result.Sample, took time.Duration, hot bool) string {
	// Of what takes long, a little is always stolen on a busy host, and most of it outside of what is measured: another
	// tracer's session takes a second, of which some milliseconds count.
	most := s.WallNS / 100
	if took > slowRun {
		most = took.Nanoseconds() / 20
	}
	if s.StolenNS > most { // it is counted in steps of 10 ms
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
