package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"braid/inline"
	"braid/internal/analysis"
	"braid/internal/kevent"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

var update = flag.Bool("update", false, "write the goldens in testdata anew")

const (
	second  = uint64(1e9)
	begin   = 10 * second
	ms      = uint64(1e6)
	text    = uint64(0x5555_5555_0000)
	addrRun = text + 0x100
	addrLck = text + 0x200
	addrSyn = text + 0x300
	addrNo  = text + 0x400 // has no symbol
	addrTry = text + 0x500
	addrBad = text + 0x600
)

// comm pads a thread's name.
func comm(s string) (c [16]byte) {
	copy(c[:], s)
	return c
}

// story writes a trace file: thread 100 computes for 50 ms of which it is preempted for 10, waits 30 ms for a lock
// that thread 101 holds, and writes 64 KiB and syncs them, blocked for 20 ms. A tick of its counter is a nanosecond.
// A method fails three times, with an exception that its caller catches. Thread 101 sleeps. kernel says whether kernel events are part of it. A trigger
// makes it one that was flushed, with a snapshot.
func story(t testing.TB, kernel bool, flushed ...*tracefile.Trigger) *timeline.Trace {
	t.Helper()
	return storyWith(t, kernel, func(*tracefile.Writer) error { return nil }, flushed...)
}

