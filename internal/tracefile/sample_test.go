package tracefile

import (
	"bytes"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"braid/inline"
	"braid/internal/kevent"
)

func comm(s string) (c [16]byte) {
	copy(c[:], s)
	return c
}

// The sample trace has a section of each kind, some twice.
var (
	sampleMeta = &Meta{
		Braid: "0.1", Command: []string{"./app", "a b", "ü"}, Kernel: "6.18.0", Machine: "x86_64", Arch: "amd64", CPUs: 2,
		Start: Instant{WallNs: 1_700_000_000_123_456_789, BootNs: 5_000_000_001}, End: Instant{WallNs: 1_700_000_001_123_456_789, BootNs: 6_000_000_001},
		Options: map[string]string{"ring": "32M", "kernel": "sched,io"}, Pid: 4242,
		Exit: &Exit{Code: 137, Signal: 9}, Notes: []string{"killed"},
	}
	sampleClock = &Clock{Counter: CounterTSC, Frequency: 2_300_000_000, Samples: []ClockSample{
		{Before: 11_500_000_000, After: 11_500_000_080, BootNs: 5_000_000_001},
		{Before: 13_800_000_000, After: 13_800_000_064, BootNs: 6_000_000_001},
	}}
	sampleProcesses = &Processes{
		Processes: []Process{{Pid: 4242, PPid: 1, Name: "app", Cmdline: []string{"./app"}, StartNs: 4_999_000_000}},
		Threads: []Thread{
			{Tid: 4242, Pid: 4242, Names: []string{"app"}, StartNs: 4_999_000_000, State: "S", StateNs: 5_000_000_000},
			{Tid: 4243, Pid: 4242, Names: []string{"app", "worker"}, StartNs: 5_100_000_000, EndNs: 5_900_000_000},
		},
	}
	sampleModules = []Module{
		{Pid: 4242, Path: "/usr/bin/app", BuildID: "00ff", Bias: 0x555500000000, Start: 0x555500001000, End: 0x555500009000, Instrumented: true},
		{Path: "/lib/gone.so", Start: 0x7f0000000000, End: 0x7f0000001000, UnloadedNs: 5_500_000_000, Unresolved: "the file was replaced"},
	}
	sampleSymbols = []Symbol{
		{Addr: 0x555500001100, Size: 64, Module: 0, Name: "main", Raw: "main"},
		{Addr: 0x555500001200, Size: 0, Module: 0, Name: "ns::work(int)", Raw: "_ZN2ns4workEi"},
		{Addr: 0x7f0000000001, Size: 3, Module: NoModule, Name: "odd\x1b[2J", Raw: "odd"},
	}
	sampleRing = &Ring{
		Pid: 4242, Tid: 4242, Name: comm("app"), Flags: RingComplete | RingContinues, Sequence: 3,
		Begin: 11_500_000_000, End: 13_800_000_000, DroppedNewest: 2,
		Anchors: []inline.Anchor{{Slot: 2, Last: 20<<32 | 0x00001200, First: 11_600_000_000, Until: 11_700_000_000}},
		Slots: []uint64{
			10<<32 | 0x00001100, 20<<32 | 0x00001200, 30 << 32,
			0x7f0000000001, 40<<32 | 1, 0x555500001100, 50<<32 | 2, 60<<32 | 7, 70<<32 | 0x00009999, 80 << 32,
		},
	}
	sampleTorn = &Ring{Pid: 4242, Tid: 4243, Name: comm("worker-with-long"), Flags: 1 << 9, Slots: []uint64{1 << 32}}
	sampleLost = &Lost{Counts: map[string]uint64{"kernel_ring_full_switch": 3}, Hooks: []string{"cpu_frequency: no such tracepoint"}}
)

func sampleEvents() []byte {
	h := kevent.Header{Time: 5_200_000_000, Tid: 4242, CPU: 1, Flags: kevent.FlagPrevTarget}
	b := kevent.AppendSwitch(nil, h, kevent.Switch{PrevTgid: 4242, PrevState: 1, PrevPrio: 120})
	h.Time, h.Flags = 5_300_000_000, 0
	b = kevent.AppendWaking(b, h, kevent.Waking{WakerTid: 4243, WakerTgid: 4242, TargetCPU: 1, Prio: 120, Comm: comm("app"), Tgid: 4242})
	return kevent.AppendExit(b, h, kevent.Exit{Tgid: 4242})
}

// writeSample writes the sample trace.
func writeSample(t testing.TB, path string) {
	t.Helper()
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	events := sampleEvents()
	for _, err := range []error{
		w.WriteMeta(sampleMeta), w.WriteClock(sampleClock), w.WriteProcesses(sampleProcesses), w.WriteModules(sampleModules),
		w.WriteSymbols(sampleSymbols), w.WriteRing(sampleRing), w.WriteEvents(events), w.WriteRing(sampleTorn),
		w.WriteSection(0x77, []byte("future"), []byte("!")), w.WriteEvents(events[:kevent.Size(kevent.KindSwitch)]),
		w.WriteLost(sampleLost), w.WriteLost(sampleLost), w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func sample(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.braid")
	writeSample(t, path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t testing.TB, b []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
