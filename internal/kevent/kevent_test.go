package kevent

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func comm(s string) (c [16]byte) {
	copy(c[:], s)
	return c
}

func head(k Kind, flags uint8) Header {
	return Header{Time: 12_000_000_345, Tid: 101, CPU: 3, Kind: k, Flags: flags}
}

// sample is one event of each kind, with every field set to a value of its own.
var sample = []struct {
	kind   Kind
	flags  uint8
	body   any
	append func([]byte, Header, any) []byte
	decode func([]byte) any
	text   string
}{
	{
		KindSwitch, FlagPrevTarget | FlagIOWait,
		Switch{100, StateBlocked, 120, 7, 8, -51, comm("kworker/0:1")},
		func(b []byte, h Header, e any) []byte { return AppendSwitch(b, h, e.(Switch)) },
		func(b []byte) any { return DecodeSwitch(b) },
		`switch tid=101 tgid=100 state=D prio=120 iowait -> tid=7 tgid=8 prio=-51 comm="kworker/0:1"`,
	},
	{
		KindSwitch, FlagPreempted,
		Switch{PrevTgid: 100, PrevPrio: 19},
		func(b []byte, h Header, e any) []byte { return AppendSwitch(b, h, e.(Switch)) },
		func(b []byte) any { return DecodeSwitch(b) },
		`switch tid=101 tgid=100 state=R prio=19 preempted -> ?`,
	},
	{
		KindWaking, FlagNew,
		Waking{WakerTid: 1, WakerTgid: 2, TargetCPU: 5, Prio: -4, Comm: comm("a\nb"), Tgid: 100},
		func(b []byte, h Header, e any) []byte { return AppendWaking(b, h, e.(Waking)) },
		func(b []byte) any { return DecodeWaking(b) },
		`waking tid=101 tgid=100 comm="a\nb" prio=-4 cpu=5 waker=2/1 new`,
	},
	{
		KindFork, FlagThread,
		Fork{Tgid: 100, ParentTid: 102, ParentTgid: 99, Comm: comm("0123456789abcdef")},
		func(b []byte, h Header, e any) []byte { return AppendFork(b, h, e.(Fork)) },
		func(b []byte) any { return DecodeFork(b) },
		`fork tid=101 tgid=100 parent=99/102 comm="0123456789abcdef" thread`,
	},
	{
		KindExec, 0,
		Exec{Tgid: 100, OldTid: 107, Comm: comm("lua")},
		func(b []byte, h Header, e any) []byte { return AppendExec(b, h, e.(Exec)) },
		func(b []byte) any { return DecodeExec(b) },
		`exec tid=101 tgid=100 old_tid=107 comm="lua"`,
	},
	{
		KindExit, 0,
		Exit{Tgid: 100},
		func(b []byte, h Header, e any) []byte { return AppendExit(b, h, e.(Exit)) },
		func(b []byte) any { return DecodeExit(b) },
		`exit tid=101 tgid=100`,
	},
	{
		KindRename, 0,
		Rename{Tgid: 100, Comm: comm("worker")},
		func(b []byte, h Header, e any) []byte { return AppendRename(b, h, e.(Rename)) },
		func(b []byte) any { return DecodeRename(b) },
		`rename tid=101 tgid=100 comm="worker"`,
	},
	{
		KindMigrate, 0,
		Migrate{FromCPU: 1, ToCPU: 2},
		func(b []byte, h Header, e any) []byte { return AppendMigrate(b, h, e.(Migrate)) },
		func(b []byte) any { return DecodeMigrate(b) },
		`migrate tid=101 from=1 to=2`,
	},
	{
		KindFreq, 0,
		Freq{KHz: 1_800_000, CPU: 6},
		func(b []byte, h Header, e any) []byte { return AppendFreq(b, h, e.(Freq)) },
		func(b []byte) any { return DecodeFreq(b) },
		`freq tid=101 cpu=6 khz=1800000`,
	},
	{
		KindIdle, 0,
		Idle{1<<63 | 5},
		func(b []byte, h Header, e any) []byte { return AppendIdle(b, h, e.(Idle)) },
		func(b []byte) any { return DecodeIdle(b) },
		`idle tid=101 cpus=0,2,63`,
	},
	{
		KindAffinity, 0,
		Affinity{0xf},
		func(b []byte, h Header, e any) []byte { return AppendAffinity(b, h, e.(Affinity)) },
		func(b []byte) any { return DecodeAffinity(b) },
		`affinity tid=101 cpus=0,1,2,3`,
	},
	{
		KindMigrate, FlagBehind,
		Migrate{FromCPU: 1, ToCPU: 2},
		func(b []byte, h Header, e any) []byte { return AppendMigrate(b, h, e.(Migrate)) },
		func(b []byte) any { return DecodeMigrate(b) },
		`migrate tid=101 from=1 to=2 behind`,
	},
	{
		KindRqIssue, FlagIndirect,
		Rq{ID: 0xabc, Sector: 1 << 40, Dev: 254 << 20, Bytes: 4096, Op: OpWrite},
		func(b []byte, h Header, e any) []byte { return AppendRqIssue(b, h, e.(Rq)) },
		func(b []byte) any { return DecodeRq(b) },
		`rq_issue tid=101 id=0xabc dev=254:0 sector=1099511627776 bytes=4096 op=write owner=0/0 indirect`,
	},
	{
		KindRqComplete, 0,
		Rq{ID: 0xabc, Sector: 9, IssueNs: 12_000_000_045, Dev: 8<<20 | 1, Bytes: 512, OwnerTid: 101, OwnerPid: 100, Op: OpFlush, Error: -5},
		func(b []byte, h Header, e any) []byte { return AppendRqComplete(b, h, e.(Rq)) },
		func(b []byte) any { return DecodeRq(b) },
		`rq_complete tid=101 id=0xabc dev=8:1 sector=9 bytes=512 op=flush owner=100/101 ns=300 error=-5`,
	},
	{
		KindFsync, 0,
		Fsync{StartNs: 11_000_000_345, Tgid: 100, Call: CallSyncfs, Ret: -5},
		func(b []byte, h Header, e any) []byte { return AppendFsync(b, h, e.(Fsync)) },
		func(b []byte) any { return DecodeFsync(b) },
		`fsync tid=101 tgid=100 call=syncfs ns=1000000000 ret=-5`,
	},
	{
		KindMajorFault, 0,
		MajorFault{StartNs: 0, Address: 0x7f0000001000, Tgid: 100},
		func(b []byte, h Header, e any) []byte { return AppendMajorFault(b, h, e.(MajorFault)) },
		func(b []byte) any { return DecodeMajorFault(b) },
		`major_fault tid=101 tgid=100 address=0x7f0000001000 ns=0`,
	},
	{
		KindReclaim, 0,
		Reclaim{StartNs: 12_000_000_000, Tgid: 100, Reclaimed: 37},
		func(b []byte, h Header, e any) []byte { return AppendReclaim(b, h, e.(Reclaim)) },
		func(b []byte) any { return DecodeReclaim(b) },
		`reclaim tid=101 tgid=100 ns=345 pages=37`,
	},
	{
		KindSwitch, FlagPrevServer | FlagNextServer,
		Switch{100, StateSleeping, 120, 7, 8, 120, comm("Binder:8_1")},
		func(b []byte, h Header, e any) []byte { return AppendSwitch(b, h, e.(Switch)) },
		func(b []byte) any { return DecodeSwitch(b) },
		`switch tid=101 tgid=100 state=S prio=120 server -> tid=7 tgid=8 prio=120 comm="Binder:8_1" server`,
	},
	{
		KindWaking, FlagServer,
		Waking{WakerTid: 1, WakerTgid: 2, TargetCPU: 5, Prio: 120, Comm: comm("Binder:8_1"), Tgid: 8},
		func(b []byte, h Header, e any) []byte { return AppendWaking(b, h, e.(Waking)) },
		func(b []byte) any { return DecodeWaking(b) },
		`waking tid=101 tgid=8 comm="Binder:8_1" prio=120 cpu=5 waker=2/1 server`,
	},
	{
		KindSyscallWait, 0,
		SyscallWait{StartNs: 12_000_000_045, Object: 0x7f0012345678, Key: 0xabc, Ret: -110, Tgid: 100, FD: -1, Switches: 2, Nr: 202, Call: WaitFutexWait},
		func(b []byte, h Header, e any) []byte { return AppendSyscallWait(b, h, e.(SyscallWait)) },
		func(b []byte) any { return DecodeSyscallWait(b) },
		`syscall_wait tid=101 tgid=100 call=futex_wait nr=202 address=0x7f0012345678 key=0xabc ns=300 switches=2 ret=-110`,
	},
	{
		KindSyscallWait, FlagCompat,
		SyscallWait{StartNs: 0, Object: 4711, Ret: 1, Tgid: 100, FD: 5, Switches: 0, Nr: 3, Call: WaitRead, File: FilePipe},
		func(b []byte, h Header, e any) []byte { return AppendSyscallWait(b, h, e.(SyscallWait)) },
		func(b []byte) any { return DecodeSyscallWait(b) },
		`syscall_wait tid=101 tgid=100 call=read nr=3 compat fd=5 file=pipe object=4711 ns=0 switches=0 ret=1`,
	},
	{
		KindFutexWake, 0,
		FutexWake{StartNs: 12_000_000_045, Address: 0x7f0012345678, Key: 0xabc, Tgid: 100, Woken: 3, Op: WakeFutexRequeue},
		func(b []byte, h Header, e any) []byte { return AppendFutexWake(b, h, e.(FutexWake)) },
		func(b []byte) any { return DecodeFutexWake(b) },
		`futex_wake tid=101 tgid=100 op=futex_requeue address=0x7f0012345678 key=0xabc woken=3 ns=300`,
	},
	{
		KindBinderTransaction, 0,
		BinderTransaction{DebugID: 17, Tgid: 100, ToTgid: 412, ToTid: 0, Code: 3, Flags: 0x11, Node: 5},
		func(b []byte, h Header, e any) []byte { return AppendBinderTransaction(b, h, e.(BinderTransaction)) },
		func(b []byte) any { return DecodeBinderTransaction(b) },
		`binder_transaction tid=101 tgid=100 id=17 to=412/0 code=3 flags=0x11 node=5 one-way`,
	},
	{
		KindBinderTransaction, 0,
		BinderTransaction{DebugID: 18, Tgid: 412, ToTgid: 100, ToTid: 101, InReplyTo: 16, Reply: 1},
		func(b []byte, h Header, e any) []byte { return AppendBinderTransaction(b, h, e.(BinderTransaction)) },
		func(b []byte) any { return DecodeBinderTransaction(b) },
		`binder_transaction tid=101 tgid=412 id=18 to=100/101 code=0 flags=0x0 node=0 reply to=16`,
	},
	{
		KindBinderReceived, 0,
		BinderReceived{DebugID: 17, Tgid: 412},
		func(b []byte, h Header, e any) []byte { return AppendBinderReceived(b, h, e.(BinderReceived)) },
		func(b []byte) any { return DecodeBinderReceived(b) },
		`binder_received tid=101 tgid=412 id=17`,
	},
	{
		KindBinderDone, 0,
		BinderDone{DebugID: 17, Tgid: 412},
		func(b []byte, h Header, e any) []byte { return AppendBinderDone(b, h, e.(BinderDone)) },
		func(b []byte) any { return DecodeBinderDone(b) },
		`binder_done tid=101 tgid=412 id=17`,
	},
	{
		KindAnnounce, FlagMatch,
		Announce{Cgroup: 1 << 33, Tgid: 100, ParentTgid: 99, UID: 10107, What: AnnounceRename, Comm: comm("com.example")},
		func(b []byte, h Header, e any) []byte { return AppendAnnounce(b, h, e.(Announce)) },
		func(b []byte) any { return DecodeAnnounce(b) },
		`announce tid=101 what=rename tgid=100 parent=99 uid=10107 cgroup=8589934592 comm="com.example" match`,
	},
	{
		KindFired, 0,
		Fired{Value: 10_000_001, Limit: 10_000_000, Suppressed: 3, Tgid: 100, What: LimitFsync},
		func(b []byte, h Header, e any) []byte { return AppendFired(b, h, e.(Fired)) },
		func(b []byte) any { return DecodeFired(b) },
		`fired tid=101 what=fsync tgid=100 value=10000001 limit=10000000 suppressed=3`,
	},
	{
		KindFired, 0,
		Fired{Value: 10_000_001, Limit: 10_000_000, Suppressed: 1<<32 - 1, Tgid: 100, What: LimitMethod},
		func(b []byte, h Header, e any) []byte { return AppendFired(b, h, e.(Fired)) },
		func(b []byte) any { return DecodeFired(b) },
		`fired tid=101 what=method tgid=100 value=10000001 limit=10000000 cookie=4294967295`,
	},
	{
		KindLost, 0,
		Lost{SinceNs: 12_000_000_000, Count: 53, Name: [32]byte([]byte("kernel_ring_full_switch\x00\x00\x00\x00\x00\x00\x00\x00\x00"))},
		func(b []byte, h Header, e any) []byte { return AppendLost(b, h, e.(Lost)) },
		func(b []byte) any { return DecodeLost(b) },
		`lost tid=101 name="kernel_ring_full_switch" count=53 ns=345`,
	},
}

