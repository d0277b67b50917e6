package render

import (
	"math"
	"strconv"
)

// scale puts values on a line of pixels.
type scale struct {
	low, high float64 // of values
	from, to  float64 // of pixels
	log       bool
	ticks     []tick
}

type tick struct {
	at    float64
	label string // "" for a small one
}

// place is where v stands, held inside the axis. inside is false if it had to be moved.
func (s *scale) place(v float64) (x float64, inside bool) {
	inside = v >= s.low && v <= s.high
	v = min(max(v, s.low), s.high)
	share := 0.0
	switch {
	case s.log:
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	case s.high > s.low:
		share = (v - s.low) / (s.high - s.low)
	}
	return s.from + share*(s.to-s.from), inside
}

func (s *scale) at(v float64) float64 {
	x, _ := s.place(v)
	return x
}

// logarithmic is a scale from low to high, both positive, rounded outwards to 1, 2 or 5 of a decade.
// most is how many labels there is room for.
func logarithmic(low, high, from, to float64, most int) *scale {
	s := &scale{from: from, to: to, log: true, low: roundLog(low, false), high: roundLog(high, true)}
	if s.high <= s.low {
		s.high = s.low * 10
	}
	decades := math.Log10(s.high / s.low)
	every := 1
	for decades/float64(every)+1 > float64(most) {
		every++
	}
	fine := decades <= 2 && most > 6
	first, last := int(math.Floor(math.Log10(s.low)-1e-9)), int(math.Ceil(math.Log10(s.high)+1e-9))
	for d := first; d <= last; d++ {
		for m := 1; m < 10; m++ {
			v := float64(m) * pow10(d)
			if v < s.low*(1-1e-9) || v > s.high*(1+1e-9) {
				continue
			}
			t := tick{at: v}
			if m == 1 && d%every == 0 || fine && (m == 2 || m == 5) {
				t.label = tickLabel(v)
			}
			s.ticks = append(s.ticks, t)
		}
	}
	return s
}

func pow10(d int) float64 {
	v, _ := strconv.ParseFloat("1e"+strconv.Itoa(d), 64)
	return v
}

func roundLog(v float64, up bool) float64 {
	d := pow10(int(math.Floor(math.Log10(v) + 1e-9)))
	best := d
	for _, m := range []float64{1, 2, 5, 10} {
		if up && m*d >= v*(1-1e-9) {
			return m * d
		}
		if !up && m*d <= v*(1+1e-9) {
			best = m * d
		}
	}
	return best
}

// linear is a scale that holds low and high with a little room, with at most so many labels. Zero is kept as an end.
func linear(low, high, from, to float64, most int) *scale {
	if high <= low {
		high = low + 1
	}
	step := pow10(int(math.Floor(math.Log10((high - low) / float64(most)))))
	for _, m := range []float64{1, 2, 5, 10, 20} {
		if (math.Ceil(high/(m*step))-math.Floor(low/(m*step)))+1 <= float64(most) {
			step *= m
			break
		}
	}
	room := (high - low) * 0.04
	s := &scale{from: from, to: to, low: low, high: high}
	if low != 0 {
		s.low -= room
	}
	if high != 0 {
		s.high += room
	}
	for i := math.Ceil(s.low / step); i*step <= s.high; i++ {
		s.ticks = append(s.ticks, tick{i * step, tickLabel(i * step)})
	}
	return s
}

// tickLabel is a round number as it is.
func tickLabel(v float64) string {
	d := 0
	for f := math.Abs(v); d < 9 && math.Abs(f-math.Round(f)) > 1e-6*math.Max(1, f); d++ {
		f *= 10
	}
	return number(v, d)
}
