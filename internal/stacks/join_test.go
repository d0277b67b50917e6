package stacks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"braid/internal/stacks/stackstest"
	"braid/internal/timeline"
	"braid/internal/tracefile"

	"github.com/google/go-cmp/cmp"
)

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
	tr := stackstest.Load(t, []tracefile.Sample{
		stackstest.Sample(stackstest.Pid, 1500, whole, "_start main sort", ""),
		stackstest.Sample(stackstest.Pid, 3000, whole, "_start main sort qsort compare", ""),
		stackstest.Sample(stackstest.Pid, 3100, whole, "_start main sort qsort compare.cold memcpy", ""),
		stackstest.Sample(stackstest.Pid, 3200, chain, "_start qsort memcpy", ""),                                    // main, sort and compare are lost
		stackstest.Sample(stackstest.Pid, 6000, tracefile.EndCut, "write_all __write", "entry_SYSCALL_64 vfs_write"), // the outer frames are cut off
		stackstest.Sample(stackstest.Pid, 6100, tracefile.EndNone, "", "vfs_write"),
		stackstest.Sample(stackstest.Pid, 20_000, chain, "_start 0x1234 0x7f0000000f00", ""), // nothing is open; names of neither
		stackstest.Sample(77, 3000, whole, "_start main leaf", ""),                           // a thread without a ring
		stackstest.Sample(stackstest.Pid, 2_000_000, whole, "_start main leaf", ""),          // after the ring's end
	}, stackstest.Ring(stackstest.Pid, tracefile.RingComplete, "main 100 sort 1000 compare 2500 ) 4000 ) 5000 write_all 5500 ) 9000 ) 10000"))
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
	tr := stackstest.Load(t, []tracefile.Sample{
		stackstest.Sample(stackstest.Pid, 900, whole, "_start main sort memcpy", ""),       // sort is entered 100 ns later
		stackstest.Sample(stackstest.Pid, 5100, whole, "_start main sort leaf memcpy", ""), // leaf was left 100 ns before
		stackstest.Sample(stackstest.Pid, 5900, whole, "_start main", ""),                  // sort is left 100 ns later
		stackstest.Sample(stackstest.Pid, 3000, whole, "_start main", ""),                  // sort is open for long
		stackstest.Sample(stackstest.Pid, 9000, whole, "_start main sort memcpy", ""),      // and is not
		stackstest.Sample(stackstest.Pid, 4100, whole, "_start main sort", ""),             // here it is exact
	}, stackstest.Ring(stackstest.Pid, tracefile.RingComplete, "main 100 sort 1000 leaf 4200 ) 5000 ) 6000 sort 9500 ) 9600 ) 10000"))
	got, j := joined(t, tr)
	want := []string{
		"_start (main) (sort) memcpy", "_start (main) (sort) (leaf) memcpy", "_start (main)", "_start (main) (sort)*", "_start (main) (sort) memcpy",
		"_start (main) (sort)",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if j.Stats.Shifted != 3 || j.Stats.Contradictions != 2 {
		t.Errorf("%+v", j.Stats)
	}
}

