package timeline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"braid/internal/kevent"
)

// Wait is a system call in which a thread slept, or its wait for the reply to a binder call.
type Wait struct {
	Start, End int64 // CLOCK_BOOTTIME ns
	// SleptNs is how long the thread was asleep or blocked in it, of which WokenAt was the end; 0: not recorded.
	SleptNs int64
	WokenAt int64
	Object  uint64 // futexes: the address; files: the inode number, or an id
	Key     uint64 // of a futex that processes share, the same in all of them; 0: private, or not known
	Ret     int64
	// Binder is the call that the thread waited for, and nil for other waits.
	Binder *Transaction
	// Waker is the thread that released a futex; 0: not known, or nobody did.
	Waker    uint32
	FD       int32 // -1: none
	Switches uint32
	Nr       uint16
	Call     kevent.WaitCall
	File     kevent.FileKind
}

// Class is what a wait is for.
type Class uint8

// The classes of waits.
const (
	WaitOther  Class = iota // a system call of no other class
	WaitLock                // a futex: a lock, a condition, the end of a thread
	WaitBinder              // the reply to a binder call
	WaitServe               // the next binder call, of a thread that serves some
	WaitPoll                // one of several files, with epoll, poll or select
	WaitStream              // a pipe, socket, terminal, eventfd or the like, to be read or written
	WaitTimer               // time to pass
	numClasses
)

var classNames = [...]string{"other", "lock", "binder", "serve", "poll", "stream", "timer"}

// String is the class's name in JSON.
func (c Class) String() string { return classNames[c] }

// Class says what a wait is for.
func (w *Wait) Class() Class {
	switch w.Call {
	case kevent.WaitFutexWait, kevent.WaitFutexLockPI, kevent.WaitFutexWaitv:
		return WaitLock
	case kevent.WaitEpollWait, kevent.WaitPoll, kevent.WaitSelect:
		return WaitPoll
	case kevent.WaitNanosleep:
		return WaitTimer
	case kevent.WaitAccept, kevent.WaitConnect, kevent.WaitRecv, kevent.WaitSend:
		return WaitStream
	case kevent.WaitRead, kevent.WaitWrite:
		switch w.File {
		case kevent.FileTimerfd:
			return WaitTimer
		case kevent.FileNone, kevent.FileRegular, kevent.FileDirectory, kevent.FileBlockDevice:
			return WaitOther
		}
		return WaitStream
	case kevent.WaitIoctl:
		switch {
		case w.Binder != nil:
			return WaitBinder
		case w.File == kevent.FileBinder:
			return WaitServe
		}
	}
	return WaitOther
}

// TimedOut reports whether a futex was not released: the time that the caller gave was over, or a signal came.
func (w *Wait) TimedOut() bool { return w.Class() == WaitLock && w.Ret < 0 && w.Ret != -eagain }

const eagain = 11 // the futex had another value when the caller came; it was not asleep for that

// What names the call and its file: "read pipe", "futex_wait", "binder call".
func (w *Wait) What() string {
	switch {
	case w.Binder != nil:
		return "binder call"
	case w.Class() == WaitServe:
		return "wait for a binder call"
	case w.Call == kevent.WaitChild:
		return "wait for a child"
	case w.Call == kevent.WaitSignal:
		return "wait for a signal"
	case w.Call == kevent.WaitOther:
		return "system call " + strconv.Itoa(int(w.Nr))
	}
	name := w.Call.String()
	if w.File != kevent.FileNone && w.File != kevent.FileEpoll { // epoll's calls have no other file
		name += " " + strings.ReplaceAll(w.File.String(), "_", " ")
	}
	return name
}

// WaitStats counts what of waits is missing.
type WaitStats struct {
	BinderStats
	Beyond uint64 // waits that came after as many as are kept
}

const (
	maxWaits  = 1 << 19
	maxSleeps = 64 // of a thread in one call
	fewSleeps = 4  // the same as long as no such call is told
	maxWakes  = 1 << 18
)

// waits joins the events of the unit wait with each other and with threads' states.
type waits struct {
	binder *binder
	sleeps map[uint32][]Interval // of each thread since its last call that is told, oldest first
	wakes  map[futex][]wake      // in order of their ends
	nWakes int
	kept   int
	stats  WaitStats
}

// futex names one: by its key if that is known, else by process and address.
type futex struct {
	key, address uint64
	tgid         uint32
}

func futexOf(key, address uint64, tgid uint32) futex {
	if key != 0 {
		return futex{key: key}
	}
	return futex{address: address, tgid: tgid}
}

// wake is a futex call that woke somebody.
type wake struct {
	start, end int64
	tid        uint32
	one        bool // it woke one thread of this futex
}

func newWaits() *waits {
	return &waits{binder: newBinder(), sleeps: make(map[uint32][]Interval), wakes: make(map[futex][]wake)}
}

// interval takes what a thread did, when it is over.
func (w *waits) interval(tid uint32, iv Interval) {
	w.binder.interval(tid, iv)
	if iv.State != Sleeping && iv.State != Blocked {
		return
	}
	s, most := w.sleeps[tid], fewSleeps
	if w.kept > 0 {
		most = maxSleeps
	}
	if len(s) >= most {
		s = s[:copy(s, s[1:])]
	}
	w.sleeps[tid] = append(s, iv)
}

