package stacks

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"braid/inline"
	"braid/internal/timeline"
	"braid/internal/tracefile"

	"github.com/google/go-cmp/cmp"
)

const (
	t0   = uint64(2e9) // when the programs of these tests begin; a tick is a nanosecond
	app  = uint64(0x5555_0000_1000)
	libc = uint64(0x7f00_0000_0000)
	kern = uint64(0xffff_ffff_8100_0000)
	pid  = 10
)

// The functions of these tests take 0x100 bytes each, in this order.
var (
	methods = []string{"main", "sort", "compare", "write_all", "leaf"}
	others  = []string{"_start", "memcpy", "qsort", "__write"}
	kernels = []string{"entry_SYSCALL_64", "vfs_write"}
)

// addr is where a function begins.
func addr(name string) uint64 {
	for _, l := range []struct {
		base  uint64
		names []string
	}{{app, methods}, {libc, others}, {kern, kernels}} {
		if i := slices.Index(l.names, name); i >= 0 {
			return l.base + uint64(i)*0x100
		}
	}
	panic(name)
}

// stack is the addresses of frames given from the outermost to the innermost, innermost first.
func stack(names string) (out []uint64) {
	for _, n := range strings.Fields(names) {
		var a uint64
		if strings.HasPrefix(n, "0x") {
			fmt.Sscanf(n, "%v", &a)
		} else {
			name, cold := strings.CutSuffix(n, ".cold")
			if a = addr(name) + 0x10; cold {
				a = app + 0x800 + uint64(slices.Index(methods, name))*0x10
			}
		}
		out = append(out, a)
	}
	slices.Reverse(out)
	return out
}

// ring is a thread's ring: "name at" enters, ") at" leaves, in ns after t0.
func ring(tid uint32, flags tracefile.RingFlags, script string) *tracefile.Ring {
	r := &tracefile.Ring{Pid: pid, Tid: tid, Flags: flags, Begin: t0, End: t0 + 1e6}
	f := strings.Fields(script)
	for i := 0; i < len(f); i += 2 {
		var at uint64
		fmt.Sscan(f[i+1], &at)
		if f[i] == ")" {
			r.Slots = inline.AppendExit(r.Slots, t0+at)
		} else {
			r.Slots = inline.AppendEntry(r.Slots, t0+at, addr(f[i]))
		}
	}
	return r
}

// sample is a sample of thread tid at ns after t0; "kernel | user" frames from the outermost.
func sample(tid uint32, at uint64, end tracefile.StackEnd, user, kernel string) tracefile.Sample {
	s := tracefile.Sample{Time: t0 + at, Tgid: pid, Tid: tid, Way: tracefile.StackDWARF, End: end, Weight: 1e6, User: stack(user), Kernel: stack(kernel)}
	if end == tracefile.EndChain {
		s.Way = tracefile.StackFP
	}
	if kernel != "" {
		s.Flags = tracefile.SampleKernel
	}
	return s
}

// names are the frames of the synthetic program.
func names() *tracefile.Frames {
	f := &tracefile.Frames{Mappings: []tracefile.Mapping{
		{Flags: tracefile.MappingKernel, Start: kern, End: kern + 0x10000, Path: "[kernel.kallsyms]"},
		{Pid: pid, Start: app, End: app + 0x1000, Bias: app - 0x1000, Path: "/usr/bin/app"},
		{Pid: pid, Start: libc, End: libc + 0x1000, Path: "/lib/libc.so.6"},
	}}
	for i, list := range [][]string{kernels, methods, others} {
		for _, n := range list {
			f.Functions = append(f.Functions, tracefile.Function{Mapping: uint32(i), Start: addr(n), End: addr(n) + 0x100, Name: n, Raw: n})
		}
	}
	for i, n := range methods {
		at := app + 0x800 + uint64(i)*0x10
		f.Functions = append(f.Functions, tracefile.Function{Mapping: 1, Start: at, End: at + 0x10, Name: n + ".cold", Raw: n + ".cold"})
	}
	return f
}

