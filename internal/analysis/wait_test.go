package analysis

import (
	"slices"
	"strings"
	"testing"

	"braid/internal/kevent"

	"github.com/google/go-cmp/cmp"
)

// in makes what a does a system call that ends with it.
func (a *actor) in(e kevent.SyscallWait, do func()) func() {
	return func() {
		e.StartNs, e.Tgid = uint64(a.now), pid
		a.now += us
		do()
		a.now += us
		a.s.add(a.now, kevent.AppendSyscallWait(nil, kevent.Header{Time: uint64(a.now), Tid: a.tid}, e))
	}
}

func (a *actor) futex(ns int64, waker uint32, ret int64) func() {
	return a.in(kevent.SyscallWait{Call: kevent.WaitFutexWait, Object: 0x7f00_1230, FD: -1, Ret: ret}, a.sleep(ns, waker))
}

// binder calls thread 61 of process 60, which is runnable for 60% of the time and runs for the rest. Without answer, none
// is recorded.
func (a *actor) binder(ns int64, id int32, answer bool) func() {
	return func() {
		s, from := a.s, a.now
		s.add(from, kevent.AppendBinderTransaction(nil, kevent.Header{Time: uint64(from), Tid: a.tid}, kevent.BinderTransaction{
			DebugID: id, Tgid: pid, ToTgid: 60, Code: 3}))
		woken := kevent.Waking{WakerTid: a.tid, Tgid: 60}
		copy(woken.Comm[:], "Binder:60_1")
		s.add(from, kevent.AppendWaking(nil, kevent.Header{Time: uint64(from), Tid: 61, Flags: kevent.FlagServer}, woken))
		on := kevent.Switch{NextTid: 61, NextTgid: 60}
		copy(on.NextComm[:], "Binder:60_1")
		run := from + ns*6/10
		s.add(run, kevent.AppendSwitch(nil, kevent.Header{Time: uint64(run), CPU: 9, Flags: kevent.FlagNextServer}, on))
		s.add(run+us, kevent.AppendBinderReceived(nil, kevent.Header{Time: uint64(run + us), Tid: 61, CPU: 9}, kevent.BinderReceived{DebugID: id, Tgid: 60}))
		a.off(ns, kevent.StateSleeping, 61)
		if answer {
			s.add(a.now, kevent.AppendBinderTransaction(nil, kevent.Header{Time: uint64(a.now), Tid: 61, CPU: 9}, kevent.BinderTransaction{
				DebugID: id + 1, Tgid: 60, ToTgid: pid, ToTid: a.tid, InReplyTo: id, Reply: 1}))
			s.add(a.now+us, kevent.AppendBinderReceived(nil, kevent.Header{Time: uint64(a.now + us), Tid: a.tid}, kevent.BinderReceived{DebugID: id + 1, Tgid: pid}))
		}
		a.now += us
		s.add(a.now, kevent.AppendSyscallWait(nil, kevent.Header{Time: uint64(a.now), Tid: a.tid}, kevent.SyscallWait{
			StartNs: uint64(from - us), Tgid: pid, FD: 3, Call: kevent.WaitIoctl, File: kevent.FileBinder}))
	}
}

