package inline

import (
	"cmp"
	"slices"
)

// leftID names a call in left.
type leftID int32

const noLeft leftID = -1

// maxLeft is how many calls are remembered; beyond it the ones that were left first are forgotten.
const maxLeft = 1 << 14

// left holds the calls that control left without an exit and that it may come back into: by another stack
// (swapcontext), as opposed to an exception or longjmp. A record does not tell the two apart, so all are kept that a
// framed record can name, with what is below them.
type left struct {
	calls []leftCall
	free  []leftID // of calls
	next  int      // which to forget when all are used
	turns uint64   // how often calls were left
	// siblings are by method.
	siblings []siblings
}

// leftCall is a call that was left. Calls that were left together keep their order, by below and above.
type leftCall struct {
	frame
	below, above leftID
	turn         uint64 // calls that were left together have the same
	event        int    // index of its KindUnwound; -1 if that is in an earlier segment
}

// siblings is what is known of a method.
type siblings struct {
	left []leftRef // its framed calls that were left, in order of sp
	// reach is how far below its entry's stack pointer control came back into a call of the method at least, in bytes,
	// where there was no doubt which call it was. The compiler makes it the same for all calls, as a rule. 0: not known.
	reach uint32
}

type leftRef struct {
	sp uint32
	id leftID
}

func (l *left) reset() {
	l.calls, l.free, l.next, l.turns = l.calls[:0], l.free[:0], 0, 0
	for i := range l.siblings {
		l.siblings[i].left, l.siblings[i].reach = l.siblings[i].left[:0], 0
	}
}

// endSegment forgets where the events are.
func (l *left) endSegment() {
	for i := range l.calls {
		l.calls[i].event = -1
	}
}

// of is what is known of a method; it is good until the next call of this function.
func (l *left) of(method uint32) *siblings {
	if n := int(method) + 1 - len(l.siblings); n > 0 {
		l.siblings = append(l.siblings, make([]siblings, n)...)
	}
	return &l.siblings[method]
}

// add takes open calls that control has left, outermost first, of which the last one's event is the given one. Those
// above the last framed one can not come back.
func (l *left) add(stack []frame, event int) {
	n := len(stack)
	for n > 0 && !stack[n-1].framed {
		n--
	}
	event += len(stack) - 1
	lowest := max(0, n-maxLeft)
	l.turns++
	below := noLeft
	for i := lowest; i < n; i++ {
		id := l.place()
		l.calls[id] = leftCall{frame: stack[i], below: below, above: noLeft, turn: l.turns, event: event - i}
		if below != noLeft {
			l.calls[below].above = id
		}
		if f := &stack[i]; f.framed {
			s := l.of(f.method)
			at, _ := s.search(f.sp)
			s.left = slices.Insert(s.left, at, leftRef{f.sp, id})
		}
		below = id
	}
}

// place makes room for a call.
func (l *left) place() leftID {
	if len(l.free) == 0 && len(l.calls) == maxLeft {
		l.take(leftID(l.next))
		l.next = (l.next + 1) % maxLeft
	}
	if n := len(l.free); n > 0 {
		id := l.free[n-1]
		l.free = l.free[:n-1]
		return id
	}
	l.calls = append(l.calls, leftCall{})
	return leftID(len(l.calls) - 1)
}

// take removes a call, and returns it and the one that is below it on its stack.
func (l *left) take(id leftID) (leftCall, leftID) {
	c := l.calls[id]
	if c.below != noLeft {
		l.calls[c.below].above = noLeft
	}
	if c.above != noLeft {
		l.calls[c.above].below = noLeft
	}
	if c.framed {
		s := l.of(c.method)
		at, _ := s.search(c.sp)
		for s.left[at].id != id {
			at++
		}
		s.left = slices.Delete(s.left, at, at+1)
	}
	l.free = append(l.free, id)
	return c, c.below
}

func (s *siblings) search(sp uint32) (int, bool) {
	return slices.BinarySearchFunc(s.left, sp, func(r leftRef, sp uint32) int { return cmp.Compare(r.sp, sp) })
}

// nearest finds the call of a method that was left with the least stack pointer that is not below sp, and how far above
// it is.
func (l *left) nearest(s *siblings, sp uint32) (leftID, uint32) {
	if len(s.left) == 0 {
		return noLeft, 0
	}
	at, _ := s.search(sp)
	if at == len(s.left) {
		at = 0 // stack pointers are low halves: the next one may be past 2^32
	}
	return s.left[at].id, s.left[at].sp - sp // of equal ones, the one that was left last
}

// find finds the call of a method that was left and that control came back into with stack pointer sp, and how far above
// it was entered. It is the nearest, unless that is gone and overwritten by another: by one that was entered at most a
// frame above it and was left after it.
func (l *left) find(s *siblings, sp uint32) (best leftID, dist uint32) {
	const maxTried = 16
	best, dist = l.nearest(s, sp)
	if best == noLeft || dist > nearFrame+s.reach {
		return noLeft, 0
	}
	at, _ := s.search(sp + dist)
	for i := at + 1; i < min(at+maxTried, len(s.left)) && s.left[i].sp-sp <= max(smallFrame, s.reach); i++ {
		if r := s.left[i]; l.calls[r.id].turn > l.calls[best].turn {
			best, dist = r.id, r.sp-sp
		}
	}
	return best, dist
}

// forget drops the calls of a method that a new one, entered with stack pointer sp, overwrites.
func (l *left) forget(method, sp uint32) {
	if len(l.free) == len(l.calls) {
		return
	}
	s := l.of(method)
	for len(s.left) > 0 {
		id, d := l.nearest(s, sp-s.reach)
		if d > s.reach {
			return
		}
		l.take(id)
		s = l.of(method)
	}
}
