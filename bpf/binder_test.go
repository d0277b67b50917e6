//go:build binder

// These tests need a kernel with binder and /dev/binder: internal/kernels runs them in guests.

package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"braid/internal/kevent"
)

// binderOptions are both ways to load: with the kernel's own types, and with given ones.
var binderOptions = map[string]Options{
	"btf": {Units: []string{UnitSched, UnitWait}},
	"raw": {Units: []string{UnitSched, UnitWait}, BTFPath: "/sys/kernel/btf/vmlinux"},
}

// binderCall is what a caller or a server says of a call.
type binderCall struct {
	Code       uint32
	Tid        uint32
	Start, End uint64
	OneWay     int
}

func (c binderCall) ns() uint64 { return c.End - c.Start }

// startBinder starts testdata/binder.c, or what BRAID_TEST_BINDER names.
func startBinder(t *testing.T, args ...string) *target {
	t.Helper()
	binary := os.Getenv("BRAID_TEST_BINDER")
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "binder")
		out, err := exec.Command("cc", "-O1", "-static", "-pthread", "-o", binary, "testdata/binder.c").CombinedOutput()
		if err != nil {
			t.Fatalf("compile testdata/binder.c: %v\n%s", err, out)
		}
	}
	return startWith(t, exec.Command(binary, args...))
}

// said reads one line of a call that starts with word.
func said(t *testing.T, tg *target, word string) (c binderCall) {
	t.Helper()
	if !tg.lines.Scan() {
		t.Fatalf("nothing was said: %v", tg.lines.Err())
	}
	_, err := fmt.Sscanf(tg.lines.Text(), word+" code=%d tid=%d start=%d end=%d oneway=%d", &c.Code, &c.Tid, &c.Start, &c.End, &c.OneWay)
	if err != nil {
		t.Fatalf("%q: %v", tg.lines.Text(), err)
	}
	return c
}

func makeCall(t *testing.T, client *target, code, ms, oneWay int) binderCall {
	t.Helper()
	if _, err := fmt.Fprintln(client.stdin, code, ms, oneWay); err != nil {
		t.Fatal(err)
	}
	return said(t, client, "called")
}

// The codes of testdata/binder.c.
const (
	codeSleep   = 2
	codeCompute = 3
	codeNest    = 4
	codeGive    = 5
)

// transaction is one transaction's events; times are 0 where there was none.
type transaction struct {
	kevent.BinderTransaction
	from, receiver            uint32
	sent, received, done, end uint64 // end: when the reply was sent
	replied                   uint64 // when the reply was received
}

func transactions(t *testing.T, events []event) []*transaction {
	t.Helper()
	var all []*transaction
	byID, byReply := map[int32]*transaction{}, map[int32]*transaction{}
	for _, e := range events {
		switch e.Kind {
		case kevent.KindBinderTransaction:
			b := kevent.DecodeBinderTransaction(e.body)
			if b.Reply == 0 {
				byID[b.DebugID] = &transaction{BinderTransaction: b, from: e.Tid, sent: e.Time}
				all = append(all, byID[b.DebugID])
				continue
			}
			tr := byID[b.InReplyTo]
			if tr == nil || tr.end != 0 || e.Tid != tr.receiver || b.ToTid != tr.from || b.ToTgid != tr.Tgid {
				t.Errorf("a reply to no transaction: %v", e)
				continue
			}
			tr.end = e.Time
			byReply[b.DebugID] = tr
		case kevent.KindBinderReceived:
			b := kevent.DecodeBinderReceived(e.body)
			if tr := byID[b.DebugID]; tr != nil && tr.received == 0 && b.Tgid == tr.ToTgid {
				tr.received, tr.receiver = e.Time, e.Tid
			} else if tr := byReply[b.DebugID]; tr != nil && tr.replied == 0 && e.Tid == tr.from && b.Tgid == tr.Tgid {
				tr.replied = e.Time
			} else {
				t.Errorf("received from nowhere: %v", e)
			}
		case kevent.KindBinderDone:
			b := kevent.DecodeBinderDone(e.body)
			if tr := byID[b.DebugID]; tr != nil && tr.done == 0 && e.Tid == tr.receiver {
				tr.done = e.Time
			} else {
				t.Errorf("done with nothing: %v", e)
			}
		}
	}
	return all
}

// near reports whether a time is what was measured, within 5 %.
func near(got, want uint64) bool { return got*20 >= want*19 && got*20 <= want*21 }

