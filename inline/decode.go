package inline

// Event is one decoded record.
type Event struct {
	Counter uint64 // full value, ticks; never less than the event's before
	Method  uint32 // index in the Methods table: what was entered or resumed; Unknown for an exit
	Kind    Kind
}

// Stats counts what a decoder met. Add sums them over segments.
type Stats struct {
	Records uint64 // decoded
	// Damaged records could not be decoded: a reserved word, or a pointer that was overwritten at the old edge. An
	// entry whose pointer is gone is kept, as an entry of Unknown, and counted here too.
	Damaged uint64
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
	// Resumes are records of control coming back; Unwound the methods that they ended, LostResumes those that named
	// a method of which no entry was seen.
	Resumes, Unwound, LostResumes uint64
}

// Add adds o to s.
func (s *Stats) Add(o Stats) {
	s.Records += o.Records
	s.Damaged += o.Damaged
	s.Ambiguous += o.Ambiguous
	s.BackSteps += o.BackSteps
	s.StaleAnchors += o.StaleAnchors
	s.Orphans += o.Orphans
	s.Resumes += o.Resumes
	s.Unwound += o.Unwound
	s.LostResumes += o.LostResumes
}

// Decoder decodes segments. Its buffers are reused: what Decode returns is good until the next call. The zero value
// with Methods set is ready.
type Decoder struct {
	Methods *Methods

	events []Event
	runs   []run
	stack  []uint32
}

// Decoded is one segment's events, oldest first, and the methods that were open before the first of them.
//
// The events are made consistent with Open: whoever keeps a stack that begins as Open, pushes at each entry, pops at
// each exit, and at each resumed record pops until the top is that record's method, never finds the stack empty.
type Decoded struct {
	Events []Event
	// Open lists the methods that were open when the segment began, outermost first: first Orphans of them that are
	// known by their exits alone (usually as Unknown), then those carried over.
	Open    []uint32
	Orphans int
	Stats   Stats
}

// Decode decodes a segment. carried lists the methods that are known to have been open at the segment's start,
// outermost first: the stack at the end of the thread's segment before, if not a single record lies between them, and
// nil otherwise. It may alias nothing that the decoder returned earlier.
//
// The work is done from the newest record to the oldest, since only the last slot of a record says how wide it is.
func (d *Decoder) Decode(s *Segment, carried []uint32) (Decoded, error) {
	if err := s.check(); err != nil {
		return Decoded{}, err
	}
	var st Stats
	d.runs, st.StaleAnchors = s.runs(d.runs)
	if cap(d.events) < len(s.Slots) {
		d.events = make([]Event, len(s.Slots))
	}
	r := reverse{
		slots: s.Slots, methods: d.Methods, out: d.events[:len(s.Slots)], pos: len(s.Slots), next: len(s.Slots),
		succ: ^uint64(0), stats: st,
	}
	for _, run := range d.runs {
		r.decode(run)
	}
	out := Decoded{Events: r.out[r.pos:], Stats: r.stats}
	if r.uneven {
		levelBackSteps(out.Events)
	}
	out.Stats.Records = uint64(len(out.Events))
	d.open(&out, carried, r.unmatched)
	return out, nil
}

// reverse is the state of decoding backwards. Events are written from the end of out.
type reverse struct {
	slots   []uint64
	methods *Methods
	out     []Event
	pos     int    // out[pos:] is done
	next    int    // slots[next:] are done
	succ    uint64 // time of the record after
	// unmatched counts exits whose entry has not been met yet; at the end, those that are orphans unless carried
	// over, provided there was no resumed record.
	unmatched int
	uneven    bool // some event is later than the one after it
	stats     Stats
}

// decode decodes one run. A record's full counter is the largest value that has its 32 bits and is not later than the
// record after it, or than the run's upper bound; unless it is less than BackStep later: then it is taken as it is,
// and levelled later.
func (r *reverse) decode(run run) {
	slots, out, pos, methods := r.slots, r.out, r.pos, r.methods
	unmatched := r.unmatched
	t := run.upper
	i := min(run.hi, r.next) - 1 // less than hi-1 if an anchor was noted in the middle of a wide record
	first := true
	for ; i >= run.lo; i-- {
		slot := slots[i]
		word, c := uint32(slot), uint32(slot>>32)
		if word-WordReservedMin <= WordReservedMax-WordReservedMin {
			r.stats.Damaged++
			continue
		}

		if back := uint32(t) - c; back > 1<<32-BackStep {
			r.uneven = true
			t += uint64(-back)
			if t > run.upper || t < uint64(-back) {
				t = run.upper
				r.stats.Ambiguous++
			} else {
				r.stats.BackSteps++
			}
		} else if uint64(back) > t-run.lower {
			t = run.lower
			r.stats.Ambiguous++
		} else {
			t -= uint64(back)
		}
		if first {
			first = false
			if t > r.succ { // both are within Slack of the anchor between them
				r.uneven = true
				r.stats.BackSteps++
			}
		}

		switch word {
		case WordExit:
			unmatched++
			pos--
			out[pos] = Event{Counter: t, Kind: KindExit}
		case WordEntryWide:
			if unmatched > 0 {
				unmatched--
			}
			pos--
			if i--; i >= 0 {
				out[pos] = Event{Counter: t, Method: methods.Wide(slots[i]), Kind: KindEntry}
			} else {
				r.stats.Damaged++
				out[pos] = Event{Counter: t, Method: Unknown, Kind: KindEntry}
			}
		case WordResumed:
			if i--; i >= 0 {
				r.stats.Resumes++
				pos--
				out[pos] = Event{Counter: t, Method: methods.Resumed(slots[i]), Kind: KindResumed}
			} else {
				r.stats.Damaged++ // it ends methods of which there is no record either
			}
		default:
			if unmatched > 0 {
				unmatched--
			}
			pos--
			out[pos] = Event{Counter: t, Method: methods.Narrow(word), Kind: KindEntry}
		}
	}
	r.pos, r.next, r.unmatched = pos, i+1, unmatched
	if !first {
		r.succ = t
	}
}

// levelBackSteps raises each event's time to that of the one before. Not the other way round: of a signal handler's
// records between a stub's read of the counter and its write, all but the interrupted stub's are right.
func levelBackSteps(events []Event) {
	var t uint64
	for i := range events {
		t = max(t, events[i].Counter)
		events[i].Counter = t
	}
}
