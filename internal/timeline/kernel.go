package timeline

import (
	"cmp"
	"math"
	"slices"

	"braid/internal/kevent"
)

// Activity is what the kernel events say of one thread. A thread number that was used twice is one Activity.
type Activity struct {
	Tid, Tgid uint32
	Name      string // the last one
	// Start and End are when the thread was created and ended, CLOCK_BOOTTIME ns; 0 if not seen.
	Start, End int64
	// States sums the time in each state over the recording, in ns.
	States [NumStates]int64
	// Intervals and Spans are those that touch the time that was asked for, in order of their starts.
	Intervals []Interval
	Spans     []Span
	// SpanCount and SpanNs sum all spans by kind, whether kept or not.
	SpanCount [numSpanKinds]uint64
	SpanNs    [numSpanKinds]int64
	// Bytes is the sum over block requests.
	Bytes uint64
	// Waits are all that the unit wait recorded, in order of their starts; of those that start together, longer ones
	// are first.
	Waits []Wait
	// Placed sums where it ran and how well placed it was, over the recording; Places are those that touch the time that
	// was asked for, in order. Of those that say nothing there is none: the thread waited, and no other processor was
	// idle; it ran, all processors are alike, and their frequencies are not known.
	Placed Placed
	Places []Place
	// Serves: the thread belongs to no traced process. It was recorded while it worked on a binder call of one.
	Serves bool
}

// InitialThread is what the process table showed of a thread when recording began.
type InitialThread struct {
	Tid, Tgid uint32
	Name      string
	State     State // by StateOfProc
	At        int64 // CLOCK_BOOTTIME ns
}

// KernelOptions says what to keep of the kernel events.
type KernelOptions struct {
	// Begin and End bound the recording, CLOCK_BOOTTIME ns. Events a second or more after End are taken for damage;
	// with End 0 there is no bound, and the last event ends all intervals.
	Begin, End int64
	// Keep returns the time for which a thread's intervals and spans are kept, and an empty one (to <= from) for
	// threads of which only the sums are wanted. Nil keeps everything.
	Keep func(tid uint32) (from, to int64)
	// WindowNs is how far apart events may be that are in the wrong order; 0 is DefaultWindowNs.
	WindowNs int64
	// Machine describes the processors; nil: nothing is known of them.
	Machine *Machine
}

// KernelStats counts what was wrong with the kernel events.
type KernelStats struct {
	StateStats
	SpanStats
	WaitStats
	Events   uint64
	Damaged  uint64 // events with an impossible time
	Unsorted uint64 // events that came too late to be sorted
}

// Kernel collects the activity of threads from a stream of kernel events.
type Kernel struct {
	opts    KernelOptions
	sorter  Sorter
	states  *States
	spans   *spans
	waits   *waits
	placing *placing
	threads map[uint32]*Activity
	leaving leaving
	stats   KernelStats
	last    int64
}

// NewKernel returns a Kernel. initial may be nil.
func NewKernel(o KernelOptions, initial []InitialThread) *Kernel {
	k := &Kernel{opts: o, threads: make(map[uint32]*Activity), last: o.Begin}
	k.states = NewStates(o.Begin, k.interval)
	k.spans = newSpans(k.span)
	k.waits = newWaits()
	if k.opts.Machine == nil {
		k.opts.Machine = NewMachine(nil)
	}
	k.placing = newPlacing(k.opts.Machine, k.states, k.place)
	k.sorter = Sorter{Deliver: k.deliver, WindowNs: o.WindowNs}
	if o.End != 0 {
		k.sorter.MaxTime = uint64(o.End) + 1_000_000_000
	}
	for _, t := range initial {
		a := k.thread(t.Tid)
		a.Tgid, a.Name = t.Tgid, t.Name
		if t.State != Unknown {
			k.states.Initial(t.Tid, t.Tgid, t.State, t.At)
		}
	}
	return k
}

// Push takes a chunk of whole events, as the trace file keeps them. After an error the rest of the chunk is lost.
func (k *Kernel) Push(chunk []byte) error { return k.sorter.Push(chunk) }

// Finish ends the recording, and must come before anything is read.
func (k *Kernel) Finish() {
	k.sorter.Flush()
	end := k.opts.End
	if end == 0 {
		end = k.last
	}
	k.states.Finish(end)
	k.spans.finish()
	for tid := range k.leaving.gone {
		delete(k.threads, tid)
	}
	k.stats.WaitStats = k.waits.finish(end, k.thread)
	k.stats.StateStats, k.stats.SpanStats, k.stats.Unsorted = k.states.Stats(), k.spans.stats, k.sorter.Late()
	k.stats.Damaged = k.sorter.Damaged()
	for _, a := range k.threads {
		slices.SortStableFunc(a.Spans, func(x, y Span) int { return cmp.Compare(x.Start, y.Start) })
		markIOWait(a.Intervals, a.Spans)
		k.waits.settle(a)
	}
}

// Transactions returns all binder calls, in the order in which they were first seen.
func (k *Kernel) Transactions() []*Transaction { return k.waits.binder.all }

// Stats returns the counts, once finished.
func (k *Kernel) Stats() KernelStats { return k.stats }

// Thread returns a thread's activity, or nil.
func (k *Kernel) Thread(tid uint32) *Activity { return k.threads[tid] }

// Threads returns all activity, in order of thread number.
func (k *Kernel) Threads() []*Activity {
	out := make([]*Activity, 0, len(k.threads))
	for _, a := range k.threads {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *Activity) int { return cmp.Compare(a.Tid, b.Tid) })
	return out
}

// Machine returns what is known of the processors.
func (k *Kernel) Machine() *Machine { return k.opts.Machine }