// padding is left out: encoders write 0 there.
var noPadding = cmpopts.IgnoreUnexported(Waking{}, Fork{}, Exit{}, Rename{}, Rq{}, MajorFault{}, Announce{}, Fired{}, FutexWake{}, BinderTransaction{})

func TestRoundTrip(t *testing.T) {
	seen := map[Kind]bool{}
	var stream []byte
	for _, s := range sample {
		seen[s.kind] = true
		stream = s.append(stream, head(s.kind, s.flags), s.body)
	}
	if len(seen) != len(kindNames) {
		t.Fatalf("the sample has %d kinds, the package %d", len(seen), len(kindNames))
	}
	for i, s := range sample {
		h, body, rest, err := Next(stream)
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if h != head(s.kind, s.flags) {
			t.Errorf("event %d: header %+v, want %+v", i, h, head(s.kind, s.flags))
		}
		if got, want := len(stream)-len(rest), binary.Size(s.body)+HeaderSize; got != want || Size(s.kind) != want {
			t.Errorf("%v: %d bytes, Size says %d, the struct %d", s.kind, got, Size(s.kind), want)
		}
		if d := cmp.Diff(s.body, s.decode(body), noPadding); d != "" {
			t.Errorf("%v: decoded otherwise than encoded:\n%s", s.kind, d)
		}
		if got, want := string(AppendText(nil, h, body)), "12.000000345 [003] "+s.text; got != want {
			t.Errorf("text\n got %s\nwant %s", got, want)
		}
		stream = rest
	}
	if len(stream) != 0 {
		t.Errorf("%d bytes left over", len(stream))
	}
}

