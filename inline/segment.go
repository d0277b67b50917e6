package inline

import (
	"errors"
	"fmt"
)

// Slack is how far, in ticks, a record may lie outside of the bounds that its recorder knew: the recorder's counter
// and the thread's were read on different processors, and neither read is ordered with the memory accesses around it.
const Slack = 1 << 20

// BackStep bounds, in ticks, how much earlier than the record before it a record may claim to be without being taken
// for one that comes after a wrap of the counter's low half. Records step back when the counter's read is reordered.
// In traces of stubs that wrote before they reserved, they also do where a signal handler came between.
const BackStep = 1 << 28

// Anchor is one observation of a ring's cursor that stayed where it was.
type Anchor struct {
	// Slot is a boundary: Slots[Slot-1] was the newest slot.
	Slot uint64
	// Last is what Slots[Slot-1] held then. If it holds something else now, the anchor is of an earlier lap.
	Last uint64
	// First and Until are full counter values: the cursor was here from First (or before) until Until (or after).
	First, Until uint64
}

// Segment is what one thread wrote between two drains of its ring, as its recorder found it.
//
// The recorder promises that records 2^32-BackStep ticks or more apart have an anchor between them. It does so by
// looking at the cursor at least twice in 2^32 ticks, and noting an anchor whenever it has not moved. It looks much more
// often, so that two gaps in a row that have no anchor do not add up to 2^32 ticks either: if they seem to, the record
// between them is taken for one that an earlier lap left in a slot that was never written. It also leaves
// out the newest slots if it can not be sure of them (a thread that did not answer a request to stop).
type Segment struct {
	// Slots from oldest to newest. The decoder does not change them.
	Slots []uint64
	// Complete says that Slots[0] is the first that the thread wrote since it was started. If not, older ones were
	// overwritten, and Slots[0] may be the second half of a record.
	Complete bool
	// Begin and End are full counter values between which all records were written, give or take Slack.
	Begin, End uint64
	// Anchors in order of time. Those that no longer fit are counted and left alone.
	Anchors []Anchor
}

// ErrBounds is returned for a segment that ends before it begins.
var ErrBounds = errors.New("segment ends before it begins")

// ErrTooLarge is returned for a segment with more than 2^31 slots.
var ErrTooLarge = errors.New("segment has more than 2^31 slots")

func (s *Segment) check() error {
	if s.End < s.Begin {
		return fmt.Errorf("decode ring: counter %d to %d: %w", s.Begin, s.End, ErrBounds)
	}
	if uint64(len(s.Slots)) > 1<<31 {
		return fmt.Errorf("decode ring: %d slots: %w", len(s.Slots), ErrTooLarge)
	}
	return nil
}

// run is a stretch of slots between two anchors. Its records lie in [lower, upper], and its newest one within 2^32
// ticks before upper.
type run struct {
	lo, hi       int // Slots[lo:hi]
	lower, upper uint64
	// anchored: an anchor is where the run begins. A thread that was preempted between reading the counter and
	// moving its cursor was seen at that anchor: the run's oldest record then has an earlier time than the anchor.
	anchored bool
}

// runs cuts the segment at its valid anchors, newest stretch first, and counts the anchors that are not valid.
func (s *Segment) runs(dst []run) (out []run, stale uint64) {
	out = dst[:0]
	begin, end := subSat(s.Begin, Slack), addSat(s.End, Slack)
	cur := run{hi: len(s.Slots), lower: begin, upper: end}
	place, limit := uint64(len(s.Slots)), end // the newer anchors' lowest boundary and earliest time
	for i := len(s.Anchors) - 1; i >= 0; i-- {
		a := &s.Anchors[i]
		if a.Slot > place || a.First > a.Until || a.Until > limit || a.Until < begin || !s.holds(a) {
			stale++
			continue
		}
		first := max(a.First, begin)
		place, limit = a.Slot, first
		cur.lo = int(a.Slot)
		cur.lower = max(cur.lower, subSat(a.Until, Slack))
		cur.anchored = true
		out = append(out, cur)
		cur = run{hi: int(a.Slot), lower: begin, upper: min(addSat(first, Slack), cur.upper)}
	}
	return append(out, cur), stale
}

// holds reports whether the ring still holds what was the newest slot when the anchor was noted.
func (s *Segment) holds(a *Anchor) bool {
	if a.Slot == 0 {
		return s.Complete // before the first record there is nothing to compare
	}
	return s.Slots[a.Slot-1] == a.Last
}

func subSat(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}

func addSat(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}
