package export

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"braid/internal/kevent"
	"braid/internal/perfetto/tptest"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// waiting is a trace in which thread 10 waits for a futex that thread 11 releases, for one that nobody does, and for a pipe;
// and calls thread 21 of process 20, which calls thread 31 of process 30; and that makes a one-way call, one that fails, and
// one that is not over. Times are in ms after t0.
func waiting(t *testing.T) *timeline.Trace {
	t.Helper()
	at := func(n uint64) uint64 { return t0 + n*ms }
	h := func(n uint64, tid uint32) kevent.Header {
		return kevent.Header{Time: at(n), Tid: tid, CPU: uint16(tid % 4)}
	}
	var b []byte
	call := func(from, to uint64, e kevent.SyscallWait) {
		e.StartNs, e.Tgid = at(from), 10
		b = kevent.AppendSyscallWait(b, h(to, 10), e)
	}
	send := func(n uint64, tid uint32, id int32, to, code, flags uint32) {
		b = kevent.AppendBinderTransaction(b, h(n, tid), kevent.BinderTransaction{DebugID: id, Tgid: tid / 10 * 10, ToTgid: to, Code: code, Flags: flags})
	}
	receive := func(n uint64, tid uint32, id int32) {
		b = kevent.AppendBinderReceived(b, h(n, tid), kevent.BinderReceived{DebugID: id, Tgid: tid / 10 * 10})
	}
	reply := func(n uint64, tid uint32, id int32, to uint32, re int32) {
		b = kevent.AppendBinderTransaction(b, h(n, tid), kevent.BinderTransaction{
			DebugID: id, Tgid: tid / 10 * 10, ToTgid: to / 10 * 10, ToTid: to, InReplyTo: re, Reply: 1})
	}
	b = switches(b, 0, 2, 0, 10, 0)
	b = switches(b, 1000, 2, 10, 0, kevent.StateSleeping)
	b = kevent.AppendWaking(b, h(4, 10), kevent.Waking{WakerTid: 11, Tgid: 10, Comm: comm("app")})
	b = switches(b, 4000, 2, 0, 10, 0)
	b = kevent.AppendFutexWake(b, h(5, 11), kevent.FutexWake{StartNs: at(3), Address: 0x7000, Tgid: 10, Woken: 1})
	call(1, 5, kevent.SyscallWait{Call: kevent.WaitFutexWait, Object: 0x7000, FD: -1})
	call(6, 7, kevent.SyscallWait{Call: kevent.WaitFutexWait, Object: 0x8000, FD: -1, Ret: -110})
	call(8, 9, kevent.SyscallWait{Call: kevent.WaitRead, File: kevent.FilePipe, Object: 77, FD: 4, Ret: 1})
	b = kevent.AppendRename(b, h(9, 11), kevent.Rename{Tgid: 10, Comm: comm("holder")})
	send(10, 10, 1, 20, 3, 0)
	receive(12, 21, 1)
	send(13, 21, 3, 30, 4, 0)
	receive(14, 31, 3)
	reply(16, 31, 4, 21, 3)
	receive(17, 21, 4)
	reply(18, 21, 2, 10, 1)
	receive(20, 10, 2)
	send(21, 10, 5, 20, 9, kevent.BinderOneWay)
	receive(22, 21, 5)
	b = kevent.AppendBinderDone(b, h(25, 21), kevent.BinderDone{DebugID: 5, Tgid: 20})
	send(30, 10, 7, 20, 3, 0)
	call(29, 33, kevent.SyscallWait{Call: kevent.WaitIoctl, File: kevent.FileBinder, FD: 3})
	reply(40, 21, 12, 10, 99)
	send(90, 10, 9, 20, 3, 0)
	receive(91, 21, 9)
	return load(t, func(w *tracefile.Writer) error {
		for _, err := range []error{
			w.WriteMeta(&tracefile.Meta{Pid: pid, Start: tracefile.Instant{BootNs: t0}, End: tracefile.Instant{BootNs: t0 + 100*ms}}),
			w.WriteProcesses(&tracefile.Processes{Processes: []tracefile.Process{{Pid: pid, Name: "app"}, {Pid: 20, Name: "server"}}}),
			w.WriteEvents(b),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TestWaitsPerfetto: waits and binder calls are slices of their threads, and arrows join those that belong together.
func TestWaitsPerfetto(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pftrace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Perfetto(f, waiting(t)); err != nil {
		t.Fatal(err)
	}
	tr := tptest.Open(t, path)
	// The thread of a slice's track or of the track above it.
	const thread = `(select tid from thread join thread_track tt using (utid) where tt.id = s.track_id or tt.id = (select parent_id from track where id = s.track_id))`
	rows := func(name, sql string, want ...string) {
		t.Helper()
		if got := tr.Rows(t, sql); !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, want)
		}
	}
	rows("slices", `select `+thread+`, s.name, (s.ts - 2000000000) / 1000000, s.dur / 1000000 from slice s order by s.ts, s.dur desc, 1`,
		"10 futex_wait 1 4", "11 futex wake-up 4 0", "10 released 5 0", "10 futex_wait 6 1", "10 read pipe 8 1",
		"10 binder transaction 10 10", "21 binder reply 12 6", "21 binder transaction 13 4", "31 binder reply 14 2",
		"31 reply sent 16 0", "21 reply received 17 0", "21 reply sent 18 0", "10 reply received 20 0",
		"10 binder transaction async 21 0", "21 binder async rcv 22 3",
		"10 binder transaction 30 3", "10 binder transaction 90 10", "21 binder reply 91 9")
	rows("arrows", `select o.name, (o.ts - 2000000000) / 1000000, i.name, (i.ts - 2000000000) / 1000000 from flow
			join slice o on o.id = slice_out join slice i on i.id = slice_in order by o.ts, i.ts, o.id`,
		"futex wake-up 4 released 5",
		"binder transaction 10 binder reply 12", "binder transaction 13 binder reply 14",
		"reply sent 16 reply received 17", "reply sent 18 reply received 20",
		"binder transaction async 21 binder async rcv 22",
		"binder transaction 90 binder reply 91")
	rows("arguments", `select a.flat_key, coalesce(a.display_value, '') from slice s join args a using (arg_set_id)
			where s.name = 'binder transaction' and s.ts = 2010000000 and a.flat_key glob 'debug.*' order by 1`,
		"debug.code 3", "debug.debug_id 1", "debug.flags 0x0", "debug.queued_ns 2000000", "debug.reply_ns 2000000", "debug.served_ns 6000000",
		"debug.server_running_ns 6000000", "debug.to_process 20", "debug.to_thread 21")
	rows("marks", `select s.name, (s.ts - 2000000000) / 1000000, a.flat_key, a.display_value from slice s join args a using (arg_set_id)
			where a.flat_key in ('debug.cut', 'debug.unanswered', 'debug.released_by', 'debug.address') order by s.ts, s.name, 3`,
		"futex_wait 1 debug.address 0x7000", "futex_wait 1 debug.released_by 11", "futex_wait 6 debug.address 0x8000",
		"binder transaction 30 debug.unanswered true", "binder transaction 90 debug.cut end", "binder transaction 90 debug.unanswered true",
		"binder reply 91 debug.cut end")
	if n := tr.Orphans(t); n != "0" {
		t.Errorf("%s slices are on orphan tracks", n)
	}
	if open := tr.Rows(t, `select name from slice where dur < 0`); len(open) > 0 {
		t.Errorf("slices are open: %v", open)
	}
}
