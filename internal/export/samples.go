package export

import (
	"errors"
	"path"

	"braid/internal/perfetto"
	"braid/internal/stacks"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

// threadNames finds the names of samples' threads and processes.
type threadNames struct {
	processes map[uint32]string
	threads   map[[2]uint32]string
}

func namesOf(tr *timeline.Trace) *threadNames {
	n := &threadNames{processes: map[uint32]string{}, threads: map[[2]uint32]string{}}
	add := func(pid, tid uint32, name string) {
		if k := [2]uint32{pid, tid}; name != "" && n.threads[k] == "" {
			n.threads[k] = name
		}
	}
	for _, a := range tr.Kernel.Threads() {
		add(a.Tgid, a.Tid, a.Name)
	}
	for _, th := range tr.Threads {
		add(th.Pid, th.Tid, th.Name)
	}
	for _, th := range tr.Processes.Threads {
		if len(th.Names) > 0 {
			add(uint32(th.Pid), uint32(th.Tid), th.Names[len(th.Names)-1])
		}
	}
	for _, p := range tr.Processes.Processes {
		n.processes[uint32(p.Pid)] = p.Name
	}
	return n
}

// thread is a thread's name, or its process's, or "thread".
func (n *threadNames) thread(pid, tid uint32) string {
	for _, name := range []string{n.threads[[2]uint32{pid, tid}], n.processes[pid], n.threads[[2]uint32{pid, pid}]} {
		if name != "" {
			return name
		}
	}
	return "thread"
}

// process is a process's name: its own, or its main thread's.
func (n *threadNames) process(pid uint32) string {
	if name := n.processes[pid]; name != "" {
		return name
	}
	return n.thread(pid, pid)
}

// samples writes the trace's samples, if there are any.
func (e *exporter) samples() error {
	j, err := stacks.New(e.tr)
	if errors.Is(err, stacks.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	out := e.w.Samples(perfetto.SampleOptions{Cycles: j.Event == tracefile.SampleCycles, Frequency: j.Frequency})
	var ids []perfetto.FrameID
	known := map[stacks.Frame]perfetto.FrameID{}
	err = j.Each(func(s *stacks.Sample) error {
		ids = ids[:0]
		for _, f := range s.Frames {
			id, ok := known[f]
			if !ok {
				fn := &j.Functions[f.Func]
				m := perfetto.Mapping{Path: fn.Module}
				if f.Mapping >= 0 {
					l := &j.Mappings[f.Mapping]
					m = perfetto.Mapping{Path: l.Path, BuildID: l.BuildID, Start: l.Start, End: l.End, Offset: l.Offset}
				}
				if m.Path == "" {
					m.Path = "[unknown]"
				}
				id = out.Frame(fn.Name, m, f.Addr)
				known[f] = id
			}
			ids = append(ids, id)
		}
		out.Sample(s.Time, int(s.CPU), int(s.Pid), int(s.Tid), s.InKernel, s.Weight, ids, unwindErrors[s.End])
		return e.w.Err()
	})
	e.counts.addSamples(j)
	return err
}

// addSamples counts samples that were given.
func (c *Counts) addSamples(j *stacks.Join) {
	c.Samples += j.Stats.Samples
	c.Cut += j.Stats.Cut()
}

// unwindErrors are Perfetto's names for why stacks end.
var unwindErrors = map[tracefile.StackEnd]perfetto.UnwindError{
	tracefile.EndCut:      perfetto.UnwindMemoryInvalid,
	tracefile.EndDepth:    perfetto.UnwindMaxFrames,
	tracefile.EndNoTable:  perfetto.UnwindNoInfo,
	tracefile.EndNoModule: perfetto.UnwindInvalidMap,
	tracefile.EndBad:      perfetto.UnwindNoInfo,
	tracefile.EndGone:     perfetto.UnwindInvalidMap,
	tracefile.EndABI:      perfetto.UnwindUnsupported,
}

// mainMapping is the index of the mapping of the program itself, or -1.
func mainMapping(tr *timeline.Trace, mappings []tracefile.Mapping) int {
	name := ""
	if len(tr.Meta.Command) > 0 {
		name = path.Base(tr.Meta.Command[0])
	}
	for _, p := range tr.Processes.Processes {
		if name == "" && p.Pid == tr.Meta.Pid {
			name = p.Name
		}
	}
	for i := range mappings {
		if m := &mappings[i]; m.Flags&tracefile.MappingKernel == 0 && name != "" && path.Base(m.Path) == name {
			return i
		}
	}
	return -1
}
