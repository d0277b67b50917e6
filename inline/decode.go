package inline

import (
	"errors"
	"fmt"
)

// Event is one decoded record, or one thing that a resumed record did.
type Event struct {
	Counter uint64 // full value, ticks; never less than the event's before
	Method  uint32 // index in the Methods table: what was entered, resumed or left; Unknown for an exit
	Kind    Kind
}

// Stats counts what a decoder met. Add sums them over segments.
type Stats struct {
	Records uint64 // decoded
	// Damaged records could not be decoded: a reserved word, or a pointer that was overwritten at the old edge. An
	// entry whose pointer is gone is kept, as an entry of Unknown, and counted here too.
	Damaged uint64
	// Unwritten slots were reserved by a trace point that never wrote them: its thread was killed there, or a signal
	// handler did not come back to it. They hold zeros or what the lap before left there, and are no records.
	Unwritten uint64
	// Ambiguous records contradict the segment's bounds or anchors, or lie so close to one that a wrap can not be
	// told from a step back. They were moved to the nearest time that fits.
	Ambiguous uint64
	// BackSteps are records that claimed to be earlier than the one before, by less than BackStep. They were given
	// the time of the one before.
	BackSteps uint64
	// StaleAnchors were noted in an earlier lap of the ring, or contradict a newer anchor.
	StaleAnchors uint64
	// Orphans are methods that were entered before the first record that is left.
	Orphans uint64
	// Resumes are records of control coming back; LostResumes those that named a call of which no entry was seen.
	Resumes, LostResumes uint64
	// Unwound are the methods that they ended, without those that the same segment came back to. Reentered are the
	// methods that went on.
	Unwound, Reentered uint64
}

// Add adds o to s.
func (s *Stats) Add(o Stats) {
	s.Records += o.Records
	s.Damaged += o.Damaged
	s.Unwritten += o.Unwritten
	s.Ambiguous += o.Ambiguous
	s.BackSteps += o.BackSteps
	s.StaleAnchors += o.StaleAnchors
	s.Orphans += o.Orphans
	s.Resumes += o.Resumes
	s.LostResumes += o.LostResumes
	s.Unwound += o.Unwound
	s.Reentered += o.Reentered
}

// Decoder decodes the segments of one thread after another. Its buffers are reused: what Decode returns is good until
// the next call. The zero value with Methods set is ready.
type Decoder struct {
	Methods *Methods

	events []Event
	runs   []run
	sps    []uint32 // stack pointers of the framed records, newest first
	open   []uint32
	calls  calls
	serial uint64 // of the last Decode
}

// Decoded is one segment's events, oldest first, and the methods that were open before the first of them.
//
// The events are made consistent with Open: whoever keeps a stack that begins as Open, pushes at each KindEntry and
// KindReentered, and pops at each KindExit, KindUnwound and KindSuspended, never finds the stack empty. After each
// event the stack is what was open then; at KindResumed its top is that event's method.
type Decoded struct {
	Events []Event
	// Open lists the methods that were open when the segment began, outermost first: first Orphans of them that are
	// known by their exits alone (usually as Unknown), or because control came back into them, then those that the
	// segment before left open.
	Open    []uint32
	Orphans int
	Stats   Stats

	by     *Decoder
	serial uint64
}

// ErrNotLast is returned by Decode if the segment before is not what the decoder returned last.
var ErrNotLast = errors.New("not the segment that was decoded last")

// Decode decodes a segment. before is what the decoder returned last, if that is the thread's segment before and not a
// single record lies between the two; then methods that were open go on. Otherwise it is nil.
//
// The work is done from the newest record to the oldest, since only the last slot of a record says how wide it is. What
// resumed records did is found out in a second pass, forward, which segments without framed or resumed records skip.
func (d *Decoder) Decode(s *Segment, before *Decoded) (Decoded, error) {
	if err := s.check(); err != nil {
		return Decoded{}, err
	}
	switch {
	case before == nil:
		d.calls.reset()
	case before.by != d || before.serial != d.serial:
		return Decoded{}, fmt.Errorf("decode ring: segment before: %w", ErrNotLast)
	default:
		d.calls.settle(before)
	}
	d.serial++

	var st Stats
	d.runs, st.StaleAnchors = s.runs(d.runs)
	if cap(d.events) < len(s.Slots) {
		d.events = make([]Event, len(s.Slots))
	}
	r := reverse{
		slots: s.Slots, methods: d.Methods, out: d.events[:len(s.Slots)], pos: len(s.Slots), next: len(s.Slots),
		succ: ^uint64(0), stats: st, sps: d.sps[:0],
	}
	for _, run := range d.runs {
		r.decode(run)
	}
	d.sps = r.sps
	out := Decoded{Events: r.out[r.pos:], Stats: r.stats, by: d, serial: d.serial}
	out.Stats.Records = uint64(len(out.Events))
	if r.uneven {
		levelBackSteps(out.Events)
	}
	if r.stats.Resumes == 0 && len(r.sps) == 0 {
		// Only exits pop, one each, so that counting is enough. What was carried over stays in calls until the next
		// segment asks for it.
		out.Orphans = max(0, r.unmatched-len(d.calls.stack))
		d.calls.settled = false
		d.open = grow(d.open, out.Orphans, Unknown)
		for i := range d.calls.stack {
			d.open = append(d.open, d.calls.stack[i].method)
		}
	} else {
		d.open = d.open[:0]
		for i := range d.calls.stack {
			d.open = append(d.open, d.calls.stack[i].method)
		}
		f := forward{calls: &d.calls, buf: r.out, r: r.pos, sps: r.sps, stats: &out.Stats}
		f.run(len(s.Slots))
		d.events, out.Events = f.buf, f.buf[:f.w]
		out.Orphans = len(f.below)
		d.open = prependReversed(d.open, f.below)
	}
	out.Open = d.open
	out.Stats.Orphans = uint64(out.Orphans)
	return out, nil
}

func grow(s []uint32, n int, v uint32) []uint32 {
	s = s[:0]
	for range n {
		s = append(s, v)
	}
	return s
}

// prependReversed puts head, last element first, before s.
func prependReversed(s, head []uint32) []uint32 {
	n := len(s)
	s = append(s, head...)
	copy(s[len(head):], s[:n])
	for i, v := range head {
		s[len(head)-1-i] = v
	}
	return s
}
