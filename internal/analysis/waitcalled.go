package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"braid/internal/timeline"
)

// Called is whom a thread called through binder.
type Called struct {
	Pid     uint32 `json:"pid"`
	Process string `json:"process"` // empty: not known
	// Tid is the thread that worked on the longest call; 0: none was seen to receive it.
	Tid    uint32 `json:"tid,omitempty"`
	Thread string `json:"thread,omitempty"`
	Code   uint32 `json:"code"`
	Calls  uint64 `json:"calls"`
	Ns     int64  `json:"ns"` // from the calls until they were over; of those of which that was seen
	// QueuedNs is from calls to receipts, ServedNs from those to replies, ReplyNs the replies' way back; of the calls of
	// which these were seen.
	QueuedNs int64 `json:"queued_ns"`
	ServedNs int64 `json:"served_ns"`
	ReplyNs  int64 `json:"reply_ns"`
	// What the threads that worked on the calls did, from the calls to the replies.
	RunningNs  int64 `json:"running_ns"`
	RunnableNs int64 `json:"runnable_ns"`
	SleepingNs int64 `json:"sleeping_ns"`
	BlockedNs  int64 `json:"blocked_ns"`
	// Unanswered calls had no reply that was seen.
	Unanswered uint64 `json:"unanswered,omitempty"`
	// Waits are what the threads that worked on the calls waited for meanwhile, longest first, without calls of their own.
	Waits []Waited `json:"waits,omitempty"`
	// Next are the longest calls of one kind that these threads made meanwhile.
	Next *Called `json:"next,omitempty"`
}

// mostNested is how deep calls within calls are told.
const mostNested = 4

// called sums calls to one process with one code, at least one.
func (a *analyzer) called(calls []*timeline.Transaction, c *cpus, depth int) *Called {
	to := &Called{Pid: calls[0].ToPid, Process: a.trace.ProcessName(calls[0].ToPid), Code: calls[0].Code}
	longest := calls[0]
	for _, x := range calls {
		to.add(x)
		if x.Waited() > longest.Waited() {
			longest = x
		}
	}
	if longest.To != 0 {
		to.Tid, to.Thread = longest.To, c.comms[longest.To]
	}
	to.Waits = a.waitsWithin(calls, c)
	if depth > 1 {
		if next := a.nested(calls); len(next) > 0 {
			to.Next = a.called(next, c, depth-1)
		}
	}
	return to
}

// add adds the parts of one call.
func (c *Called) add(x *timeline.Transaction) {
	c.Calls++
	if x.ReplyID == 0 {
		c.Unanswered++
	}
	c.Ns += x.Waited()
	queued, served, reply := x.Parts()
	c.QueuedNs, c.ServedNs, c.ReplyNs = c.QueuedNs+queued, c.ServedNs+served, c.ReplyNs+reply
	did := x.Did()
	c.RunningNs, c.RunnableNs = c.RunningNs+did[timeline.Running], c.RunnableNs+did[timeline.Runnable]
	c.SleepingNs, c.BlockedNs = c.SleepingNs+did[timeline.Sleeping], c.BlockedNs+did[timeline.Blocked]
}

// waitsWithin sums what threads waited for while they worked on calls.
func (a *analyzer) waitsWithin(calls []*timeline.Transaction, c *cpus) []Waited {
	sums := make(map[thing]*Waited)
	for _, x := range calls {
		server := a.trace.Kernel.Thread(x.To)
		if x.Received == 0 || x.Replied == 0 || server == nil {
			continue
		}
		i, _ := slices.BinarySearchFunc(server.Waits, x.Received, func(w timeline.Wait, t int64) int { return cmp.Compare(w.Start, t) })
		for ; i < len(server.Waits) && server.Waits[i].Start < x.Replied; i++ {
			w := &server.Waits[i]
			cause := sleepOf(w)
			if cause == Binder {
				continue
			}
			t := thingOf(cause, w)
			sum := sums[t]
			if sum == nil {
				sum = &Waited{What: t.what}
				if cause == Lock {
					sum.Address = fmt.Sprintf("%#x", t.object)
				}
				sums[t] = sum
			}
			sum.Waits++
			sum.Ns += min(w.End, x.Replied) - w.Start
			if w.TimedOut() {
				sum.TimedOut++
			}
			if w.Waker != 0 {
				by := slices.IndexFunc(sum.Who, func(o Who) bool { return o.Tid == w.Waker })
				if by < 0 {
					by = len(sum.Who)
					sum.Who = append(sum.Who, Who{Tid: w.Waker, Name: c.comms[w.Waker]})
				}
				sum.Who[by].Ns += min(w.End, x.Replied) - w.Start
			}
		}
	}
	var all []Waited
	for _, w := range sums {
		slices.SortFunc(w.Who, func(a, b Who) int { return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Tid, b.Tid)) })
		w.Who = w.Who[:min(len(w.Who), mostWho)]
		all = append(all, *w)
	}
	slices.SortFunc(all, func(a, b Waited) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.What, b.What), cmp.Compare(a.Address, b.Address))
	})
	return all[:min(len(all), mostWaited)]
}

// nested are the calls that were made within others, to the process and with the code that took longest. One-way calls
// take no time.
func (a *analyzer) nested(calls []*timeline.Transaction) (longest []*timeline.Transaction) {
	around := make(map[*timeline.Transaction]bool, len(calls))
	for _, x := range calls {
		around[x] = true
	}
	kinds := make(map[thing][]*timeline.Transaction)
	var order []thing
	for _, x := range a.trace.Kernel.Transactions() {
		if x.Within == nil || !around[x.Within] || x.Waited() == 0 {
			continue
		}
		t := thing{cause: Binder, pid: x.ToPid, code: x.Code}
		if kinds[t] == nil {
			order = append(order, t)
		}
		kinds[t] = append(kinds[t], x)
	}
	most := int64(0)
	for _, t := range order {
		ns := int64(0)
		for _, x := range kinds[t] {
			ns += x.Waited()
		}
		if ns > most {
			longest, most = kinds[t], ns
		}
	}
	return longest
}
