package timeline

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// ClockSample is one bracketed reading: CLOCK_BOOTTIME was Ns at some time between two readings of the counter.
type ClockSample struct {
	Before, After uint64 // ticks
	Ns            int64
}

func (s ClockSample) width() uint64 { return s.After - s.Before }
func (s ClockSample) mid() uint64   { return s.Before + s.width()/2 }

const (
	// fraction is the number of binary places of a slope in ns per tick. At 2^42 an error in the last place is less
	// than 1 ns over 2^42 ticks, half an hour of the fastest counters; pieces are shorter than that.
	fraction = 42
	// maxSlope bounds a slope, so that its fixed-point form fits 64 bits: counters slower than 1 kHz are not counters.
	maxSlope = 1_000_000
	// minPiece is the least distance between two knots. Closer ones would turn the error of single samples into
	// slope: 100 ns over 5 ms is 20 parts per million.
	minPiece = 5_000_000
	// slopeSpan is how far apart the two knots should be that give the slope beyond the first and the last.
	slopeSpan = 1_000_000_000
)

// ErrNoClock is returned if a conversion can not be made from the samples and the nominal frequency.
var ErrNoClock = errors.New("too few usable clock samples")

// Clock converts counter values to CLOCK_BOOTTIME, linearly between samples and by the slope of the nearest second
// beyond them. It never goes back. It does not change once made, and may be used by many goroutines.
type Clock struct {
	pieces      []piece
	frequencyHz uint64
	maxResidual int64
	rejected    int
	samples     int
}

// piece is a line from a counter value to the next piece's. The last one ends at its until.
type piece struct {
	from, until uint64
	ns          int64  // at from
	slope       uint64 // ns per tick, times 2^fraction, rounded down
}

func (p *piece) at(counter uint64) int64 {
	hi, lo := bits.Mul64(counter-p.from, p.slope)
	return p.ns + int64(hi<<(64-fraction)|lo>>fraction)
}

// NewClock makes a Clock of samples in any order. Samples whose bracket is more than four times as wide as the median,
// or that contradict better ones, are left out and counted. With one sample only, nominalHz gives the slope; otherwise
// it is not used and may be 0.
func NewClock(samples []ClockSample, nominalHz uint64) (*Clock, error) {
	c := &Clock{samples: len(samples)}
	good := c.usable(samples)
	knots := c.knots(good)
	switch {
	case len(knots) == 0:
		return nil, fmt.Errorf("fit clock: none of %d samples is usable: %w", len(samples), ErrNoClock)
	case len(knots) == 1:
		if nominalHz < 1_000_000_000/maxSlope {
			return nil, fmt.Errorf("fit clock: one usable sample, and no nominal frequency: %w", ErrNoClock)
		}
		c.frequencyHz = nominalHz
		slope, _ := ratio(1_000_000_000, nominalHz)
		c.build(knots, slope, slope)
	default:
		c.frequencyHz = frequency(knots[0], knots[len(knots)-1])
		first, ok1 := edgeSlope(knots, 0, 1)
		last, ok2 := edgeSlope(knots, len(knots)-1, -1)
		if !ok1 { // it jumped, which one edge at most should show
			first, ok1 = last, ok2
		}
		if !ok2 {
			last = first
		}
		if !ok1 {
			return nil, fmt.Errorf("fit clock: counter of %d Hz is slower than 1 kHz: %w", c.frequencyHz, ErrNoClock)
		}
		c.build(knots, first, last)
	}
	c.measure(good, knots)
	return c, nil
}

