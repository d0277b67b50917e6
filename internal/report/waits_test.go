package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"braid/inline"
	"braid/internal/analysis"
	"braid/internal/kevent"
	"braid/internal/tracefile"

	"github.com/google/go-cmp/cmp"
)

// withWaits adds to the story that thread 100's sleep in lock was for a futex that thread 101 released in sync_all, and times
// out three times; that thread 101 reads a pipe; and its binder calls to threads 413 and 414 of process 412, of which the
// first sleeps, and calls thread 501 of process 500.
func withWaits(w *tracefile.Writer) error {
	at := func(n uint64) uint64 { return begin + n*ms }
	var b []byte
	h := func(n uint64, tid uint32) kevent.Header { return kevent.Header{Time: at(n), Tid: tid, CPU: 2} }
	call := func(from, to uint64, tid uint32, e kevent.SyscallWait) {
		e.StartNs, e.Tgid = at(from), 100
		b = kevent.AppendSyscallWait(b, h(to, tid), e)
	}
	send := func(n uint64, id int32, code, flags uint32) {
		b = kevent.AppendBinderTransaction(b, h(n, 101), kevent.BinderTransaction{DebugID: id, Tgid: 100, ToTgid: 412, Code: code, Flags: flags})
	}
	receive := func(n uint64, id int32, tid, pid uint32) {
		b = kevent.AppendBinderReceived(b, h(n, tid), kevent.BinderReceived{DebugID: id, Tgid: pid})
	}
	reply := func(n uint64, id int32, tid uint32, to int32) {
		b = kevent.AppendBinderTransaction(b, h(n, tid), kevent.BinderTransaction{
			DebugID: id, Tgid: 412, ToTgid: 100, ToTid: 101, InReplyTo: to, Reply: 1})
	}
	server := func(n uint64, prev, next uint32, state uint32) {
		e := kevent.Switch{PrevState: state, NextTid: next, NextTgid: 412, NextComm: comm("Binder:412_1")}
		flags := kevent.FlagNextServer
		if prev != 0 {
			e, flags = kevent.Switch{PrevTgid: 412, PrevState: state, NextComm: comm("swapper/3")}, kevent.FlagPrevServer
		}
		b = kevent.AppendSwitch(b, kevent.Header{Time: at(n), Tid: prev, CPU: 3, Flags: flags}, e)
	}
	call(62, 92, 100, kevent.SyscallWait{Call: kevent.WaitFutexWait, Object: 0x7fff_1234_5678, FD: -1})
	b = kevent.AppendFutexWake(b, h(92, 101), kevent.FutexWake{StartNs: at(90), Address: 0x7fff_1234_5678, Tgid: 100, Woken: 1})
	for n := range uint64(3) {
		call(131+n, 132+n, 100, kevent.SyscallWait{Call: kevent.WaitFutexWait, Object: 0x4000, FD: -1, Ret: -110})
	}
	call(10, 30, 101, kevent.SyscallWait{Call: kevent.WaitRead, File: kevent.FilePipe, FD: 3, Object: 7})
	send(100, 1, 3, 0)
	server(101, 0, 413, 0)
	receive(102, 1, 413, 412)
	server(105, 413, 0, kevent.StateSleeping)
	b = kevent.AppendWaking(b, kevent.Header{Time: at(125), Tid: 413, Flags: kevent.FlagServer}, kevent.Waking{WakerTid: 9, Tgid: 412, Comm: comm("Binder:412_1")})
	server(128, 0, 413, 0)
	b = kevent.AppendBinderTransaction(b, h(110, 413), kevent.BinderTransaction{DebugID: 21, Tgid: 412, ToTgid: 500, Code: 4})
	receive(111, 21, 501, 500)
	b = kevent.AppendBinderTransaction(b, h(115, 501), kevent.BinderTransaction{
		DebugID: 22, Tgid: 500, ToTgid: 412, ToTid: 413, InReplyTo: 21, Reply: 1})
	receive(116, 22, 413, 412)
	b = kevent.AppendSyscallWait(b, h(125, 413), kevent.SyscallWait{StartNs: at(117), Tgid: 412, FD: -1, Call: kevent.WaitNanosleep})
	reply(130, 2, 413, 1)
	receive(131, 2, 101, 100)
	send(135, 3, 3, 0)
	receive(136, 3, 414, 412)
	reply(140, 4, 414, 3)
	receive(142, 4, 101, 100)
	send(150, 5, 9, kevent.BinderOneWay)
	receive(151, 5, 414, 412)
	b = kevent.AppendBinderDone(b, h(157, 414), kevent.BinderDone{DebugID: 5, Tgid: 412})
	send(160, 7, 12, 0)
	call(159, 165, 101, kevent.SyscallWait{Call: kevent.WaitIoctl, File: kevent.FileBinder, FD: 5})
	reply(168, 8, 413, 99)
	send(190, 9, 3, 0)
	var s []uint64
	s = inline.AppendEntry(s, at(80), addrSyn)
	s = inline.AppendExit(s, at(95))
	return errors.Join(
		w.WriteProcesses(&tracefile.Processes{Processes: []tracefile.Process{{Pid: 412, Name: "system_server"}}}),
		w.WriteRing(&tracefile.Ring{Pid: 100, Tid: 101, Name: comm("holder"), Begin: at(70), End: at(140), Slots: s, Flags: tracefile.RingComplete}),
		w.WriteEvents(b),
	)
}

