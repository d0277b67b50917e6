package export

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"braid/internal/cpus"
	"braid/internal/kevent"
	"braid/internal/perfetto/tptest"
	"braid/internal/tracefile"
)

// TestProcessorsPerfetto: thread 10 runs on little CPU 0, while big CPU 1 is idle for a time, waits, and runs on the big one.
func TestProcessorsPerfetto(t *testing.T) {
	at := func(n uint64) kevent.Header { return kevent.Header{Time: t0 + n*ms} }
	idle := func(b []byte, n, word uint64) []byte {
		return kevent.AppendIdle(b, at(n), kevent.Idle{Idle: word})
	}
	var b []byte
	b = switches(b, 0, 0, 0, 10, 0)
	b = idle(b, 10, 2)
	b = kevent.AppendFreq(b, at(15), kevent.Freq{CPU: 0, KHz: 1_800_000})
	b = idle(b, 20, 0)
	b = idle(b, 40, 2)
	h := at(40)
	h.Tid, h.Flags = 10, kevent.FlagPrevTarget|kevent.FlagPreempted
	b = kevent.AppendSwitch(b, h, kevent.Switch{PrevTgid: pid})
	b = switches(b, 50_000, 1, 0, 10, 0)
	tr := load(t, func(w *tracefile.Writer) error {
		meta := &tracefile.Meta{Pid: pid, Start: tracefile.Instant{BootNs: t0}, End: tracefile.Instant{BootNs: t0 + 100*ms}, Processors: []cpus.CPU{
			{ID: 0, Online: true, Capacity: 400, Cluster: "little", Model: "Cortex-A55", KHz: 900_000},
			{ID: 1, Online: true, Capacity: 1024, Cluster: "big", Model: "Cortex-X1", KHz: 2_000_000},
		}}
		clock := &tracefile.Clock{Counter: tracefile.CounterTSC, Frequency: 1e9, Samples: []tracefile.ClockSample{
			{Before: t0, After: t0, BootNs: t0}, {Before: t0 + 100*ms, After: t0 + 100*ms, BootNs: t0 + 100*ms}}}
		addr := func(string) uint64 { return 0x400000 }
		for _, err := range []error{
			w.WriteMeta(meta), w.WriteClock(clock),
			w.WriteProcesses(&tracefile.Processes{Processes: []tracefile.Process{{Pid: pid, Name: "app"}}}),
			w.WriteRing(calls(10, "app", addr, "main 1 ) 99000")), w.WriteEvents(b),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	path := filepath.Join(t.TempDir(), "t.pftrace")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Perfetto(f, tr); err != nil {
		t.Fatal(err)
	}
	out := tptest.Open(t, path)
	rows := func(name, sql string, want ...string) {
		t.Helper()
		if got := out.Rows(t, sql); !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, want)
		}
	}
	rows("processors", "select cpu, cluster_id, processor, capacity from cpu order by 1", "0 0 Cortex-A55 (little) 400", "1 1 Cortex-X1 (big) 1024")
	rows("frequencies", `select t.cpu, (ts - 2000000000) / 1000000, cast(value as int) from counter join cpu_counter_track t on t.id = track_id
		where t.name = 'cpufreq' order by 1, 2`, "0 0 900000", "0 15 1800000", "1 0 2000000")
	rows("places", `select s.name, (s.ts - 2000000000) / 1000000, s.dur / 1000000, extract_arg(s.arg_set_id, 'debug.cpu'),
		extract_arg(s.arg_set_id, 'debug.allowed') from slice s join track t on t.id = s.track_id where t.name = 'better processor idle' order by s.ts`,
		"on little, stronger one idle 10 10 0 1", "waits, another one idle 40 10 0 1")
	if n := out.Orphans(t); n != "0" {
		t.Errorf("%s slices are on no thread's track", n)
	}
}