// storyWith is story with more sections.
func storyWith(t testing.TB, kernel bool, more func(*tracefile.Writer) error, flushed ...*tracefile.Trigger) *timeline.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "story.braid")
	w, err := tracefile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	end := begin + 200*ms
	meta := &tracefile.Meta{
		Braid: "test", Start: tracefile.Instant{BootNs: begin}, End: tracefile.Instant{BootNs: end},
		Notes: []string{"the target closed its standard output, which is nothing to worry about but makes a note that is longer than a line"},
	}
	if len(flushed) > 0 {
		meta.Trigger = flushed[0]
	}
	must(w.WriteMeta(meta))
	clock := &tracefile.Clock{Counter: tracefile.CounterTSC, Frequency: second}
	for at := begin - second; at <= end; at += 100 * ms {
		clock.Samples = append(clock.Samples, tracefile.ClockSample{Before: at - 20, After: at + 20, BootNs: at})
	}
	must(w.WriteClock(clock))
	must(w.WriteProcesses(&tracefile.Processes{
		Processes: []tracefile.Process{{Pid: 100, Name: "app"}},
		Threads: []tracefile.Thread{
			{Pid: 100, Tid: 100, Names: []string{"app"}, State: "R", StateNs: begin},
			{Pid: 100, Tid: 101, Names: []string{"holder"}, State: "S", StateNs: begin},
		},
	}))
	must(w.WriteModules([]tracefile.Module{{Pid: 100, Path: "/usr/bin/app", Bias: text, Start: text, End: text + 0x1000}}))
	must(w.WriteSymbols([]tracefile.Symbol{
		{Addr: addrRun, Name: "std::vector<std::pair<int, long>, std::allocator<int>>::push_back(int const&)"},
		{Addr: addrLck, Name: "lock"}, {Addr: addrSyn, Name: "sync_all"},
		{Addr: addrTry, Name: "attempt"}, {Addr: addrBad, Name: "fail"},
	}))
	var s []uint64
	at := func(n uint64) uint64 { return begin + n*ms }
	s = inline.AppendExit(s, at(5))
	s = inline.AppendEntry(s, at(10), addrRun)
	s = inline.AppendExit(s, at(60))
	s = inline.AppendEntry(s, at(61), addrSyn)
	s = inline.AppendEntry(s, at(62), addrLck)
	s = inline.AppendExit(s, at(92))
	s = inline.AppendEntry(s, at(93), addrNo)
	s = inline.AppendExit(s, at(94))
	s = inline.AppendExit(s, at(120))
	s = append(s, inline.Pack(at(121), 7))
	s = inline.AppendEntryFramed(s, at(122), addrTry, 0x7fff_8000)
	for i := range uint64(3) {
		s = inline.AppendEntry(s, at(123+2*i), addrBad)
		s = inline.AppendResumedFramed(s, at(124+2*i), addrTry, 0x7fff_7fa0)
	}
	s = append(s, 0)
	s = inline.AppendExit(s, at(129))
	s = inline.AppendEntry(s, at(130), addrLck)
	must(w.WriteRing(&tracefile.Ring{
		Pid: 100, Tid: 100, Name: comm("app"), Begin: at(0), End: at(140), Slots: s, DroppedOldest: 12,
	}))
	if kernel {
		var b []byte
		sw := func(n uint64, cpu uint16, prev, next, state uint32, flags uint8) {
			h := kevent.Header{Time: at(n), CPU: cpu, Tid: prev, Flags: flags}
			e := kevent.Switch{PrevState: state, NextTid: next}
			if prev != 0 {
				e.PrevTgid, h.Flags = 100, h.Flags|kevent.FlagPrevTarget
			}
			if next != 0 {
				e.NextTgid, h.Flags, e.NextComm = 100, h.Flags|kevent.FlagNextTarget, comm(map[uint32]string{100: "app", 101: "holder"}[next])
			}
			b = kevent.AppendSwitch(b, h, e)
		}
		wake := func(n uint64, tid uint32) {
			b = kevent.AppendWaking(b, kevent.Header{Time: at(n), Tid: tid}, kevent.Waking{WakerTid: 101, Tgid: 100})
		}
		sw(20, 1, 100, 0, 0, kevent.FlagPreempted)
		sw(30, 1, 0, 100, 0, 0)
		sw(63, 1, 100, 0, kevent.StateSleeping, 0)
		wake(91, 100)
		sw(92, 1, 0, 100, 0, 0)
		sw(95, 1, 100, 0, kevent.StateBlocked, kevent.FlagIOWait)
		b = kevent.AppendRqComplete(b, kevent.Header{Time: at(110)}, kevent.Rq{IssueNs: at(96), Dev: 254 << 20, Bytes: 65536, OwnerTid: 100, OwnerPid: 100, Op: kevent.OpWrite})
		wake(115, 100)
		sw(115, 1, 0, 100, 0, 0)
		b = kevent.AppendFsync(b, kevent.Header{Time: at(116), Tid: 100}, kevent.Fsync{StartNs: at(94), Tgid: 100})
		must(w.WriteEvents(b))
	}
	must(w.WriteLost(&tracefile.Lost{Counts: map[string]uint64{"kernel_ring_full_switch": 3, "kernel_ring_full_waking": 0}, Hooks: []string{"cpu_frequency: not in this kernel"}}))
	if len(flushed) > 0 {
		must(w.WriteSnapshot(&tracefile.Snapshot{
			TimeNs: begin + 150*ms,
			Texts: map[string]string{
				"/proc/loadavg": "3.14 1.00 0.50 2/300 4242\n", "/proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable:    4000000 kB\n",
				"/proc/pressure/cpu": "some avg10=12.50 avg60=1.00 avg300=0.10 total=1\n", "/proc/pressure/io": "some avg10=80.00 avg60=1.00 avg300=0.10 total=1\nfull avg10=70.00 avg60=0 avg300=0 total=1\n",
			},
			Threads: []tracefile.SnapshotThread{{Pid: 100, Tid: 100, Name: "app", State: "D", Wait: "jbd2_log_wait_commit", Stack: []string{"io_schedule"}}, {Pid: 100, Tid: 101, Name: "hol\x1bder", State: "R"}},
			Missing: []string{"/proc/101/stack: not permitted"},
		}))
	}
	must(more(w))
	must(w.Close())
	r, err := tracefile.Open(path)
	must(err)
	t.Cleanup(func() { r.Close() })
	tr, err := timeline.Load(r)
	must(err)
	return tr
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", name, got, want)
	}
}

