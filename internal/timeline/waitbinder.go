package timeline

import (
	"slices"

	"braid/internal/kevent"
)

// Transaction is one binder call: sent by a thread, received by another one, answered, and the answer received. Times are
// CLOCK_BOOTTIME ns; 0 is what was not seen. A Transaction does not change once the kernel events are finished.
type Transaction struct {
	ID      int32 // the kernel's debug_id; 0: the reply did not tell it, as for a call that was received before the recording
	ReplyID int32 // debug_id of the reply; 0: none was seen
	Node    int32 // the object that was called
	Code    uint32
	Flags   uint32
	// From is the thread that called, To the one that received the call, or answered it; 0: not seen.
	From, FromPid uint32
	To, ToPid     uint32
	// Sent and Received are of the call, Replied and Done of its reply. For what To did without a reply, a one-way call
	// above all, Replied is when To waited for the next call.
	Sent, Received, Replied, Done int64
	// Since is when From began to wait: Sent, or if that was not seen, when it began the sleep that the reply ended, if that
	// is known; the wait is longer then.
	Since int64
	// Over is when From no longer waited: Done, or when the system call in which it waited returned without a reply. 0 if
	// that was not seen, and for one-way calls.
	Over int64
	// Open: From still waited when the recording ended, and no events of binder were lost since it began to.
	Open bool
	// Within is the innermost call that From was serving when it sent this one, of those that are known; nil: none.
	Within *Transaction
	// Queued is what To did from Sent until Received, Served from Received until Replied (if Open, until the end), in ns
	// by state. What the kernel events do not tell is missing.
	Queued, Served [NumStates]int64
}

// OneWay reports whether the sender did not wait.
func (x *Transaction) OneWay() bool { return x.Flags&kevent.BinderOneWay != 0 }

// Parts is how long the call was queued until its receipt, served from there until the reply, and its reply on the way; 0
// where one end was not seen.
func (x *Transaction) Parts() (queued, served, reply int64) {
	if x.Sent != 0 && x.Received != 0 {
		queued = x.Received - x.Sent
	}
	if x.Received != 0 && x.Replied != 0 {
		served = x.Replied - x.Received
	}
	if x.ReplyID != 0 && x.Done != 0 {
		reply = x.Done - x.Replied
	}
	return queued, served, reply
}

// Waited is how long From waited, as far as that was seen, in ns; 0 if the call was not over.
func (x *Transaction) Waited() int64 {
	if x.Since == 0 || x.Over == 0 || x.OneWay() {
		return 0
	}
	return x.Over - x.Since
}

// Did is what To did while the call was queued and served, in ns by state. What is not known is missing.
func (x *Transaction) Did() (ns [NumStates]int64) {
	for s := range ns {
		ns[s] = x.Queued[s] + x.Served[s]
	}
	return ns
}

// BinderStats counts what of binder transactions could not be joined.
type BinderStats struct {
	// Unsent were received, or answered, and their call was not seen: it was before the beginning, or lost.
	Unsent uint64
	// Unanswered calls waited for a reply of which nothing was seen, and were not Open at the end.
	Unanswered uint64
	// Beyond is how many calls came after as many as are kept.
	Beyond uint64
}

const (
	maxTransactions = 1 << 18
	recentIntervals = 32 // of a thread, before it receives a call
)

// binder joins binder's events by their ids, which the kernel gives once. What is missing leaves a transaction incomplete,
// and never joins two.
type binder struct {
	all     []*Transaction
	calls   map[int32]*Transaction // sent, without a reply so far
	replies map[int32]*Transaction // by ReplyID, not received so far
	calling map[uint32][]*Transaction
	serving map[uint32][]*Transaction // by thread, in the order in which they were received
	watched map[uint32][]*Transaction // those that the thread's next intervals belong to
	recent  map[uint32][]Interval     // the last ones of each thread, oldest first
	lost    []gap
	stats   BinderStats
}

// gap is a time in which events were lost.
type gap struct{ from, to int64 }

func newBinder() *binder {
	return &binder{
		calls: make(map[int32]*Transaction), replies: make(map[int32]*Transaction), calling: make(map[uint32][]*Transaction),
		serving: make(map[uint32][]*Transaction), watched: make(map[uint32][]*Transaction), recent: make(map[uint32][]Interval),
	}
}

// keep reports whether there is room for one more transaction.
func (b *binder) keep(x *Transaction) bool {
	if len(b.all) >= maxTransactions {
		b.stats.Beyond++
		return false
	}
	b.all = append(b.all, x)
	return true
}

// transaction takes a call or a reply that was sent.
func (b *binder) transaction(at int64, tid uint32, e kevent.BinderTransaction) {
	if e.Reply != 0 {
		b.reply(at, tid, e)
		return
	}
	x := &Transaction{
		ID: e.DebugID, Node: e.Node, Code: e.Code, Flags: e.Flags, From: tid, FromPid: e.Tgid, ToPid: e.ToTgid, Sent: at, Since: at,
	}
	if !b.keep(x) {
		return
	}
	b.calls[x.ID] = x
	if list := b.serving[tid]; len(list) > 0 {
		x.Within = list[len(list)-1] // finish looks whether it was still served
	}
	if !x.OneWay() {
		b.calling[tid] = append(b.calling[tid], x)
	}
}

