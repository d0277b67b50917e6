package inline

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
	uneven    bool     // some event is later than the one after it
	sps       []uint32 // of the framed records
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
// nothing odd about their time: at most Slack before the record after it. It returns the slot of the first one that is
// not. Exits and entries alternate as the program likes, so there is no branch between them: to the table an exit is
// one more word.
func (r *reverse) plain(i int, run run) int {
	slots, out := r.slots[:i+1], r.out[:r.pos]
	t, lower, unmatched := r.t, run.lower, r.unmatched
	narrow, shift := r.methods.narrow, r.methods.shift&63
	for ; i >= run.lo && i < len(slots); i-- {
		word, c := uint32(slots[i]), uint32(slots[i]>>32)
		back := uint32(t) - c
		if word-WordEntryWide < WordReservedMax || back > Slack || uint64(back) > t-lower || slots[i] == 0 {
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
	if r.slots[i] == 0 {
		r.stats.Unwritten++
		return i - 1
	}
	if n := r.stale(i, run); n > 0 {
		r.stats.Unwritten += uint64(n)
		return i - n
	}
	if word >= WordReservedMin && word <= WordReservedMax {
		r.stats.Damaged++
		return i - 1
	}
	first, whole := i, true // the record's first slot, and whether it is there
	if Double(word) {
		first--
		whole = first >= 0
	}
	if whole && (word == WordEntryFramed || word == WordResumedFramed) && uint32(r.slots[first]) == 0 {
		r.stats.Unwritten += 2 // the stub was left between the second slot, which it writes first, and the method
		return first - 1
	}
	r.t = r.time(c, run, run.anchored && first == run.lo)
	e := Event{Counter: r.t, Kind: KindEntry}
	if !whole {
		r.stats.Damaged++
		if word == WordResumed || word == WordResumedFramed {
			return first // it ended methods of which there is no record either
		}
	} else {
		e.Kind, e.Method = r.meaning(word, r.slots[first])
	}
	if e.Kind == KindExit {
		r.unmatched++
	} else {
		r.unmatched = max(r.unmatched-1, 0)
	}
	r.pos--
	r.out[r.pos] = e
	return first - 1
}

// meaning is what a record with a word says, whose first slot is given.
func (r *reverse) meaning(word uint32, slot uint64) (Kind, uint32) {
	switch word {
	case WordExit:
		return KindExit, Unknown
	case WordEntryWide:
		return KindEntry, r.methods.Wide(slot)
	case WordResumed:
		r.stats.Resumes++
		return KindResumed, r.methods.Resumed(slot)
	case WordEntryFramed, WordResumedFramed:
		r.sps = append(r.sps, uint32(slot>>32))
		if word == WordEntryFramed {
			return kindEntryFramed, r.methods.Low(uint32(slot))
		}
		r.stats.Resumes++
		return kindResumedFramed, r.methods.Low(uint32(slot))
	}
	return KindEntry, r.methods.Narrow(word)
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

// maxStale is how many slots in a row can be stale: two records of two slots, of a stub and of the handler of a signal
// that came in the middle of it.
const maxStale = 4

// stale tells how many slots, of which i is the newest, hold what an earlier lap of the ring left there; 0 if slot i is
// a record of this lap.
//
// Read as one of this lap, such a slot seems to lie long before the record after it, and the records before it longer
// still: by a whole wrap of the counter's low half, which would move all of them. What tells are these older records.
// If two of them in a row claim a time between slot i's and that of the record after it, they are right, since two
// gaps without an anchor do not add up to a wrap; and slot i is older than they are although it stands behind them.
func (r *reverse) stale(i int, run run) int {
	back := uint32(r.t) - uint32(r.slots[i]>>32)
	if back <= Slack || back > 1<<32-BackStep {
		return 0
	}
	later := func(p int) bool {
		b := uint32(r.t) - uint32(r.slots[p]>>32)
		word := uint32(r.slots[p])
		return b < BackStep && b+Slack < back && r.slots[p] != 0 && (word < WordReservedMin || word > WordReservedMax)
	}
	for n := 1; n <= maxStale; n++ {
		p := i - n
		if p < run.lo {
			return 0
		}
		if !later(p) {
			continue
		}
		q := p - 1
		if Double(uint32(r.slots[p])) {
			q--
		}
		if q >= run.lo && later(q) {
			return n
		}
	}
	return 0
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
