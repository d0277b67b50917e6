package timeline

import (
	"fmt"
	"iter"
	"math"

	"braid/inline"
)

// Segment is one of a thread's ring segments.
type Segment struct {
	inline.Segment
	// Continues says that it begins where the segment before ended: no record lies between the two. Then methods that
	// were open go on; otherwise they are cut.
	Continues bool
	// Ended is when the thread ended, CLOCK_BOOTTIME ns, if that is known and before Segment.End; otherwise 0. Methods
	// that are open are cut there.
	Ended int64
}

// end is when the segment ends.
func (seg *Segment) end(c *ClockCursor) int64 {
	if seg.Ended != 0 {
		return seg.Ended
	}
	return c.Ns(seg.End)
}

// Segments gives a thread's segments in the order in which they were recorded. Each one may be overwritten when the
// next is asked for. An error ends the sequence.
type Segments = iter.Seq2[*Segment, error]

// SliceFlags say how a slice's ends came about, as inline's say.
type SliceFlags = inline.SliceFlags

// Slice is one call of a method, or a part of one where it was suspended.
type Slice struct {
	Begin, End int64  // CLOCK_BOOTTIME ns
	Method     uint32 // index in the decoder's Methods
	Depth      uint32 // number of methods that were open around it
	Flags      SliceFlags
	// Self is the time while no method that it called was open; Total is all of it.
	Self, Total Split
}

// Edge is one end of a slice.
type Edge struct {
	Ns     int64  // CLOCK_BOOTTIME
	Method uint32 // index in the decoder's Methods
	Begin  bool   // or its end
	Flags  SliceFlags
}

// batch is how many slices or edges are handed over at a time.
const batch = 512

// Joiner sweeps over a thread's method records and its states at the same time. Its buffers are reused from thread to
// thread; what it hands to a callback is good until that returns.
type Joiner struct {
	Clock   *Clock
	Methods *inline.Methods
	// Stats sums over all segments since it was last cleared. What was recorded twice is counted twice.
	Stats inline.Stats

	owners    owners // of the methods that are not the same all the time
	decoder   inline.Decoder
	stretches []stretch
	stack     []frame
	last      inline.Decoded
	edges     []Edge
	slices    []Slice
}

// Lost counts what of the records in Stats is lost, by names as in Trace.Lost.
func (j *Joiner) Lost() map[string]uint64 {
	return map[string]uint64{
		"records_damaged": j.Stats.Damaged, "records_ambiguous_time": j.Stats.Ambiguous,
		"ring_slots_unwritten": j.Stats.Unwritten,
	}
}

// frame is an open method. stack[0] stands for being in none.
type frame struct {
	begin   int64
	method  uint32
	flags   SliceFlags
	stretch int // in which it began
	self    Split
}

// sink is where a sweep's results go; each part may be nil.
type sink struct {
	table  *MethodTable
	edges  func([]Edge) error
	slices func([]Slice) error
}

// Slices gives each call of a thread when it ends, so that callees come before callers. activity is what the kernel
// events say of the thread, or nil.
func (j *Joiner) Slices(segments Segments, activity *Activity, visit func([]Slice) error) error {
	return j.sweep(segments, activity, sink{slices: visit})
}

// Edges gives the ends of all calls of a thread in order of time. Each begin has its end, and they nest.
func (j *Joiner) Edges(segments Segments, visit func([]Edge) error) error {
	return j.sweep(segments, nil, sink{edges: visit})
}

// Sum adds a thread's calls to table.
func (j *Joiner) Sum(segments Segments, activity *Activity, table *MethodTable) error {
	return j.sweep(segments, activity, sink{table: table})
}

// sweep is the state of one pass over a thread.
type sweep struct {
	*Joiner
	sink
	clock ClockCursor
	cur   int   // index in stretches
	until int64 // where stretches[cur] ends
	state State // of stretches[cur]
	last  int64 // time of the last event
}

func (j *Joiner) sweep(segments Segments, activity *Activity, to sink) error {
	j.decoder.Methods = j.Methods
	s := &sweep{Joiner: j, sink: to, clock: j.Clock.Cursor(), last: math.MinInt64}
	j.stack = append(j.stack[:0], frame{})
	j.edges, j.slices = j.edges[:0], j.slices[:0]
	started := false
	end := int64(0)
	for seg, err := range segments {
		if err != nil {
			return fmt.Errorf("read ring segment: %w", err)
		}
		if !started {
			s.begin(s.clock.Ns(seg.Begin), activity)
		} else if !seg.Continues {
			if err := s.cut(end); err != nil {
				return err
			}
		}
		if err := s.segment(seg, started && seg.Continues); err != nil {
			return err
		}
		started = true
		end = seg.end(&s.clock)
	}
	if !started { // no segment could be read
		return nil
	}
	if err := s.cut(end); err != nil {
		return err
	}
	return s.flush()
}

// begin prepares the states from time t on.
func (s *sweep) begin(t int64, a *Activity) {
	// A record may be a little earlier than the segment's begin.
	t -= s.Clock.duration(2 * inline.Slack)
	if a == nil {
		a = &Activity{}
	}
	s.Joiner.stretches = stretches(s.Joiner.stretches, t, a.Intervals, a.Spans)
	s.last = t
	s.enter(0)
	if s.table != nil {
		s.table.grow(s.Methods.Len())
	}
}

// enter makes stretch i the current one.
func (s *sweep) enter(i int) {
	s.cur, s.state, s.until = i, s.Joiner.stretches[i].state, math.MaxInt64
	if i+1 < len(s.Joiner.stretches) {
		s.until = s.Joiner.stretches[i+1].start
	}
}

