package timeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"braid/internal/kevent"
)

// waitScript builds kernel events as script does, and those of the unit wait. Threads below 40 are of process 10, others
// of process 40.
//
//	TIME call A futex_wait ADDRESS from START [ret N] [key K]
//	TIME call A read FD FILE INODE from START
//	TIME call A binder from START
//	TIME release A ADDRESS from START [woken N] [key K]
//	TIME send ID A to PROCESS [code N] [oneway]
//	TIME recv ID A
//	TIME reply ID A to B [re ID]
//	TIME done ID A
//	TIME lost NAME from START
func waitScript(text string) (chunk []byte, initial []InitialThread) {
	var rest strings.Builder
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		words := make(map[string]uint64)
		for i := 2; i+1 < len(f); i++ {
			var v uint64
			if n, _ := fmt.Sscan(f[i+1], &v); n == 1 {
				words[f[i]] = v
			}
		}
		h := kevent.Header{Time: num(f[0])}
		switch f[1] {
		case "call":
			h.Tid = uint32(num(f[2]))
			e := kevent.SyscallWait{StartNs: words["from"], Tgid: process(h.Tid), FD: -1, Ret: -int64(words["ret"]), Key: words["key"]}
			switch f[3] {
			case "futex_wait":
				e.Call, e.Object = kevent.WaitFutexWait, num(f[4])
			case "read":
				e.Call, e.FD, e.File, e.Object = kevent.WaitRead, int32(num(f[4])), kevent.FilePipe, num(f[6])
			case "binder":
				e.Call, e.FD, e.File = kevent.WaitIoctl, 3, kevent.FileBinder
			default:
				panic(line)
			}
			chunk = kevent.AppendSyscallWait(chunk, h, e)
		case "release":
			h.Tid = uint32(num(f[2]))
			chunk = kevent.AppendFutexWake(chunk, h, kevent.FutexWake{
				StartNs: words["from"], Address: num(f[3]), Key: words["key"], Tgid: process(h.Tid), Woken: int32(max(1, words["woken"])),
			})
		case "send", "reply":
			h.Tid = uint32(num(f[3]))
			e := kevent.BinderTransaction{DebugID: int32(num(f[2])), Tgid: process(h.Tid), Code: uint32(words["code"])}
			if f[1] == "reply" {
				e.Reply, e.ToTid, e.ToTgid, e.InReplyTo = 1, uint32(words["to"]), process(uint32(words["to"])), int32(words["re"])
			} else {
				e.ToTgid = uint32(words["to"])
			}
			if f[len(f)-1] == "oneway" {
				e.Flags = kevent.BinderOneWay
			}
			chunk = kevent.AppendBinderTransaction(chunk, h, e)
		case "recv":
			h.Tid = uint32(num(f[3]))
			chunk = kevent.AppendBinderReceived(chunk, h, kevent.BinderReceived{DebugID: int32(num(f[2])), Tgid: process(h.Tid)})
		case "done":
			h.Tid = uint32(num(f[3]))
			chunk = kevent.AppendBinderDone(chunk, h, kevent.BinderDone{DebugID: int32(num(f[2])), Tgid: process(h.Tid)})
		case "lost":
			e := kevent.Lost{SinceNs: words["from"], Count: 1}
			copy(e.Name[:], f[2])
			chunk = kevent.AppendLost(chunk, h, e)
		default:
			rest.WriteString(line + "\n")
		}
	}
	more, initial := script(rest.String())
	return append(chunk, more...), initial
}

func process(tid uint32) uint32 {
	if tid < 40 {
		return 10
	}
	return 40
}

