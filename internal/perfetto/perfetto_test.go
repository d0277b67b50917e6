package perfetto

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"braid/internal/perfetto/tptest"

	"github.com/google/go-cmp/cmp"
)

const start uint64 = 1_000_000_000_000 // CLOCK_BOOTTIME ns of the traces' beginning

// write writes a trace and imports it.
func write(t *testing.T, f func(w *Writer)) *tptest.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.pftrace")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWriter(out, Options{
		Start: start, StartWall: 1_700_000_000_000_000_000, KernelRelease: "6.18.0-test", Machine: "x86_64", CPUs: 2,
		UUID: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	})
	f(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return tptest.Open(t, path)
}

// want compares a query's rows.
func want(t *testing.T, tr *tptest.Trace, what, sql string, rows ...string) {
	t.Helper()
	if d := cmp.Diff(rows, tr.Rows(t, sql)); d != "" {
		t.Errorf("%s: -want +got\n%s", what, d)
	}
}

func noOrphans(t *testing.T, tr *tptest.Trace) {
	t.Helper()
	if n := tr.Orphans(t); n != "0" {
		t.Errorf("%s slices are on no thread's and no process's track", n)
	}
}

// Children of a thread's track are thread tracks too; its own has the type thread_execution.
const slicesByThread = `select tid, s.ts - 1000000000000, s.dur, depth, s.name from slice s
	join thread_track t on t.id = s.track_id join thread using (utid) where t.type = 'thread_execution' order by tid, s.id`

func TestSlices(t *testing.T) {
	tr := write(t, func(w *Writer) {
		w.Process(Process{Pid: 100, PPid: 1, Name: "app", Cmdline: []string{"./app", "-x"}, Start: start - 5})
		w.Process(Process{Pid: 200, PPid: 100, Name: "child"})
		a, b := w.Thread(100, 100, "app"), w.Thread(100, 101, "worker")
		c := w.Thread(100, 102, "worker") // the same name as another thread
		w.Thread(100, 103, "quiet")
		f, g := w.Name("f()"), w.Name("g(int, «ü»)")
		w.Begin(a, start+10, f)
		w.Begin(a, start+10, g) // at the same time as its caller
		w.Begin(a, start+10, f)
		w.End(a, start+20)
		w.End(a, start+20)
		w.Begin(a, start+20, g) // when the other ends
		w.End(a, start+20)      // after no time
		w.End(a, start+10_000_000_000)
		w.Begin(b, start+1, f)
		w.Begin(b, start+2, g) // neither ends
		w.Begin(c, start+1<<40, f)
		w.End(c, start+1<<40+1)
		w.Begin(c, start, f) // back in time
		w.End(c, start+7)
		w.Begin(c, start+1<<40+5, g)
		w.End(c, start+1<<40+6)
		w.Begin(c, start-500, g) // before the beginning
		w.End(c, start-400)
	})
	want(t, tr, "slices", slicesByThread,
		"100 10 9999999990 0 f()", "100 10 10 1 g(int, «ü»)", "100 10 10 2 f()", "100 20 0 1 g(int, «ü»)",
		"101 1 -1 0 f()", "101 2 -1 1 g(int, «ü»)",
		"102 -500 100 0 g(int, «ü»)", "102 0 7 0 f()", "102 1099511627776 1 0 f()", "102 1099511627781 1 0 g(int, «ü»)")
	want(t, tr, "threads", "select tid, thread.name, pid, process.name, cmdline from thread join process using (upid) where tid > 0 and pid = 100 order by tid",
		"100 app 100 ./app ./app -x", "101 worker 100 ./app ./app -x", "102 worker 100 ./app ./app -x", "103 quiet 100 ./app ./app -x")
	want(t, tr, "processes", "select pid, name, cmdline from process where pid in (100, 200) order by pid", "100 ./app ./app -x", "200 child child")
	want(t, tr, "parent", "select p.pid from process c join process p on c.parent_upid = p.upid where c.pid in (100, 200) order by c.pid", "1", "100")
	want(t, tr, "metadata", "select name, coalesce(str_value, int_value) from metadata where name in ('trace_uuid', 'system_release', 'system_machine', 'trace_time_clock_id') order by 1",
		"system_machine x86_64", "system_release 6.18.0-test", "trace_time_clock_id 6", "trace_uuid 01020304-0506-0708-090a-0b0c0d0e0f10")
	want(t, tr, "wall clock", "select clock_value from clock_snapshot where clock_name = 'REALTIME'", "1700000000000000000")
	noOrphans(t, tr)
}

func TestArgs(t *testing.T) {
	long := make([]byte, 40_000)
	for i := range long {
		long[i] = 'a' + byte(i%26)
	}
	tr := write(t, func(w *Writer) {
		th := w.Thread(100, 100, "app")
		th2 := w.Thread(100, 101, "two")
		f := w.Name("f")
		w.BeginArgs(th, start+1, f, Int(w.Key("int"), -7), Uint(w.Key("uint"), 1<<63), Pointer(w.Key("at"), 0xfeed),
			String(w.Key("text"), "some text"), Bool(w.Key("cut_start"), true), Bool(w.Key("no"), false), FlowOut(77))
		w.EndArgs(th, start+2, Bool(w.Key("cut_end"), true))
		w.BeginArgs(th2, start+3, f, String(w.Key("text"), string(long)), FlowIn(77))
		w.End(th2, start+4)
		w.Instant(th2, start+5, w.Name("lost"), Uint(w.Key("kernel_ring_full_switch"), 3))
	})
	want(t, tr, "args", "select s.ts - 1000000000000, a.key, coalesce(a.string_value, a.display_value) from slice s join args a using (arg_set_id) where length(a.display_value) < 100 order by s.id, a.key",
		"1 debug.at 0xfeed", "1 debug.cut_end true", "1 debug.cut_start true", "1 debug.int -7", "1 debug.no false",
		"1 debug.text some text", "1 debug.uint 9223372036854775808", "5 debug.kernel_ring_full_switch 3")
	want(t, tr, "long text", "select length(string_value), string_value = (select string_value from args where key = 'debug.text' and length(string_value) = 40000) from args where length(string_value) > 100", "40000 1")
	want(t, tr, "flows", "select o.ts - 1000000000000, i.ts - 1000000000000 from flow join slice o on o.id = slice_out join slice i on i.id = slice_in", "1 3")
	want(t, tr, "instant", "select dur, name from slice where dur = 0", "0 lost")
	noOrphans(t, tr)
}