// TestInStub: a thread that is interrupted in a stub writes its record when the interrupt is over, however late.
func TestInStub(t *testing.T) {
	tr := stackstest.Load(t, []tracefile.Sample{
		stackstest.Sample(stackstest.Pid, 2000, whole, "_start main sort", ""),            // entering sort, which it tells at 9000
		stackstest.Sample(stackstest.Pid, 15_000, whole, "_start main sort", "vfs_write"), // has told at 10000 that it leaves sort
		stackstest.Sample(stackstest.Pid, 15_500, whole, "_start main leaf", ""),          // but neither enters nor leaves leaf
		stackstest.Sample(stackstest.Pid, 15_600, whole, "_start main sort memcpy", ""),   // no stub calls memcpy
		stackstest.Sample(stackstest.Pid, 9500, whole, "_start main", ""),                 // is in sort
	}, stackstest.Ring(stackstest.Pid, tracefile.RingComplete, "main 100 sort 9000 ) 10000 sort 20000 leaf 21000 ) 21100 ) 22000 ) 23000"))
	got, j := joined(t, tr)
	want := []string{
		"_start (main) (sort)", "_start (main) (sort) <vfs_write>", "_start (main) (leaf)", "_start (main) (sort) memcpy", "_start (main) (sort)*",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if st := j.Stats; st.InStub != 2 || st.Shifted != 0 || st.Contradictions != 3 {
		t.Errorf("%+v", st)
	}
}

// TestWrappedRing: where the oldest records were overwritten, the ring covers nothing before its first one, and methods
// of which only the exit is left take their names from the stack.
func TestWrappedRing(t *testing.T) {
	r := stackstest.Ring(stackstest.Pid, 0, ") 5000 leaf 6000 ) 7000 ) 8000 leaf 9000 ) 9500")
	r.Begin, r.DroppedOldest = stackstest.T0, 1000
	tr := stackstest.Load(t, []tracefile.Sample{
		stackstest.Sample(stackstest.Pid, 2000, chain, "_start main sort memcpy", ""),
		stackstest.Sample(stackstest.Pid, 6500, whole, "_start main sort leaf", ""),
		stackstest.Sample(stackstest.Pid, 7500, chain, "memcpy", ""),
		stackstest.Sample(stackstest.Pid, 9100, whole, "_start main leaf", ""),
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

// TestStopped: a thread that was told to stop records nothing from then on, but its ring goes on until it says so.
func TestStopped(t *testing.T) {
	tr := stackstest.Load(t, []tracefile.Sample{
		stackstest.Sample(stackstest.Pid, 3000, whole, "_start main memcpy", ""),      // still fits
		stackstest.Sample(stackstest.Pid, 4000, whole, "_start main sort memcpy", ""), // does not any more
		stackstest.Sample(stackstest.Pid, 5000, chain, "memcpy", ""),
	}, stackstest.Ring(stackstest.Pid, tracefile.RingComplete, "main 100 sort 1000 ) 2000"))
	got, j := joined(t, tr)
	want := []string{"_start (main) memcpy", "_start (main) (sort) memcpy", "(main)* memcpy"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if j.Stats.WithRing != 2 || j.Stats.Contradictions != 0 {
		t.Errorf("%+v", j.Stats)
	}
}

// TestLearnedMethods: a method of which only the exit is left has the name that whole stacks have in its place.
func TestLearnedMethods(t *testing.T) {
	r := stackstest.Ring(stackstest.Pid, 0, "leaf 1000 ) 2000 sort 3000 ) 4000 ) 9000 ) 9500")
	tr := stackstest.Load(t, []tracefile.Sample{
		stackstest.Sample(stackstest.Pid, 1500, chain, "_start leaf memcpy", ""),
		stackstest.Sample(stackstest.Pid, 3500, whole, "_start main run_all qsort sort memcpy", ""),
		stackstest.Sample(stackstest.Pid, 3600, chain, "_start main run_all sort", ""),
		stackstest.Sample(stackstest.Pid, 8000, whole, "_start main run_all memcpy", ""),
		stackstest.Sample(stackstest.Pid+1, 8000, whole, "_start run_all memcpy", ""), // without a ring
	}, r)
	got, j := joined(t, tr)
	want := []string{
		"_start ([entered earlier])* ([entered earlier])* (leaf) memcpy", "_start (main) (run_all) qsort (sort) memcpy",
		"_start (main) (run_all) (sort)", "_start (main) (run_all) memcpy", "_start (run_all) memcpy",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if j.Stats.Supplied != 2 || j.Stats.Contradictions != 0 {
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
		samples = append(samples, stackstest.Sample(stackstest.Pid, at, whole, user, ""))
	}
	got, j := joined(t, stackstest.Load(t, samples, stackstest.Ring(stackstest.Pid, tracefile.RingComplete, script+") 10000")))
	for i, s := range got {
		want := "_start (main)"
		if len(samples[i].User) == 3 {
			want += " (leaf)"
		}
		if s != want {
			t.Fatalf("sample at %d: %s, want %s", samples[i].Time-stackstest.T0, s, want)
		}
	}
	if j.Stats.Shifted+j.Stats.Contradictions+j.Stats.Supplied != 0 || len(j.nodes) != 3 {
		t.Errorf("%+v, %d nodes", j.Stats, len(j.nodes))
	}
}

func TestNoSamples(t *testing.T) {
	if _, err := New(stackstest.Load(t, nil, stackstest.Ring(stackstest.Pid, tracefile.RingComplete, "main 100 ) 200"))); !errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
}
