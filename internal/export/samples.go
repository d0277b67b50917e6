package export

import (
	"errors"
	"path"

	"braid/internal/perfetto"
	"braid/internal/stacks"
	"braid/internal/timeline"
	"braid/internal/tracefile"
)

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
