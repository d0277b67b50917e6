package perfetto

import (
	"encoding/hex"
	"path"
	"strings"
)

// SampleOptions say what samples are of.
type SampleOptions struct {
	Cycles    bool   // of the processor's cycles; otherwise of a timer that runs while the thread does
	Frequency uint64 // samples for each second of CPU time; 0: unknown
}

// Mapping is executable memory in which frames lie.
type Mapping struct {
	Path               string
	BuildID            string // hexadecimal, or empty
	Start, End, Offset uint64 // addresses, and of Start in the file
}

// UnwindError says why a sample's stack is not whole. The values are Perfetto's.
type UnwindError uint8

// The reasons.
const (
	UnwindNone          UnwindError = 0 // it is whole, or that is not known
	UnwindMemoryInvalid UnwindError = 2
	UnwindNoInfo        UnwindError = 3
	UnwindUnsupported   UnwindError = 4
	UnwindInvalidMap    UnwindError = 5
	UnwindMaxFrames     UnwindError = 6
)

// Samples writes stack samples, on a packet sequence of their own.
type Samples struct {
	w      *Writer
	prefix buffer

	paths, builds, names intern
	mappings             map[Mapping]uint64
	frames               map[sampleFrame]uint64
	stacks               map[string]uint64
	counts               map[int]uint64 // by CPU: the sum of weights
	key                  buffer
}

type sampleFrame struct {
	name, mapping, pc uint64
}

// Samples begins a trace's samples. Call it once.
func (w *Writer) Samples(o SampleOptions) *Samples {
	w.seqs++
	s := &Samples{w: w, paths: newIntern(), builds: newIntern(), names: newIntern(), mappings: map[Mapping]uint64{},
		frames: map[sampleFrame]uint64{}, stacks: map[string]uint64{}, counts: map[int]uint64{}}
	s.prefix.uint(tagSequenceID, uint64(w.seqs))
	p := w.packet()
	w.buf.uint(tagSequenceID, uint64(w.seqs))
	w.buf.uint(tagSequenceFlags, sequenceCleared)
	w.buf.uint(tagFirstPacket, 1)
	d := w.buf.open(tagPacketDefaults)
	e := w.buf.open(tagDefaultSample)
	b := w.buf.open(tagTimebase)
	if o.Frequency > 0 {
		w.buf.uint(tagTimebaseFrequency, o.Frequency)
	}
	if o.Cycles {
		w.buf.uint(tagTimebaseCounter, counterCycles)
	} else {
		w.buf.uint(tagTimebaseCounter, counterCPUClock)
	}
	w.buf.close(b)
	w.buf.close(e)
	w.buf.close(d)
	w.buf.close(p)
	s.prefix.uint(tagSequenceFlags, sequenceNeedsState)
	return s
}

// FrameID stands for a frame.
type FrameID uint64

// interned writes one message of interned data.
func (s *Samples) interned(tag uint64, id uint64, fields func(b *buffer)) {
	w := s.w
	p := w.packet()
	w.buf = append(w.buf, s.prefix...)
	d := w.buf.open(tagInternedData)
	e := w.buf.open(tag)
	w.buf.uint(tagInternedIID, id)
	fields(&w.buf)
	w.buf.close(e)
	w.buf.close(d)
	w.buf.close(p)
}

// text numbers a string, and writes it when it is new.
func (s *Samples) text(in *intern, tag uint64, text string) uint64 {
	n := len(in.strings)
	id := uint64(in.id(text))
	if len(in.strings) > n {
		s.interned(tag, id, func(b *buffer) { b.string(tagInternedName, text) })
	}
	return id
}

// Frame returns the number of a function's frame at an address at run time. Where the mapping is not known its zero
// value will do, with a Path for what to call it.
func (s *Samples) Frame(name string, m Mapping, addr uint64) FrameID {
	mapping, ok := s.mappings[m]
	if !ok {
		mapping = uint64(len(s.mappings)) + 1
		s.mappings[m] = mapping
		s.mapping(mapping, &m)
	}
	f := sampleFrame{name: s.text(&s.names, tagFunctionNames, name), mapping: mapping}
	if m.End != 0 {
		f.pc = addr - m.Start + m.Offset
	}
	id, ok := s.frames[f]
	if !ok {
		id = uint64(len(s.frames)) + 1
		s.frames[f] = id
		s.interned(tagFrames, id, func(b *buffer) {
			b.uint(tagFrameName, f.name)
			b.uint(tagFrameMapping, f.mapping)
			b.uint(tagFramePC, f.pc)
		})
	}
	return FrameID(id)
}

func (s *Samples) mapping(id uint64, m *Mapping) {
	var parts []uint64
	for part := range strings.SplitSeq(strings.TrimPrefix(path.Clean("/"+m.Path), "/"), "/") {
		parts = append(parts, s.text(&s.paths, tagMappingPaths, part))
	}
	build := uint64(0)
	if raw, err := hex.DecodeString(m.BuildID); err == nil && len(raw) > 0 {
		build = s.text(&s.builds, tagBuildIDs, string(raw))
	}
	s.interned(tagMappings, id, func(b *buffer) {
		if build != 0 {
			b.uint(tagMappingBuild, build)
		}
		b.uint(tagMappingStart, m.Start)
		b.uint(tagMappingEnd, m.End)
		b.uint(tagMappingExact, m.Offset)
		for _, p := range parts {
			b.uint(tagMappingPath, p)
		}
	})
}

// Sample writes a sample of a thread at a time in CLOCK_BOOTTIME ns, with its frames from the outermost to the
// innermost. Weight is what it stands for, in cycles or ns.
func (s *Samples) Sample(ns uint64, cpu, pid, tid int, inKernel bool, weight uint64, frames []FrameID, err UnwindError) {
	s.key = s.key[:0]
	for _, f := range frames {
		s.key.varint(uint64(f))
	}
	id, ok := s.stacks[string(s.key)]
	if !ok && len(frames) > 0 {
		id = uint64(len(s.stacks)) + 1
		s.stacks[string(s.key)] = id
		s.interned(tagCallstacks, id, func(b *buffer) {
			for _, f := range frames {
				b.uint(tagStackFrame, uint64(f))
			}
		})
	}
	w := s.w
	p := w.packet()
	w.buf.uint(tagTimestamp, ns)
	w.buf = append(w.buf, s.prefix...)
	e := w.buf.open(tagPerfSample)
	w.buf.uint(tagSampleCPU, uint64(cpu))
	w.buf.uint(tagSamplePid, uint64(pid))
	w.buf.uint(tagSampleTid, uint64(tid))
	if id != 0 {
		w.buf.uint(tagSampleStack, id)
	}
	mode := uint64(modeUser)
	if inKernel {
		mode = modeKernel
	}
	w.buf.uint(tagSampleMode, mode)
	s.counts[cpu] += weight
	w.buf.uint(tagSampleCount, s.counts[cpu])
	if err != UnwindNone {
		w.buf.uint(tagSampleError, uint64(err))
	}
	w.buf.close(e)
	w.buf.close(p)
}
