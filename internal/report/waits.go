package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"braid/internal/timeline"
)

// Waits are what threads slept for, as the unit wait recorded it. Each list has those with the most time first.
type Waits struct {
	Locks  []Lock        `json:"locks"`
	Binder []BinderCalls `json:"binder"`
	Calls  []WaitCalls   `json:"calls"`
	// Unanswered binder calls had no reply that was seen, and were not under way at the end either. Unsent ones were
	// received or answered, and the call itself was before the recording, or lost. Both are of all threads.
	Unanswered uint64 `json:"unanswered"`
	Unsent     uint64 `json:"unsent"`
}

// Lock is a futex that threads waited for: a lock, a condition, the end of a thread.
type Lock struct {
	Pid     uint32 `json:"pid"`     // of the process that waited; of several, the first
	Address string `json:"address"` // there, in hexadecimal
	Shared  bool   `json:"shared"`  // between processes
	Waits   uint64 `json:"waits"`
	TotalNs int64  `json:"total_ns"` // from call to return
	MaxNs   int64  `json:"max_ns"`
	// TimedOut waits ended without a release.
	TimedOut uint64 `json:"timed_out"`
	// Waiting are the methods that waited, and Released the threads that ended waits, with the most time of waits first.
	Waiting  []Waiting `json:"waiting"`
	Released []Release `json:"released"`
}

// Waiting is a method that waited itself.
type Waiting struct {
	Method string `json:"method"` // empty: none that was recorded
	Waits  uint64 `json:"waits"`
	Ns     int64  `json:"ns"`
}

// Release is a thread that ended waits, in one method.
type Release struct {
	Tid    uint32 `json:"tid"` // 0: not known
	Name   string `json:"name"`
	Method string `json:"method"` // empty: none that was recorded
	Waits  uint64 `json:"waits"`
	Ns     int64  `json:"ns"` // of the waits
}

// BinderCalls are one process's calls to another one with one code.
type BinderCalls struct {
	Pid       uint32 `json:"pid"`
	Process   string `json:"process"` // empty: not known
	ToPid     uint32 `json:"to_pid"`
	ToProcess string `json:"to_process"`
	Code      uint32 `json:"code"`
	OneWay    bool   `json:"one_way"`
	// Within: the caller is no process that was recorded, and called while it worked on a call of one.
	Within bool   `json:"within"`
	Calls  uint64 `json:"calls"`
	// TotalNs is what callers waited, and MaxNs the longest; 0 for one-way calls.
	TotalNs int64 `json:"total_ns"`
	MaxNs   int64 `json:"max_ns"`
	// QueuedNs is until the receipts, ServedNs from there to the replies, ReplyNs until those were received; of the calls
	// of which these were seen.
	QueuedNs int64 `json:"queued_ns"`
	ServedNs int64 `json:"served_ns"`
	ReplyNs  int64 `json:"reply_ns"`
	// Server is what the threads that worked on the calls did, from the calls to the replies.
	Server ServerTimes `json:"server"`
	// Unreceived, Unanswered and Open calls: nobody was seen to receive them; no answer was seen (of calls that are not
	// one-way); and those of the latter that were under way when the recording ended.
	Unreceived uint64 `json:"unreceived"`
	Unanswered uint64 `json:"unanswered"`
	Open       uint64 `json:"open"`
}

// ServerTimes is a time by state, in ns. What is not known is missing.
type ServerTimes struct {
	RunningNs  int64 `json:"running_ns"`
	RunnableNs int64 `json:"runnable_ns"`
	SleepingNs int64 `json:"sleeping_ns"`
	BlockedNs  int64 `json:"blocked_ns"`
}

// WaitCalls are waits in one kind of system call, at one kind of file.
type WaitCalls struct {
	Class   string `json:"class"`
	Call    string `json:"call"` // with the kind of its file
	Waits   uint64 `json:"waits"`
	TotalNs int64  `json:"total_ns"` // from call to return
	SleptNs int64  `json:"slept_ns"` // of these; 0 without the scheduler's events
	MaxNs   int64  `json:"max_ns"`
}

