package perfetto

import "testing"

func TestSamples(t *testing.T) {
	tr := write(t, func(w *Writer) {
		w.Process(Process{Pid: 100, PPid: 1, Name: "app"})
		a, b := w.Thread(100, 100, "app"), w.Thread(100, 101, "worker")
		s := w.Samples(SampleOptions{Frequency: 99})
		app := Mapping{Path: "/usr/bin/app", BuildID: "00ff10", Start: 0x5000, End: 0x9000, Offset: 0x1000}
		main := s.Frame("main", app, 0x5010)
		sort := s.Frame("ns::sort(int)", app, 0x5100)
		libc := s.Frame("qsort", Mapping{Path: "/lib/libc.so.6", Start: 0x7000_0000, End: 0x7001_0000}, 0x7000_0800)
		write := s.Frame("vfs_write", Mapping{Path: "[kernel.kallsyms]", Start: 0xffff_ffff_8100_0000, End: 0xffff_ffff_8200_0000}, 0xffff_ffff_8100_0100)
		only := s.Frame("lost", Mapping{Path: "app"}, 0)
		if again := s.Frame("main", app, 0x5010); again != main {
			t.Errorf("the same frame is %d and %d", main, again)
		}
		s.Sample(start+10, 1, 100, 100, false, 1000, []FrameID{main, sort, libc}, UnwindNone)
		s.Sample(start+20, 0, 100, 101, true, 1000, []FrameID{main, only, write}, UnwindMemoryInvalid)
		s.Sample(start+30, 1, 100, 100, false, 500, []FrameID{main, sort, libc}, UnwindNone)
		s.Sample(start+40, 1, 100, 100, false, 500, nil, UnwindNone)
		w.Begin(a, start+5, w.Name("main()"))
		w.End(a, start+50)
		w.Begin(b, start+5, w.Name("f"))
		w.End(b, start+25)
	})
	want(t, tr, "samples", `select ts - 1000000000000, tid, cpu, cpu_mode, coalesce(unwind_error, '-'), callsite_id is null
		from perf_sample join thread using (utid) order by ts`,
		"10 100 1 user - 0", "20 101 0 kernel memory_invalid 0", "30 100 1 user - 0", "40 100 1 user - 1")
	want(t, tr, "stacks", `with recursive up(sample, callsite, depth) as (
			select s.ts - 1000000000000, callsite_id, 0 from perf_sample s where callsite_id is not null
			union all select sample, c.parent_id, up.depth + 1 from up join stack_profile_callsite c on c.id = up.callsite where c.parent_id is not null)
		select sample, c.depth, f.name, f.rel_pc, m.name, m.build_id from up join stack_profile_callsite c on c.id = up.callsite
		join stack_profile_frame f on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping order by 1, 2`,
		"10 0 main 4112 /usr/bin/app 00ff10", "10 1 ns::sort(int) 4352 /usr/bin/app 00ff10", "10 2 qsort 2048 /lib/libc.so.6 ",
		"20 0 main 4112 /usr/bin/app 00ff10", "20 1 lost 0 /app ", "20 2 vfs_write 256 /[kernel.kallsyms] ",
		"30 0 main 4112 /usr/bin/app 00ff10", "30 1 ns::sort(int) 4352 /usr/bin/app 00ff10", "30 2 qsort 2048 /lib/libc.so.6 ")
	want(t, tr, "callsites are shared", "select count(*) from stack_profile_callsite", "5")
	want(t, tr, "what the samples stand for", `select cpu, max(value) from counter c join perf_counter_track t on t.id = c.track_id
		where t.name = 'cpu-clock' group by 1`, "0 1000", "1 2000")
	noOrphans(t, tr)
}

// TestSampleStackSizes: interned data that does not fit one byte of length, and many samples.
func TestSampleStackSizes(t *testing.T) {
	tr := write(t, func(w *Writer) {
		w.Process(Process{Pid: 100, Name: "app"})
		w.Thread(100, 100, "app")
		s := w.Samples(SampleOptions{Cycles: true, Frequency: 4000})
		var frames []FrameID
		for i := range 500 {
			frames = append(frames, s.Frame(string(rune('a'+i%26)), Mapping{Path: "/app", Start: 0, End: 1 << 40}, uint64(i)*1000))
		}
		for i := range 20_000 {
			s.Sample(start+uint64(i), i%2, 100, 100, false, 1, frames[:1+i%500], UnwindMaxFrames)
		}
	})
	want(t, tr, "samples", "select count(*), count(distinct callsite_id) from perf_sample", "20000 500")
	want(t, tr, "frames", "select count(*), max(rel_pc) from stack_profile_frame", "500 499000")
	want(t, tr, "depths", "select max(depth) from stack_profile_callsite", "499")
	want(t, tr, "event", "select count(distinct name) from perf_counter_track where name = 'cpu-cycles'", "1")
}