// checkCall compares a transaction's times with what both sides measured.
func checkCall(t *testing.T, tr *transaction, caller, server binderCall, to int) {
	t.Helper()
	t.Logf("code %d: recorded %d us, of it in the server %d us; the caller measured %d us, the server %d us",
		tr.Code, (tr.replied-tr.sent)/1000, (tr.end-tr.received)/1000, caller.ns()/1000, server.ns()/1000)
	if tr.Code != caller.Code || tr.from != caller.Tid || tr.ToTgid != uint32(to) || tr.receiver != server.Tid || tr.Flags&kevent.BinderOneWay != 0 ||
		tr.Node == 0 || tr.sent < caller.Start || tr.replied > caller.End || tr.received > server.Start || tr.end < server.End {
		t.Errorf("%+v\ndoes not fit the caller's %+v\nand the server's %+v", *tr, caller, server)
	}
	if !near(tr.replied-tr.sent, caller.ns()) {
		t.Errorf("code %d took %d ns, the caller measured %d", tr.Code, tr.replied-tr.sent, caller.ns())
	}
	if !near(tr.end-tr.received, server.ns()) {
		t.Errorf("code %d took %d ns in the server, which measured %d", tr.Code, tr.end-tr.received, server.ns())
	}
}

// states sums up what a server thread did within a transaction, by its switches and wake-ups.
func states(t *testing.T, events []event, tid uint32, from, to uint64) (running, runnable, sleeping uint64) {
	t.Helper()
	state, since := &running, from
	change := func(at uint64, next *uint64) {
		if at > since {
			*state += min(at, to) - since
			since = min(at, to)
		}
		state = next
	}
	for _, e := range events {
		if e.Time < from || e.Time > to {
			continue
		}
		switch e.Kind {
		case kevent.KindSwitch:
			s := kevent.DecodeSwitch(e.body)
			if e.Tid == tid {
				if e.Flags&kevent.FlagPrevServer == 0 || e.Flags&kevent.FlagPrevTarget != 0 {
					t.Errorf("not marked as a server's: %v", e)
				}
				if e.Flags&kevent.FlagPreempted != 0 {
					change(e.Time, &runnable)
				} else {
					change(e.Time, &sleeping)
				}
			}
			if s.NextTid == tid {
				if e.Flags&kevent.FlagNextServer == 0 || e.Flags&kevent.FlagNextTarget != 0 {
					t.Errorf("not marked as a server's: %v", e)
				}
				change(e.Time, &running)
			}
		case kevent.KindWaking:
			if e.Tid == tid {
				if e.Flags&kevent.FlagServer == 0 {
					t.Errorf("not marked as a server's: %v", e)
				}
				change(e.Time, &runnable)
			}
		}
	}
	change(to, nil)
	return running, runnable, sleeping
}

// TestBinderClient records a process that calls others, and checks what is told of those.
func TestBinderClient(t *testing.T) {
	for name, opts := range binderOptions {
		t.Run(name, func(t *testing.T) { testBinderClient(t, opts) })
	}
}

func testBinderClient(t *testing.T, opts Options) {
	server := startBinder(t, "server", "2")
	helper := startBinder(t, "helper")
	if c := said(t, server, "served"); c.Code != codeGive {
		t.Fatalf("the server served %+v first", c)
	}
	client, other := startBinder(t, "client"), startBinder(t, "client")
	r := load(t, opts)
	if len(r.Missing()) != 0 {
		t.Errorf("missing: %q", r.Missing())
	}
	if err := r.AddTarget(client.pid()); err != nil {
		t.Fatal(err)
	}
	var called, served []binderCall
	for _, code := range []int{codeSleep, codeCompute, codeNest, codeSleep} {
		called = append(called, makeCall(t, client, code, 60, 0))
		served = append(served, said(t, server, "served"))
		makeCall(t, other, codeSleep, 20, 0) // of no interest
		said(t, server, "served")
	}
	nested := said(t, helper, "served")
	oneWay := makeCall(t, client, codeSleep, 120, 1)
	servedOneWay := said(t, server, "served")
	makeCall(t, client, codeCompute, 1, 0) // the one-way call's server has asked for work when it gets this one, or another has
	events := stopAndRead(t, r)

	trs := transactions(t, events)
	if len(trs) != len(called)+3 {
		for _, e := range events {
			if e.Kind >= kevent.KindBinderTransaction && e.Kind <= kevent.KindBinderDone {
				t.Log(e)
			}
		}
		t.Fatalf("%d transactions, want %d, one within another, one one-way, and a last one", len(trs), len(called)+3)
	}
	inner := trs[3]
	trs = append(trs[:3:3], trs[4:]...)
	for i, c := range called {
		checkCall(t, trs[i], c, served[i], server.pid())
		checkServer(t, events, trs[i], helper.pid(), inner)
	}
	if inner.from != trs[2].receiver || inner.ToTgid != uint32(helper.pid()) || inner.receiver != nested.Tid || inner.sent < trs[2].received ||
		inner.replied > trs[2].end || !near(inner.end-inner.received, nested.ns()) {
		t.Errorf("the call within the third: %+v, the helper measured %+v", *inner, nested)
	}
	o := trs[4]
	if o.Flags&kevent.BinderOneWay == 0 || o.sent < oneWay.Start || o.sent > oneWay.End || o.receiver != servedOneWay.Tid || o.end != 0 ||
		o.done < servedOneWay.End || !near(o.done-o.received, servedOneWay.ns()) {
		t.Errorf("one-way: %+v, the caller measured %+v, the server %+v", *o, oneWay, servedOneWay)
	}
	for _, e := range events {
		if e.Kind == kevent.KindBinderTransaction && kevent.DecodeBinderTransaction(e.body).Tgid == uint32(other.pid()) {
			t.Errorf("of a process that is no target: %v", e)
		}
	}
}

