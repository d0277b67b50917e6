package timeline

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"braid/internal/kevent"
)

// Limits of the sorter.
const (
	// DefaultWindowNs is how far apart in the stream two events may be that are in the wrong order: the time for
	// which one CPU's buffer may wait to be read, with a margin.
	DefaultWindowNs = 250_000_000
	// sorterEvents bounds the events that wait to be sorted. When it is reached the older half goes on.
	sorterEvents = 1 << 18
	// sorterBatch is how many events arrive between two sorts.
	sorterBatch = 1 << 13
)

// Sorter puts kernel events into order of time. Events come from several CPUs, each of whose events are in order; with
// one ring buffer they are swapped within microseconds, with one buffer a CPU within the time between two reads.
type Sorter struct {
	// Deliver gets each event once, in order of time; body is valid during the call only.
	Deliver func(h kevent.Header, body []byte)
	// WindowNs overrides DefaultWindowNs if it is not 0.
	WindowNs int64
	// MaxTime is the latest possible time; events beyond it are damaged, and left out. 0 is no bound.
	MaxTime uint64

	wait     []waiting
	bytes    []byte // bodies of wait
	spare    []byte
	newest   uint64
	released uint64
	fresh    int
	late     uint64
	damaged  uint64
}

type waiting struct {
	kevent.Header
	seq  uint32 // order of arrival
	body int32  // offset in bytes
}

// Push takes a chunk of whole events. It copies what it keeps.
func (s *Sorter) Push(chunk []byte) error {
	for off := len(chunk); len(chunk) > 0; {
		h, body, rest, err := kevent.Next(chunk)
		if err != nil {
			return fmt.Errorf("read kernel events at byte %d of the chunk: %w", off-len(chunk), err)
		}
		chunk = rest
		if h.Time > math.MaxInt64/4 || s.MaxTime != 0 && h.Time > s.MaxTime {
			s.damaged++
			continue
		}
		s.wait = append(s.wait, waiting{Header: h, seq: uint32(len(s.wait)), body: int32(len(s.bytes))})
		s.bytes = append(s.bytes, body...)
		s.newest = max(s.newest, h.Time)
		if s.fresh++; s.fresh >= sorterBatch {
			s.release(false)
		}
	}
	return nil
}

// Flush delivers all that is left. The Sorter can be used on.
func (s *Sorter) Flush() { s.release(true) }

// Late is how many events came after later ones had been delivered. They were delivered all the same, out of order.
func (s *Sorter) Late() uint64 { return s.late }

// Damaged is how many events had an impossible time.
func (s *Sorter) Damaged() uint64 { return s.damaged }

func (s *Sorter) release(all bool) {
	s.fresh = 0
	slices.SortFunc(s.wait, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.seq, b.seq))
	})
	window := uint64(DefaultWindowNs)
	if s.WindowNs != 0 {
		window = uint64(s.WindowNs)
	}
	n := len(s.wait)
	if !all {
		until := uint64(0)
		if s.newest > window {
			until = s.newest - window
		}
		n, _ = slices.BinarySearchFunc(s.wait, until, func(w waiting, t uint64) int { return cmp.Compare(w.Time, t) })
		if len(s.wait)-n > sorterEvents {
			n = len(s.wait) - sorterEvents/2
		}
	}
	for _, w := range s.wait[:n] {
		if w.Time < s.released {
			s.late++
		} else {
			s.released = w.Time
		}
		s.Deliver(w.Header, s.bytes[w.body:int(w.body)+kevent.Size(w.Kind)-kevent.HeaderSize])
	}
	kept, bodies := s.wait[:0], s.spare[:0]
	for _, w := range s.wait[n:] {
		body := s.bytes[w.body : int(w.body)+kevent.Size(w.Kind)-kevent.HeaderSize]
		w.seq, w.body = uint32(len(kept)), int32(len(bodies))
		kept = append(kept, w)
		bodies = append(bodies, body...)
	}
	s.wait, s.bytes, s.spare = kept, bodies, s.bytes
}