// TestGoldens compares reports of story with the goldens in testdata. go test -run Goldens -update writes them.
func TestGoldens(t *testing.T) {
	for _, c := range []struct {
		name    string
		kernel  bool
		o       Options
		flushed []*tracefile.Trigger
	}{
		{"all", true, Options{}, nil},
		{"top-total", true, Options{Sort: "total", Top: 1}, nil},
		{"thread", true, Options{Sort: "name", Thread: "hold*"}, nil},
		{"no-kernel", false, Options{Thread: "100"}, nil},
		{"flushed", true, Options{Top: 2, Why: &analysis.Options{Signatures: analysis.Builtin()}}, []*tracefile.Trigger{{
			Name: "slow sync", Kind: "method", Severity: "high", TimeNs: begin + 121*ms, Pid: 100, Tid: 100, Method: "sync_all",
			Reason: "sync_all took longer than its limit", Values: map[string]float64{"latency_ns": 59e6, "limit_ns": 50e6, "calls": 1},
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Build(story(t, c.kernel, c.flushed...), c.o)
			if err != nil {
				t.Fatal(err)
			}
			var text, js bytes.Buffer
			if err := r.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if err := r.WriteJSON(&js); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(text.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > Width {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			golden(t, c.name+".txt", text.Bytes())
			golden(t, c.name+".json", js.Bytes())
		})
	}
}

// TestSplit checks the story's times by hand, not by golden.
func TestSplit(t *testing.T) {
	r, err := Build(story(t, true), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Method{}
	for _, m := range r.Methods {
		got[m.Name] = m
	}
	n := int64(ms)
	want := map[string][2]Times{
		"std::vector<std::pair<int, long>, std::allocator<int>>::push_back(int const&)": {
			{WallNs: 50 * n, RunningNs: 40 * n, RunnableNs: 10 * n}, {WallNs: 50 * n, RunningNs: 40 * n, RunnableNs: 10 * n}},
		"lock": {
			{WallNs: 40 * n, RunningNs: 11 * n, RunnableNs: n, SleepingNs: 28 * n},
			{WallNs: 40 * n, RunningNs: 11 * n, RunnableNs: n, SleepingNs: 28 * n}},
		"sync_all": {
			{WallNs: 28 * n, RunningNs: 8 * n, BlockedNs: 20 * n, IOWaitNs: 20 * n, IOBytes: 65536},
			{WallNs: 59 * n, RunningNs: 10 * n, RunnableNs: n, SleepingNs: 28 * n, BlockedNs: 20 * n, IOWaitNs: 20 * n, IOBytes: 65536}},
		"app+0x400": {{WallNs: n, RunningNs: n}, {WallNs: n, RunningNs: n}},
	}
	for name, w := range want {
		if m := got[name]; m.Self != w[0] || m.Total != w[1] {
			t.Errorf("%s:\ngot  %+v\n     %+v\nwant %+v\n     %+v", name, m.Self, m.Total, w[0], w[1])
		}
	}
	if r.Unwound.Calls != 3 || r.Unwound.Resumes != 3 || r.Lost["ring_slots_unwritten"] != 1 {
		t.Errorf("unwound: %+v, lost %v", r.Unwound, r.Lost)
	}
	if r.Lost["records_damaged"] != 1 || r.Lost["ring_slots_overwritten"] != 12 || r.Lost["kernel_ring_full_switch"] != 3 {
		t.Errorf("lost: %v", r.Lost)
	}
}

// TestJSONShape: the names that others parse.
func TestJSONShape(t *testing.T) {
	r, err := Build(story(t, true), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Methods []struct {
			Name, Module *string
			Calls        *uint64
			Self, Total  map[string]int64
		}
		Threads []map[string]any
		Clock   map[string]any
		Lost    map[string]uint64
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Methods {
		if m.Name == nil || m.Module == nil || m.Calls == nil {
			t.Errorf("%+v", m)
		}
		for _, times := range []map[string]int64{m.Self, m.Total} {
			for _, k := range []string{"wall_ns", "running_ns", "runnable_ns", "sleeping_ns", "blocked_ns", "io_bytes"} {
				if _, ok := times[k]; !ok {
					t.Errorf("no %s", k)
				}
			}
		}
	}
	for _, th := range got.Threads {
		for _, k := range []string{"tid", "name", "records", "running_ns", "runnable_ns", "sleeping_ns", "blocked_ns"} {
			if _, ok := th[k]; !ok {
				t.Errorf("no %s", k)
			}
		}
	}
	for _, k := range []string{"source", "frequency_hz", "max_residual_ns"} {
		if _, ok := got.Clock[k]; !ok {
			t.Errorf("no %s", k)
		}
	}
	if len(got.Methods) != 7 || len(got.Threads) != 2 || got.Lost["kernel_ring_full_switch"] != 3 {
		t.Error(b.String())
	}
}

func TestOptions(t *testing.T) {
	tr := story(t, false)
	for _, o := range []Options{{Sort: "size"}, {Thread: "[a"}, {Top: -1}} {
		if _, err := Build(tr, o); !errors.Is(err, ErrOption) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