func TestManyNames(t *testing.T) {
	const names, threads = 5003, 7
	tr := write(t, func(w *Writer) {
		w.Process(Process{Pid: 100, Name: "app"})
		tracks := make([]*Track, threads)
		for i := range tracks {
			tracks[i] = w.Thread(100, 100+i, "app")
		}
		for i := range names {
			th := tracks[i%threads]
			w.Begin(th, start+uint64(i), w.Name(fmt.Sprintf("name %d", i/2)))
			w.End(th, start+uint64(i)+1)
		}
	})
	want(t, tr, "names", "select count(*), count(distinct name), sum(name = 'name ' || ((ts - 1000000000000) / 2)), sum(dur = 1) from slice", "5003 2502 5003 5003")
	noOrphans(t, tr)
}

// Tracks that take turns use more clocks than the trace processor keeps at hand.
func TestManyTracksInTurn(t *testing.T) {
	const tracks, each = 300, 20
	tr := write(t, func(w *Writer) {
		f := w.Name("f")
		w.Process(Process{Pid: 100, Name: "app"})
		var all []*Track
		for i := range tracks {
			all = append(all, w.Thread(100, 100+i, "t"))
		}
		for i := range each {
			for j, th := range all {
				ns := start + uint64(i*10_000+j*3)
				w.Begin(th, ns, f)
				w.End(th, ns+uint64(j))
			}
		}
	})
	want(t, tr, "slices", "select count(*), count(distinct utid), sum(dur = tid - 100), sum((ts - 1000000000000) % 10000 = (tid - 100) * 3), max(depth) from slice s join thread_track t on t.id = s.track_id join thread using (utid)",
		"6000 300 6000 6000 0")
	noOrphans(t, tr)
}

func TestLanesAndCounters(t *testing.T) {
	tr := write(t, func(w *Writer) {
		p := w.Process(Process{Pid: 100, Name: "app"})
		th := w.Thread(100, 100, "app")
		w.Begin(th, start, w.Name("f"))
		io, bytes := w.Lanes(p, "block vda"), w.Key("bytes")
		rd, wr := w.Name("read"), w.Name("write")
		io.Slice(start+10, start+50, wr, Int(bytes, 4096))
		io.Slice(start+20, start+30, rd, Int(bytes, 512))  // overlaps
		io.Slice(start+25, start+60, rd, Int(bytes, 512))  // overlaps both
		io.Slice(start+30, start+70, wr, Int(bytes, 8192)) // the second one is free
		io.Slice(start+70, start+70, rd)
		w.Lanes(th, "fsync").Slice(start+5, start+9, w.Name("fsync"))
		lost := w.CounterTrack(p, "lost", "events")
		w.Counter(lost, start+1, 0)
		w.Counter(lost, start+2, 12)
		w.Instant(w.Child(p, "loss"), start+2, w.Name("lost 12 events"))
		w.End(th, start+100)
	})
	want(t, tr, "block", "select s.ts - 1000000000000, s.dur, depth, s.name, int_value from slice s join track t on t.id = s.track_id left join args a on a.arg_set_id = s.arg_set_id and a.key = 'debug.bytes' where t.name = 'block vda' order by s.ts",
		"10 40 0 write 4096", "20 10 0 read 512", "25 35 0 read 512", "30 40 0 write 8192", "70 0 0 read NULL")
	want(t, tr, "lanes", "select count(*) from track where name = 'block vda'", "3")
	want(t, tr, "counter", "select ts - 1000000000000, value from counter join track on track.id = track_id where name = 'lost' order by ts", "1 0", "2 12")
	want(t, tr, "methods", slicesByThread+" limit 1", "100 0 100 0 f")
	want(t, tr, "methods alone are on the thread's own track", "select count(*) from slice s join thread_track t on t.id = s.track_id where t.type = 'thread_execution'", "1")
	want(t, tr, "fsync", "select s.name, s.dur, tid from slice s join thread_track t on t.id = s.track_id join thread using (utid) where t.name = 'fsync'", "fsync 4 100")
	noOrphans(t, tr)
}

// A failing destination ends the trace and is reported.
func TestDestinationFails(t *testing.T) {
	r, out := io.Pipe()
	r.CloseWithError(io.ErrClosedPipe)
	w := NewWriter(out, Options{})
	th, f := w.Thread(1, 1, ""), w.Name("f")
	for i := range uint64(100_000) {
		w.Begin(th, i, f)
		w.End(th, i)
	}
	if w.Err() == nil {
		t.Error("no error yet")
	}
	if err := w.Close(); err == nil || err != w.Err() {
		t.Errorf("close: %v", err)
	}
}
