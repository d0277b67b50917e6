package timeline

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"braid/inline"
	"braid/internal/tracefile"
)

// write makes a trace file and loads it. damage may change its bytes in between.
func write(t *testing.T, fill func(w *tracefile.Writer) error, damage func([]byte)) *Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.braid")
	w, err := tracefile.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if damage != nil {
		damage(b)
	}
	r, err := tracefile.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Load(r)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

var ticksAreNs = &tracefile.Clock{Counter: tracefile.CounterTSC, Samples: []tracefile.ClockSample{
	{Before: 1e9, After: 1e9, BootNs: 1e9}, {Before: 3e9, After: 3e9, BootNs: 3e9},
}}

// ring is a ring section of records as in records.
func ring(pid, tid, sequence uint32, flags tracefile.RingFlags, text ...any) *tracefile.Ring {
	s := records(text...)
	return &tracefile.Ring{
		Pid: pid, Tid: tid, Sequence: sequence, Flags: flags | tracefile.RingComplete, Begin: s.Begin, End: s.End, Slots: s.Slots,
	}
}

// calls lists a thread's calls by name, with how they were cut.
func calls(t *testing.T, tr *Trace, th *Thread) (out []string) {
	t.Helper()
	flags := map[SliceFlags]string{0: "", inline.CutStart: " cut-start", inline.CutEnd: " cut-end"}
	err := tr.Joiner(th).Slices(tr.Segments(th), tr.Activity(th), func(batch []Slice) error {
		for _, s := range batch {
			n := th.Space.Name(s.Method)
			out = append(out, n.Name+flags[s.Flags])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTraceSpaces: two programs use the same addresses for different methods; a forked process has its parent's.
func TestTraceSpaces(t *testing.T) {
	tr := write(t, func(w *tracefile.Writer) error {
		for _, err := range []error{
			w.WriteClock(ticksAreNs),
			w.WriteProcesses(&tracefile.Processes{Processes: []tracefile.Process{{Pid: 10}, {Pid: 20}, {Pid: 11, PPid: 10}}}),
			w.WriteModules([]tracefile.Module{
				{Pid: 10, Path: "/bin/ten", Start: 0x400, End: 0x800}, {Pid: 20, Path: "/bin/twenty", Start: 0x400, End: 0x800},
			}),
			w.WriteSymbols([]tracefile.Symbol{
				{Addr: 'A' * 16, Module: 0, Name: "a10"}, {Addr: 'A' * 16, Module: 1, Name: "a20"},
			}),
			w.WriteRing(ring(20, 20, 0, 0, "A", 1, ")", 2, "B", 3, ")", 4)),
			w.WriteRing(ring(10, 10, 0, 0, "A", 1, ")", 2, "Z", 3, ")", 4)),
			w.WriteRing(ring(11, 11, 0, 0, "A", 1, ")", 2)),
			w.WriteRing(ring(11, 12, 0, 0, "\u1000", 1, ")", 2)),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	}, nil)
	if len(tr.Threads) != 4 {
		t.Fatalf("%d threads", len(tr.Threads))
	}
	same(t, calls(t, tr, tr.Threads[0]), "a10", "ten+0x5a0")
	same(t, calls(t, tr, tr.Threads[1]), "a10")
	same(t, calls(t, tr, tr.Threads[2]), "...00000e10")
	same(t, calls(t, tr, tr.Threads[3]), "a20", "twenty+0x420")
	if tr.Lost["symbols_colliding"] != 0 {
		t.Error(tr.Lost)
	}
}

// TestTraceSegments: what was open goes on if the segment before was read, and is cut if that one is damaged.
func TestTraceSegments(t *testing.T) {
	fill := func(w *tracefile.Writer) error {
		first := ring(10, 10, 0, 0, "A", 1, "B", 2)
		second := ring(10, 10, 1, tracefile.RingContinues, "C", 10, ")", 11)
		third := ring(10, 10, 2, tracefile.RingContinues, ")", 20, ")", 21)
		second.Begin, third.Begin = start+5, start+15
		for _, err := range []error{w.WriteClock(ticksAreNs), w.WriteRing(first), w.WriteRing(second), w.WriteRing(third)} {
			if err != nil {
				return err
			}
		}
		return nil
	}
	tr := write(t, fill, nil)
	same(t, calls(t, tr, tr.Threads[0]), "...00000430", "...00000420", "...00000410")

	mark := inline.AppendEntry(nil, start+10, 'C'*16)[0]
	tr = write(t, fill, func(b []byte) {
		i := bytes.Index(b, []byte{byte(mark), byte(mark >> 8), 0, 0, byte(mark >> 32)})
		b[i] ^= 1
	})
	same(t, calls(t, tr, tr.Threads[0]),
		"...00000420 cut-end", "...00000410 cut-end", UnknownName+" cut-start", UnknownName+" cut-start")
	if tr.Lost["ring_segments_damaged"] != 1 {
		t.Error(tr.Lost)
	}
}

// TestTraceEmpty: a file without a clock can be loaded, and says so.
func TestTraceEmpty(t *testing.T) {
	tr := write(t, func(w *tracefile.Writer) error { return w.WriteRing(ring(1, 1, 0, 0, "A", 1)) }, nil)
	if tr.Clock != nil || len(tr.Threads) != 0 || len(tr.Problems) != 1 {
		t.Errorf("%+v", tr)
	}
}