// Devices returns the sums of requests by device and operation.
func (k *Kernel) Devices() map[DeviceKey]*DeviceTotals { return k.spans.devices }

func (k *Kernel) thread(tid uint32) *Activity {
	a := k.threads[tid]
	if a == nil {
		a = &Activity{Tid: tid}
		k.threads[tid] = a
	}
	return a
}

func (k *Kernel) deliver(h kevent.Header, body []byte) {
	k.stats.Events++
	k.last = max(k.last, int64(h.Time))
	k.leaving.event(h, body, k.threads)
	k.names(h, body)
	k.states.Event(h, body)
	k.spans.event(h, body)
	k.waits.event(h, body, k.thread)
	k.server(h, body)
	k.placing.event(h, body)
}

// server has the states follow threads that were recorded only while they worked on a binder call.
func (k *Kernel) server(h kevent.Header, body []byte) {
	switch h.Kind {
	case kevent.KindBinderReceived:
		if k.waits.binder.serves(h.Tid) {
			tgid := kevent.DecodeBinderReceived(body).Tgid
			k.thread(h.Tid).Serves = k.states.Runs(h.Tid, tgid, h.CPU, int64(h.Time))
		}
	case kevent.KindSwitch:
		sleeps := h.Flags&kevent.FlagPreempted == 0 && kevent.DecodeSwitch(body).PrevState != 0
		if h.Flags&kevent.FlagPrevServer != 0 && sleeps && !k.waits.binder.serves(h.Tid) {
			k.states.Leave(h.Tid, int64(h.Time))
		}
	case kevent.KindBinderTransaction, kevent.KindBinderDone:
		if !k.waits.binder.serves(h.Tid) {
			k.states.Leave(h.Tid, int64(h.Time))
		}
	}
}

// names keeps what events say of a thread's name and process.
func (k *Kernel) names(h kevent.Header, body []byte) {
	set := func(tid, tgid uint32, comm *[16]byte) *Activity {
		a := k.thread(tid)
		a.Tgid = tgid
		if name := kevent.Comm(comm); len(name) > 0 && a.Name != string(name) {
			a.Name = string(name)
		}
		return a
	}
	switch h.Kind {
	case kevent.KindSwitch:
		if e := kevent.DecodeSwitch(body); h.Flags&(kevent.FlagNextTarget|kevent.FlagNextServer) != 0 {
			set(e.NextTid, e.NextTgid, &e.NextComm).Serves = h.Flags&kevent.FlagNextServer != 0
		}
	case kevent.KindWaking:
		e := kevent.DecodeWaking(body)
		set(h.Tid, e.Tgid, &e.Comm).Serves = h.Flags&kevent.FlagServer != 0
	case kevent.KindFork:
		e := kevent.DecodeFork(body)
		set(h.Tid, e.Tgid, &e.Comm).Start = int64(h.Time)
	case kevent.KindExec:
		e := kevent.DecodeExec(body)
		set(h.Tid, e.Tgid, &e.Comm)
	case kevent.KindRename:
		e := kevent.DecodeRename(body)
		set(h.Tid, e.Tgid, &e.Comm)
	case kevent.KindSyscallWait:
		k.thread(h.Tid).Tgid = kevent.DecodeSyscallWait(body).Tgid
	case kevent.KindBinderTransaction:
		k.thread(h.Tid).Tgid = kevent.DecodeBinderTransaction(body).Tgid
	case kevent.KindBinderReceived:
		k.thread(h.Tid).Tgid = kevent.DecodeBinderReceived(body).Tgid
	case kevent.KindExit:
		k.thread(h.Tid).End = int64(h.Time)
	}
}

func (k *Kernel) keeps(tid uint32, start, end int64) bool {
	if k.opts.Keep == nil {
		return true
	}
	from, to := k.opts.Keep(tid)
	return from < to && start < to && end >= from
}

func (k *Kernel) interval(tid uint32, iv Interval) {
	k.waits.interval(tid, iv)
	k.placing.interval(tid, iv)
	a := k.thread(tid)
	a.States[iv.State] += iv.End - iv.Start
	if k.keeps(tid, iv.Start, iv.End) {
		a.Intervals = append(a.Intervals, iv)
	}
}

func (k *Kernel) place(tid uint32, p Place) {
	a := k.thread(tid)
	a.Placed.add(&p, p.Start, p.End)
	if k.keeps(tid, p.Start, p.End) {
		a.Places = append(a.Places, p)
	}
}

func (k *Kernel) span(tid uint32, s Span) {
	a := k.thread(tid)
	a.SpanCount[s.Kind]++
	a.SpanNs[s.Kind] += s.End - s.Start
	if s.Request() {
		a.Bytes += uint64(s.Bytes)
	}
	if k.keeps(tid, s.Start, s.End) {
		a.Spans = append(a.Spans, s)
	}
}

// markIOWait flags the intervals in which a thread waited for I/O. Within an fsync, a fault or reclaim every wait is
// one for I/O. While a request is on its way only a blocked one is: the thread may have gone on to other things.
func markIOWait(intervals []Interval, spans []Span) {
	inside, request := int64(math.MinInt64), int64(math.MinInt64) // until when such a span lasts
	next := 0
	for i := range intervals {
		iv := &intervals[i]
		for ; next < len(spans) && spans[next].Start < iv.End; next++ {
			if s := &spans[next]; s.Request() {
				request = max(request, s.End)
			} else {
				inside = max(inside, s.End)
			}
		}
		if iv.State == Blocked && request > iv.Start || (iv.State == Blocked || iv.State == Sleeping) && inside > iv.Start {
			iv.Flags |= IOWait
		}
	}
}