// waits sums up the waits of the chosen threads.
func (r *Report) waits(t *timeline.Trace, o Options) error {
	w := &Waits{Locks: []Lock{}, Binder: []BinderCalls{}, Calls: []WaitCalls{}}
	shown := make(map[uint32]bool)
	var locks []lockWait
	calls := make(map[string]*WaitCalls)
	for _, a := range t.Kernel.Threads() {
		shown[a.Tid] = o.shows(a.Tgid, a.Tid, a.Name)
		if !shown[a.Tid] || a.Serves && o.Thread == "" {
			continue
		}
		for i := range a.Waits {
			v := &a.Waits[i]
			switch v.Class() {
			case timeline.WaitBinder:
				continue
			case timeline.WaitLock:
				locks = append(locks, lockWait{a, v, "", ""})
				continue
			}
			c := calls[v.What()]
			if c == nil {
				c = &WaitCalls{Class: v.Class().String(), Call: v.What()}
				calls[c.Call] = c
			}
			c.Waits++
			c.TotalNs += v.End - v.Start
			c.SleptNs += v.SleptNs
			c.MaxNs = max(c.MaxNs, v.End-v.Start)
		}
	}
	for _, c := range calls {
		w.Calls = append(w.Calls, *c)
	}
	slices.SortFunc(w.Calls, func(a, b WaitCalls) int {
		return cmp.Or(cmp.Compare(b.TotalNs, a.TotalNs), cmp.Compare(a.Call, b.Call))
	})
	if err := nameMethods(t, locks); err != nil {
		return err
	}
	w.Locks = sumLocks(t, locks)
	w.Binder = binderCalls(t, shown)
	st := t.Kernel.Stats()
	w.Unanswered, w.Unsent = st.Unanswered, st.Unsent
	if len(w.Locks)+len(w.Binder)+len(w.Calls) > 0 || w.Unanswered+w.Unsent > 0 {
		r.Waits = w
	}
	return nil
}

// binderCalls sums the calls from or to threads that are shown.
func binderCalls(t *timeline.Trace, shown map[uint32]bool) []BinderCalls {
	type key struct {
		from, to, code uint32
		oneWay, within bool
	}
	sums := make(map[key]*BinderCalls)
	for _, x := range t.Kernel.Transactions() {
		if !shown[x.From] && !shown[x.To] || x.Sent == 0 {
			continue
		}
		caller := t.Kernel.Thread(x.From)
		k := key{x.FromPid, x.ToPid, x.Code, x.OneWay(), caller != nil && caller.Serves}
		b := sums[k]
		if b == nil {
			b = &BinderCalls{
				Pid: k.from, Process: t.ProcessName(k.from), ToPid: k.to, ToProcess: t.ProcessName(k.to), Code: k.code,
				OneWay: k.oneWay, Within: k.within,
			}
			sums[k] = b
		}
		b.add(x, int64(t.Meta.End.BootNs))
	}
	all := make([]BinderCalls, 0, len(sums))
	for _, b := range sums {
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b BinderCalls) int {
		return cmp.Or(cmp.Compare(b.TotalNs, a.TotalNs), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Pid, b.Pid), cmp.Compare(a.ToPid, b.ToPid),
			cmp.Compare(a.Code, b.Code))
	})
	return all
}

func (b *BinderCalls) add(x *timeline.Transaction, end int64) {
	b.Calls++
	until := x.Over
	if x.Open {
		b.Open++
		until = end
	}
	if until > x.Sent && !x.OneWay() {
		b.TotalNs += until - x.Sent
		b.MaxNs = max(b.MaxNs, until-x.Sent)
	}
	if x.Received == 0 {
		b.Unreceived++
	}
	if !x.OneWay() && x.ReplyID == 0 {
		b.Unanswered++
	}
	queued, served, reply := x.Parts()
	b.QueuedNs, b.ServedNs, b.ReplyNs = b.QueuedNs+queued, b.ServedNs+served, b.ReplyNs+reply
	did := x.Did()
	b.Server.RunningNs += did[timeline.Running]
	b.Server.RunnableNs += did[timeline.Runnable]
	b.Server.SleepingNs += did[timeline.Sleeping]
	b.Server.BlockedNs += did[timeline.Blocked]
}

// lockWait is a wait for a futex, with the methods that the waiter and the one that released it were in.
type lockWait struct {
	thread          *timeline.Activity
	wait            *timeline.Wait
	waiting, holder string
}