func (b *binder) reply(at int64, tid uint32, e kevent.BinderTransaction) {
	x := b.calls[e.InReplyTo]
	if e.InReplyTo == 0 || x == nil || x.OneWay() {
		b.stats.Unsent++
		x = &Transaction{ID: e.InReplyTo, From: e.ToTid, FromPid: e.ToTgid}
		if !b.keep(x) {
			return
		}
	}
	delete(b.calls, x.ID)
	x.Replied, x.ReplyID, x.To, x.ToPid = max(at, x.Sent, x.Received), e.DebugID, tid, e.Tgid
	b.replies[x.ReplyID] = x
	b.served(x)
	if list := b.calling[tid]; x.Received != 0 {
		b.calling[tid] = slices.DeleteFunc(list, func(o *Transaction) bool { return o.Sent > x.Received })
	}
}

// served ends the work on a transaction.
func (b *binder) served(x *Transaction) {
	b.serving[x.To] = slices.DeleteFunc(b.serving[x.To], func(o *Transaction) bool { return o == x })
}

// received takes the receipt of a call or of a reply. slept is the thread's last sleep; zero if none is known.
func (b *binder) received(at int64, tid uint32, e kevent.BinderReceived, slept Interval) {
	if x := b.replies[e.DebugID]; x != nil {
		delete(b.replies, e.DebugID)
		if x.Since == 0 && slept.Waker == x.To && slept.End >= x.Replied {
			x.Since = slept.Start
		}
		at = max(at, x.Replied) // events may come too late to be sorted
		x.From, x.FromPid, x.Done, x.Over = tid, e.Tgid, at, at
		b.waitsNot(x)
		return
	}
	x := b.calls[e.DebugID]
	if x == nil {
		b.stats.Unsent++
		return
	}
	x.Received, x.To, x.ToPid = max(at, x.Sent), tid, e.Tgid
	for _, iv := range b.recent[tid] {
		x.spend(iv)
	}
	b.serving[tid] = append(b.serving[tid], x)
	b.watched[tid] = append(b.watched[tid], x)
}

// done takes the end of what a thread did without a reply.
func (b *binder) done(at int64, e kevent.BinderDone) {
	if x := b.calls[e.DebugID]; x != nil && x.Received != 0 {
		delete(b.calls, e.DebugID)
		x.Replied = max(at, x.Received)
		b.served(x)
	}
}

// serves reports whether a thread works on a call.
func (b *binder) serves(tid uint32) bool { return len(b.serving[tid]) > 0 }

// returned takes the return of a system call in which a thread slept. Unless the thread works on a call that came after
// its own, that one is over; an ioctl of binder says when.
func (b *binder) returned(tid uint32, at int64, ioctl bool) {
	list := b.calling[tid]
	if len(list) == 0 {
		return
	}
	x := list[len(list)-1]
	if served := b.serving[tid]; len(served) > 0 && served[len(served)-1].Received > x.Sent {
		return
	}
	if ioctl {
		x.Over = max(at, x.Sent)
	}
	b.waitsNot(x)
}

// waitsNot takes a call from those that its thread waits for, with those that it made within it.
func (b *binder) waitsNot(x *Transaction) {
	list := b.calling[x.From]
	if i := slices.Index(list, x); i >= 0 {
		b.calling[x.From] = list[:i]
	}
}

// exit ends what a thread waited for or worked on.
func (b *binder) exit(tid uint32) {
	delete(b.calling, tid)
	delete(b.serving, tid)
}

// interval takes what a thread did, when it is over.
func (b *binder) interval(tid uint32, iv Interval) {
	if len(b.all) == 0 {
		return // nothing can be received
	}
	r := b.recent[tid]
	if len(r) == recentIntervals {
		r = r[:copy(r, r[1:])]
	}
	b.recent[tid] = append(r, iv)
	list := b.watched[tid]
	if len(list) == 0 {
		return
	}
	for _, x := range list {
		x.spend(iv)
	}
	b.watched[tid] = slices.DeleteFunc(list, func(x *Transaction) bool { return x.Replied != 0 && x.Replied <= iv.End })
}

// spend adds what To did in an interval.
func (x *Transaction) spend(iv Interval) {
	if iv.State == Unknown || iv.State >= NumStates {
		return
	}
	if ns := min(iv.End, x.Received) - max(iv.Start, x.Sent); ns > 0 {
		x.Queued[iv.State] += ns
	}
	end := x.Replied
	if end == 0 {
		end = iv.End
	}
	if ns := min(iv.End, end) - max(iv.Start, x.Received); ns > 0 {
		x.Served[iv.State] += ns
	}
}

// finish says which calls were open at the end, and drops what is not certain. All intervals must have come.
func (b *binder) finish(end int64) {
	open := make(map[*Transaction]bool)
	for _, list := range b.calling {
		for _, x := range list {
			open[x] = true
		}
	}
	for _, x := range b.all {
		switch {
		case x.ReplyID != 0:
		case open[x] && !b.lostIn(x.Sent, end):
			x.Open = true
			continue
		case !x.OneWay():
			b.stats.Unanswered++
		}
		if x.Replied == 0 {
			x.Served = [NumStates]int64{} // until when is not known
		}
	}
	for _, x := range b.all {
		if w := x.Within; w != nil && !w.Open && x.Sent > w.Replied {
			x.Within = nil
		}
	}
	b.calls, b.replies, b.calling, b.serving, b.watched, b.recent = nil, nil, nil, nil, nil, nil
}

func (b *binder) lostIn(from, to int64) bool {
	return slices.ContainsFunc(b.lost, func(g gap) bool { return g.from <= to && from <= g.to })
}