// checkServer checks what is told of the server's thread: what it did, and from when to when.
func checkServer(t *testing.T, events []event, tr *transaction, helper int, inner *transaction) {
	t.Helper()
	within := tr.end - tr.received
	running, runnable, sleeping := states(t, events, tr.receiver, tr.received, tr.end)
	t.Logf("code %d: the server ran %d us, waited %d us for a CPU, slept %d us", tr.Code, running/1000, runnable/1000, sleeping/1000)
	if sum := running + runnable + sleeping; sum != within {
		t.Errorf("states of %d ns in %d ns", sum, within)
	}
	switch tr.Code {
	case codeSleep, codeNest:
		if sleeping < 50e6 {
			t.Errorf("code %d: the server slept %d ns in a call that sleeps 60 ms", tr.Code, sleeping)
		}
	case codeCompute:
		if sleeping > 5e6 || running < 20e6 {
			t.Errorf("the server slept %d ns and ran %d ns in a call that computes for 60 ms", sleeping, running)
		}
	}
	woken := count(events, kevent.KindWaking, func(e event) bool {
		return e.Tid == tr.receiver && e.Flags&kevent.FlagServer != 0 && e.Time > tr.sent && e.Time < tr.received &&
			kevent.DecodeWaking(e.body).WakerTid == tr.from
	})
	switchedIn := count(events, kevent.KindSwitch, func(e event) bool {
		return kevent.DecodeSwitch(e.body).NextTid == tr.receiver && e.Flags&kevent.FlagNextServer != 0 && e.Time > tr.sent && e.Time < tr.received
	})
	left := count(events, kevent.KindSwitch, func(e event) bool {
		return e.Tid == tr.receiver && e.Flags&(kevent.FlagPrevServer|kevent.FlagPreempted) == kevent.FlagPrevServer && e.Time > tr.end && e.Time < tr.end+50e6
	})
	if woken != 1 || switchedIn == 0 || left == 0 {
		t.Errorf("code %d: the server was woken %d times by the caller, began to run %d times, and went to sleep %d times after its reply",
			tr.Code, woken, switchedIn, left)
	}
	slept := count(events, kevent.KindSyscallWait, func(e event) bool {
		w := kevent.DecodeSyscallWait(e.body)
		if e.Tid != tr.receiver || e.Time < tr.received || e.Time > tr.end || w.StartNs < tr.received {
			return false
		}
		if tr.Code == codeNest {
			return w.Call == kevent.WaitIoctl && w.File == kevent.FileBinder && w.StartNs <= inner.sent && e.Time >= inner.replied
		}
		return w.Call == kevent.WaitNanosleep
	})
	if want := map[uint32]int{codeSleep: 1, codeNest: 1}[tr.Code]; slept != want {
		t.Errorf("code %d: the server slept in %d calls of the kernel, want %d", tr.Code, slept, want)
	}
}

// TestBinderServer records a process that is called.
func TestBinderServer(t *testing.T) {
	for name, opts := range binderOptions {
		t.Run(name, func(t *testing.T) { testBinderServer(t, opts) })
	}
}

func testBinderServer(t *testing.T, opts Options) {
	server := startBinder(t, "server", "1")
	client := startBinder(t, "client")
	r := load(t, opts)
	if err := r.AddTarget(server.pid()); err != nil {
		t.Fatal(err)
	}
	called := makeCall(t, client, codeCompute, 60, 0)
	served := said(t, server, "served")
	makeCall(t, client, codeSleep, 1, 1)
	said(t, server, "served")
	makeCall(t, client, codeSleep, 1, 0)
	events := stopAndRead(t, r)
	trs := transactions(t, events)
	if len(trs) != 3 {
		t.Fatalf("%d transactions", len(trs))
	}
	checkCall(t, trs[0], called, served, server.pid())
	if trs[1].done == 0 {
		t.Errorf("the one-way call has no end: %+v", *trs[1])
	}
	for _, e := range events {
		if e.Kind == kevent.KindSwitch && e.Flags&(kevent.FlagPrevServer|kevent.FlagNextServer) != 0 {
			t.Errorf("nobody is a server but the target: %v", e)
		}
	}
}