// waitsText prints all that is known of waits.
func waitsText(k *Kernel) string {
	var b strings.Builder
	for _, a := range k.Threads() {
		for i := range a.Waits {
			w := &a.Waits[i]
			fmt.Fprintf(&b, "%d: %d-%d %v", a.Tid, w.Start, w.End, w.Class())
			if w.Binder != nil {
				fmt.Fprintf(&b, " id %d", w.Binder.ID)
			} else {
				fmt.Fprintf(&b, " %s", w.What())
			}
			if w.Object != 0 {
				fmt.Fprintf(&b, " of %#x", w.Object)
			}
			if w.SleptNs != 0 {
				fmt.Fprintf(&b, ", slept %d", w.SleptNs)
			}
			if w.Waker != 0 {
				fmt.Fprintf(&b, ", released by %d at %d", w.Waker, w.WokenAt)
			}
			if w.TimedOut() {
				b.WriteString(", timed out")
			}
			b.WriteString("\n")
		}
	}
	for _, x := range k.Transactions() {
		fmt.Fprintf(&b, "id %d: %d/%d -> %d/%d code %d: %d %d %d %d over %d", x.ID, x.FromPid, x.From, x.ToPid, x.To, x.Code, x.Sent, x.Received, x.Replied, x.Done, x.Over)
		if x.OneWay() {
			b.WriteString(" one-way")
		}
		if x.Open {
			b.WriteString(" open")
		}
		if x.Within != nil {
			fmt.Fprintf(&b, " within %d", x.Within.ID)
		}
		for s, ns := range x.Queued {
			if ns != 0 {
				fmt.Fprintf(&b, ", queued %v %d", State(s), ns)
			}
		}
		for s, ns := range x.Served {
			if ns != 0 {
				fmt.Fprintf(&b, ", served %v %d", State(s), ns)
			}
		}
		b.WriteString("\n")
	}
	if s := k.Stats().WaitStats; s != (WaitStats{}) {
		fmt.Fprintf(&b, "unsent %d unanswered %d beyond %d %d\n", s.Unsent, s.Unanswered, s.BinderStats.Beyond, s.Beyond)
	}
	return b.String()
}

