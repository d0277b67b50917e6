package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"

	"braid/internal/stacks"
	"braid/internal/timeline"
	"braid/internal/tracefile"

	"github.com/google/pprof/profile"
)

// pprofBuilder makes a profile of samples.
type pprofBuilder struct {
	join      *stacks.Join
	out       *profile.Profile
	mappings  map[int32]*profile.Mapping
	modules   map[string]*profile.Mapping // where only a file's name is known
	functions map[stacks.FuncID]*profile.Function
	locations map[stacks.Frame]*profile.Location
	samples   map[string]*profile.Sample
	main      int
	key       []byte
}

// Pprof writes a trace's samples as a profile for pprof, compressed: how many there are of each stack, and the CPU time
// that they stand for. Labels say thread, tid, process and pid. It returns stacks.ErrNone if there are no samples.
func Pprof(out io.Writer, tr *timeline.Trace) (c Counts, err error) {
	j, err := stacks.New(tr)
	if err != nil {
		return c, err
	}
	cpu := &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	b := &pprofBuilder{join: j, mappings: map[int32]*profile.Mapping{}, modules: map[string]*profile.Mapping{},
		functions: map[stacks.FuncID]*profile.Function{}, locations: map[stacks.Frame]*profile.Location{}, samples: map[string]*profile.Sample{},
		main: mainMapping(tr, j.Mappings)}
	b.out = &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, cpu}, DefaultSampleType: "cpu", PeriodType: cpu,
		TimeNanos: tr.Meta.Start.WallNs,
	}
	if m := tr.Meta; m.End.BootNs > m.Start.BootNs {
		b.out.DurationNanos = int64(m.End.BootNs - m.Start.BootNs)
	}
	if j.Frequency > 0 {
		b.out.Period = int64(1e9 / j.Frequency)
	}
	if b.main >= 0 { // pprof calls the profile after the first one
		b.mapping(int32(b.main), "")
	}
	err = j.Each(func(s *stacks.Sample) error {
		b.sample(s)
		return nil
	})
	if err != nil {
		return c, err
	}
	c.addSamples(j)
	b.out.Comments = append(b.out.Comments, fmt.Sprintf("braid: %v at %d Hz, user stacks: %v", j.Event, j.Frequency, j.Way))
	if cut := j.Stats.Cut(); cut > 0 {
		b.out.Comments = append(b.out.Comments, fmt.Sprintf("%d of %d user stacks are cut", cut, j.Stats.Samples))
	}
	if err := b.out.CheckValid(); err != nil {
		return c, fmt.Errorf("making the profile: %w", err)
	}
	if err := b.out.Write(out); err != nil {
		return c, fmt.Errorf("writing the profile: %w", err)
	}
	return c, nil
}

// sample adds one sample. Samples of a thread with the same stack are one.
func (b *pprofBuilder) sample(s *stacks.Sample) {
	b.key = binary.LittleEndian.AppendUint32(b.key[:0], s.Pid)
	b.key = binary.LittleEndian.AppendUint32(b.key, s.Tid)
	locations := make([]*profile.Location, len(s.Frames))
	for i, f := range s.Frames {
		l := b.location(f)
		locations[len(locations)-1-i] = l
		b.key = binary.AppendUvarint(b.key, l.ID)
	}
	p := b.samples[string(b.key)]
	if p == nil {
		p = &profile.Sample{Location: locations, Value: []int64{0, 0}, Label: map[string][]string{
			"thread": {b.join.Thread(s.Pid, s.Tid)}, "tid": {strconv.FormatUint(uint64(s.Tid), 10)},
			"process": {b.join.Process(s.Pid)}, "pid": {strconv.FormatUint(uint64(s.Pid), 10)},
		}}
		b.samples[string(b.key)] = p
		b.out.Sample = append(b.out.Sample, p)
	}
	p.Value[0]++
	p.Value[1] += int64(s.Ns)
}

func (b *pprofBuilder) location(f stacks.Frame) *profile.Location {
	f.RingOnly = false // it is the same place
	l := b.locations[f]
	if l == nil {
		l = &profile.Location{ID: uint64(len(b.out.Location)) + 1, Address: f.Addr, Line: []profile.Line{{Function: b.function(f.Func)}},
			Mapping: b.mapping(f.Mapping, b.join.Functions[f.Func].Module)}
		b.locations[f] = l
		b.out.Location = append(b.out.Location, l)
	}
	return l
}

func (b *pprofBuilder) function(id stacks.FuncID) *profile.Function {
	f := b.functions[id]
	if f == nil {
		fn := &b.join.Functions[id]
		f = &profile.Function{ID: uint64(len(b.out.Function)) + 1, Name: fn.Name, SystemName: fn.Name}
		b.functions[id] = f
		b.out.Function = append(b.out.Function, f)
	}
	return f
}

// mapping is the mapping with an index, or one without addresses for a file of which only the name is known.
func (b *pprofBuilder) mapping(index int32, module string) *profile.Mapping {
	if m := b.mappings[index]; index >= 0 && m != nil {
		return m
	}
	m := b.modules[module]
	switch {
	case index < 0 && (m != nil || module == ""):
		return m
	case index < 0:
		m = &profile.Mapping{File: module}
		b.modules[module] = m
	default:
		l := &b.join.Mappings[index]
		m = &profile.Mapping{Start: l.Start, Limit: l.End, Offset: l.Offset, File: l.Path, BuildID: l.BuildID}
		if m.File == "" && l.Flags&tracefile.MappingKernel == 0 {
			m.File = "[anonymous]"
		}
		b.mappings[index] = m
	}
	m.ID = uint64(len(b.out.Mapping)) + 1
	m.HasFunctions = true // so that nobody looks for better names
	b.out.Mapping = append(b.out.Mapping, m)
	return m
}
