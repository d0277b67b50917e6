package perfetto

import "testing"

func name(s string) (c [16]byte) {
	copy(c[:], s)
	return c
}

const statesByThread = `select t.tid, s.ts - 1000000000000, s.dur, s.state, coalesce(s.cpu, '-'), coalesce(w.tid, '-'), coalesce(s.io_wait, '-')
	from thread_state s join thread t using (utid) left join thread w on w.utid = s.waker_utid where t.tid in (100, 101) order by t.tid, s.ts, s.id`

func TestSched(t *testing.T) {
	app, worker, other := name("app"), name("worker"), name("other")
	tr := write(t, func(w *Writer) {
		w.Process(Process{Pid: 100, Name: "app"})
		a, b := w.Thread(100, 100, "app"), w.Thread(100, 101, "worker")
		f := w.Name("f")
		w.Begin(a, start+100, f)
		w.End(a, start+900)
		w.Begin(b, start+100, f)
		w.End(b, start+900)

		w.Switch(0, start+50, 0, Runnable, 100, 120, app)
		w.Switch(1, start+60, 555, Preempted, 101, 120, worker)
		w.Switch(0, start+200, 100, Sleeping, 0, 120, [16]byte{}) // app waits for worker
		w.Waking(1, start+300, 101, 100, 0, 120, app)             // in the columns: worker runs on CPU 1
		w.Switch(0, start+310, 0, Runnable, 100, 120, app)        //
		w.Switch(1, start+400, 101, Preempted, 777, 100, other)   // worker is preempted
		w.Switch(1, start+450, 777, Sleeping, 101, 120, worker)   //
		w.Switch(1, start+500, 101, Blocked, 0, 120, [16]byte{})  // worker waits for I/O
		w.BlockedReason(1, start+500, 101, true)                  //
		w.Waking(0, start+600, 999, 101, 0, 120, worker)          // by a thread that is not recorded
		w.Switch(0, start+650, 100, Runnable, 101, 120, worker)   // app yields, worker comes to CPU 0
		w.Switch(1, start+660, 888, Runnable, 100, 120, app)      // how 888 came to run was not recorded
		w.Switch(0, start+700, 101, Dead, 0, 120, [16]byte{})     //
		w.Gap(1, start+750)                                       // events were lost here
		w.Switch(1, start+800, 444, Sleeping, 100, 120, app)      //
		w.Switch(1, start+850, 100, TaskState(1, false), 0, 0, app)
		w.Frequency(1, start+50, 1_800_000)
	})
	want(t, tr, "states", statesByThread,
		"100 50 150 Running 0 - -", "100 200 100 S - - -", "100 300 10 R - 101 -", "100 310 340 Running 0 - -", "100 650 10 R - - -",
		"100 660 90 Running 1 - -", "100 750 50 R - - -", "100 800 50 Running 1 - -", "100 850 -1 S - - -",
		"101 60 340 Running 1 - -", "101 400 50 R+ - - -", "101 450 50 Running 1 - -", "101 500 100 D - - 1", "101 600 50 R - 999 -",
		"101 650 50 Running 0 - -", "101 700 -1 X - - -")
	want(t, tr, "CPU slices", "select cpu, tid, sum(dur) from sched_slice join thread using (utid) where tid in (100, 101, 777) group by 1, 2 order by 1, 2",
		"0 100 490", "0 101 50", "1 100 140", "1 101 390", "1 777 50")
	want(t, tr, "names", "select tid, name from thread where tid in (100, 101, 777, 0) order by 1", "0 swapper", "100 app", "101 worker", "777 other")
	want(t, tr, "frequency", "select ts - 1000000000000, value from counter join cpu_counter_track t on t.id = track_id where t.name = 'cpufreq'", "50 1800000")
	noOrphans(t, tr)
}

// Many events on two CPUs, also out of order, take several bundles and stay exact.
func TestSchedBundles(t *testing.T) {
	const n = 20_011
	tr := write(t, func(w *Writer) {
		w.Process(Process{Pid: 100, Name: "app"})
		w.Thread(100, 100, "app")
		w.Thread(100, 101, "worker")
		for cpu := range 2 {
			for i := range n {
				ns, tid := start+uint64(i*100), 100+cpu
				w.Switch(cpu, ns, 0, Runnable, tid, 120, name("app"))
				w.Switch(cpu, ns+30, tid, Sleeping, 0, 120, [16]byte{})
				w.Waking(1-cpu, ns+90, 0, tid, cpu, 120, name("app"))
			}
		}
	})
	// The last one is open.
	want(t, tr, "states", "select tid, state, count(*), sum(dur) from thread_state s join thread using (utid) where tid in (100, 101) group by 1, 2 order by 1, 2",
		"100 R 20011 200099", "100 Running 20011 600330", "100 S 20011 1200660",
		"101 R 20011 200099", "101 Running 20011 600330", "101 S 20011 1200660")
}

func TestTaskState(t *testing.T) {
	for _, c := range []struct {
		raw       uint32
		preempted bool
		want      State
	}{
		{0, false, Runnable}, {0, true, Preempted}, {1, false, Sleeping}, {1, true, Preempted}, {2, false, Blocked},
		{0x102, false, Blocked}, {0x402, false, Idle}, {0x4, false, Stopped}, {0x8, false, Traced}, {0x80, false, Dead},
		{0x20, false, Zombie}, {0x40, false, Parked}, {0x1000, false, Blocked}, {0x8000, false, Blocked}, {0x2001, false, Sleeping},
	} {
		if got := TaskState(c.raw, c.preempted); got != c.want {
			t.Errorf("state 0x%x, preempted %v: 0x%x, want 0x%x", c.raw, c.preempted, got, c.want)
		}
	}
}
