// Package stackstest makes traces with samples and rings of an imaginary program, for tests.
package stackstest

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
)

const (
	// T0 is when the program begins. A tick of its counter is a nanosecond.
	T0 = uint64(2e9)
	// Pid is its process, and the number of its main thread.
	Pid = 10

	app  = uint64(0x5555_0000_1000)
	libc = uint64(0x7f00_0000_0000)
	kern = uint64(0xffff_ffff_8100_0000)
)

// The functions take 0x100 bytes each, in this order.
var (
	methods = []string{"main", "sort", "compare", "write_all", "leaf"}
	hidden  = []string{"run_all"} // a method without an entry in any ring
	natives = []string{"_start", "memcpy", "qsort", "__write"}
	kernels = []string{"entry_SYSCALL_64", "vfs_write"}
)

// addr is where a function begins.
func addr(name string) uint64 {
	for _, l := range []struct {
		base  uint64
		names []string
	}{{app, methods}, {app + 0x700, hidden}, {libc, natives}, {kern, kernels}} {
		if i := slices.Index(l.names, name); i >= 0 {
			return l.base + uint64(i)*0x100
		}
	}
	panic(name)
}

// stack is the addresses of frames, innermost first.
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

// Ring is a thread's ring: "name at" enters, ") at" leaves, in ns after T0.
func Ring(tid uint32, flags tracefile.RingFlags, script string) *tracefile.Ring {
	r := &tracefile.Ring{Pid: Pid, Tid: tid, Flags: flags, Begin: T0, End: T0 + 1e6}
	f := strings.Fields(script)
	for i := 0; i < len(f); i += 2 {
		var at uint64
		fmt.Sscan(f[i+1], &at)
		if f[i] == ")" {
			r.Slots = inline.AppendExit(r.Slots, T0+at)
		} else {
			r.Slots = inline.AppendEntry(r.Slots, T0+at, addr(f[i]))
		}
	}
	return r
}

// Sample is a sample of thread tid at ns after T0, that stands for a millisecond. Frames are names, or addresses in
// hexadecimal, from the outermost on; "NAME.cold" is code that was moved out of a method.
func Sample(tid uint32, at uint64, end tracefile.StackEnd, user, kernel string) tracefile.Sample {
	s := tracefile.Sample{Time: T0 + at, Tgid: Pid, Tid: tid, Way: tracefile.StackDWARF, End: end, Weight: 1e6, User: stack(user), Kernel: stack(kernel)}
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
		{Pid: Pid, Start: app, End: app + 0x1000, Offset: 0x1000, Bias: app - 0x1000, Path: "/usr/bin/app", BuildID: "00ff10"},
		{Pid: Pid, Start: libc, End: libc + 0x1000, Path: "/lib/libc.so.6"},
	}}
	for i, list := range [][]string{kernels, slices.Concat(methods, hidden), natives} {
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

// Load writes a trace with rings and samples, and puts it on the timeline. Without samples it has no section for them.
func Load(t testing.TB, samples []tracefile.Sample, rings ...*tracefile.Ring) *timeline.Trace {
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
	for at := T0 - 1e8; at <= T0+2e8; at += 1e8 {
		clock.Samples = append(clock.Samples, tracefile.ClockSample{Before: at - 50, After: at + 50, BootNs: at})
	}
	steps := []error{
		w.WriteMeta(&tracefile.Meta{Pid: Pid, Arch: "amd64", Start: tracefile.Instant{BootNs: T0}, End: tracefile.Instant{BootNs: T0 + 1e6}}),
		w.WriteClock(clock),
		w.WriteProcesses(&tracefile.Processes{
			Processes: []tracefile.Process{{Pid: Pid, Name: "app"}},
			Threads:   []tracefile.Thread{{Pid: Pid, Tid: Pid, Names: []string{"app"}}, {Pid: Pid, Tid: Pid + 1, Names: []string{"helper"}}},
		}),
		w.WriteModules([]tracefile.Module{{Pid: Pid, Path: "/usr/bin/app", Bias: app - 0x1000, Start: app, End: app + 0x1000, Instrumented: true}}),
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

// Story is a trace of two threads, the second one without a ring. Eight samples: two of sort, three of what it calls,
// of which one lost three methods, two of write_all in the kernel, of which one has no user stack and one is cut, and
// one of the second thread.
func Story(t testing.TB) *timeline.Trace {
	t.Helper()
	return Load(t, []tracefile.Sample{
		Sample(Pid, 1500, tracefile.EndComplete, "_start main sort", ""),
		Sample(Pid, 1600, tracefile.EndComplete, "_start main sort", ""),
		Sample(Pid, 3000, tracefile.EndComplete, "_start main sort qsort compare", ""),
		Sample(Pid, 3100, tracefile.EndComplete, "_start main sort qsort compare.cold memcpy", ""),
		Sample(Pid, 3200, tracefile.EndChain, "_start qsort memcpy", ""),
		Sample(Pid, 6000, tracefile.EndCut, "write_all __write", "entry_SYSCALL_64 vfs_write"),
		Sample(Pid, 6100, tracefile.EndNone, "", "vfs_write"),
		Sample(Pid+1, 3000, tracefile.EndComplete, "_start leaf 0x1234", ""),
	}, Ring(Pid, tracefile.RingComplete, "main 100 sort 1000 compare 2500 ) 4000 ) 5000 write_all 5500 ) 9000 ) 10000"))
}