// usable returns the samples with narrow brackets, in order of the counter, so that both readings increase.
func (c *Clock) usable(samples []ClockSample) []ClockSample {
	var good []ClockSample
	for _, s := range samples {
		if s.After >= s.Before && s.Ns >= 0 && s.Ns < math.MaxInt64/4 {
			good = append(good, s)
		}
	}
	if len(good) > 0 {
		widths := make([]uint64, len(good))
		for i, s := range good {
			widths[i] = s.width()
		}
		slices.Sort(widths)
		if m := widths[len(widths)/2]; m < math.MaxUint64/8 {
			good = slices.DeleteFunc(good, func(s ClockSample) bool { return s.width() > 4*m+4 })
		}
	}
	slices.SortFunc(good, func(a, b ClockSample) int {
		return cmp.Or(cmp.Compare(a.mid(), b.mid()), cmp.Compare(a.Ns, b.Ns))
	})
	kept := good[:0]
	for _, s := range good {
		for len(kept) > 0 {
			last := kept[len(kept)-1]
			if s.mid() > last.mid() && s.Ns > last.Ns {
				break
			}
			if s.width() >= last.width() {
				s = last
			}
			kept = kept[:len(kept)-1]
		}
		kept = append(kept, s)
	}
	c.rejected = len(samples) - len(kept)
	return kept
}

// knots thins samples to at most one in minPiece, the narrowest.
func (c *Clock) knots(good []ClockSample) []ClockSample {
	var knots []ClockSample
	for _, s := range good {
		if n := len(knots); n > 0 && s.Ns-knots[n-1].Ns < minPiece {
			if s.width() < knots[n-1].width() && (n < 2 || s.Ns-knots[n-2].Ns >= minPiece) {
				knots[n-1] = s
			}
			continue
		}
		knots = append(knots, s)
	}
	if len(knots) == 1 && len(good) > 1 { // a recording shorter than minPiece
		knots = []ClockSample{good[0], good[len(good)-1]}
	}
	return knots
}

// edgeSlope is the slope from knot i to the first one in direction step that is slopeSpan away, or the furthest.
func edgeSlope(knots []ClockSample, i, step int) (uint64, bool) {
	j := i + step
	for j+step >= 0 && j+step < len(knots) && abs(knots[j].Ns-knots[i].Ns) < slopeSpan {
		j += step
	}
	return slopeOf(knots[min(i, j)], knots[max(i, j)])
}

func slopeOf(a, b ClockSample) (uint64, bool) { return ratio(uint64(b.Ns-a.Ns), b.mid()-a.mid()) }

// ratio is ns/ticks times 2^fraction, rounded down, and whether it is at most maxSlope.
func ratio(ns, ticks uint64) (uint64, bool) {
	hi, lo := ns>>(64-fraction), ns<<fraction
	if ticks == 0 || hi >= ticks {
		return 0, false
	}
	q, _ := bits.Div64(hi, lo, ticks)
	return q, q <= maxSlope<<fraction
}

func frequency(a, b ClockSample) uint64 {
	ticks, ns := b.mid()-a.mid(), uint64(b.Ns-a.Ns)
	hi, lo := bits.Mul64(ticks, 1_000_000_000)
	lo, carry := bits.Add64(lo, ns/2, 0)
	if hi += carry; hi >= ns {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, ns)
	return q
}

// build makes the pieces: one before the first knot, one between each two, one after the last. A stretch over which
// the counter stood still or jumped, as some do in suspend, takes the last slope, and the jump falls on its end.
func (c *Clock) build(knots []ClockSample, first, last uint64) {
	k := knots[0]
	ticks := min(k.mid(), maxTicks(first))
	hi, lo := bits.Mul64(ticks, first)
	before := int64(hi<<(64-fraction) | lo>>fraction)
	c.pieces = append(c.pieces, piece{from: k.mid() - ticks, until: k.mid(), ns: k.Ns - before, slope: first})
	for i := 1; i < len(knots); i++ {
		slope, ok := slopeOf(knots[i-1], knots[i])
		if !ok {
			slope = min(last, first)
		}
		c.pieces = append(c.pieces, piece{from: knots[i-1].mid(), until: knots[i].mid(), ns: knots[i-1].Ns, slope: slope})
	}
	k = knots[len(knots)-1]
	until := k.mid() + min(maxTicks(last), math.MaxUint64-k.mid())
	c.pieces = append(c.pieces, piece{from: k.mid(), until: until, ns: k.Ns, slope: last})
}

