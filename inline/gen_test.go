package inline

import "math/rand/v2"

// A writer plays a traced thread and its recorder: it writes records into slots, and can note anchors. It also keeps what
// a decoder must make of them.
type writer struct {
	slots   []uint64
	anchors []Anchor
	now     uint64
	begin   uint64 // when the recorder started the thread
	stack   []call // open, outermost first, all stacks on top of each other
	left    [][]call
	on      int   // the stack that the thread is on
	ends    []int // slots written after each record
	marks   []int // events in want after each record
	want    []Event
	methods *Methods
}

// call is an open call, and its place on one of the thread's stacks.
type call struct {
	method uint64
	stack  int
	sp     uint64 // at the entry
	low    uint64 // where its frame ends
	framed bool
	event  int // in want: where it was left
}

// stackTop is where the thread's stacks begin: first its own, then those of coroutines.
func stackTop(stack int) uint64 {
	if stack == 0 {
		return 0x7fff_0000_4000 // its low half wraps soon
	}
	return 0x7f00_4000_0000 + uint64(stack)*0x1_0000
}

// frameSize is the compiler's, one for each method.
func frameSize(method uint64) uint64 { return 16 + method>>4%7*32 }

// push opens a call on the stack that the thread is on.
func (w *writer) push(method uint64, framed bool) *call {
	c := call{method: method, stack: w.on, sp: stackTop(w.on) - 8, framed: framed}
	for i := range w.stack {
		if w.stack[i].stack == w.on {
			c.sp = w.stack[i].low - 8
		}
	}
	c.low = c.sp - frameSize(method)
	w.stack = append(w.stack, c)
	return &w.stack[len(w.stack)-1]
}

func (w *writer) entry(method uint64, wide bool) {
	if wide {
		w.slots = AppendEntryWide(w.slots, w.now, method)
	} else {
		w.slots = AppendEntry(w.slots, w.now, method)
	}
	w.push(method, false)
	w.done(Event{w.now, w.methods.Add(method), KindEntry})
}

// framed enters a method that control can come back into.
func (w *writer) framed(method uint64) {
	c := w.push(method, true)
	w.slots = AppendEntryFramed(w.slots, w.now, method, c.sp)
	w.done(Event{w.now, w.methods.Add(method), KindEntry})
}

func (w *writer) exit() {
	w.slots = AppendExit(w.slots, w.now)
	if n := len(w.stack); n > 0 {
		w.on = w.stack[n-1].stack // if that was the stack's last call: uc_link
		w.stack = w.stack[:n-1]
	}
	w.done(Event{w.now, Unknown, KindExit})
}

func (w *writer) done(e Event) {
	w.want = append(w.want, e)
	w.ends = append(w.ends, len(w.slots))
	w.marks = append(w.marks, len(w.want))
}

// leave ends the calls above the first k.
func (w *writer) leave(k int) {
	for i := len(w.stack) - 1; i >= k; i-- {
		w.stack[i].event = len(w.want)
		w.want = append(w.want, Event{w.now, w.methods.Add(w.stack[i].method), KindUnwound})
	}
	if above := w.stack[k:]; len(above) > 0 {
		w.left = append(w.left, append([]call{}, above...))
	}
	w.stack = w.stack[:k]
}

// resumed unwinds to the method that is n frames below the top, or a later call of it if its record can not tell.
func (w *writer) resumed(n int) {
	k := len(w.stack) - n
	for i := k; i < len(w.stack) && !w.stack[k-1].framed; i++ {
		if w.stack[i].method == w.stack[k-1].method {
			k = i + 1
		}
	}
	w.leave(k)
	w.back()
}

// back writes the resumed record of the innermost method.
func (w *writer) back() {
	c := &w.stack[len(w.stack)-1]
	w.on = c.stack
	if c.framed {
		w.slots = AppendResumedFramed(w.slots, w.now, c.method, c.low)
	} else {
		w.slots = AppendResumed(w.slots, w.now, c.method)
	}
	w.done(Event{w.now, w.methods.Add(c.method), KindResumed})
}

// start goes to a new stack, whose first method is entered next.
func (w *writer) start(stack int) { w.on = stack }

// swap goes to a stack that was left, or that is open further down: swapcontext returns there.
func (w *writer) swap(stack int) {
	for k := len(w.stack); k > 0; k-- {
		if w.stack[k-1].stack == stack {
			w.leave(k)
			w.back()
			return
		}
	}
	for i := len(w.left) - 1; i >= 0; i-- { // the stack's calls may have been left at several times
		var chain, rest []call
		for _, c := range w.left[i] {
			if c.stack == stack {
				chain = append(chain, c)
			} else {
				rest = append(rest, c)
			}
		}
		if len(chain) == 0 {
			continue
		}
		w.left[i] = rest
		for _, c := range chain {
			w.want[c.event].Kind = KindSuspended
			w.want = append(w.want, Event{w.now, w.methods.Add(c.method), KindReentered})
		}
		w.stack = append(w.stack, chain...)
		w.back()
		return
	}
	panic("no such stack")
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
