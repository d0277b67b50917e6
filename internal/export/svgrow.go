package export

import (
	"slices"

	"braid/internal/timeline"
)

// minBar is the width in pixels below which bars are merged with their neighbours.
const minBar = 0.5

// bar is a slice, or several that are too narrow to tell apart.
type bar struct {
	x0, x1 float64 // pixels from the plot's left edge
	ns     int64   // sum of durations
	bytes  uint64
	count  uint64
	label  string // empty if several are called differently
	flags  timeline.SliceFlags
}

// row is a line of bars, which do not overlap as a rule. Its length is bounded by the plot's width: each bar but the
// merged ones is at least minBar wide, and there are at least minBar pixels between two merged ones without a wide one
// between them.
type row struct {
	bars []bar
	run  bar // narrow ones, still growing; count is 0 if there are none
}

// add takes the next bar in order of ends.
func (r *row) add(b bar) {
	if b.x1-b.x0 >= minBar && b.x1 > r.end() {
		r.flush()
		b.x0 = max(b.x0, min(r.end(), b.x1-minBar))
		r.bars = append(r.bars, b)
		return
	}
	if r.run.count > 0 && b.x0-r.run.x1 < minBar {
		if r.run.label != b.label {
			r.run.label = ""
		}
		r.run.x0, r.run.x1 = min(r.run.x0, b.x0), max(r.run.x1, b.x1)
		r.run.ns += b.ns
		r.run.bytes += b.bytes
		r.run.count++
		r.run.flags |= b.flags
		return
	}
	r.flush()
	r.run = b
}

// end is where the last finished bar ends.
func (r *row) end() float64 {
	if len(r.bars) == 0 {
		return 0
	}
	return r.bars[len(r.bars)-1].x1
}

func (r *row) flush() {
	if r.run.count > 0 {
		r.bars = append(r.bars, r.run)
		r.run = bar{}
	}
}

// all are the row's bars, from left to right.
func (r *row) all() []bar {
	r.flush()
	slices.SortStableFunc(r.bars, func(a, b bar) int {
		switch {
		case a.x0 < b.x0:
			return -1
		case a.x0 > b.x0:
			return 1
		}
		return 0
	})
	return r.bars
}

func (r *row) empty() bool { return len(r.bars) == 0 && r.run.count == 0 }

// patch is a rectangle of one state; y0 and y1 are shares of the strip's height.
type patch struct {
	x0, x1, y0, y1 float64
}

// strip is a thread's states over time. Where they change too often to be seen, each pixel shows their shares, stacked.
type strip struct {
	patches [timeline.NumStates][]patch
	mix     [timeline.NumStates]float64 // pixels
	x0, x1  float64                     // of the mix
	mixed   bool
}

// add takes the next interval in order of time.
func (s *strip) add(state timeline.State, x0, x1 float64) {
	if x1 <= x0 {
		return
	}
	if x1-x0 >= minBar {
		s.flush()
		if ps := s.patches[state]; len(ps) > 0 && ps[len(ps)-1] == (patch{ps[len(ps)-1].x0, x0, 0, 1}) {
			ps[len(ps)-1].x1 = x1
			return
		}
		s.patches[state] = append(s.patches[state], patch{x0, x1, 0, 1})
		return
	}
	if !s.mixed {
		s.mixed, s.x0 = true, x0
	}
	s.mix[state] += x1 - x0
	if s.x1 = x1; s.x1-s.x0 >= 1 {
		s.flush()
	}
}

func (s *strip) flush() {
	if !s.mixed {
		return
	}
	y := 1.0
	for _, state := range []timeline.State{timeline.Running, timeline.Runnable, timeline.Blocked, timeline.Sleeping} {
		if share := s.mix[state] / (s.x1 - s.x0); share > 0 {
			s.patches[state] = append(s.patches[state], patch{s.x0, s.x1, max(y-share, 0), y})
			y = max(y-share, 0)
		}
	}
	s.mix, s.mixed = [timeline.NumStates]float64{}, false
}