func TestWaits(t *testing.T) {
	tr := storyWith(t, true, withWaits)
	r, err := Build(tr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const ms = int64(ms)
	want := &Waits{
		Locks: []Lock{
			{Pid: 100, Address: "0x7fff12345678", Waits: 1, TotalNs: 30 * ms, MaxNs: 30 * ms, Waiting: []Waiting{{"lock", 1, 30 * ms}},
				Released: []Release{{101, "holder", "sync_all", 1, 30 * ms}}},
			{Pid: 100, Address: "0x4000", Waits: 3, TotalNs: 3 * ms, MaxNs: ms, TimedOut: 3, Waiting: []Waiting{{"lock", 3, 3 * ms}}, Released: []Release{}},
		},
		Binder: []BinderCalls{
			{Pid: 100, Process: "app", ToPid: 412, ToProcess: "system_server", Code: 3, Calls: 3, TotalNs: (31 + 7 + 10) * ms, MaxNs: 31 * ms,
				QueuedNs: 3 * ms, ServedNs: (28 + 4) * ms, ReplyNs: 3 * ms, Unreceived: 1, Unanswered: 1, Open: 1,
				Server: ServerTimes{RunningNs: (4+2)*ms + 4*ms, RunnableNs: 3 * ms, SleepingNs: 20 * ms}},
			{Pid: 412, Process: "system_server", ToPid: 500, Code: 4, Within: true, Calls: 1, TotalNs: 6 * ms, MaxNs: 6 * ms,
				QueuedNs: ms, ServedNs: 4 * ms, ReplyNs: ms, Server: ServerTimes{RunningNs: 4 * ms}},
			{Pid: 100, Process: "app", ToPid: 412, ToProcess: "system_server", Code: 12, Calls: 1, TotalNs: 5 * ms, MaxNs: 5 * ms, Unreceived: 1, Unanswered: 1},
			{Pid: 100, Process: "app", ToPid: 412, ToProcess: "system_server", Code: 9, OneWay: true, Calls: 1, QueuedNs: ms, ServedNs: 6 * ms,
				Server: ServerTimes{RunningNs: 6 * ms}},
		},
		Calls: []WaitCalls{
			{Class: "stream", Call: "read pipe", Waits: 1, TotalNs: 20 * ms, MaxNs: 20 * ms},
		},
		Unanswered: 1, Unsent: 1,
	}
	if diff := cmp.Diff(want, r.Waits); diff != "" {
		t.Error(diff)
	}
	for _, th := range r.Threads {
		if th.Pid == 412 {
			t.Errorf("a thread of a process that was not recorded is listed: %+v", th)
		}
	}
	for _, c := range []struct {
		thread        string
		locks, binder int
	}{{"app", 2, 0}, {"101", 0, 3}, {"413", 0, 2}, {"nobody", 0, 0}} {
		r, err := Build(tr, Options{Thread: c.thread})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Waits.Locks) != c.locks || len(r.Waits.Binder) != c.binder {
			t.Errorf("--thread %s: %d locks, %d kinds of binder calls", c.thread, len(r.Waits.Locks), len(r.Waits.Binder))
		}
	}
}

// TestWaitsGolden compares with the golden in testdata.
func TestWaitsGolden(t *testing.T) {
	r, err := Build(storyWith(t, true, withWaits), Options{Top: 3, Why: &analysis.Options{Around: analysis.Around{Method: "lock"}}})
	if err != nil {
		t.Fatal(err)
	}
	var text, js bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&js)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > Width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	golden(t, "waits.txt", text.Bytes())
	golden(t, "waits.json", js.Bytes())
}
