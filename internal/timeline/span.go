package timeline

import (
	"braid/internal/kevent"
)

// SpanKind says what a Span is.
type SpanKind uint8

// The kinds of span. Those before SpanFsync are block requests.
const (
	SpanRead SpanKind = iota
	SpanWrite
	SpanFlush
	SpanDiscard
	SpanOtherRequest
	SpanFsync
	SpanMajorFault
	SpanReclaim
	numSpanKinds
)

var spanNames = [...]string{"read", "write", "flush", "discard", "other", "fsync", "major-fault", "reclaim"}

// String is the kind's name in reports.
func (k SpanKind) String() string {
	if k < numSpanKinds {
		return spanNames[k]
	}
	return "invalid"
}

// Span is something that a thread did or had done for it in the kernel, with a duration.
type Span struct {
	Start, End int64  // CLOCK_BOOTTIME ns; equal where only the end is known
	Sector     uint64 // requests: in units of 512 bytes
	Dev        uint32 // requests: major<<20 | minor
	Bytes      uint32 // requests; reclaim: pages reclaimed
	Kind       SpanKind
	Call       kevent.SyncCall // fsync: which call
	// Indirect: the request was issued by a kernel thread, and is given to this one because of its fsync.
	Indirect bool
	Failed   bool
}

// Request reports whether the span is a block request.
func (s *Span) Request() bool { return s.Kind < SpanFsync }

// DeviceKey is a device and what was asked of it.
type DeviceKey struct {
	Dev  uint32
	Kind SpanKind
}

// DeviceTotals sums requests over a recording.
type DeviceTotals struct {
	Requests, Bytes, Failed uint64
	TotalNs, MaxNs          int64 // from issue to completion
}

// SpanStats counts what could not be joined.
type SpanStats struct {
	// Unattributed requests were issued by the kernel for nobody in particular, or while no fsync of a traced thread
	// covered their issue to its return.
	Unattributed uint64
	// Unfinished requests were issued and had not completed at the end; Unissued completed, but were issued before
	// the beginning.
	Unfinished, Unissued uint64
}

const (
	maxOpenRequests  = 1 << 16
	maxIndirectSpans = 1 << 14
)

// spans turns I/O events in order of time into Spans.
//
// A request belongs to the thread that submitted it, if that is a traced one, also where a kernel worker issues it. A
// request that a kernel thread submitted itself (the journal, write-back) is indirect: it belongs to the first
// fsync-family call to return, of those that were running when it was issued, if it has completed by then. With two
// threads in fsync at a time this may give the one what the other asked for; the journal's commit serves both.
type spans struct {
	emit     func(tid uint32, s Span)
	devices  map[DeviceKey]*DeviceTotals
	open     map[uint64]struct{}
	indirect []Span // completed and not claimed, in order of completion
	stats    SpanStats
}

func newSpans(emit func(uint32, Span)) *spans {
	return &spans{emit: emit, devices: make(map[DeviceKey]*DeviceTotals), open: make(map[uint64]struct{})}
}

func (s *spans) event(h kevent.Header, body []byte) {
	end := int64(h.Time)
	switch h.Kind {
	case kevent.KindRqIssue:
		if e := kevent.DecodeRq(body); len(s.open) < maxOpenRequests {
			s.open[e.ID] = struct{}{}
		}
	case kevent.KindRqComplete:
		s.complete(h, kevent.DecodeRq(body))
	case kevent.KindFsync:
		e := kevent.DecodeFsync(body)
		sp := Span{Start: startOf(e.StartNs, end), End: end, Kind: SpanFsync, Call: e.Call, Failed: e.Ret < 0}
		s.claim(h.Tid, sp)
		s.emit(h.Tid, sp)
	case kevent.KindMajorFault:
		e := kevent.DecodeMajorFault(body)
		s.emit(h.Tid, Span{Start: startOf(e.StartNs, end), End: end, Kind: SpanMajorFault})
	case kevent.KindReclaim:
		e := kevent.DecodeReclaim(body)
		s.emit(h.Tid, Span{Start: startOf(e.StartNs, end), End: end, Kind: SpanReclaim, Bytes: e.Reclaimed})
	}
}

// startOf is a start that is not after end; 0 in an event means that it is not known.
func startOf(start uint64, end int64) int64 {
	if start == 0 || start > uint64(end) {
		return end
	}
	return int64(start)
}

func (s *spans) complete(h kevent.Header, e kevent.Rq) {
	delete(s.open, e.ID)
	if e.IssueNs == 0 {
		s.stats.Unissued++
	}
	sp := Span{
		Start: startOf(e.IssueNs, int64(h.Time)), End: int64(h.Time), Sector: e.Sector, Dev: e.Dev, Bytes: e.Bytes,
		Kind: requestKind(e.Op), Failed: e.Error != 0,
	}
	key := DeviceKey{sp.Dev, sp.Kind}
	d := s.devices[key]
	if d == nil {
		d = new(DeviceTotals)
		s.devices[key] = d
	}
	d.Requests++
	d.Bytes += uint64(sp.Bytes)
	d.TotalNs += sp.End - sp.Start
	d.MaxNs = max(d.MaxNs, sp.End-sp.Start)
	if sp.Failed {
		d.Failed++
	}
	switch {
	case e.OwnerTid != 0:
		s.emit(e.OwnerTid, sp)
	case h.Flags&kevent.FlagIndirect != 0:
		sp.Indirect = true
		if len(s.indirect) >= maxIndirectSpans {
			s.stats.Unattributed += maxIndirectSpans / 2
			s.indirect = append(s.indirect[:0], s.indirect[maxIndirectSpans/2:]...)
		}
		s.indirect = append(s.indirect, sp)
	default:
		s.stats.Unattributed++
	}
}

// claim gives the unclaimed indirect requests that were issued during a call to its thread.
func (s *spans) claim(tid uint32, call Span) {
	rest := s.indirect[:0]
	for _, sp := range s.indirect {
		if sp.Start >= call.Start && sp.Start <= call.End {
			s.emit(tid, sp)
		} else {
			rest = append(rest, sp)
		}
	}
	s.indirect = rest
}

func (s *spans) finish() {
	s.stats.Unattributed += uint64(len(s.indirect))
	s.stats.Unfinished += uint64(len(s.open))
	s.indirect = nil
}

func requestKind(op kevent.Op) SpanKind {
	switch op {
	case kevent.OpRead:
		return SpanRead
	case kevent.OpWrite:
		return SpanWrite
	case kevent.OpFlush:
		return SpanFlush
	case kevent.OpDiscard:
		return SpanDiscard
	}
	return SpanOtherRequest
}