// event takes one event, after the states have. a is the activity of the event's thread.
func (w *waits) event(h kevent.Header, body []byte, thread func(tid uint32) *Activity) {
	at := int64(h.Time)
	switch h.Kind {
	case kevent.KindSyscallWait:
		e := kevent.DecodeSyscallWait(body)
		w.binder.returned(h.Tid, at, e.Call == kevent.WaitIoctl && e.File == kevent.FileBinder)
		w.returned(thread(h.Tid), at, e)
	case kevent.KindFutexWake:
		if e := kevent.DecodeFutexWake(body); w.nWakes < maxWakes {
			w.nWakes++
			f := futexOf(e.Key, e.Address, e.Tgid)
			w.wakes[f] = append(w.wakes[f], wake{startOf(e.StartNs, at), at, h.Tid, e.Op == kevent.WakeFutexWake && e.Woken == 1})
		}
	case kevent.KindBinderTransaction:
		w.binder.transaction(at, h.Tid, kevent.DecodeBinderTransaction(body))
	case kevent.KindBinderReceived:
		var slept Interval
		if s := w.sleeps[h.Tid]; len(s) > 0 {
			slept = s[len(s)-1]
		}
		w.binder.received(at, h.Tid, kevent.DecodeBinderReceived(body), slept)
	case kevent.KindBinderDone:
		w.binder.done(at, kevent.DecodeBinderDone(body))
	case kevent.KindExit:
		w.binder.exit(h.Tid)
		delete(w.sleeps, h.Tid)
	case kevent.KindLost:
		e := kevent.DecodeLost(body)
		name := string(e.Name[:])
		if strings.HasPrefix(name, "kernel_ring_full_binder") || strings.HasPrefix(name, "kernel_map_full_binder") {
			w.binder.lost = append(w.binder.lost, gap{startOf(e.SinceNs, at), at})
		}
	}
}

// returned keeps a call in which a thread slept.
func (w *waits) returned(a *Activity, at int64, e kevent.SyscallWait) {
	sleeps := w.sleeps[a.Tid]
	w.sleeps[a.Tid] = sleeps[:0]
	if e.StartNs == 0 && len(sleeps) == 0 {
		return // whether the thread slept is not known
	}
	v := Wait{
		Start: startOf(e.StartNs, at), End: at, Object: e.Object, Key: e.Key, Ret: e.Ret, FD: e.FD, Switches: e.Switches,
		Nr: e.Nr, Call: e.Call, File: e.File,
	}
	if e.StartNs == 0 {
		v.Start = sleeps[0].Start
	}
	for i := range sleeps {
		if s := &sleeps[i]; s.Start >= v.Start {
			v.SleptNs += s.End - s.Start
			v.WokenAt, v.Waker = s.End, s.Waker
		}
	}
	v.SleptNs, v.WokenAt = min(v.SleptNs, v.End-v.Start), min(v.WokenAt, v.End)
	w.keep(a, v)
}

func (w *waits) keep(a *Activity, v Wait) {
	if w.kept >= maxWaits {
		w.stats.Beyond++
		return
	}
	w.kept++
	a.Waits = append(a.Waits, v)
}

// finish gives binder calls to the threads that waited, and futexes the threads that released them.
func (w *waits) finish(end int64, thread func(tid uint32) *Activity) WaitStats {
	w.binder.finish(end)
	for _, x := range w.binder.all {
		until := x.Over
		if x.Open {
			until = max(end, x.Since)
		}
		if x.OneWay() || until == 0 || x.From == 0 || x.Since == 0 {
			continue
		}
		a := thread(x.From)
		if a.Tgid == 0 {
			a.Tgid = x.FromPid
		}
		w.keep(a, Wait{Start: x.Since, End: until, Binder: x, FD: -1, Call: kevent.WaitIoctl, File: kevent.FileBinder})
	}
	w.stats.BinderStats = w.binder.stats
	return w.stats
}

// settle puts a thread's waits in order, outer ones first, and finds out who released the futexes.
func (w *waits) settle(a *Activity) {
	slices.SortStableFunc(a.Waits, func(x, y Wait) int { return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End)) })
	a.Waits = withoutCalling(a.Waits)
	for i := range a.Waits {
		v := &a.Waits[i]
		if v.Class() != WaitLock {
			v.Waker = 0
			continue
		}
		w.release(a.Tgid, v)
	}
}

// withoutCalling leaves out binder's system calls in which a thread waited for the reply to its own call: the call tells it.
func withoutCalling(all []Wait) []Wait {
	var calls []*Transaction // in order of their waits
	for i := range all {
		if x := all[i].Binder; x != nil {
			calls = append(calls, x)
		}
	}
	if len(calls) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(w Wait) bool {
		if w.Class() != WaitServe {
			return false
		}
		i, _ := slices.BinarySearchFunc(calls, w.End, func(x *Transaction, t int64) int { return cmp.Compare(x.Since, t) })
		return i > 0 && (calls[i-1].Over >= w.Start || calls[i-1].Open)
	})
}

// release checks who ended a futex's wait. The scheduler knows who woke the thread. That may have been an interrupt, unless
// the call says that it was woken. Without the scheduler's events, the only call that can have done it is taken.
func (w *waits) release(tgid uint32, v *Wait) {
	if v.Ret < 0 {
		v.Waker = 0
		return
	}
	if v.WokenAt != 0 {
		return
	}
	list := w.wakes[futexOf(v.Key, v.Object, tgid)]
	i, _ := slices.BinarySearchFunc(list, v.Start, func(k wake, t int64) int { return cmp.Compare(k.end, t) })
	j := i
	for j < len(list) && list[j].start <= v.End {
		j++
	}
	if j == i+1 && list[i].one {
		v.Waker, v.WokenAt = list[i].tid, max(list[i].start, v.Start)
	}
}
