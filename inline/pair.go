package inline

// open finds the methods that were open before the first event, and counts what the resumed records did.
func (d *Decoder) open(out *Decoded, carried []uint32, unmatched int) {
	if out.Stats.Resumes == 0 {
		// Only exits pop, one each, so that counting was enough.
		n := max(0, unmatched-len(carried))
		d.stack = grow(d.stack, n, Unknown)
		out.Open = append(d.stack, carried...)
		d.stack = out.Open[:0]
		out.Orphans = n
		out.Stats.Orphans = uint64(n)
		return
	}

	// below lists the orphans that were found so far, innermost first. named, if set, is the innermost orphan that
	// is still open, and known by name because control came back into it.
	var below []uint32
	named := false
	stack := append(d.stack[:0], carried...)
	for i := range out.Events {
		e := &out.Events[i]
		switch e.Kind {
		case KindEntry:
			stack = append(stack, e.Method)
		case KindExit:
			switch {
			case len(stack) > 0:
				stack = stack[:len(stack)-1]
			case named:
				named = false
			default:
				below = append(below, Unknown)
			}
		case KindResumed:
			n := len(stack)
			for n > 0 && stack[n-1] != e.Method {
				n--
			}
			if n > 0 {
				out.Stats.Unwound += uint64(len(stack) - n)
				stack = stack[:n]
				continue
			}
			out.Stats.Unwound += uint64(len(stack))
			stack = stack[:0]
			if named && below[len(below)-1] == e.Method {
				continue
			}
			if named {
				out.Stats.Unwound++
			}
			out.Stats.LostResumes++
			below = append(below, e.Method)
			named = true
		}
	}
	for i, j := 0, len(below)-1; i < j; i, j = i+1, j-1 {
		below[i], below[j] = below[j], below[i]
	}
	out.Orphans = len(below)
	out.Stats.Orphans = uint64(len(below))
	out.Open = append(below, carried...)
	d.stack = stack
}

func grow(s []uint32, n int, v uint32) []uint32 {
	s = s[:0]
	for range n {
		s = append(s, v)
	}
	return s
}

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
)

// Slice is one call of a method.
type Slice struct {
	Begin, End uint64 // full counter, ticks
	Method     uint32
	Depth      uint32 // number of methods that were open around it
	Flags      SliceFlags
}

// Slices pairs the events of a segment and gives each call to visit when it ends, so that callees come before their
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
		switch e.Kind {
		case KindEntry:
			stack = append(stack, Slice{Begin: e.Counter, Method: e.Method, Depth: uint32(len(stack))})
		case KindExit:
			s := &stack[len(stack)-1]
			s.End = e.Counter
			if !visit(s) {
				return
			}
			stack = stack[:len(stack)-1]
		case KindResumed:
			for len(stack) > 0 && stack[len(stack)-1].Method != e.Method {
				s := &stack[len(stack)-1]
				s.End = e.Counter
				s.Flags |= Unwound
				if !visit(s) {
					return
				}
				stack = stack[:len(stack)-1]
			}
		}
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
