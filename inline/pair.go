package inline

// SliceFlags say how a slice's ends came about.
type SliceFlags uint8

// The flags of a slice.
const (
	// CutStart: the method was entered before the segment. Begin is the segment's.
	CutStart SliceFlags = 1 << iota
	// CutEnd: the method had not ended when the segment did. End is the segment's.
	CutEnd
	// Unwound: the method ended without an exit, when control came back into a method below it, at End or before.
	Unwound
	// Suspended: control left the method's stack at End, and came back later: another slice, with Reentered, goes on.
	Suspended
	// Reentered: the slice goes on with a call that an earlier slice began, and is not a call of its own. That slice
	// has Suspended, or Unwound if it is in an earlier segment.
	Reentered
)

// Slice is one call of a method, or a part of one where it was suspended.
type Slice struct {
	Begin, End uint64 // full counter, ticks
	Method     uint32
	Depth      uint32 // number of methods that were open around it
	Flags      SliceFlags
}

// Slices pairs the events of a segment and gives each one to visit when it ends, so that callees come before their
// caller. Methods that are open at the end come last, cut at end. It stops when visit returns false.
//
// begin and end are the segment's bounds; methods that were open at its start get begin, unless the first record is
// earlier (by at most Slack).
func (d *Decoded) Slices(begin, end uint64, visit func(*Slice) bool) {
	if n := len(d.Events); n > 0 {
		begin = min(begin, d.Events[0].Counter)
		end = max(end, d.Events[n-1].Counter)
	}
	stack := make([]Slice, 0, len(d.Open)+64)
	for i, m := range d.Open {
		stack = append(stack, Slice{Begin: begin, Method: m, Depth: uint32(i), Flags: CutStart})
	}
	for i := range d.Events {
		e := &d.Events[i]
		flags := SliceFlags(0)
		switch e.Kind {
		case KindEntry:
			stack = append(stack, Slice{Begin: e.Counter, Method: e.Method, Depth: uint32(len(stack))})
			continue
		case KindReentered:
			stack = append(stack, Slice{Begin: e.Counter, Method: e.Method, Depth: uint32(len(stack)), Flags: Reentered})
			continue
		case KindResumed:
			continue
		case KindUnwound:
			flags = Unwound
		case KindSuspended:
			flags = Suspended
		}
		s := &stack[len(stack)-1]
		s.End = e.Counter
		s.Flags |= flags
		if !visit(s) {
			return
		}
		stack = stack[:len(stack)-1]
	}
	for n := len(stack); n > 0; n-- {
		s := &stack[n-1]
		s.End = end
		s.Flags |= CutEnd
		if !visit(s) {
			return
		}
	}
}