func TestNextErrors(t *testing.T) {
	whole := AppendExit(nil, Header{Tid: 1}, Exit{Tgid: 1})
	for n := range whole {
		_, body, rest, err := Next(whole[:n])
		if !errors.Is(err, ErrShort) || body != nil || len(rest) != n {
			t.Errorf("%d of %d bytes: body %v, rest %d, error %v; want ErrShort and the input back", n, len(whole), body, len(rest), err)
		}
	}
	bad := append([]byte(nil), whole...)
	bad[14] = 99
	if _, _, rest, err := Next(bad); !errors.Is(err, ErrUnknownKind) || len(rest) != len(bad) {
		t.Errorf("kind 99: rest %d, error %v; want ErrUnknownKind and the input back", len(rest), err)
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	var stream []byte
	for _, s := range sample {
		stream = s.append(stream, head(s.kind, s.flags), s.body)
	}
	n := testing.AllocsPerRun(100, func() {
		for b := stream; len(b) > 0; {
			h, body, rest, err := Next(b)
			if err != nil {
				t.Fatal(err)
			}
			if h.Kind == KindSwitch {
				_ = DecodeSwitch(body)
			}
			b = rest
		}
	})
	if n != 0 {
		t.Errorf("reading %d events allocates %v times", len(sample), n)
	}
}

func TestStateName(t *testing.T) {
	for state, want := range map[uint32]string{
		0: "R", 1: "S", 2: "D", 0x402: "I", 0x8: "t", 0x4: "T", 0x80: "X", 0x101: "S", 0x2002: "D", 0x200: "W", 0x4000: "0x4000",
	} {
		if got := StateName(state); got != want {
			t.Errorf("state %#x is %q, want %q", state, got, want)
		}
	}
}

// FuzzNext reads a stream of hostile bytes to its end: every step must shorten it, and what was decoded must encode to
// the same event again.
func FuzzNext(f *testing.F) {
	for _, s := range sample {
		f.Add(s.append(nil, head(s.kind, s.flags), s.body))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for b := data; ; {
			h, body, rest, err := Next(b)
			if err != nil {
				if len(rest) != len(b) {
					t.Fatalf("%v took %d bytes away", err, len(b)-len(rest))
				}
				return
			}
			if len(b)-len(rest) != Size(h.Kind) || len(body) != Size(h.Kind)-HeaderSize {
				t.Fatalf("%v: took %d bytes, body %d, size %d", h.Kind, len(b)-len(rest), len(body), Size(h.Kind))
			}
			if text := AppendText(nil, h, body); len(text) == 0 || cmp.Equal(text[len(text)-1], byte('\n')) {
				t.Fatalf("text %q", text)
			}
			for _, s := range sample {
				if s.kind != h.Kind {
					continue
				}
				first := s.decode(body)
				again := s.append(nil, h, first)
				_, body2, _, err := Next(again)
				if err != nil || !cmp.Equal(first, s.decode(body2), noPadding) {
					t.Fatalf("%v: decoded, encoded and decoded differs: %v", h.Kind, err)
				}
				break
			}
			b = rest
		}
	})
}

func BenchmarkNext(b *testing.B) {
	var stream []byte
	for len(stream) < 1<<20 {
		stream = AppendSwitch(stream, head(KindSwitch, 0), Switch{PrevTgid: 1})
	}
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		for rest := stream; len(rest) > 0; {
			var body []byte
			_, body, rest, _ = Next(rest)
			if DecodeSwitch(body).PrevTgid != 1 {
				b.Fatal("wrong event")
			}
		}
	}
}
