package report

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"braid/inline"
	"braid/internal/analysis"
	"braid/internal/cpus"
	"braid/internal/kevent"
	"braid/internal/timeline"
	"braid/internal/tracefile"

	"github.com/google/go-cmp/cmp"
)

// phone is a machine with two little processors, one in the middle, and a big one.
var phone = []cpus.CPU{
	{ID: 0, Online: true, Capacity: 400, Cluster: "little", Model: "Cortex-A55", MinKHz: 300_000, MaxKHz: 1_800_000, KHz: 900_000},
	{ID: 1, Online: true, Capacity: 400, Cluster: "little", KHz: 900_000},
	{ID: 2, Online: true, Capacity: 700, Cluster: "middle", KHz: 1_500_000},
	{ID: 3, Online: true, Capacity: 1024, Cluster: "big", KHz: 2_000_000},
}

// journey is a trace of thread 100, which runs in outer from 0 to 100 ms, from 20 to 60 in inner: to 50 on little CPU 0,
// waits 10 behind others, and runs on the big one. The big one is idle from 10 to 27.
func journey(t *testing.T, processors []cpus.CPU, allowed uint64) *timeline.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journey.braid")
	w, err := tracefile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	at := func(n uint64) uint64 { return begin + n*ms }
	var clock tracefile.Clock
	clock.Counter, clock.Frequency = tracefile.CounterTSC, second
	for n := begin - second; n <= at(200); n += 100 * ms {
		clock.Samples = append(clock.Samples, tracefile.ClockSample{Before: n, After: n, BootNs: n})
	}
	var s []uint64
	s = inline.AppendEntry(s, at(0)+1, addrRun)
	s = inline.AppendEntry(s, at(20), addrLck)
	s = inline.AppendExit(s, at(60))
	s = inline.AppendExit(s, at(100))
	var b []byte
	head := func(n uint64, cpu uint16, tid uint32) kevent.Header {
		return kevent.Header{Time: at(n), CPU: cpu, Tid: tid}
	}
	sw := func(n uint64, cpu uint16, prev, next uint32) {
		h, e := head(n, cpu, prev), kevent.Switch{NextTid: next}
		if prev != 0 {
			e.PrevTgid, h.Flags = 100, kevent.FlagPrevTarget|kevent.FlagPreempted
		}
		if next != 0 {
			e.NextTgid, h.Flags, e.NextComm = 100, kevent.FlagNextTarget, comm("app")
		}
		b = kevent.AppendSwitch(b, h, e)
	}
	idle := func(n, word uint64) { b = kevent.AppendIdle(b, head(n, 0, 0), kevent.Idle{Idle: word}) }
	if allowed != 0 {
		b = kevent.AppendAffinity(b, head(0, 0, 100), kevent.Affinity{Allowed: allowed})
	}
	idle(0, 0)
	sw(0, 0, 0, 100)
	idle(10, 1<<3)
	idle(27, 0)
	b = kevent.AppendFreq(b, head(30, 0, 0), kevent.Freq{CPU: 0, KHz: 1_800_000})
	idle(50, 1<<1)
	sw(50, 0, 100, 0)
	sw(60, 3, 0, 100)
	sw(100, 3, 100, 0)
	meta := &tracefile.Meta{Start: tracefile.Instant{BootNs: begin}, End: tracefile.Instant{BootNs: at(100)}, Processors: processors}
	for _, err := range []error{
		w.WriteMeta(meta), w.WriteClock(&clock),
		w.WriteModules([]tracefile.Module{{Pid: 100, Path: "/usr/bin/app", Bias: text, Start: text, End: text + 0x1000}}),
		w.WriteSymbols([]tracefile.Symbol{{Addr: addrRun, Name: "outer"}, {Addr: addrLck, Name: "inner"}}),
		w.WriteRing(&tracefile.Ring{Pid: 100, Tid: 100, Name: comm("app"), Begin: at(0), End: at(100), Slots: s}),
		w.WriteEvents(b), w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := tracefile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	tr, err := timeline.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestProcessors(t *testing.T) {
	r, err := Build(journey(t, phone, 0), Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(ms)
	p := r.Processors
	th := p.Threads[0].Placing
	if d := cmp.Diff(map[string]int64{"big": 40 * n, "middle": 0, "little": 50 * n}, th.RunningNs); d != "" {
		t.Error(d)
	}
	if th.StrongerIdleNs != 17*n || th.StrongerAllowedNs != 17*n || th.WaitOtherIdleNs != 10*n || th.Migrations != 1 || th.ClusterMigrations != 1 {
		t.Errorf("%+v", th)
	}
	// 30 ms at 0.9 GHz, 20 at 1.8, 40 at 2.
	if want := int64((30*900_000 + 20*1_800_000 + 40*2_000_000) / 90); th.MeanKHz != want {
		t.Errorf("mean %d kHz, want %d", th.MeanKHz, want)
	}
	outer, inner := p.Methods[0], p.Methods[1]
	if outer.Name != "outer" || outer.StrongerIdleNs != 10*n || outer.RunningNs["little"] != 20*n-1 || outer.RunningNs["big"] != 40*n ||
		outer.MeanKHz < 1_633_000 || outer.MeanKHz > 1_634_000 {
		t.Errorf("%+v", outer)
	}
	if inner.Name != "inner" || inner.StrongerIdleNs != 7*n || inner.RunningNs["little"] != 30*n || inner.WaitOtherAllowedNs != 10*n || inner.MeanKHz != 1_500_000 {
		t.Errorf("%+v", inner)
	}
	want := []string{
		"app (100) ran 19 % of its time on a little core while a stronger one was idle: 17.0ms of 90.0ms.",
		"app (100) waited 10.0ms of 10.0ms for a processor while another one was idle that it may use.",
		"outer itself ran 17 % of its time on a little core while a stronger one was idle: 10.0ms of 60.0ms.",
		"inner itself ran 23 % of its time on a little core while a stronger one was idle: 7.00ms of 30.0ms.",
	}
	if d := cmp.Diff(want, p.Findings); d != "" {
		t.Error(d)
	}
	checkGoldens(t, "processors", r)
}

func checkGoldens(t *testing.T, name string, r *Report) {
	t.Helper()
	var text, js bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(&js); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if len(strings.TrimSuffix(line, "\n")) > Width {
			t.Errorf("too wide: %s", line)
		}
	}
	golden(t, name+".txt", text.Bytes())
	golden(t, name+".json", js.Bytes())
}

// TestTwoKinds: with two kinds the stronger one is the big one, and what may not be used is said.
func TestTwoKinds(t *testing.T) {
	two := slices.Clone(phone)
	two[2].Capacity = 400
	for allowed, want := range map[uint64]string{
		0:      "app (100) ran 19 % of its time on a little core while a big one was idle: 17.0ms of 90.0ms.",
		0b0111: "app (100) ran 19 % of its time on a little core while a big one was idle: 17.0ms of 90.0ms. It is not allowed to use those that were idle.",
	} {
		r, err := Build(journey(t, two, allowed), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Processors.Findings[0]; got != want {
			t.Errorf("%b: %s", allowed, got)
		}
	}
}

// TestAlike: where all processors are alike, only waits are told.
func TestAlike(t *testing.T) {
	for allowed, want := range map[uint64][]string{
		0:      {"app (100) waited 10.0ms of 10.0ms for a processor while another one was idle that it may use."},
		0b1001: {"app (100) waited 10.0ms of 10.0ms for a processor while others were idle that it may not use."},
	} {
		r, err := Build(journey(t, nil, allowed), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, r.Processors.Findings); d != "" || len(r.Processors.Methods) != 0 || r.Processors.Threads[0].RunningNs != nil {
			t.Error(d)
		}
	}
}

// TestNothingOfProcessors: a trace that says nothing of processors has no such part.
func TestNothingOfProcessors(t *testing.T) {
	r, err := Build(story(t, true), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if _, there := got["processors"]; there || r.Processors != nil {
		t.Errorf("%v", got["processors"])
	}
}

// TestWhyPlaced: the explanation of a moment says it of the moment.
func TestWhyPlaced(t *testing.T) {
	r, err := Build(journey(t, phone, 0), Options{Why: &analysis.Options{Around: analysis.Around{Method: "inner"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Meanwhile the thread ran 23 % of its time on a little core while a stronger one was idle: 7.00ms of 30.0ms.",
		"Meanwhile the thread waited 10.0ms of 10.0ms for a processor while another one was idle that it may use.",
	}
	for _, s := range want {
		if !slices.Contains(r.Analysis.Explanation, s) {
			t.Errorf("%q is missing in %q", s, r.Analysis.Explanation)
		}
	}
}
