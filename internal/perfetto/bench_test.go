package perfetto

import (
	"fmt"
	"io"
	"testing"
)

// calls writes a call tree of n slices on each track, nested up to a depth of 12, thousands of names.
func calls(w *Writer, tracks []*Track, names []NameID, n int) {
	for k, t := range tracks {
		ns, depth, rnd := start+uint64(k), 0, uint32(k+1)
		for opened := 0; opened < n || depth > 0; {
			rnd = rnd*1664525 + 1013904223
			ns += uint64(20 + rnd>>24)
			if opened < n && depth < 12 && (depth == 0 || rnd>>16&3 != 0) {
				w.Begin(t, ns, names[int(rnd>>8)%len(names)])
				opened++
				depth++
			} else {
				w.End(t, ns)
				depth--
			}
		}
	}
}

func setup(w *Writer, threads, names int) (tracks []*Track, ids []NameID) {
	w.Process(Process{Pid: 100, Name: "app"})
	for i := range threads {
		tracks = append(tracks, w.Thread(100, 100+i, fmt.Sprintf("thread %d", i)))
	}
	for i := range names {
		ids = append(ids, w.Name(fmt.Sprintf("namespace::Class%d::method%d(int, char const*)", i/10, i)))
	}
	return tracks, ids
}

func TestMillionSlices(t *testing.T) {
	const threads, each = 4, 250_000
	tr := write(t, func(w *Writer) {
		tracks, ids := setup(w, threads, 3000)
		calls(w, tracks, ids, each)
	})
	rows := make([]string, threads)
	for i := range rows {
		rows[i] = fmt.Sprintf("%d %d 11 1", 100+i, each)
	}
	want(t, tr, "slices", "select tid, count(*), max(depth), min(dur) > 0 from slice s join thread_track t on t.id = s.track_id join thread using (utid) group by tid order by tid", rows...)
	want(t, tr, "names", "select count(distinct name) from slice", "3000")
	noOrphans(t, tr)
}

func TestNoAllocations(t *testing.T) {
	w := NewWriter(io.Discard, Options{Start: start})
	tracks, ids := setup(w, 1, 10)
	key := w.Key("bytes")
	ns := start
	comm := name("app")
	one := func() {
		ns += 100
		w.BeginArgs(tracks[0], ns, ids[1], Int(key, 4096), String(key, "x"))
		w.Begin(tracks[0], ns, ids[0])
		w.End(tracks[0], ns+1)
		w.EndArgs(tracks[0], ns+2, Bool(key, true))
		w.Switch(0, ns, 0, Runnable, 100, 120, comm)
		w.Waking(0, ns+10, 7, 101, 1, 120, comm)
		w.Waking(0, ns+10, 100, 101, 1, 120, comm)
		w.Switch(0, ns+20, 100, Sleeping, 0, 120, comm)
	}
	for range 10_000 {
		one() // until all buffers have their size
	}
	if n := testing.AllocsPerRun(10_000, one); n != 0 {
		t.Errorf("%v allocations for 2 slices and 4 scheduling events", n)
	}
}

// BenchmarkSlices writes call trees; a slice is its begin and its end.
func BenchmarkSlices(b *testing.B) {
	const n = 1 << 20
	w := NewWriter(io.Discard, Options{Start: start})
	tracks, ids := setup(w, 1, 3000)
	b.ReportAllocs()
	for b.Loop() {
		calls(w, tracks, ids, n)
		tracks[0].last = 0 // the next round begins anew
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mslices/s")
}

func BenchmarkSlicesWithArgs(b *testing.B) {
	w := NewWriter(io.Discard, Options{Start: start})
	tracks, ids := setup(w, 1, 3000)
	key := w.Key("bytes")
	ns := start
	b.ReportAllocs()
	for b.Loop() {
		ns += 100
		w.BeginArgs(tracks[0], ns, ids[ns%3000], Int(key, 4096))
		w.End(tracks[0], ns+50)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mslices/s")
}

func BenchmarkSwitches(b *testing.B) {
	w := NewWriter(io.Discard, Options{Start: start})
	comm := name("app")
	ns := start
	b.ReportAllocs()
	for b.Loop() {
		ns += 1000
		w.Switch(0, ns, 0, Runnable, 100, 120, comm)
		w.Switch(0, ns+500, 100, Sleeping, 0, 120, comm)
	}
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mswitches/s")
}