// nameMethods fills in the methods, with one pass over each thread that has records.
func nameMethods(t *timeline.Trace, waits []lockWait) error {
	type question struct {
		at     int64
		answer *string
	}
	asked := make(map[uint32][]question)
	for i := range waits {
		w := &waits[i]
		asked[w.thread.Tid] = append(asked[w.thread.Tid], question{w.wait.Start, &w.waiting})
		if by := w.wait.Waker; by != 0 {
			asked[by] = append(asked[by], question{w.wait.WokenAt, &w.holder})
		}
	}
	for _, th := range t.Threads {
		list := asked[th.Tid]
		if len(list) == 0 || t.Clock == nil {
			continue
		}
		slices.SortStableFunc(list, func(a, b question) int { return cmp.Compare(a.at, b.at) })
		times := make([]int64, len(list))
		for i := range list {
			times[i] = list[i].at
		}
		err := t.MethodsAt(th, times, func(i int, method uint32) { *list[i].answer = th.Space.Name(method).Name })
		if err != nil {
			return fmt.Errorf("find the methods of waits in thread %d: %w", th.Tid, err)
		}
	}
	return nil
}

// sumLocks sums waits by futex.
func sumLocks(t *timeline.Trace, waits []lockWait) []Lock {
	type futex struct {
		pid          uint32
		address, key uint64
	}
	type sums struct {
		lock     *Lock
		waiting  map[string]*Waiting
		released map[Release]*Release
	}
	byFutex := make(map[futex]*sums)
	for i := range waits {
		v, a := waits[i].wait, waits[i].thread
		k := futex{pid: a.Tgid, address: v.Object}
		if v.Key != 0 {
			k = futex{key: v.Key}
		}
		s := byFutex[k]
		if s == nil {
			s = &sums{
				&Lock{Pid: a.Tgid, Address: fmt.Sprintf("%#x", v.Object), Shared: v.Key != 0},
				make(map[string]*Waiting), make(map[Release]*Release),
			}
			byFutex[k] = s
		}
		ns := v.End - v.Start
		s.lock.Waits++
		s.lock.TotalNs += ns
		s.lock.MaxNs = max(s.lock.MaxNs, ns)
		in := s.waiting[waits[i].waiting]
		if in == nil {
			in = &Waiting{Method: waits[i].waiting}
			s.waiting[in.Method] = in
		}
		in.Waits++
		in.Ns += ns
		if v.TimedOut() {
			s.lock.TimedOut++
			continue
		}
		by := Release{Tid: v.Waker, Name: threadName(t, v.Waker), Method: waits[i].holder}
		sum := s.released[by]
		if sum == nil {
			sum = &Release{Tid: by.Tid, Name: by.Name, Method: by.Method}
			s.released[by] = sum
		}
		sum.Waits++
		sum.Ns += ns
	}
	locks := make([]Lock, 0, len(byFutex))
	for _, s := range byFutex {
		s.lock.Waiting, s.lock.Released = []Waiting{}, []Release{}
		for w := range maps.Values(s.waiting) {
			s.lock.Waiting = append(s.lock.Waiting, *w)
		}
		for w := range maps.Values(s.released) {
			s.lock.Released = append(s.lock.Released, *w)
		}
		slices.SortFunc(s.lock.Waiting, func(a, b Waiting) int { return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Method, b.Method)) })
		slices.SortFunc(s.lock.Released, func(a, b Release) int {
			return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Tid, b.Tid), cmp.Compare(a.Method, b.Method))
		})
		locks = append(locks, *s.lock)
	}
	slices.SortFunc(locks, func(a, b Lock) int {
		return cmp.Or(cmp.Compare(b.TotalNs, a.TotalNs), cmp.Compare(a.Pid, b.Pid), cmp.Compare(a.Address, b.Address))
	})
	return locks
}

// threadName is a thread's name, or empty.
func threadName(t *timeline.Trace, tid uint32) string {
	if a := t.Kernel.Thread(tid); a != nil && a.Name != "" {
		return a.Name
	}
	if i := slices.IndexFunc(t.Threads, func(th *timeline.Thread) bool { return th.Tid == tid }); i >= 0 {
		return t.Threads[i].Name
	}
	return ""
}
