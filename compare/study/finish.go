package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"braid/compare/estimate"
	"braid/compare/machine"
	"braid/compare/result"
	"braid/compare/stats"
)

// finish makes the result of what was sampled.
func (c *conductor) finish(ctx context.Context) *result.Study {
	s := &result.Study{Schema: result.Schema, Version: c.Version, Started: c.began.UTC(), Ended: c.Now().UTC(), Machine: c.Machine, Arms: c.arms,
		Series: []result.Series{}, Discards: []result.Discard{}}
	s.Machine.Root = c.Env != nil && c.Env.Root
	s.Method = result.Method{Seed: c.Seed, Quick: c.Quick, Seconds: c.Seconds, Margin: c.Margin, Confidence: c.Confidence,
		StableShare: c.StableShare, Command: c.Command, Functions: c.Functions, Width: c.Width, Launches: c.launches, WarmUps: c.warmUps, Unsteady: c.unsteady}
	if len(c.Loads) > 0 {
		s.Method.Aligns, s.Method.SampleNS = c.Loads[0].Aligns, c.Loads[0].Sample.Nanoseconds()
	}
	enough := true
	for _, b := range c.blocks {
		for n := range b.load.Parameters {
			for _, m := range b.members {
				x := m.cells[n]
				x.series.Cluster = b.cluster.Name
				if len(x.series.Samples) > 0 || x.series.Failure != "" {
					s.Series = append(s.Series, x.series)
				}
				if !m.out && x.series.Failure == "" && !x.narrow && !seen(x.series.Samples) {
					enough = false
				}
			}
		}
	}
	c.sortSeries(s)
	c.complete(ctx, s, enough)
	for k, n := range c.discards {
		s.Discards = append(s.Discards, result.Discard{Arm: k.arm, Workload: k.workload, Why: k.why, Samples: n})
	}
	slices.SortFunc(s.Discards, func(a, b result.Discard) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Arm, b.Arm), cmp.Compare(a.Why, b.Why))
	})
	for i := range s.Arms {
		a := &s.Arms[i]
		a.Ran = a.Ran && slices.ContainsFunc(s.Series, func(r result.Series) bool { return r.Arm == a.Name && r.Failure == "" })
		if !a.Ran && a.WhyNot == "" {
			a.WhyNot = whyNot(s, a.Name)
		}
	}
	s.Warnings = warnings(s)
	return s
}

// noBaseline is the error of a study without any figure, or nil.
func noBaseline(s *result.Study) error {
	why := "there was no workload for it"
	for _, r := range s.Series {
		if r.Arm != estimate.Baseline {
			continue
		}
		if r.Failure == "" {
			return nil
		}
		why = r.Failure
	}
	for _, a := range s.Arms {
		if a.Name == estimate.Baseline && a.WhyNot != "" {
			why = a.WhyNot
		}
	}
	return fmt.Errorf("the baseline does not run: %s", why)
}

// seen says whether there are samples of enough launches for an interval.
func seen(samples []result.Sample) bool {
	launches := map[int]bool{}
	for _, x := range samples {
		if x.Discarded == "" {
			launches[x.Launch] = true
		}
	}
	return len(launches) >= stats.MinUnits
}

// whyNot says why an arm that could have run has no samples.
func whyNot(s *result.Study, name string) string {
	for _, r := range s.Series {
		if r.Arm == name && r.Failure != "" {
			return r.Failure
		}
	}
	return "the study ended before it was measured"
}

func (c *conductor) sortSeries(s *result.Study) {
	order := map[string]int{}
	for i, a := range c.arms {
		order[a.Name] = i
	}
	slices.SortStableFunc(s.Series, func(a, b result.Series) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Parameter, b.Parameter), cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(order[a.Arm], order[b.Arm]))
	})
}

// complete says whether the study went to its end: every figure has an interval.
func (c *conductor) complete(ctx context.Context, s *result.Study, enough bool) {
	done := !slices.ContainsFunc(c.blocks, func(b *block) bool { return !b.done })
	limit := c.MaxLaunches > 0 && !slices.ContainsFunc(c.blocks, func(b *block) bool { return !b.done && b.launches < c.MaxLaunches })
	s.Complete = done || enough
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		s.Complete, s.Why = false, "interrupted"
	case done:
	case limit:
		s.Why = fmt.Sprintf("the limit of %d launches was reached before all intervals were narrow", c.MaxLaunches)
	default:
		s.Why = "the time was up before all intervals were narrow"
	}
}

