package timeline

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"braid/internal/kevent"
)

// Each story is a recording from 0 to 1000, and thread 1's part in it.
var kernelStories = []struct {
	name, events, want string
	stats              KernelStats // of StateStats and SpanStats only
}{
	{name: "sleeps and is woken", events: `
		100 cpu 0: - -> 1
		200 cpu 0: 1 -> - S
		300 wake 1 by 2
		310 cpu 3: - -> 1
		400 cpu 3: 1 -> - R
		450 cpu 1: - -> 1`,
		want: `
		0-100 unknown
		100-200 running cpu 0
		200-300 sleeping waker 2
		300-310 runnable cpu 3 waker 2
		310-400 running cpu 3
		400-450 runnable cpu 3
		450-1000 running cpu 1`,
		stats: KernelStats{}},
	{name: "blocked states", events: `
		100 cpu 0: - -> 1
		200 cpu 0: 1 -> - D iowait
		300 wake 1 by 2
		310 cpu 0: - -> 1
		400 cpu 0: 1 -> - I
		500 wake 1 by 2
		510 cpu 0: - -> 1
		600 cpu 0: 1 -> - D`,
		want: `
		0-100 unknown
		100-200 running cpu 0
		200-300 blocked waker 2 iowait
		300-310 runnable cpu 3 waker 2
		310-400 running cpu 0
		400-500 sleeping waker 2
		500-510 runnable cpu 3 waker 2
		510-600 running cpu 0
		600-1000 blocked`},
	{name: "wake-up overtakes the switch", events: `
		100 cpu 0: - -> 1
		199 wake 1 by 2
		200 cpu 0: 1 -> - S
		220 cpu 1: - -> 1`,
		want: `
		0-100 unknown
		100-200 running cpu 0
		200-220 runnable cpu 0 waker 2
		220-1000 running cpu 1`},
	{name: "wake-up while running, then a real sleep", events: `
		100 cpu 0: - -> 1
		150 wake 1 by 2
		200 cpu 0: 1 -> - S
		300 wake 1 by 4
		320 cpu 0: - -> 1`,
		want: `
		0-100 unknown
		100-200 running cpu 0
		200-300 sleeping waker 4
		300-320 runnable cpu 3 waker 4
		320-1000 running cpu 0`},
	{name: "initial states", events: `
		5 initial 1 S
		100 wake 1 by 2
		110 cpu 0: - -> 1`,
		want: `
		0-100 sleeping waker 2
		100-110 runnable cpu 3 waker 2
		110-1000 running cpu 0`},
	{name: "initially queued turns out running", events: `
		5 initial 1 R
		100 cpu 2: 1 -> - S`,
		want: `
		0-100 running cpu 2
		100-1000 sleeping`},
	{name: "initially queued turns out runnable", events: `
		5 initial 1 R
		100 cpu 2: - -> 1`,
		want: `
		0-100 runnable cpu 2
		100-1000 running cpu 2`},
	{name: "alone on its CPU", events: `
		5 initial 1 R
		10 cpu 1: - -> 2`,
		want: `0-1000 running cpu 0`},
	{name: "scheduling is not recorded", events: `
		5 initial 1 R
		10 write 5 4096 owner 1`,
		want: `
		0-1000 unknown
		5-10 write 4096 bytes`},
	{name: "an event before the process table was read", events: `
		500 initial 1 S
		100 cpu 2: - -> 1`,
		want: `
		0-100 unknown
		100-1000 running cpu 2`},
	{name: "created and ended", events: `
		100 fork 1 by 2
		110 new 1 by 2
		120 cpu 0: - -> 1
		200 exit 1
		210 cpu 0: 1 -> - X`,
		want: `
		100-120 runnable cpu 3 waker 2
		120-210 running cpu 0`},
	{name: "end without its last switch", events: `
		100 fork 1 by 2
		120 cpu 0: - -> 1
		200 exit 1
		300 cpu 0: - -> 2`,
		want: `
		100-120 runnable cpu 0
		120-300 unknown`,
		stats: KernelStats{StateStats: StateStats{Repaired: 1}}},
	{name: "lost switch out", events: `
		100 cpu 0: - -> 1
		200 cpu 0: - -> 2
		300 cpu 1: - -> 1`,
		want: `
		0-100 unknown
		100-200 unknown
		200-300 unknown
		300-1000 running cpu 1`,
		stats: KernelStats{StateStats: StateStats{Repaired: 1}}},
	{name: "lost switch in", events: `
		100 cpu 0: - -> 1
		200 cpu 0: 1 -> - S
		300 cpu 1: 1 -> - S`,
		want: `
		0-100 unknown
		100-200 running cpu 0
		200-300 unknown
		300-1000 sleeping`,
		stats: KernelStats{StateStats: StateStats{Repaired: 1}}},
	{name: "lost wake-up", events: `
		100 cpu 0: - -> 1
		200 cpu 0: 1 -> - S
		300 cpu 1: - -> 1`,
		want: `
		0-100 unknown
		100-200 running cpu 0
		200-300 sleeping
		300-1000 running cpu 1`,
		stats: KernelStats{StateStats: StateStats{MissedWakeups: 1}}},
	{name: "everything twice", events: `
		100 cpu 0: - -> 1
		100 cpu 0: - -> 1
		200 cpu 0: 1 -> - S
		200 cpu 0: 1 -> - S
		300 wake 1 by 2
		300 wake 1 by 2
		310 cpu 0: - -> 1
		310 cpu 0: - -> 1`,
		want: `
		0-100 unknown
		100-200 running cpu 0
		200-300 sleeping waker 2
		300-310 runnable cpu 3 waker 2
		310-1000 running cpu 0`},
	{name: "out of order across CPUs", events: `
		100 cpu 0: - -> 1
		310 cpu 3: - -> 1
		200 cpu 0: 1 -> - S
		300 wake 1 by 2`,
		want: `
		0-100 unknown
		100-200 running cpu 0
		200-300 sleeping waker 2
		300-310 runnable cpu 3 waker 2
		310-1000 running cpu 3`},
	{name: "executes from a thread", events: `
		100 cpu 0: - -> 7
		200 exec 1 from 7
		300 cpu 0: 1 -> - S`,
		want: `
		200-300 running cpu 0
		300-1000 sleeping`},
	{name: "fsync with the journal's requests", events: `
		100 cpu 0: - -> 1
		110 cpu 0: 1 -> - D
		150 write 105 4096 owner 1
		180 write 120 8192 indirect
		190 write 50 100 indirect
		195 wake 1 by 2
		200 cpu 0: - -> 1
		210 fsync 1 from 102
		220 write 215 100 indirect
		300 cpu 0: 1 -> - S
		400 wake 1 by 2`,
		want: `
		0-100 unknown
		100-110 running cpu 0
		110-195 blocked waker 2 iowait
		195-200 runnable cpu 3 waker 2
		200-300 running cpu 0
		300-400 sleeping waker 2
		400-1000 runnable cpu 3 waker 2
		102-210 fsync
		105-150 write 4096 bytes
		120-180 write 8192 bytes indirect`,
		stats: KernelStats{SpanStats: SpanStats{Unattributed: 2}}},
	{name: "major fault", events: `
		100 cpu 0: - -> 1
		110 cpu 0: 1 -> - S
		150 wake 1 by 2
		160 cpu 0: - -> 1
		170 fault 1 from 105`,
		want: `
		0-100 unknown
		100-110 running cpu 0
		110-150 sleeping waker 2 iowait
		150-160 runnable cpu 3 waker 2
		160-1000 running cpu 0
		105-170 major-fault`},
}