// Each story is a recording from 0 to 1000.
var waitStories = []struct{ name, events, want string }{
	{"a lock is released", `
		100 cpu 0: - -> 1
		200 cpu 0: 1 -> - S
		300 wake 1 by 2
		310 cpu 0: - -> 1
		305 release 2 0x70 from 295
		315 call 1 futex_wait 112 from 190`,
		`1: 190-315 lock futex_wait of 0x70, slept 100, released by 2 at 300`},
	{"a lock is not released in time", `
		100 cpu 0: - -> 1
		200 cpu 0: 1 -> - S
		300 wake 1 by 2
		310 cpu 0: - -> 1
		315 call 1 futex_wait 112 from 190 ret 110`,
		`1: 190-315 lock futex_wait of 0x70, slept 100, timed out`},
	{"woken twice in one call, by a signal's sender and by the holder", `
		100 cpu 0: - -> 1
		200 cpu 0: 1 -> - S
		300 wake 1 by 2
		310 cpu 0: - -> 1
		320 cpu 0: 1 -> - S
		400 wake 1 by 3
		410 cpu 0: - -> 1
		415 call 1 futex_wait 112 from 190`,
		`1: 190-415 lock futex_wait of 0x70, slept 180, released by 3 at 400`},
	{"sleeps before a call are not its own", `
		100 cpu 0: - -> 1
		150 cpu 0: 1 -> - S
		160 wake 1 by 9
		170 cpu 0: - -> 1
		200 cpu 0: 1 -> - S
		300 wake 1 by 2
		310 cpu 0: - -> 1
		315 call 1 read 5 pipe 77 from 190`,
		`1: 190-315 stream read pipe of 0x4d, slept 100`},
	{"without the scheduler the only release is it", `
		305 release 2 112 from 295
		315 call 1 futex_wait 112 from 190
		505 release 2 112 from 495
		510 release 3 112 from 500
		515 call 1 futex_wait 112 from 390
		705 release 2 112 from 695 woken 2
		715 call 1 futex_wait 112 from 690
		805 release 2 113 from 795
		815 call 1 futex_wait 112 from 790`,
		`1: 190-315 lock futex_wait of 0x70, released by 2 at 295
		1: 390-515 lock futex_wait of 0x70
		1: 690-715 lock futex_wait of 0x70
		1: 790-815 lock futex_wait of 0x70`},
	{"a futex of two processes has two addresses and one key", `
		305 release 41 200 from 295 key 9
		315 call 1 futex_wait 112 from 190 key 9
		505 release 41 112 from 495
		515 call 1 futex_wait 112 from 390`,
		`1: 190-315 lock futex_wait of 0x70, released by 41 at 295
		1: 390-515 lock futex_wait of 0x70`},
	{"in the call since before the recording", `
		5 initial 1 S
		300 wake 1 by 2
		310 cpu 0: - -> 1
		315 call 1 futex_wait 112 from 0
		320 call 3 futex_wait 112 from 0`,
		`1: 0-315 lock futex_wait of 0x70, slept 300, released by 2 at 300`},
	{"a binder call and its server's states", `
		100 cpu 0: - -> 1
		200 send 7 1 to 40 code 3
		201 wake 41* by 1
		202 cpu 0: 1 -> - S
		260 cpu 1: - -> 41*
		262 recv 7 41
		300 cpu 1: 41* -> - R
		350 cpu 1: - -> 41*
		370 cpu 1: 41* -> - S
		390 wake 41* by 9
		395 cpu 1: - -> 41*
		400 reply 8 41 to 1 re 7
		401 wake 1 by 41
		410 cpu 0: - -> 1
		412 recv 8 1
		415 call 1 binder from 199`,
		`1: 200-412 binder id 7
		id 7: 10/1 -> 40/41 code 3: 200 262 400 412 over 412, queued running 2, queued runnable 59, served running 63, served runnable 55, served sleeping 20`},
	{"a busy server thread takes the call when it has answered another", `
		100 send 5 2 to 40
		101 cpu 1: - -> 41*
		102 recv 5 41
		200 send 7 1 to 40
		250 reply 6 41 to 2 re 5
		251 recv 6 2
		252 recv 7 41
		300 reply 8 41 to 1 re 7
		301 recv 8 1`,
		`1: 200-301 binder id 7
		2: 100-251 binder id 5
		id 5: 10/2 -> 40/41 code 0: 100 102 250 251 over 251, queued running 1, served running 148
		id 7: 10/1 -> 40/41 code 0: 200 252 300 301 over 301, queued running 50, served running 48`},
	{"one-way", `
		100 cpu 1: - -> 41*
		200 send 7 1 to 40 code 4 oneway
		210 recv 7 41
		250 done 7 41
		300 send 9 1 to 40 code 4 oneway
		310 send 11 1 to 40 code 4 oneway
		320 recv 11 41`,
		`id 7: 10/1 -> 40/41 code 4: 200 210 250 0 over 0 one-way, queued running 10, served running 40
		id 9: 10/1 -> 40/0 code 4: 300 0 0 0 over 0 one-way
		id 11: 10/1 -> 40/41 code 4: 310 320 0 0 over 0 one-way`},
	{"a server calls another one, which calls back", `
		200 send 7 1 to 40
		210 recv 7 41
		220 send 9 41 to 40
		230 recv 9 42
		240 send 11 42 to 40
		250 recv 11 41
		260 reply 12 41 to 42 re 11
		270 recv 12 42
		280 reply 10 42 to 41 re 9
		290 recv 10 41
		295 send 13 41 to 40
		300 reply 8 41 to 1 re 7
		310 recv 8 1
		320 send 15 41 to 40 oneway`,
		`1: 200-310 binder id 7
		41: 220-290 binder id 9
		42: 240-270 binder id 11
		id 7: 10/1 -> 40/41 code 0: 200 210 300 310 over 310
		id 9: 40/41 -> 40/42 code 0: 220 230 280 290 over 290 within 7
		id 11: 40/42 -> 40/41 code 0: 240 250 260 270 over 270 within 9
		id 13: 40/41 -> 40/0 code 0: 295 0 0 0 over 0 within 7
		id 15: 40/41 -> 40/0 code 0: 320 0 0 0 over 0 one-way
		unsent 0 unanswered 1 beyond 0 0`},
	{"under way at the end", `
		100 cpu 1: - -> 41*
		200 send 7 1 to 40
		250 recv 7 41
		300 cpu 1: 41* -> - S`,
		`1: 200-1000 binder id 7
		id 7: 10/1 -> 40/41 code 0: 200 250 0 0 over 0 open, queued running 50, served running 50, served sleeping 700`},
	{"under way, or its reply was lost", `
		100 cpu 1: - -> 41*
		200 send 7 1 to 40
		250 recv 7 41
		600 lost kernel_ring_full_binder_transaction from 550`,
		`id 7: 10/1 -> 40/41 code 0: 200 250 0 0 over 0, queued running 50
		unsent 0 unanswered 1 beyond 0 0`},
	{"a loss before is no matter", `
		200 lost kernel_ring_full_binder_transaction from 100
		201 send 7 1 to 40`,
		`1: 201-1000 binder id 7
		id 7: 10/1 -> 40/0 code 0: 201 0 0 0 over 0 open`},
	{"the server died", `
		200 send 7 1 to 40
		250 recv 7 41
		300 exit 41
		310 call 1 binder from 199
		500 call 1 read 5 pipe 77 from 490`,
		`1: 200-310 binder id 7
		1: 490-500 stream read pipe of 0x4d
		id 7: 10/1 -> 40/41 code 0: 200 250 0 0 over 310
		unsent 0 unanswered 1 beyond 0 0`},
	{"a call that failed, of which only what came later tells", `
		200 send 7 1 to 40
		500 call 1 read 5 pipe 77 from 490`,
		`1: 490-500 stream read pipe of 0x4d
		id 7: 10/1 -> 40/0 code 0: 200 0 0 0 over 0
		unsent 0 unanswered 1 beyond 0 0`},
	{"a call back, and a wait within it", `
		200 send 7 1 to 40
		210 recv 7 41
		220 send 9 41 to 10
		230 recv 9 1
		231 call 1 binder from 199
		240 call 1 read 5 pipe 77 from 235
		250 reply 10 1 to 41 re 9
		260 recv 10 41
		270 reply 8 41 to 1 re 7
		280 recv 8 1`,
		`1: 200-280 binder id 7
		1: 235-240 stream read pipe of 0x4d
		41: 220-260 binder id 9
		id 7: 10/1 -> 40/41 code 0: 200 210 270 280 over 280
		id 9: 40/41 -> 10/1 code 0: 220 230 250 260 over 260 within 7`},
	{"called before the recording", `
		10 cpu 0: - -> 1
		20 cpu 0: 1 -> - S
		300 reply 8 41 to 1
		301 wake 1 by 41
		305 cpu 0: - -> 1
		310 recv 8 1
		315 call 1 binder from 0
		350 reply 18 41 to 1
		360 recv 18 1
		400 recv 20 41
		500 reply 22 41 to 1 re 21
		510 recv 22 1`,
		`1: 20-310 binder id 0
		id 0: 10/1 -> 40/41 code 0: 0 0 300 310 over 310
		id 0: 10/1 -> 40/41 code 0: 0 0 350 360 over 360
		id 21: 10/1 -> 40/41 code 0: 0 0 500 510 over 510
		unsent 4 unanswered 0 beyond 0 0`},
	{"a thread that waits for calls, and one that calls in between", `
		200 call 41 binder from 100
		300 send 7 41 to 40 oneway
		400 call 41 binder from 310
		500 send 9 41 to 40
		600 call 41 binder from 499
		700 call 41 binder from 610`,
		`41: 100-200 serve wait for a binder call
		41: 310-400 serve wait for a binder call
		41: 500-600 binder id 9
		41: 610-700 serve wait for a binder call
		id 7: 40/41 -> 40/0 code 0: 300 0 0 0 over 0 one-way
		id 9: 40/41 -> 40/0 code 0: 500 0 0 0 over 600
		unsent 0 unanswered 1 beyond 0 0`},
	{"a server that is woken and does not get the call", `
		200 wake 41* by 1
		210 cpu 1: - -> 41*
		220 cpu 1: 41* -> - R
		230 cpu 1: - -> 41*
		240 cpu 1: 41* -> - S`,
		``},
}