// What a thread slept for is the cause, and named with whom it was about.
func TestNamesWait(t *testing.T) {
	for _, c := range []struct {
		name  string
		slow  func(a *actor) []func()
		cause string
		ns    int64
		says  string
		waits []Waited
	}{
		{"futex", func(a *actor) []func() { return []func(){a.futex(90*ms, 77, 0)} }, "lock", 90 * ms,
			"90.0ms of it waiting for a futex in oddity (90.0ms for 0x7f001230 until thread 77 released it)",
			[]Waited{{What: "futex_wait", Address: "0x7f001230", Ns: 90 * ms, Waits: 1, Who: []Who{{Tid: 77, Ns: 90 * ms}}}}},
		{"futex times out", func(a *actor) []func() { return []func(){a.futex(90*ms, 77, -110)} }, "lock", 90 * ms,
			"90.0ms of it waiting for a futex in oddity (90.0ms for 0x7f001230, which nobody released in time)",
			[]Waited{{What: "futex_wait", Address: "0x7f001230", Ns: 90 * ms, Waits: 1, TimedOut: 1, Who: []Who{{Ns: 90 * ms}}}}},
		{"futex, sometimes released", func(a *actor) []func() {
			return []func(){a.futex(50*ms, 77, -110), a.futex(40*ms, 77, 0)}
		}, "lock", 90 * ms,
			"(50.0ms for 0x7f001230, of which nobody is known to have released it; 1 wait timed out, 40.0ms for 0x7f001230 until thread 77 released it)",
			[]Waited{{What: "futex_wait", Address: "0x7f001230", Ns: 90 * ms, Waits: 2, TimedOut: 1, Who: []Who{{Ns: 50 * ms}, {Tid: 77, Ns: 40 * ms}}}}},
		{"pipe", func(a *actor) []func() {
			return []func(){a.in(kevent.SyscallWait{Call: kevent.WaitRead, File: kevent.FilePipe, FD: 4, Object: 9}, a.sleep(90*ms, 77))}
		}, "stream", 90 * ms,
			"90.0ms of it waiting for a pipe, socket or the like in oddity (90.0ms in read pipe until thread 77 woke it, or an interrupt while that ran)",
			[]Waited{{What: "read pipe", Ns: 90 * ms, Waits: 1, Who: []Who{{Tid: 77, Ns: 90 * ms}}}}},
		{"epoll", func(a *actor) []func() {
			return []func(){a.in(kevent.SyscallWait{Call: kevent.WaitEpollWait, File: kevent.FileEpoll, FD: 4}, a.sleep(90*ms, 0))}
		}, "poll", 90 * ms,
			"90.0ms of it waiting for events of files in oddity (90.0ms in epoll_wait until an interrupt or an unseen thread woke it)",
			[]Waited{{What: "epoll_wait", Ns: 90 * ms, Waits: 1, Who: []Who{{Ns: 90 * ms}}}}},
		{"timer", func(a *actor) []func() {
			return []func(){a.in(kevent.SyscallWait{Call: kevent.WaitNanosleep, FD: -1}, a.sleep(90*ms, 0))}
		}, "timer", 90 * ms, "90.0ms of it sleeping for a time that it asked for in oddity",
			[]Waited{{What: "nanosleep", Ns: 90 * ms, Waits: 1, Who: []Who{{Ns: 90 * ms}}}}},
		{"child", func(a *actor) []func() {
			return []func(){a.in(kevent.SyscallWait{Call: kevent.WaitChild, FD: -1}, a.sleep(90*ms, 77))}
		}, "sleeping", 90 * ms, "90.0ms of it sleeping in oddity (90.0ms in wait for a child, 90.0ms until thread 77 woke it, or an interrupt while that ran)",
			[]Waited{{What: "wait for a child", Ns: 90 * ms, Waits: 1, Who: []Who{{Tid: 77, Ns: 90 * ms}}}}},
		{"binder", func(a *actor) []func() { return []func(){a.binder(100*ms, 20, true)} }, "binder", 100 * ms,
			"100ms of it waiting for binder in oddity (100ms in 1 binder call (code 3) to pid 60, whose thread Binder:60_1 (61) was running for 40.0ms and runnable for 60.0ms of it)",
			[]Waited{{What: "binder call", Ns: 100 * ms, Waits: 1, Who: []Who{{Tid: 61, Name: "Binder:60_1", Ns: 100 * ms}}, Binder: &Called{
				Pid: 60, Tid: 61, Thread: "Binder:60_1", Code: 3, Calls: 1, Ns: 100*ms + us, QueuedNs: 60*ms + us, ServedNs: 40*ms - us, ReplyNs: us, RunningNs: 40 * ms, RunnableNs: 60 * ms,
			}}}},
		{"binder, two calls", func(a *actor) []func() {
			return []func(){a.binder(50*ms, 20, true), a.binder(50*ms, 30, true)}
		}, "binder", 100 * ms,
			"(100ms in 2 binder calls (code 3) to pid 60, whose threads were running for 40.0ms and runnable for 60.0ms of it)", nil},
		{"binder without an answer", func(a *actor) []func() { return []func(){a.binder(100*ms, 20, false)} }, "binder", 100 * ms,
			"(100ms in 1 binder call (code 3) to pid 60, to which no answer was seen, whose thread Binder:60_1 (61) was runnable for 60.0ms of it)", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := commits(t, c.slow).analyze(Options{})
			if len(r.Findings) == 0 {
				t.Fatal("no findings")
			}
			f := r.Findings[0]
			if f.Method != "oddity" || f.Cause != c.cause || f.ExcessNs != c.ns {
				t.Errorf("found %+v", f)
			}
			if !strings.Contains(r.Explanation[0], c.says) {
				t.Errorf("%q\nlacks %q", r.Explanation[0], c.says)
			}
			for i := range f.Waits {
				for j := range f.Waits[i].Who {
					f.Waits[i].Who[j].foreign = false
				}
			}
			if c.waits != nil {
				if diff := cmp.Diff(c.waits, f.Waits, cmp.AllowUnexported(Who{})); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Who released a lock is named with the method that it was in.
func TestReleasedIn(t *testing.T) {
	s := &story{t: t}
	a, b := s.thread(51, "worker"), s.thread(52, "holder")
	b.call("main", func() {
		for i := range 30 {
			a.call("turn", a.run(ms), func() {
				if i == 20 {
					a.futex(50*ms, 52, 0)()
				}
			})
			b.call("work", b.run(ms))
		}
		b.call("hold", b.run(a.now-b.now+10*ms))
	})
	r := s.analyze(Options{})
	want := "waiting for a futex in itself (50.0ms for 0x7f001230 until holder (52) released it in hold)"
	if !strings.Contains(r.Explanation[0], want) {
		t.Errorf("%q lacks %q", r.Explanation[0], want)
	}
}

// A method that waits for binder calls as a rule is no idle one.
func TestBinderIsNotIdle(t *testing.T) {
	s := &story{t: t}
	a := s.thread(51, "worker")
	a.call("main", func() {
		for i := range 40 {
			a.call("ask", a.binder(ms, int32(100+2*i), true))
			a.call("wait", a.in(kevent.SyscallWait{Call: kevent.WaitEpollWait, File: kevent.FileEpoll}, a.sleep(int64(i+1)*10*ms, 0)))
		}
		a.call("ask", a.binder(50*ms, 500, true))
	})
	if r := s.analyze(Options{}); r.Moment.Method != "ask" {
		t.Errorf("the moment is a call of %s", r.Moment.Method)
	}
}

// Signatures can ask what a sleep was for.
func TestWaitSignatures(t *testing.T) {
	sigs, err := ParseSignatures("f", []byte("signatures:\n"+
		"- {name: binder, chain: \"*\", when: self.binder > 90ms}\n- {name: lock, chain: \"*\", when: self.lock > 90ms}\n- {name: sleep, chain: \"*\", when: self.sleeping > 90ms}"))
	if err != nil {
		t.Fatal(err)
	}
	r := commits(t, func(a *actor) []func() { return []func(){a.binder(100*ms, 20, true)} }).analyze(Options{Signatures: sigs})
	var found []string
	for _, m := range r.Signatures {
		if m.Name != "sleep" || m.Calls == 61 { // idle sleeps, too
			found = append(found, m.Name)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, []string{"binder", "sleep"}) {
		t.Errorf("found %v: %+v", found, r.Signatures)
	}
}

// chained calls thread 61 of process 60 for 100 ms, which waits for a futex, and calls thread 71 of process 70, and that
// thread 81 of process 80, which sleeps. Processes are the tens of threads.
func (a *actor) chained() func() {
	return func() {
		s, from := a.s, a.now
		h := func(at int64, tid uint32) kevent.Header {
			return kevent.Header{Time: uint64(from + at*ms), Tid: tid, CPU: uint16(tid)}
		}
		add := func(at int64, b []byte) { s.add(from+at*ms, b) }
		process := func(tid uint32) uint32 { return tid / 10 * 10 }
		call := func(id int32, from, to uint32, code uint32, sent, received, replied, done int64) {
			add(sent, kevent.AppendBinderTransaction(nil, h(sent, from), kevent.BinderTransaction{DebugID: id, Tgid: process(from), ToTgid: process(to), Code: code}))
			add(received, kevent.AppendBinderReceived(nil, h(received, to), kevent.BinderReceived{DebugID: id, Tgid: process(to)}))
			add(replied, kevent.AppendBinderTransaction(nil, h(replied, to), kevent.BinderTransaction{
				DebugID: id + 1, Tgid: process(to), ToTgid: process(from), ToTid: from, InReplyTo: id, Reply: 1}))
			add(done, kevent.AppendBinderReceived(nil, h(done, from), kevent.BinderReceived{DebugID: id + 1, Tgid: process(from)}))
		}
		call(20, a.tid, 61, 3, 0, 10, 99, 100)
		add(40, kevent.AppendSyscallWait(nil, h(40, 61), kevent.SyscallWait{
			StartNs: uint64(from + 20*ms), Tgid: 60, FD: -1, Call: kevent.WaitFutexWait, Object: 0xbeef}))
		add(40, kevent.AppendFutexWake(nil, h(40, 62), kevent.FutexWake{StartNs: uint64(from + 39*ms), Tgid: 60, Address: 0xbeef, Woken: 1}))
		call(30, 61, 71, 7, 50, 51, 88, 90)
		call(40, 71, 81, 9, 55, 56, 86, 87)
		add(80, kevent.AppendSyscallWait(nil, h(80, 81), kevent.SyscallWait{
			StartNs: uint64(from + 60*ms), Tgid: 80, FD: -1, Call: kevent.WaitNanosleep}))
		a.off(100*ms, kevent.StateSleeping, 61)
	}
}

// Where the threads waited that worked on a call is told, through calls within calls.
func TestCallsWithinCalls(t *testing.T) {
	r := commits(t, func(a *actor) []func() { return []func(){a.chained()} }).analyze(Options{})
	want := "100ms in 1 binder call (code 3) to pid 60, whose thread 61 was running for 89.0ms of it; " +
		"there 20.0ms in futex_wait of 0xbeef, released by thread 62; there 40.0ms in 1 binder call (code 7) to pid 70, whose thread 71 was running for 37.0ms of it; " +
		"there 32.0ms in 1 binder call (code 9) to pid 80, whose thread 81 was running for 30.0ms of it; there 20.0ms in nanosleep)"
	if !strings.Contains(r.Explanation[0], want) {
		t.Errorf("%s\nlacks %s", r.Explanation[0], want)
	}
	b := r.Findings[0].Waits[0].Binder
	if b.Next == nil || b.Next.Pid != 70 || b.Next.Next == nil || b.Next.Next.Pid != 80 || b.Next.Next.Next != nil || b.Next.Next.Waits[0].What != "nanosleep" {
		t.Errorf("%+v", b)
	}
}
