package timeline

import (
	"math/rand/v2"
	"syscall"
	"testing"

	"braid/inline"
)

// BenchmarkSum sums the calls of a full ring of 32 MiB by method and state, with a state change each 200 records.
func BenchmarkSum(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 8))
	seg := &Segment{Segment: inline.Segment{Complete: true, Begin: start}}
	at, depth, n := start, 0, 4<<20
	for range n {
		at += 20 + rng.Uint64N(300)
		if depth == 0 || depth < 40 && rng.IntN(2) == 0 {
			f := rng.Float64()
			seg.Slots = inline.AppendEntry(seg.Slots, at, 0x40_0000+uint64(f*f*f*3000)*112)
			depth++
		} else {
			seg.Slots = inline.AppendExit(seg.Slots, at)
			depth--
		}
	}
	seg.End = at
	a := &Activity{}
	for t := int64(start); t < int64(at); {
		end := t + rng.Int64N(60_000)
		a.Intervals = append(a.Intervals, Interval{Start: t, End: end, State: 1 + State(rng.IntN(4))})
		t = end
	}
	j := newJoiner(b)
	b.Run("sum", func(b *testing.B) {
		cpu := cpuSeconds(b)
		for b.Loop() {
			var table MethodTable
			if err := j.Sum(one(seg), a, &table); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(n)*float64(b.N)/(cpuSeconds(b)-cpu)/1e6, "Mrec/cpu-s")
	})
	b.Run("edges", func(b *testing.B) {
		cpu := cpuSeconds(b)
		for b.Loop() {
			if err := j.Edges(one(seg), func([]Edge) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(n)*float64(b.N)/(cpuSeconds(b)-cpu)/1e6, "Mrec/cpu-s")
	})
	b.Run("slices", func(b *testing.B) {
		cpu := cpuSeconds(b)
		for b.Loop() {
			if err := j.Slices(one(seg), a, func([]Slice) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(n)*float64(b.N)/(cpuSeconds(b)-cpu)/1e6, "Mrec/cpu-s")
	})
}

// cpuSeconds is the processor time that this process has used, which says more than the clock on a busy machine.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()) / 1e9
}
