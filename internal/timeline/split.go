package timeline

// Split is a time divided by what the thread did in it.
type Split struct {
	Ns       [NumStates]int64
	IOWaitNs int64 // part of sleeping and blocked: waiting for I/O
	IOBytes  int64 // of the thread's block requests that were issued in it
}

// WallNs is the whole time.
func (s *Split) WallNs() int64 {
	return s.Ns[Unknown] + s.Ns[Running] + s.Ns[Runnable] + s.Ns[Sleeping] + s.Ns[Blocked]
}

// Add adds o to s.
func (s *Split) Add(o *Split) {
	for i := range s.Ns {
		s.Ns[i] += o.Ns[i]
	}
	s.IOWaitNs += o.IOWaitNs
	s.IOBytes += o.IOBytes
}

// sub is what came to s since it was old.
func (s *Split) sub(old *Split) (d Split) {
	for i := range s.Ns {
		d.Ns[i] = s.Ns[i] - old.Ns[i]
	}
	d.IOWaitNs = s.IOWaitNs - old.IOWaitNs
	d.IOBytes = s.IOBytes - old.IOBytes
	return d
}

// stretch is a time in which neither the state changes nor a request is issued, up to the next one's start.
type stretch struct {
	start  int64
	before Split // sums from the first stretch to this one's start, its own bytes included
	state  State
	ioWait bool
}

// at is the sums until time t within the stretch.
func (s *stretch) at(t int64) Split {
	sum := s.before
	sum.Ns[s.state] += t - s.start
	if s.ioWait {
		sum.IOWaitNs += t - s.start
	}
	return sum
}

// stretches cuts the time from begin on at the intervals' borders and the requests' issues. Times that no interval
// covers are Unknown. The last stretch has no end.
func stretches(dst []stretch, begin int64, intervals []Interval, spans []Span) []stretch {
	dst = append(dst[:0], stretch{start: begin})
	cut := func(t int64, state State, ioWait bool) {
		last := &dst[len(dst)-1]
		t = max(t, last.start)
		switch {
		case t == last.start:
			last.state, last.ioWait = state, ioWait
		case last.state != state || last.ioWait != ioWait:
			dst = append(dst, stretch{start: t, before: last.at(t), state: state, ioWait: ioWait})
		}
	}
	next := 0
	issue := func(until int64) {
		for ; next < len(spans) && spans[next].Start < until; next++ {
			s := &spans[next]
			if !s.Request() || s.Bytes == 0 || s.Start < begin {
				continue
			}
			last := &dst[len(dst)-1]
			if s.Start > last.start {
				dst = append(dst, stretch{start: s.Start, before: last.at(s.Start), state: last.state, ioWait: last.ioWait})
				last = &dst[len(dst)-1]
			}
			last.before.IOBytes += int64(s.Bytes)
		}
	}
	covered := begin
	for i := range intervals {
		iv := &intervals[i]
		if iv.End <= begin {
			continue
		}
		if iv.Start > covered {
			issue(covered)
			cut(covered, Unknown, false)
		}
		issue(iv.Start)
		cut(iv.Start, iv.State, iv.Flags&IOWait != 0)
		covered = max(covered, iv.End)
		issue(covered)
	}
	cut(covered, Unknown, false)
	issue(int64(1) << 62)
	return dst
}
