package inline

import "math/rand/v2"

// A writer plays a traced thread and its recorder: it writes records into slots, and can note anchors.
type writer struct {
	slots   []uint64
	anchors []Anchor
	now     uint64
	begin   uint64 // when the recorder started the thread
	stack   []uint64
	ends    []int   // slots written after each record
	want    []Event // Method is filled in by the caller's table
	methods *Methods
}

func (w *writer) entry(method uint64, wide bool) {
	if wide {
		w.slots = AppendEntryWide(w.slots, w.now, method)
	} else {
		w.slots = AppendEntry(w.slots, w.now, method)
	}
	w.stack = append(w.stack, method)
	w.done(Event{w.now, w.methods.Add(method), KindEntry})
}

func (w *writer) exit() {
	w.slots = AppendExit(w.slots, w.now)
	if n := len(w.stack); n > 0 {
		w.stack = w.stack[:n-1]
	}
	w.done(Event{w.now, Unknown, KindExit})
}

func (w *writer) done(e Event) {
	w.want = append(w.want, e)
	w.ends = append(w.ends, len(w.slots))
}

// resumed unwinds to the method that is n frames below the top.
func (w *writer) resumed(n int) {
	k := len(w.stack) - n
	w.slots = AppendResumed(w.slots, w.now, w.stack[k-1])
	w.done(Event{w.now, w.methods.Add(w.stack[k-1]), KindResumed})
	w.stack = w.stack[:k]
}

// idle lets ticks pass, while the recorder looks at the cursor every 2^31 ticks.
func (w *writer) idle(ticks uint64) {
	late := min(ticks/3, 1<<31)
	a := Anchor{Slot: uint64(len(w.slots)), First: w.now + late, Until: w.now + ticks - late}
	if a.Slot > 0 {
		a.Last = w.slots[a.Slot-1]
	}
	w.anchors = append(w.anchors, a)
	w.now += ticks
}

// ring is what is left of the newest n slots.
func (w *writer) ring(n int, begin uint64) *Segment {
	drop := len(w.slots) - n
	s := &Segment{Slots: w.slots[drop:], Complete: drop == 0, Begin: begin, End: w.now}
	for _, a := range w.anchors {
		if a.Slot > uint64(drop) || drop == 0 {
			a.Slot -= uint64(drop)
			s.Anchors = append(s.Anchors, a)
		}
	}
	return s
}

// program is a random call tree of a number of methods whose addresses are spread as a linker does, with n records,
// written as real programs do: methods call favourites of their own again and again.
func program(rng *rand.Rand, w *writer, methods, records, maxDepth int, gap func() uint64) {
	addr := make([]uint64, methods)
	a := uint64(0x5555_5555_0000)
	for i := range addr {
		addr[i] = a
		a += 16 * uint64(1+rng.IntN(40))
	}
	pick := func() int {
		f := rng.Float64()
		return int(f * f * f * float64(methods))
	}
	for len(w.want) < records {
		w.now += gap()
		d := len(w.stack)
		if d == 0 || (d < maxDepth && rng.IntN(100) < 50) {
			w.entry(addr[pick()], false)
		} else {
			w.exit()
		}
	}
}