// load writes a trace with rings and samples.
func load(t testing.TB, samples []tracefile.Sample, rings ...*tracefile.Ring) *timeline.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.braid")
	w, err := tracefile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var symbols []tracefile.Symbol
	for _, n := range methods {
		symbols = append(symbols, tracefile.Symbol{Addr: addr(n), Size: 0x100, Name: n, Raw: n})
	}
	clock := &tracefile.Clock{Counter: tracefile.CounterTSC, Frequency: 1e9}
	for at := t0 - 1e8; at <= t0+2e8; at += 1e8 {
		clock.Samples = append(clock.Samples, tracefile.ClockSample{Before: at - 50, After: at + 50, BootNs: at})
	}
	steps := []error{
		w.WriteMeta(&tracefile.Meta{Pid: pid, Arch: "amd64", Start: tracefile.Instant{BootNs: t0}, End: tracefile.Instant{BootNs: t0 + 1e6}}),
		w.WriteClock(clock),
		w.WriteProcesses(&tracefile.Processes{Processes: []tracefile.Process{{Pid: pid, Name: "app"}}}),
		w.WriteModules([]tracefile.Module{{Pid: pid, Path: "/usr/bin/app", Bias: app - 0x1000, Start: app, End: app + 0x1000}}),
		w.WriteSymbols(symbols),
	}
	for _, r := range rings {
		steps = append(steps, w.WriteRing(r))
	}
	if samples != nil {
		steps = append(steps, w.WriteFrames(names()), w.WriteSamples(&tracefile.Samples{
			Event: tracefile.SampleCPUClock, Stacks: tracefile.StackAuto, Kernel: true, Frequency: 1000, Samples: samples}))
	}
	if err := errors.Join(append(steps, w.Close())...); err != nil {
		t.Fatal(err)
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

// joined renders all stacks: kernel frames in angle brackets, methods in round ones, with a star if only the ring has them.
func joined(t testing.TB, tr *timeline.Trace) (out []string, j *Join) {
	t.Helper()
	j, err := New(tr)
	if err != nil {
		t.Fatal(err)
	}
	err = j.Each(func(s *Sample) error {
		var b strings.Builder
		for _, f := range s.Frames {
			fn := j.Functions[f.Func]
			text := fn.Name
			switch {
			case fn.Kind == Kernel:
				text = "<" + text + ">"
			case fn.Kind == Method:
				text = "(" + text + ")"
			}
			if f.RingOnly {
				text += "*"
			}
			fmt.Fprintf(&b, "%s ", text)
		}
		out = append(out, strings.TrimSpace(b.String()))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, j
}

const (
	whole = tracefile.EndComplete
	chain = tracefile.EndChain
)

func TestJoin(t *testing.T) {
	tr := load(t, []tracefile.Sample{
		sample(pid, 1500, whole, "_start main sort", ""),
		sample(pid, 3000, whole, "_start main sort qsort compare", ""),
		sample(pid, 3100, whole, "_start main sort qsort compare.cold memcpy", ""),
		sample(pid, 3200, chain, "_start qsort memcpy", ""),                                    // main, sort and compare are lost
		sample(pid, 6000, tracefile.EndCut, "write_all __write", "entry_SYSCALL_64 vfs_write"), // the outer frames are cut off
		sample(pid, 6100, tracefile.EndNone, "", "vfs_write"),
		sample(pid, 20_000, chain, "_start 0x1234 0x7f0000000f00", ""), // nothing is open; names of neither
		sample(77, 3000, whole, "_start main leaf", ""),                // a thread without a ring
		sample(pid, 2_000_000, whole, "_start main leaf", ""),          // after the ring's end
	}, ring(pid, tracefile.RingComplete, "main 100 sort 1000 compare 2500 ) 4000 ) 5000 write_all 5500 ) 9000 ) 10000"))
	got, j := joined(t, tr)
	want := []string{
		"_start (main) (sort)",
		"_start (main) (sort) qsort (compare)",
		"_start (main) (sort) qsort (compare) memcpy",
		"_start (main)* (sort)* qsort (compare)* memcpy",
		"(main)* (write_all) __write <entry_SYSCALL_64> <vfs_write>",
		"(main)* (write_all)* <vfs_write>",
		"_start [unknown] [libc.so.6]",
		"_start (main) (leaf)",
		"_start (main) (leaf)",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	stats := Stats{Samples: 9, InKernel: 2, Ns: 9e6, WithRing: 7, Supplied: 3 + 1 + 2, SuppliedIn: 3,
		Ends: map[tracefile.StackEnd]uint64{whole: 5, chain: 2, tracefile.EndCut: 1, tracefile.EndNone: 1}}
	if d := cmp.Diff(stats, j.Stats); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	again, _ := joined(t, tr)
	if !slices.Equal(again, got) {
		t.Errorf("the second time: %q", again)
	}
}

// TestClockError: near a call the ring's state that fits the stack counts, within the clock's error; further away it is
// a contradiction, and both stay.
func TestClockError(t *testing.T) {
	tr := load(t, []tracefile.Sample{
		sample(pid, 900, whole, "_start main sort", ""),       // sort is entered 100 ns later
		sample(pid, 5100, whole, "_start main sort leaf", ""), // leaf was left 100 ns before
		sample(pid, 5900, whole, "_start main", ""),           // sort is left 100 ns later
		sample(pid, 3000, whole, "_start main", ""),           // sort is open for long
		sample(pid, 9000, whole, "_start main sort", ""),      // and is not
		sample(pid, 4100, whole, "_start main sort", ""),      // here it is exact
	}, ring(pid, tracefile.RingComplete, "main 100 sort 1000 leaf 4200 ) 5000 ) 6000 sort 9500 ) 9600 ) 10000"))
	got, j := joined(t, tr)
	want := []string{
		"_start (main) (sort)", "_start (main) (sort) (leaf)", "_start (main)", "_start (main) (sort)*", "_start (main) (sort)",
		"_start (main) (sort)",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if j.Stats.Shifted != 3 || j.Stats.Contradictions != 2 {
		t.Errorf("%+v", j.Stats)
	}
}

// TestWrappedRing: where the oldest records were overwritten, the ring covers nothing before its first one, and methods
// of which only the exit is left take their names from the stack.
func TestWrappedRing(t *testing.T) {
	r := ring(pid, 0, ") 5000 leaf 6000 ) 7000 ) 8000 leaf 9000 ) 9500")
	r.Begin, r.DroppedOldest = t0, 1000
	tr := load(t, []tracefile.Sample{
		sample(pid, 2000, chain, "_start main sort memcpy", ""),
		sample(pid, 6500, whole, "_start main sort leaf", ""),
		sample(pid, 7500, chain, "memcpy", ""),
		sample(pid, 9100, whole, "_start main leaf", ""),
	}, r)
	got, j := joined(t, tr)
	want := []string{
		"_start (main) (sort) memcpy", "_start (main) (sort) (leaf)", "([entered earlier])* memcpy", "_start (main) (leaf)",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if j.Stats.WithRing != 3 || j.Stats.Contradictions != 0 {
		t.Errorf("%+v", j.Stats)
	}
}

// TestManyEdges: a method that is called every few ns around a sample, and samples at the same time as records.
func TestManyEdges(t *testing.T) {
	script := "main 100 "
	for at := 1000; at < 9000; at += 10 {
		script += fmt.Sprintf("leaf %d ) %d ", at, at+5)
	}
	var samples []tracefile.Sample
	for at := uint64(500); at < 9500; at += 7 {
		user := "_start main"
		if at >= 1000 && at < 9000 && at%10 < 5 {
			user += " leaf"
		}
		samples = append(samples, sample(pid, at, whole, user, ""))
	}
	got, j := joined(t, load(t, samples, ring(pid, tracefile.RingComplete, script+") 10000")))
	for i, s := range got {
		want := "_start (main)"
		if len(samples[i].User) == 3 {
			want += " (leaf)"
		}
		if s != want {
			t.Fatalf("sample at %d: %s, want %s", samples[i].Time-t0, s, want)
		}
	}
	if j.Stats.Shifted+j.Stats.Contradictions+j.Stats.Supplied != 0 || len(j.nodes) != 3 {
		t.Errorf("%+v, %d nodes", j.Stats, len(j.nodes))
	}
}

func TestNoSamples(t *testing.T) {
	if _, err := New(load(t, nil, ring(pid, tracefile.RingComplete, "main 100 ) 200"))); !errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
}
