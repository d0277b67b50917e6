package export

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"

	"braid/inline"
	"braid/internal/perfetto"
	"braid/internal/timeline"
)

// Counts is what an export wrote.
type Counts struct {
	Slices   uint64 // of methods
	Switches uint64
	Requests uint64
	Lost     uint64 // sum of the trace's loss counts
	Unwound  uint64 // slices that ended without an exit
	Samples  uint64
	Cut      uint64 // samples whose user stack is cut
}

// add counts a slice by the flags of its end.
func (c *Counts) add(f timeline.SliceFlags) {
	c.Slices++
	if f&inline.Unwound != 0 {
		c.Unwound++
	}
}

type exporter struct {
	tr       *timeline.Trace
	w        *perfetto.Writer
	counts   Counts
	begin    uint64 // CLOCK_BOOTTIME ns of the recording
	end      uint64
	procs    map[int]*perfetto.Track
	threads  map[[2]int]*perfetto.Track
	main     *perfetto.Track // of the target, for what belongs to no thread
	records  records
	marked   map[string]bool // losses that have marks where they happened
	keyCut   perfetto.KeyID
	keyCount perfetto.KeyID
	flows    uint64 // arrows so far
}

// Perfetto writes a trace in Perfetto's format. Times are CLOCK_BOOTTIME ns. Slices that were cut by the ring's edge or
// the recording's end have an argument "cut" ("start" or "end"); those that were left without an exit, by an exception
// or longjmp, have "unwound". A call that was suspended on its own stack is several slices: "suspended", "reentered".
func Perfetto(out io.Writer, tr *timeline.Trace) (Counts, error) {
	m := tr.Meta
	e := &exporter{tr: tr, begin: m.Start.BootNs, end: m.End.BootNs, procs: map[int]*perfetto.Track{}, threads: map[[2]int]*perfetto.Track{},
		records: records{}, marked: map[string]bool{}}
	id := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %d %v", m.Host, m.Start.WallNs, m.Start.BootNs, m.Pid, m.Command))
	e.w = perfetto.NewWriter(out, perfetto.Options{Start: e.begin, StartWall: m.Start.WallNs, KernelRelease: m.Kernel,
		Machine: m.Machine, CPUs: m.CPUs, UUID: [16]byte(id[:16])})
	e.keyCut, e.keyCount = e.w.Key("cut"), e.w.Key("count")
	e.describe()
	e.processors()
	for _, th := range tr.Threads {
		if err := e.methods(th); err != nil {
			return e.counts, err
		}
	}
	if err := e.kernel(); err != nil {
		return e.counts, err
	}
	e.waits()
	e.places()
	e.binder()
	e.losses() // before the rings are read again
	if err := e.samples(); err != nil {
		return e.counts, err
	}
	if err := e.w.Close(); err != nil {
		return e.counts, fmt.Errorf("writing the Perfetto trace: %w", err)
	}
	return e.counts, nil
}

// describe names every process and thread, those with records and those that only the kernel side saw.
func (e *exporter) describe() {
	procs := map[int]perfetto.Process{}
	for _, p := range e.tr.Processes.Processes {
		procs[p.Pid] = perfetto.Process{Pid: p.Pid, PPid: p.PPid, Name: p.Name, Cmdline: p.Cmdline, Start: p.StartNs}
	}
	type thread struct {
		pid, tid int
		name     string
	}
	threads := map[[2]int]thread{}
	add := func(pid, tid int, name string) {
		if pid == 0 || tid == 0 {
			return
		}
		if _, ok := procs[pid]; !ok {
			procs[pid] = perfetto.Process{Pid: pid}
		}
		if p := procs[pid]; p.Name == "" && pid == tid {
			p.Name = name
			procs[pid] = p
		}
		k := [2]int{pid, tid}
		if old, ok := threads[k]; !ok || old.name == "" {
			threads[k] = thread{pid, tid, name}
		}
	}
	for _, a := range e.tr.Kernel.Threads() {
		add(int(a.Tgid), int(a.Tid), a.Name)
	}
	for _, th := range e.tr.Threads {
		add(int(th.Pid), int(th.Tid), th.Name)
	}
	for _, pid := range slices.Sorted(maps.Keys(procs)) {
		e.procs[pid] = e.w.Process(procs[pid])
		if e.main == nil || pid == e.tr.Meta.Pid {
			e.main = e.procs[pid]
		}
	}
	keys := slices.SortedFunc(maps.Keys(threads), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		e.threads[k] = e.w.Thread(k[0], k[1], threads[k].name)
	}
}

// methods writes one thread's calls.
func (e *exporter) methods(th *timeline.Thread) error {
	track := e.threads[[2]int{int(th.Pid), int(th.Tid)}]
	if track == nil || e.tr.Clock == nil {
		return nil
	}
	names := map[uint32]perfetto.NameID{}
	var dense []perfetto.NameID // by method; 0 is not yet known
	name := func(m uint32) perfetto.NameID {
		if m < 1<<20 {
			for uint32(len(dense)) <= m {
				dense = append(dense, make([]perfetto.NameID, max(int(m)+1-len(dense), 256))...)
			}
			if id := dense[m]; id != 0 {
				return id
			}
			id := e.w.Name(th.Space.Name(m).Name)
			dense[m] = id
			return id
		}
		id, ok := names[m]
		if !ok {
			id = e.w.Name(th.Space.Name(m).Name)
			names[m] = id
		}
		return id
	}
	start, end := perfetto.String(e.keyCut, "start"), perfetto.String(e.keyCut, "end")
	mark := func(key string) perfetto.Arg { return perfetto.Bool(e.w.Key(key), true) }
	unwound, suspended, reentered := mark("unwound"), mark("suspended"), mark("reentered")
	j := e.tr.Joiner(th)
	err := j.Edges(e.tr.Segments(th), func(edges []timeline.Edge) error {
		for i := range edges {
			d := &edges[i]
			ns := uint64(max(d.Ns, 0))
			if !d.Begin {
				e.counts.add(d.Flags)
			}
			switch {
			case d.Begin && d.Flags&inline.CutStart != 0:
				e.w.BeginArgs(track, ns, name(d.Method), start)
			case d.Begin && d.Flags&inline.Reentered != 0:
				e.w.BeginArgs(track, ns, name(d.Method), reentered)
			case d.Begin:
				e.w.Begin(track, ns, name(d.Method))
			case d.Flags&inline.Unwound != 0:
				e.w.EndArgs(track, ns, unwound)
			case d.Flags&inline.Suspended != 0:
				e.w.EndArgs(track, ns, suspended)
			case d.Flags&inline.CutEnd != 0:
				e.w.EndArgs(track, ns, end)
			default:
				e.w.End(track, ns)
			}
		}
		return e.w.Err()
	})
	e.records.add(j)
	return err
}

// losses marks at the recording's end what was lost at a time that is not known.
func (e *exporter) losses() {
	lost := e.records.lost(e.tr)
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		n := lost[name]
		if e.main == nil {
			continue
		}
		e.counts.Lost += n
		if e.marked[name] {
			continue
		}
		e.w.Instant(e.main, e.end, e.w.Name("lost: "+name), perfetto.Uint(e.keyCount, n))
	}
}
