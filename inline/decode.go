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
	t       uint64 // time of the record after, within the run; before the first one the run's upper bound
	succ    uint64 // time of the record after, in whatever run
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
	r.t = run.upper
	i := min(run.hi, r.next) - 1 // less than hi-1 if an anchor was noted in the middle of a wide record
	for done := r.pos; i >= run.lo && r.pos == done; {
		i = r.record(i, run)
		if r.pos != done && r.t > r.succ { // both are within Slack of the anchor between them
			r.uneven = true
			r.stats.BackSteps++
		}
	}
	for i >= run.lo {
		if i = r.plain(i, run); i >= run.lo {
			i = r.record(i, run)
		}
	}
	r.next = i + 1
	if r.pos < len(r.out) {
		r.succ = r.out[r.pos].Counter
	}
}

// plain decodes records as long as they are exits or entries of one slot, of methods that were met before and with
// nothing odd about their time. It returns the slot of the first one that is not. Exits and entries alternate as the
// program likes, so there is no branch between them: to the table an exit is one more word.
func (r *reverse) plain(i int, run run) int {
	slots, out := r.slots[:i+1], r.out[:r.pos]
	t, lower, unmatched := r.t, run.lower, r.unmatched
	narrow, shift := r.methods.narrow, r.methods.shift&63
	for ; i >= run.lo && i < len(slots); i-- {
		word, c := uint32(slots[i]), uint32(slots[i]>>32)
		back := uint32(t) - c
		if word-WordEntryWide < WordReservedMax || back > 1<<32-BackStep || uint64(back) > t-lower {
			break
		}
		e := narrow[int(uint64(word)*hashFactor>>shift)&(len(narrow)-1)]
		if e == 0 || uint32(e>>32) != word {
			if e = r.methods.again(word); e == 0 {
				break
			}
		}
		t -= uint64(back)
		kind := KindEntry
		if word == WordExit {
			kind = KindExit
		}
		unmatched = max(unmatched+2*int(kind)-1, 0)
		n := len(out) - 1
		out[n] = Event{Counter: t, Method: uint32(e) - 1, Kind: kind}
		out = out[:n]
	}
	r.t, r.unmatched, r.pos = t, unmatched, len(out)
	return i
}

// record decodes the record that ends with slot i, and returns the slot before it.
func (r *reverse) record(i int, run run) int {
	word, c := uint32(r.slots[i]), uint32(r.slots[i]>>32)
	if word >= WordReservedMin && word <= WordReservedMax {
		r.stats.Damaged++
		return i - 1
	}
	first := i // the record's first slot
	if word == WordEntryWide || word == WordResumed {
		first--
	}
	r.t = r.time(c, run, run.anchored && first == run.lo)
	e := Event{Counter: r.t, Kind: KindEntry}
	switch word {
	case WordExit:
		e.Kind = KindExit
		r.unmatched += 2
	case WordEntryWide:
		if i--; i >= 0 {
			e.Method = r.methods.Wide(r.slots[i])
		} else {
			r.stats.Damaged++
		}
	case WordResumed:
		if i--; i < 0 {
			r.stats.Damaged++ // it ended methods of which there is no record either
			return i
		}
		r.stats.Resumes++
		e.Kind, e.Method = KindResumed, r.methods.Resumed(r.slots[i])
	default:
		e.Method = r.methods.Narrow(word)
	}
	r.unmatched = max(r.unmatched-1, 0)
	r.pos--
	r.out[r.pos] = e
	return i - 1
}

// time is the full counter of a record of which the low half is known. An early one may be up to BackStep below the
// run's lower bound.
func (r *reverse) time(c uint32, run run, early bool) uint64 {
	back := uint32(r.t) - c
	switch {
	case back > 1<<32-BackStep:
		r.uneven = true
		t := r.t + uint64(-back)
		if t > run.upper || t < r.t {
			r.stats.Ambiguous++
			return run.upper
		}
		r.stats.BackSteps++
		return t
	case uint64(back) > r.t-run.lower:
		if early && uint64(back) <= r.t-subSat(run.lower, BackStep) {
			return r.t - uint64(back)
		}
		r.stats.Ambiguous++
		return run.lower
	}
	return r.t - uint64(back)
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