// to moves on to time t, and gives the time since the last event to the innermost method. It returns t, or the last
// event's time if that is later.
func (s *sweep) to(t int64) int64 {
	if t <= s.last {
		return s.last
	}
	if t >= s.until {
		s.across(t)
		return t
	}
	top := &s.stack[len(s.stack)-1]
	top.self.Ns[s.state] += t - s.last
	if s.Joiner.stretches[s.cur].ioWait {
		top.self.IOWaitNs += t - s.last
	}
	s.last = t
	return t
}

// across is to for a time beyond the current stretch.
func (s *sweep) across(t int64) {
	old := s.Joiner.stretches[s.cur].at(s.last)
	i := s.cur
	for i+1 < len(s.Joiner.stretches) && s.Joiner.stretches[i+1].start <= t {
		i++
	}
	s.enter(i)
	sum := s.Joiner.stretches[i].at(t)
	diff := sum.sub(&old)
	top := &s.stack[len(s.stack)-1]
	top.self.Add(&diff)
	s.last = t
}

// segment decodes one segment and goes through its events. It may go on where the one before it ended.
func (s *sweep) segment(seg *Segment, goesOn bool) error {
	var before *inline.Decoded
	if goesOn {
		before = &s.Joiner.last
	}
	d, err := s.decoder.Decode(&seg.Segment, before)
	if err != nil {
		return err
	}
	s.Joiner.last = d
	s.Stats.Add(d.Stats)
	if s.table != nil {
		s.table.grow(s.Methods.Len())
	}
	begin := s.clock.Ns(seg.Begin)
	if len(d.Events) > 0 {
		begin = min(begin, s.clock.Ns(d.Events[0].Counter))
	}
	begin = s.to(begin)
	if d.Orphans > 0 {
		// They lie below what was carried over, which therefore ends here and begins again above them.
		if err := s.cut(begin); err != nil {
			return err
		}
		for _, m := range d.Open {
			if err := s.push(begin, s.owners.at(m, seg.Begin), inline.CutStart); err != nil {
				return err
			}
		}
	}
	for i := range d.Events {
		e := &d.Events[i]
		t := s.to(s.clock.Ns(e.Counter))
		switch e.Kind {
		case inline.KindEntry:
			err = s.push(t, s.method(e), 0)
		case inline.KindExit:
			err = s.pop(t, 0)
		case inline.KindUnwound:
			err = s.pop(t, inline.Unwound)
		case inline.KindSuspended:
			err = s.pop(t, inline.Suspended)
		case inline.KindReentered:
			err = s.push(t, s.method(e), inline.Reentered)
		}
		if err != nil {
			return err
		}
	}
	s.to(seg.end(&s.clock))
	return nil
}

// method is what an event's index stands for at its time.
func (s *sweep) method(e *inline.Event) uint32 {
	if len(s.owners) == 0 {
		return e.Method
	}
	return s.owners.at(e.Method, e.Counter)
}

// cut ends all methods at t.
func (s *sweep) cut(t int64) error {
	t = s.to(t)
	for len(s.stack) > 1 {
		if err := s.pop(t, inline.CutEnd); err != nil {
			return err
		}
	}
	return nil
}

func (s *sweep) push(t int64, method uint32, flags SliceFlags) error {
	s.stack = append(s.stack, frame{begin: t, method: method, flags: flags, stretch: s.cur})
	if s.table != nil {
		s.table.push(method, flags)
	}
	if s.sink.edges != nil {
		return s.edge(Edge{Ns: t, Method: method, Begin: true, Flags: flags})
	}
	return nil
}

func (s *sweep) pop(t int64, flags SliceFlags) error {
	f := &s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
	flags |= f.flags
	if s.table != nil && flags != 0 {
		s.table.ended(f.method, flags)
	}
	if s.sink.edges != nil {
		return s.edge(Edge{Ns: t, Method: f.method, Flags: flags})
	}
	if f.stretch == s.cur {
		if s.table != nil {
			s.table.popSingle(f.method, f.self.Ns[s.state], t-f.begin, s.state, s.Joiner.stretches[s.cur].ioWait)
		}
		if s.sink.slices == nil {
			return nil
		}
	}
	sum := s.Joiner.stretches[s.cur].at(t)
	old := s.Joiner.stretches[f.stretch].at(f.begin)
	total := sum.sub(&old)
	if s.table != nil && f.stretch != s.cur {
		s.table.pop(f.method, &f.self, &total)
	}
	if s.sink.slices != nil {
		s.Joiner.slices = append(s.Joiner.slices, Slice{
			Begin: f.begin, End: t, Method: f.method, Depth: uint32(len(s.stack) - 1), Flags: flags,
			Self: f.self, Total: total,
		})
		if len(s.Joiner.slices) >= batch {
			return s.flush()
		}
	}
	return nil
}

func (s *sweep) edge(e Edge) error {
	s.Joiner.edges = append(s.Joiner.edges, e)
	if len(s.Joiner.edges) >= batch {
		return s.flush()
	}
	return nil
}

// flush hands over what is in the batches.
func (s *sweep) flush() error {
	if len(s.Joiner.edges) > 0 {
		err := s.sink.edges(s.Joiner.edges)
		s.Joiner.edges = s.Joiner.edges[:0]
		if err != nil {
			return err
		}
	}
	if len(s.Joiner.slices) > 0 {
		err := s.sink.slices(s.Joiner.slices)
		s.Joiner.slices = s.Joiner.slices[:0]
		return err
	}
	return nil
}