// warnings says why figures can't be trusted.
func warnings(s *result.Study) []result.Warning {
	out := []result.Warning{}
	warn := func(when bool, code, format string, args ...any) {
		if when {
			out = append(out, result.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
		}
	}
	m := s.Machine
	warn(m.Emulated, "emulated", "The processor is emulated: the study shows that everything works, its times mean nothing.")
	warn(m.Virtual != "" && !m.Emulated, "virtual-machine",
		"This is a virtual machine (%s): other machines share its processors, and entering the kernel may cost more or less than on a real one.", m.Virtual)
	tolls := machine.Toll(m.MitigationNote)
	warn(len(tolls) > 0 && !m.Emulated, "mitigations",
		"Entering and leaving the kernel is dearer here because the kernel protects itself: %s. Probes cost less on machines without that.", strings.Join(tolls, "; "))
	warn(m.CPUs == 1, "one-cpu", "There is one processor: the study, tracers' own threads and all other programs run on the one that is measured.")
	warn(!m.CounterSteady, "counter", "The processor's counter (%s) does not run at a constant rate, so recorded times are wrong, whatever recording costs.", m.Counter)
	warn(!m.Root, "not-root", "Not run as root: probes were left out.")
	throttles := 0
	for _, d := range s.Discards {
		if d.Why == throttled || d.Why == frequency {
			throttles += d.Samples
		}
	}
	samples, gaps := 0, []float64{}
	for _, r := range s.Series {
		samples += len(r.Samples)
		if estimate.OnWallTime(r.Workload) {
			continue
		}
		for _, x := range r.Samples {
			if x.WallNS > 0 && x.CPUNS > 0 {
				gaps = append(gaps, 1-float64(x.CPUNS)/float64(x.WallNS))
			}
		}
	}
	warn(throttles > 0 && throttles*50 > samples, "throttled",
		"The processor changed its frequency, or slowed down because of heat, in %d of %d samples. Cool it, and fix its frequency.", throttles, samples)
	busy := busyShare(gaps)
	warn(busy > 0.1, "busy", "Other programs took the processor in %.0f %% of the samples. Stop them, or take another processor (--cpus).", busy*100)
	warn(s.Method.Unsteady*10 > s.Method.Launches*len(s.Arms), "unsteady",
		"In %d cases times did not become stable within %d measurements.", s.Method.Unsteady, mostWarmUps)
	for _, n := range noisy(s) {
		warn(true, "noisy", "Two runs of the same program differ by %.1f %% on %s: smaller differences are not shown by this study.", n.share*100, n.where)
	}
	failed := failures(s)
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		warn(true, "failed", "%s: %s. There is no figure for it there.", name, failed[name])
	}
	return out
}

// busyShare is the share of samples in which others took the processor for more than a tenth of the time.
func busyShare(gaps []float64) float64 {
	n := 0
	for _, g := range gaps {
		if g > 0.1 {
			n++
		}
	}
	return float64(n) / float64(max(1, len(gaps)))
}

type noise struct {
	where string
	share float64
}

// noisy finds workloads where the baseline differs from itself by more than the margin, surely.
func noisy(s *result.Study) []noise {
	most := map[string]float64{}
	only := *s
	only.Series = slices.DeleteFunc(slices.Clone(s.Series), func(r result.Series) bool { return r.Arm != estimate.Baseline && r.Arm != estimate.Again })
	for _, r := range estimate.Of(&only).Rows {
		if r.Arm != estimate.Again || !r.Overhead.OK {
			continue
		}
		if n := max(r.Overhead.Low, -r.Overhead.High); n > s.Method.Margin {
			most[r.Workload] = max(most[r.Workload], n)
		} else if n := (r.Overhead.High - r.Overhead.Low) / 2; n > s.Method.Margin {
			most[r.Workload] = max(most[r.Workload], n)
		}
	}
	var out []noise
	for _, w := range slices.Sorted(maps.Keys(most)) {
		out = append(out, noise{w, most[w]})
	}
	return out
}

// failures are the arms that failed somewhere although they ran, with the first reason.
func failures(s *result.Study) map[string]string {
	out := map[string]string{}
	for _, r := range s.Series {
		key := fmt.Sprintf("%s on %s", r.Arm, r.Workload)
		if _, ok := out[key]; !ok && r.Failure != "" {
			out[key] = r.Failure
		}
	}
	return out
}