func clean(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func TestKernelStories(t *testing.T) {
	for _, st := range kernelStories {
		t.Run(st.name, func(t *testing.T) {
			chunk, initial := script(st.events)
			k := NewKernel(KernelOptions{End: 1000}, initial)
			if err := k.Push(chunk); err != nil {
				t.Fatal(err)
			}
			k.Finish()
			if diff := cmp.Diff(clean(st.want), k.Thread(1).text()); diff != "" {
				t.Error(diff)
			}
			got := KernelStats{StateStats: k.Stats().StateStats, SpanStats: k.Stats().SpanStats}
			if diff := cmp.Diff(st.stats, got); diff != "" {
				t.Error(diff)
			}
			checkActivity(t, k.Thread(1))
		})
	}
}

// checkActivity tests what must hold for any events.
func checkActivity(t *testing.T, a *Activity) {
	t.Helper()
	var sums [NumStates]int64
	for i, iv := range a.Intervals {
		if iv.Start >= iv.End || iv.State >= NumStates {
			t.Fatalf("thread %d: interval %+v", a.Tid, iv)
		}
		if i > 0 && iv.Start < a.Intervals[i-1].End {
			t.Fatalf("thread %d: %+v and %+v overlap", a.Tid, a.Intervals[i-1], iv)
		}
		sums[iv.State] += iv.End - iv.Start
	}
	if sums != a.States {
		t.Fatalf("thread %d: intervals sum to %v, states are %v", a.Tid, sums, a.States)
	}
	for i, s := range a.Spans {
		if s.Start > s.End || i > 0 && s.Start < a.Spans[i-1].Start {
			t.Fatalf("thread %d: span %+v", a.Tid, s)
		}
	}
}

// FuzzKernel: any bytes give intervals in order or an error.
func FuzzKernel(f *testing.F) {
	for _, st := range kernelStories {
		chunk, _ := script(st.events)
		f.Add(chunk, int64(1000))
	}
	for _, st := range waitStories {
		chunk, _ := waitScript(st.events)
		f.Add(chunk, int64(1000))
	}
	f.Fuzz(func(t *testing.T, chunk []byte, end int64) {
		if end < 0 || end > 1<<61 {
			return
		}
		k := NewKernel(KernelOptions{End: end, WindowNs: 50}, []InitialThread{{Tid: 1, State: StateOfProc('R'), At: 100}})
		err := k.Push(chunk)
		k.Finish()
		if err != nil && k.Stats().Events > uint64(len(chunk)/kevent.HeaderSize) {
			t.Fatal("more events than bytes")
		}
		for _, a := range k.Threads() {
			checkActivity(t, a)
		}
		checkWaits(t, k)
	})
}

func BenchmarkKernel(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 6))
	events, _, end := machine(rng, 50, 4, 200_000)
	var chunk []byte
	for _, e := range events {
		chunk = append(chunk, e...)
	}
	for b.Loop() {
		k := NewKernel(KernelOptions{End: end, WindowNs: 1e6}, nil)
		if err := k.Push(chunk); err != nil {
			b.Fatal(err)
		}
		k.Finish()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}
