package inline

import (
	"encoding/binary"
	"testing"
)

// check tests what must hold for the decode of any segment.
func check(t *testing.T, s *Segment, d *Decoded) {
	t.Helper()
	low, high := subSat(s.Begin, Slack), addSat(s.End, Slack)
	last := low
	for i, e := range d.Events {
		if e.Counter < last || e.Counter > high {
			t.Fatalf("event %d at %d, not in [%d, %d]", i, e.Counter, last, high)
		}
		last = e.Counter
	}
	if n := len(recorded(d.Events)); n > len(s.Slots) || uint64(n) != d.Stats.Records {
		t.Fatalf("%d records of %d slots, counted %d", n, len(s.Slots), d.Stats.Records)
	}
	checkStack(t, d)
	// Slices nest: they come when they end, so each must hold all that came before at a greater depth since the
	// last one at its own depth or above.
	var done []Slice
	entries, cutStart := 0, 0
	d.Slices(s.Begin, s.End, func(c *Slice) bool {
		if c.Begin > c.End {
			t.Fatalf("slice ends before it begins: %+v", *c)
		}
		if c.Flags&CutStart != 0 {
			cutStart++
		} else {
			entries++
		}
		for len(done) > 0 && done[len(done)-1].Depth > c.Depth {
			inner := done[len(done)-1]
			done = done[:len(done)-1]
			if inner.Begin < c.Begin || inner.End > c.End {
				t.Fatalf("%+v is not within %+v", inner, *c)
			}
		}
		if len(done) > 0 && done[len(done)-1].Depth == c.Depth && done[len(done)-1].End > c.Begin {
			t.Fatalf("%+v and %+v overlap", done[len(done)-1], *c)
		}
		done = append(done, *c)
		return true
	})
	for _, e := range d.Events {
		if e.Kind == KindEntry || e.Kind == KindReentered {
			entries--
		}
	}
	if entries != 0 || cutStart != len(d.Open) {
		t.Fatalf("%d slices more than entries, %d cut at the start with %d open", entries, cutStart, len(d.Open))
	}
}

// checkStack plays a consumer that keeps a stack.
func checkStack(t *testing.T, d *Decoded) {
	t.Helper()
	stack := append([]uint32{}, d.Open...)
	var unwound, reentered uint64
	for i, e := range d.Events {
		n := len(stack)
		switch e.Kind {
		case KindEntry:
			stack = append(stack, e.Method)
			continue
		case KindReentered:
			stack = append(stack, e.Method)
			reentered++
			continue
		}
		if n == 0 {
			t.Fatalf("event %d, %v: nothing is open", i, e.Kind)
		}
		if e.Kind != KindExit && stack[n-1] != e.Method {
			t.Fatalf("event %d, %v of method %d: the innermost is %d", i, e.Kind, e.Method, stack[n-1])
		}
		switch e.Kind {
		case KindUnwound:
			unwound++
			fallthrough
		case KindExit, KindSuspended:
			stack = stack[:n-1]
		}
	}
	if unwound != d.Stats.Unwound || reentered != d.Stats.Reentered {
		t.Fatalf("%d unwound, %d reentered, counted %+v", unwound, reentered, d.Stats)
	}
}

// FuzzDecode decodes any slots and anchors. The input is a byte of flags, Begin and End, a count of anchors, the
// anchors, the rest are slots.
func FuzzDecode(f *testing.F) {
	for _, st := range stories {
		w := st.make()
		s := w.ring(min(len(w.slots), st.ringSlots(w)), st.begin)
		f.Add(encodeSegment(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s, ok := decodeSegment(in)
		if !ok {
			return
		}
		d := &Decoder{Methods: NewMethods(0)}
		d.Methods.Add(0x1000)
		d.Methods.Add(1<<32 + 0x1000)
		var before *Decoded
		for range 3 { // buffers are reused, calls go on
			out, err := d.Decode(s, before)
			if err != nil {
				return
			}
			check(t, s, &out)
			before = &out
		}
	})
}

func encodeSegment(s *Segment) []byte {
	out := []byte{0, byte(len(s.Anchors))}
	if s.Complete {
		out[0] = 1
	}
	put := func(v ...uint64) {
		for _, v := range v {
			out = binary.LittleEndian.AppendUint64(out, v)
		}
	}
	put(s.Begin, s.End)
	for _, a := range s.Anchors {
		put(a.Slot, a.Last, a.First, a.Until)
	}
	put(s.Slots...)
	return out
}

func decodeSegment(in []byte) (*Segment, bool) {
	if len(in) < 2 {
		return nil, false
	}
	s := &Segment{Complete: in[0]&1 != 0}
	anchors := int(in[1])
	var v []uint64
	for in = in[2:]; len(in) >= 8; in = in[8:] {
		v = append(v, binary.LittleEndian.Uint64(in))
	}
	if len(v) < 2+4*anchors {
		return nil, false
	}
	s.Begin, s.End, v = v[0], v[1], v[2:]
	for range anchors {
		s.Anchors = append(s.Anchors, Anchor{v[0], v[1], v[2], v[3]})
		v = v[4:]
	}
	s.Slots = v
	return s, true
}
