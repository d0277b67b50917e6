package export

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"braid/inline"
	"braid/internal/perfetto/tptest"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// left is a trace in which main catches what fail throws, and then a coroutine yields to it twice. A slot is unwritten.
func left(t *testing.T) *timeline.Trace {
	t.Helper()
	names := []string{"main", "fail", "coroutine", "yield"}
	addr := func(name string) uint64 { return 0x40_0000 + uint64(slices.Index(names, name))*0x100 }
	at := func(i uint64) uint64 { return t0 + i*10*ms }
	const own, other = 0x7fff_0000_9000, 0x7f00_0000_5000
	var s []uint64
	s = inline.AppendEntryFramed(s, at(0)+1, addr("main"), own)
	s = inline.AppendEntry(s, at(1), addr("fail"))
	s = inline.AppendResumedFramed(s, at(2), addr("main"), own-0x40)
	s = append(s, 0)
	s = inline.AppendEntry(s, at(3), addr("coroutine"))
	s = inline.AppendEntryFramed(s, at(4), addr("yield"), other)
	s = inline.AppendResumedFramed(s, at(5), addr("main"), own-0x40)
	s = inline.AppendResumedFramed(s, at(6), addr("yield"), other-0x30)
	s = inline.AppendExit(s, at(7))
	s = inline.AppendExit(s, at(8))
	s = inline.AppendExit(s, at(9))
	return load(t, func(w *tracefile.Writer) error {
		var symbols []tracefile.Symbol
		for _, n := range names {
			symbols = append(symbols, tracefile.Symbol{Addr: addr(n), Size: 0x80, Name: n, Raw: n})
		}
		clock := &tracefile.Clock{Counter: tracefile.CounterTSC, Frequency: 1e9}
		for at := uint64(t0) - 100*ms; at <= t0+200*ms; at += 100 * ms {
			clock.Samples = append(clock.Samples, tracefile.ClockSample{Before: at, After: at, BootNs: at})
		}
		for _, err := range []error{
			w.WriteMeta(&tracefile.Meta{Pid: pid, Start: tracefile.Instant{BootNs: t0}, End: tracefile.Instant{BootNs: t0 + 100*ms}}),
			w.WriteClock(clock),
			w.WriteProcesses(&tracefile.Processes{Processes: []tracefile.Process{{Pid: pid, Name: "app"}}}),
			w.WriteModules([]tracefile.Module{{Pid: pid, Path: "/app", Start: 0x40_0000, End: 0x41_0000}}),
			w.WriteSymbols(symbols),
			w.WriteRing(&tracefile.Ring{
				Pid: pid, Tid: pid, Name: comm("app"), Flags: tracefile.RingComplete, Begin: t0, End: t0 + 100*ms, Slots: s,
			}),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TestUnwoundPerfetto: slices of calls without an exit say so, and are balanced.
func TestUnwoundPerfetto(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.pftrace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	counts, err := Perfetto(f, left(t))
	if err != nil || counts.Slices != 6 || counts.Unwound != 1 || counts.Lost != 1 {
		t.Fatalf("%+v, %v", counts, err)
	}
	tr := tptest.Open(t, path)
	got := tr.Rows(t, `select s.name, s.dur / 10000000, coalesce(group_concat(a.flat_key), '-') from slice s
		left join args a on a.arg_set_id = s.arg_set_id and a.flat_key glob 'debug.*'
		join thread_track tt on tt.id = s.track_id group by s.id order by s.ts, s.depth`)
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], "debug.", "")
	}
	want := []string{
		"main 8 -", "fail 1 unwound", "coroutine 2 suspended", "yield 1 suspended", "coroutine 2 reentered", "yield 1 reentered",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if n := tr.Orphans(t); n != "0" {
		t.Errorf("%s slices are on orphan tracks", n)
	}
	if open := tr.Rows(t, `select name from slice where dur < 0`); len(open) > 0 {
		t.Errorf("slices are open: %v", open)
	}
}

func TestUnwoundSVG(t *testing.T) {
	var b bytes.Buffer
	if _, err := SVG(&b, left(t), SVGOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fail: 10.0 ms, ended without an exit<", "yield: 10.0 ms, suspended at the end<",
		"yield: 10.0 ms, goes on after a switch of stacks<", ">1 calls ended without an exit<", "lost: ring_slots_unwritten 1<",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
