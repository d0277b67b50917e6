package timeline

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// samplesOf samples a counter of hz that reads start at 1 s of CLOCK_BOOTTIME, n times, every gap ns, with brackets of
// about width ticks within which the clock is read at a random place.
func samplesOf(rng *rand.Rand, hz, start uint64, n int, gap, width int64) []ClockSample {
	var out []ClockSample
	for i := range n {
		ns := int64(1e9) + int64(i)*gap
		at := start + uint64(float64(ns-1e9)*float64(hz)/1e9)
		w := uint64(width) + rng.Uint64N(uint64(width)/4+1)
		back := rng.Uint64N(w + 1)
		out = append(out, ClockSample{Before: at - back, After: at - back + w, Ns: ns})
	}
	return out
}

func TestClock(t *testing.T) {
	for _, hz := range []uint64{1_000_000, 19_200_000, 54_000_000, 1_000_000_000, 2_294_000_000, 5_000_000_000} {
		rng := rand.New(rand.NewPCG(hz, 1))
		width := int64(hz/20_000_000 + 1) // 50 ns
		samples := samplesOf(rng, hz, 1<<40, 100, 100e6, width)
		rng.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
		c, err := NewClock(samples, 0)
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(float64(c.FrequencyHz())-float64(hz)) / float64(hz); d > 1e-6 {
			t.Errorf("%d Hz: estimate %d", hz, c.FrequencyHz())
		}
		tick := int64(1e9/hz) + 1
		if r := c.MaxResidualNs(); r < 0 || r > 200+3*tick {
			t.Errorf("%d Hz: residual %d ns", hz, r)
		}
		cur, last := c.Cursor(), int64(math.MinInt64)
		for ns := int64(0); ns < 13e9; ns += 3_333_333 { // from 1 s before the first to 2 s after the last
			at := (1 << 40) + uint64(int64(float64(ns-1e9)*float64(hz)/1e9))
			got := cur.Ns(at)
			if got < last {
				t.Fatalf("%d Hz: went back from %d to %d", hz, last, got)
			}
			last = got
			if off := got - ns; off > 3*(100+tick) || off < -3*(100+tick) {
				t.Fatalf("%d Hz: %d is converted to %d", hz, ns, got)
			}
			if one := c.Ns(at); one != got {
				t.Fatalf("%d Hz: cursor %d, search %d", hz, got, one)
			}
		}
	}
}

// TestClockRejects: samples that were interrupted, or that contradict better ones, must not bend the line.
func TestClockRejects(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	samples := samplesOf(rng, 1_000_000_000, 5000, 50, 100e6, 40)
	for i := 5; i < 50; i += 10 { // read at one end of a bracket of 1 ms
		samples[i].After += 1_000_000
	}
	samples[7] = ClockSample{Before: samples[7].After, After: samples[7].Before, Ns: samples[7].Ns}
	samples[8].Ns = samples[3].Ns
	samples[8].After += 50
	c, err := NewClock(samples, 0)
	if err != nil {
		t.Fatal(err)
	}
	if all, rejected := c.Samples(); all != 50 || rejected != 7 {
		t.Errorf("%d of %d samples rejected, want 7", rejected, all)
	}
	if r := c.MaxResidualNs(); r > 120 {
		t.Errorf("residual %d ns", r)
	}
}

// TestClockResidual: the residual must show an error that the samples have.
func TestClockResidual(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	samples := samplesOf(rng, 1_000_000_000, 5000, 50, 100e6, 40)
	samples[20].Ns += 7000
	c, err := NewClock(samples, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r := c.MaxResidualNs(); r < 7000 || r > 7200 {
		t.Errorf("residual %d ns, want about 7000", r)
	}
}

func TestClockFew(t *testing.T) {
	if _, err := NewClock(nil, 1e9); !errors.Is(err, ErrNoClock) {
		t.Error(err)
	}
	one := []ClockSample{{100, 110, 5e9}}
	if _, err := NewClock(one, 0); !errors.Is(err, ErrNoClock) {
		t.Error(err)
	}
	c, err := NewClock(one, 1e9)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Ns(1105); got != 5e9+1000 {
		t.Error(got)
	}
	if got := c.Ns(5); got != 5e9-100 {
		t.Error(got)
	}
	if c.MaxResidualNs() != 5 {
		t.Error(c.MaxResidualNs())
	}
	if _, err := NewClock([]ClockSample{{1, 1, 1e9}, {2, 2, 9e9}}, 0); !errors.Is(err, ErrNoClock) {
		t.Error("accepted a counter of 1/8 Hz")
	}
}

// FuzzClock: no samples make it panic or go back.
func FuzzClock(f *testing.F) {
	f.Add(uint64(1), uint64(2), int64(1), uint64(5), uint64(5), int64(1e9), uint64(7), uint64(1<<60), int64(2e9), uint64(9))
	f.Fuzz(func(t *testing.T, b1, a1 uint64, n1 int64, b2, a2 uint64, n2 int64, b3, a3 uint64, n3 int64, probe uint64) {
		c, err := NewClock([]ClockSample{{b1, a1, n1}, {b2, a2, n2}, {b3, a3, n3}}, 1e9)
		if err != nil {
			return
		}
		last := int64(math.MinInt64)
		cur := c.Cursor()
		for _, v := range []uint64{0, probe / 2, probe, probe + 1, math.MaxUint64} {
			if v < probe/2 && v != 0 {
				continue
			}
			if got := cur.Ns(v); got < last {
				t.Fatalf("went back from %d to %d at %d: %+v", last, got, v, c)
			} else {
				last = got
			}
		}
	})
}

func BenchmarkClock(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 4))
	c, err := NewClock(samplesOf(rng, 2_294_000_000, 1<<40, 100, 100e6, 40), 0)
	if err != nil {
		b.Fatal(err)
	}
	var sum int64
	for b.Loop() {
		cur, at := c.Cursor(), uint64(1<<40)
		for range 1000 {
			at += 20_000_000
			sum += cur.Ns(at)
			for range 99 {
				at += 100
				sum += cur.Ns(at)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/conversion")
	_ = sum
}