// maxTicks is how far a line may be followed: 2^60 ns, 36 years. Beyond it time stands still.
func maxTicks(slope uint64) uint64 {
	const high = 1 << (60 + fraction - 64) // of 2^(60+fraction)
	if slope <= high {                     // faster than 16 GHz: less than 2^58 ns
		return 1 << 62
	}
	q, _ := bits.Div64(high, 0, slope)
	return q
}

// measure finds the largest error that the samples show: how far each is from the line that its neighbours give
// without it, plus half of its bracket.
func (c *Clock) measure(good, knots []ClockSample) {
	cur := c.Cursor()
	isKnot := 0
	for _, s := range good {
		half := c.duration(s.width() - s.width()/2)
		var off int64
		if isKnot < len(knots) && s == knots[isKnot] {
			if isKnot > 0 && isKnot < len(knots)-1 {
				off = abs(between(knots[isKnot-1], knots[isKnot+1], s.mid()) - s.Ns)
			}
			isKnot++
		} else {
			off = abs(cur.Ns(s.mid()) - s.Ns)
		}
		c.maxResidual = max(c.maxResidual, off+half)
	}
}

// between is the time at a counter value on the line from a to b.
func between(a, b ClockSample, counter uint64) int64 {
	hi, lo := bits.Mul64(counter-a.mid(), uint64(b.Ns-a.Ns))
	q, _ := bits.Div64(hi, lo, b.mid()-a.mid())
	return a.Ns + int64(q)
}

// duration is how long a number of ticks is at the clock's frequency, in ns, rounded up.
func (c *Clock) duration(ticks uint64) int64 {
	hi, lo := bits.Mul64(ticks, 1_000_000_000)
	if hi >= c.frequencyHz {
		return math.MaxInt64 / 4
	}
	q, r := bits.Div64(hi, lo, c.frequencyHz)
	if r > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64/4))
}

// FrequencyHz is the counter's frequency between the first and the last usable sample.
func (c *Clock) FrequencyHz() uint64 { return c.frequencyHz }

// MaxResidualNs is the largest error that the samples show, in ns: how far a sample lies from the line that its
// neighbours give without it, plus half of its bracket. It bounds what the samples can tell, not the error at times
// far from any.
func (c *Clock) MaxResidualNs() int64 { return c.maxResidual }

// Samples is how many samples there were, and how many of them were rejected.
func (c *Clock) Samples() (all, rejected int) { return c.samples, c.rejected }

// Ns converts one counter value. It takes a search; to convert many in order, use a Cursor.
func (c *Clock) Ns(counter uint64) int64 {
	cur := c.Cursor()
	return cur.Ns(counter)
}

// Cursor converts counter values, fastest if they increase.
func (c *Clock) Cursor() ClockCursor { return ClockCursor{clock: c, piece: c.pieces[0]} }

// ClockCursor is a place in a Clock.
type ClockCursor struct {
	clock *Clock
	piece piece
}

// Ns converts one counter value to CLOCK_BOOTTIME ns.
func (c *ClockCursor) Ns(counter uint64) int64 {
	if counter-c.piece.from < c.piece.until-c.piece.from {
		hi, lo := bits.Mul64(counter-c.piece.from, c.piece.slope)
		return c.piece.ns + int64(hi<<(64-fraction)|lo>>fraction)
	}
	return c.seek(counter)
}

func (c *ClockCursor) seek(counter uint64) int64 {
	pieces := c.clock.pieces
	i, _ := slices.BinarySearchFunc(pieces, counter, func(p piece, v uint64) int {
		if p.until <= v {
			return -1
		}
		return 1
	})
	i = min(i, len(pieces)-1)
	c.piece = pieces[i]
	return c.piece.at(min(max(counter, c.piece.from), c.piece.until))
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}