func TestWaitStories(t *testing.T) {
	for _, st := range waitStories {
		t.Run(st.name, func(t *testing.T) {
			chunk, initial := waitScript(st.events)
			k := NewKernel(KernelOptions{End: 1000}, initial)
			if err := k.Push(chunk); err != nil {
				t.Fatal(err)
			}
			k.Finish()
			if diff := cmp.Diff(clean(st.want), clean(waitsText(k))); diff != "" {
				t.Error(diff)
			}
			for _, a := range k.Threads() {
				checkActivity(t, a)
			}
			checkWaits(t, k)
			if s := k.Stats().StateStats; s != (StateStats{}) {
				t.Errorf("states were repaired: %+v", s)
			}
		})
	}
}

// A server's states are known while it works on a call, and only then.
func TestServerStates(t *testing.T) {
	chunk, _ := waitScript(`
		100 cpu 1: - -> 41*
		102 recv 5 41
		110 send 7 1 to 40
		112 recv 7 41
		150 cpu 1: 41* -> - S
		170 wake 41* by 9
		180 cpu 1: - -> 41*
		200 reply 8 41 to 1 re 7
		500 send 9 1 to 40
		510 recv 9 41
		550 reply 10 41 to 1 re 9`)
	k := NewKernel(KernelOptions{End: 1000}, nil)
	if err := k.Push(chunk); err != nil {
		t.Fatal(err)
	}
	k.Finish()
	want := `
		0-100 unknown
		100-150 running cpu 1
		150-170 sleeping waker 9
		170-180 runnable cpu 3 waker 9
		180-200 running cpu 1
		200-510 unknown
		510-550 running cpu 0
		550-1000 unknown`
	if diff := cmp.Diff(clean(want), k.Thread(41).text()); diff != "" {
		t.Error(diff)
	}
	if a := k.Thread(41); !a.Serves || a.Tgid != 40 {
		t.Errorf("thread 41: %+v", a)
	}
}
