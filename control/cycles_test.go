package control

import (
	goruntime "runtime"
	"strconv"
	"testing"
	"time"

	"braid/inline"
	"braid/inline/runtime"
)

// TestStartStopCycles starts and stops threads that never rest, six for each processor, ten thousand times in all, from
// one recorder. After every stop the records must be whole: times that do not go back, entries and exits that pair, an
// end that is exact, and nothing written behind it.
func TestStartStopCycles(t *testing.T) {
	const starts = 10000
	threads := 6 * goruntime.NumCPU()
	p := start(t, build(t, "cycles"), "", strconv.Itoa(threads))
	a := attach(t, p, runtime.PolicyNone, 64<<10, threads)
	areas := []*Area{a}
	cycles := repeats(t, (starts+threads-1)/threads)
	var records, exact int
	begun := time.Now()
	buf := make([]uint64, 8<<10)
	for cycle := range cycles {
		for _, th := range a.Threads() {
			th.Start()
		}
		patience := time.Now().Add(80 * time.Second)
		for _, th := range a.Threads() { // a thread starts at its own next trace point
			for !th.On() {
				if time.Now().After(patience) {
					t.Fatalf("cycle %d: thread %d has not started, its cursor is %#x", cycle, th.Tid, th.block.Cursor)
				}
				time.Sleep(50 * time.Microsecond)
			}
		}
		if n := StopAll(areas, 10*time.Second); n != 0 {
			t.Fatalf("cycle %d: %d threads lost a request to stop", cycle, n)
		}
		for _, th := range a.Threads() {
			s, err := th.Collect(buf)
			if err != nil {
				t.Fatal(err)
			}
			check(t, cycle, s)
			records += len(s.Slots)
			if s.Exact {
				exact++
			}
			again, err := th.Collect(nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(again.Slots) != len(s.Slots) || len(s.Slots) > 0 && again.Slots[len(s.Slots)-1] != s.Slots[len(s.Slots)-1] {
				t.Fatalf("cycle %d: a thread that has stopped wrote on", cycle)
			}
			th.Release()
		}
		a.Arm(runtime.PolicyNone, 64<<10)
	}
	t.Logf("%d cycles in %v, %d records", cycles, time.Since(begun).Round(time.Second), records)
	if exact != threads*cycles || records < exact {
		t.Errorf("%d of %d stops exact, %d records", exact, threads*cycles, records)
	}
}

func check(t *testing.T, cycle int, s Segment) {
	t.Helper()
	m := inline.NewMethods(8)
	for _, v := range s.Slots {
		if uint32(v) > 15 {
			m.Add(uint64(uint32(v)))
		}
	}
	d, err := (&inline.Decoder{Methods: m}).Decode(&s.Segment, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.Stats.Damaged != 0 || d.Stats.Ambiguous != 0 || d.Stats.Records != uint64(len(s.Slots)) || len(d.Open) > 3 || d.Orphans > 3 {
		t.Fatalf("cycle %d: %+v, open %d, orphans %d", cycle, d.Stats, len(d.Open), d.Orphans)
	}
}
