package watch

import (
	"maps"
	"strings"

	"braid/bpf"
	"braid/internal/metrics"
)

// metrics collects what is served. It runs on the daemon's goroutine.
func (d *Daemon) metrics() *metrics.Snapshot {
	m := &metrics.Snapshot{Lost: map[string]uint64{}, Triggers: map[string]metrics.Trigger{}, Refused: map[string]uint64{},
		Removed: map[string]uint64{}, Hooks: map[string]bool{}}
	if d.skipped > 0 {
		m.Lost["flushes_skipped"] = d.skipped
	}
	var sets map[int]bpf.HistogramSet
	if d.kernel != nil {
		maps.Copy(m.Lost, d.kernel.losses())
		sets, _ = d.kernel.rec.Histograms()
		for _, h := range d.kernel.rec.Missing() {
			name, _, _ := strings.Cut(h, ":")
			m.Hooks[name] = false
		}
	}
	es := d.engine.Stats()
	for _, r := range d.o.Config.Rules {
		m.Triggers[r.Name] = metrics.Trigger{Fired: es.Fired[r.Name], Suppressed: es.Suppressed[r.Name]}
	}
	st := d.store.Stats()
	m.KeptTraces, m.KeptBytes = st.Traces, st.Bytes
	for r, n := range st.Refused {
		m.Refused[string(r)] = n
	}
	for r, n := range st.Removed {
		m.Removed[string(r)] = n
	}
	for _, t := range d.sorted() {
		mt := t.metrics()
		if s, ok := sets[t.pid]; ok {
			addKernel(&mt, &s)
		}
		m.Targets = append(m.Targets, mt)
	}
	return m
}

func (t *target) metrics() metrics.Target {
	m := metrics.Target{Program: t.name, PID: t.pid, Records: t.records, Starts: t.starts, Stops: t.stops, Flushes: maps.Clone(t.byTrigger),
		Lost: maps.Clone(t.lost)}
	for _, r := range t.rings {
		at, wraps := r.t.Position()
		m.Threads++
		if r.t.On() {
			m.ThreadsOn++
		}
		m.Records += at / 8
		m.Wraps += wraps
		m.Swaps += r.swaps
		m.RingBytes += t.opts.Bytes
	}
	for name, n := range t.area.Lost() {
		if n > 0 {
			m.Lost[name] = n
		}
	}
	return m
}

// addKernel adds what the kernel has counted of a process.
func addKernel(m *metrics.Target, s *bpf.HistogramSet) {
	// The kernel's bucket 0 is all that is below 2^10 ns; those served begin with 1 ns.
	const first = 9
	h := func(from *bpf.Histogram) *metrics.Histogram {
		to := &metrics.Histogram{Buckets: make([]uint64, first+len(from.Buckets)), Sum: from.Sum, Count: from.Count}
		copy(to.Buckets[first:], from.Buckets[:])
		return to
	}
	m.MajorFaults = s.MajorFaults
	m.RunQueue, m.Fsync, m.Reclaim = h(&s.RunQueue), h(&s.Fsync), h(&s.Reclaim)
	m.OffCPU = map[string]*metrics.Histogram{"sleeping": h(&s.Sleeping), "blocked": h(&s.Blocked), "preempted": h(&s.Preempted)}
	m.BlockIO = map[string]*metrics.Histogram{"read": h(&s.Read), "write": h(&s.Write), "flush": h(&s.Flush), "other": h(&s.OtherIO)}
}
