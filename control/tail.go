package control

import (
	"errors"
	"sync/atomic"
	"time"

	"braid/internal/counter"
)

// Span says when the slots that Tail returned were written: full counter values.
type Span struct {
	// No record is earlier or later, give or take inline.Slack. One whose thread lost its processor within the stub may be
	// earlier.
	Begin, End uint64
}

// tail is how far Tail has come.
type tail struct {
	ring  ring
	start uint64    // which filling of the ring: lane.own
	pos   uint64    // slots before it were returned or skipped
	last  uint64    // what the slot before pos held; 0: nothing is known of it
	at    uint64    // counter of the look that found pos
	next  seen      // weak order: what the look before saw
	when  time.Time // and when
	gone  uint64    // slots that were released before they were returned
}

// released is called when the memory of a ring is given back, with the cursor at its end: what Tail had not returned yet
// is gone.
func (l *tail) released(from *lane, c uint64) {
	end, ok := from.slot(c)
	switch n := from.slots(); {
	case !ok || !l.ring.there() || from.own < l.start:
	case from.own > l.start: // Tail has seen nothing of it
		l.gone += max(end, 1)
	default:
		l.gone += (end + n - l.pos) % n
		l.pos, l.last = end, 0
	}
}

// begin goes to the beginning of a ring.
func (l *tail) begin(at *lane) {
	*l = tail{ring: at.ring, start: at.own, at: at.start, gone: l.gone}
}

// visible is how long a store may take to become visible to another processor where nothing orders it.
const visible = 2 * time.Millisecond

// Tail copies the slots that a thread has written since the last call, at most the newest most of them, while the thread runs on.
// skipped counts those that were left out because there were more, or because the thread was too fast (then it is the
// least that there can have been). With skipped slots the first one may be the second half of a record. Where stores may
// be seen out of order, what the thread wrote just before the call comes with the next one (C13).
//
// At a swap, one call returns the rest of the old ring, and the next begins with the new one, if the old one was not
// released before. buf is used for the slots if it is large enough.
func (t *Thread) Tail(most int, buf []uint64) (slots []uint64, skipped uint64, span Span, err error) {
	c, ok := t.follow()
	t.meter.see(&t.cur.ring, c, ok)
	if !ok || most <= 0 {
		return nil, 0, Span{}, nil
	}
	l := &t.tail
	if t.old.there() && l.ring.there() && l.start <= t.old.own {
		if l.start < t.old.own {
			l.begin(&t.old)
		}
		if end, ok := l.ring.slot(atomic.LoadUint64(&t.block.PrevCursor)); ok {
			slots, skipped, span, err = t.tailTo(seen{end: end, at: counter.Now(), still: true}, uint64(most), buf)
		}
		if len(slots)+int(skipped) > 0 || err != nil {
			return slots, skipped, span, err
		}
	}
	if l.start != t.cur.own || l.ring != t.cur.ring {
		l.begin(&t.cur)
		if t.swap.drained {
			l.pos, _ = t.cur.slot(c)
		}
	}
	s := t.see(c)
	if !s.sure && !s.still {
		return nil, 0, Span{}, nil // the next trace point will say
	}
	if weak {
		if time.Since(l.when) < visible {
			return nil, 0, Span{}, nil
		}
		if before := l.next; s.end != before.end || before.at == 0 {
			l.next, l.when = s, time.Now()
			if s = before; before.at == 0 {
				return nil, 0, Span{}, nil
			}
			s.still = false
		}
	}
	return t.tailTo(s, uint64(most), buf)
}

// tailTo returns what lies between the last call's end and a place that was seen.
func (t *Thread) tailTo(s seen, most uint64, buf []uint64) (slots []uint64, skipped uint64, span Span, err error) {
	l := &t.tail
	n := l.ring.slots()
	fresh := (s.end + n - l.pos) % n
	lapped, err := t.lapped(s.end)
	if err != nil {
		return nil, 0, Span{}, err
	}
	if lapped {
		fresh += n
	}
	if fresh == 0 {
		l.at, skipped, l.gone = s.at, l.gone, 0
		return nil, skipped, Span{}, nil
	}
	size := min(fresh, most, n/2) // what is older may be overwritten while it is copied
	if fresh < n && s.still {
		size = min(fresh, most)
	}
	span = Span{Begin: l.at, End: s.at}
	slots, _, err = t.copyRunning(l.ring, s, size, buf)
	if errors.Is(err, ErrLapped) {
		return nil, 0, Span{}, nil // the next call will see that, and count
	}
	if err != nil {
		return nil, 0, Span{}, err
	}
	skipped, l.gone = fresh-uint64(len(slots))+l.gone, 0
	l.pos, l.at, l.last = s.end, s.at, 0
	if len(slots) > 0 {
		l.last = slots[len(slots)-1]
	}
	return slots, skipped, span, nil
}

// lapped reports whether the thread has overwritten the slot that was the last one of the call before.
func (t *Thread) lapped(end uint64) (bool, error) {
	l := &t.tail
	if l.last != 0 {
		v, err := t.area.mem.readSlot(l.ring, l.pos+l.ring.slots()-1)
		return v != l.last, err
	}
	if l.pos != 0 {
		return false, nil
	}
	return t.wrapped(l.ring, l.ring.addr+8*end)
}

// meter counts what a thread has written.
type meter struct {
	ring  ring
	pos   uint64 // slot
	wraps uint64
	left  uint64 // bytes, in rings and laps before
}

func (m *meter) see(r *ring, cursor uint64, ok bool) {
	if !ok {
		return
	}
	pos, _ := r.slot(cursor)
	if m.ring == *r && pos < m.pos {
		m.wraps++
		m.left += r.bytes
	}
	m.ring, m.pos = *r, pos
}

// leave counts the rest of a ring that the thread has left.
func (m *meter) leave(r ring, end uint64) {
	if r.holds(end) {
		m.see(&r, end, true)
		m.left += 8 * m.pos
	}
	m.pos, m.ring = 0, ring{}
}

// Position returns how many bytes the thread has written since it started, and how often it was seen to have come round in
// a ring. Laps are seen at calls of Position, Note and Tail, one at most between two calls: both are the least that they
// can be.
func (t *Thread) Position() (bytes, wraps uint64) {
	c, ok := t.follow()
	t.meter.see(&t.cur.ring, c, ok)
	return t.meter.left + 8*t.meter.pos, t.meter.wraps
}
