package tracefile

import (
	"errors"
	"fmt"
	"iter"
	"math"
)

// SampleEvent says what made the samples.
type SampleEvent uint32

// The events. Their values never change meaning.
const (
	SampleCPUClock SampleEvent = 1 // a timer that runs while the thread does; a sample's weight is in ns
	SampleCycles   SampleEvent = 2 // the processor's cycles; a sample's weight is in cycles
)

var sampleEventNames = []string{1: "cpu-clock", 2: "cycles"}

func (e SampleEvent) String() string { return nameOf(sampleEventNames, uint32(e)) }

// StackWay says how user stacks were asked for, or how one of them was taken.
type StackWay uint8

// The ways. Their values never change meaning.
const (
	StackNone  StackWay = 0 // of a sample: no user stack; of a section: none were asked for
	StackFP    StackWay = 1 // by the chain of frame pointers, walked by the kernel
	StackDWARF StackWay = 2 // by unwind tables, from a copy of the stack
	StackAuto  StackWay = 3 // of a section: as 2, by frame pointers where there are no tables; of a sample: both were used
)

var stackWayNames = []string{"none", "fp", "dwarf", "auto"}

func (w StackWay) String() string { return nameOf(stackWayNames, uint32(w)) }

// StackEnd says why a user stack ends where it does.
type StackEnd uint8

// The ends. Their values never change meaning. Only at EndComplete is nothing missing.
const (
	EndNone     StackEnd = 0 // there is no user stack: a thread of the kernel, or its registers could not be had
	EndComplete StackEnd = 1 // the outermost frame was reached: its return address is marked as undefined, or is 0
	EndCut      StackEnd = 2 // the stack is larger than what was copied of it
	EndDepth    StackEnd = 3 // more frames than are kept
	EndNoTable  StackEnd = 4 // the outermost address lies in a file without unwind tables for it
	EndNoModule StackEnd = 5 // the outermost address lies in no file: generated code, or a wrong address
	EndBad      StackEnd = 6 // the tables or the stack make no sense there
	EndChain    StackEnd = 7 // the chain of frame pointers ended; whether something is missing is not known
	EndGone     StackEnd = 8 // the process was gone before its files were known
	EndABI      StackEnd = 9 // a program of 32 bits: only the interrupted address is known
)

var stackEndNames = []string{"none", "complete", "cut", "depth", "no-table", "no-module", "bad", "chain", "gone", "32-bit"}

func (e StackEnd) String() string { return nameOf(stackEndNames, uint32(e)) }

func nameOf(names []string, n uint32) string {
	if n < uint32(len(names)) && names[n] != "" {
		return names[n]
	}
	return fmt.Sprintf("%d", n)
}

// SampleFlags tells more of a sample.
type SampleFlags uint8

// The flags. Their values never change meaning.
const (
	SampleKernel SampleFlags = 1 << 0 // the thread was in the kernel: the innermost frame is a kernel frame, if they were recorded
)

// Sample is where one thread was at one moment.
//
// Each address lies within the instruction that was being executed. The innermost one, and one that a signal
// interrupted, is that instruction's; a caller's is its return address less 1. Addresses carry neither tags nor
// signatures.
type Sample struct {
	Time   uint64 // CLOCK_BOOTTIME, ns
	Tid    uint32
	Tgid   uint32
	CPU    uint16
	Flags  SampleFlags
	Way    StackWay // how the user stack was taken
	End    StackEnd // why it ends
	Weight uint64   // what the sample stands for, in the event's unit
	Kernel []uint64 // frames, innermost first
	User   []uint64 // frames, innermost first
}

// Samples is one samples section.
type Samples struct {
	Event  SampleEvent
	Stacks StackWay // how user stacks were asked for
	Kernel bool     // kernel frames were recorded; without it there are none
	// Frequency is in samples for each second that a thread runs. With SampleCycles the kernel adapts the period to it.
	Frequency uint64
	Samples   []Sample // of one CPU in order of time
}

const (
	samplesHeaderSize = 32
	sampleSize        = 40
)

// MaxFrames is the largest number of kernel, and of user frames of one sample.
const MaxFrames = math.MaxUint16

// AppendSamples appends a samples section's content. Frames beyond MaxFrames are left out.
func AppendSamples(b []byte, s *Samples) []byte {
	kernel := uint8(0)
	if s.Kernel {
		kernel = 1
	}
	b = le.AppendUint32(b, uint32(s.Event))
	b = append(b, uint8(s.Stacks), kernel, 0, 0)
	b = le.AppendUint64(b, s.Frequency)
	b = le.AppendUint64(b, uint64(len(s.Samples)))
	b = le.AppendUint64(b, 0)
	for i := range s.Samples {
		b = appendSample(b, &s.Samples[i])
	}
	return b
}

func appendSample(b []byte, s *Sample) []byte {
	kernel, user := s.Kernel[:min(len(s.Kernel), MaxFrames)], s.User[:min(len(s.User), MaxFrames)]
	b = le.AppendUint64(b, s.Time)
	b = le.AppendUint32(b, s.Tid)
	b = le.AppendUint32(b, s.Tgid)
	b = le.AppendUint16(b, s.CPU)
	b = append(b, uint8(s.Flags), uint8(s.Way), uint8(s.End), 0)
	b = le.AppendUint16(b, uint16(len(kernel)))
	b = le.AppendUint16(b, uint16(len(user)))
	b = append(b, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint64(b, s.Weight)
	b = append(b, slotBytes(kernel)...)
	return append(b, slotBytes(user)...)
}

// DecodeSamples decodes a samples section's content. The frames may alias b.
func DecodeSamples(b []byte) (*Samples, error) {
	if len(b) < samplesHeaderSize {
		return nil, fmt.Errorf("samples: %d bytes, shorter than their header", len(b))
	}
	s := &Samples{Event: SampleEvent(le.Uint32(b)), Stacks: StackWay(b[4]), Kernel: b[5]&1 != 0, Frequency: le.Uint64(b[8:])}
	count := le.Uint64(b[16:])
	b = b[samplesHeaderSize:]
	if count > uint64(len(b)/sampleSize) {
		return nil, fmt.Errorf("samples: %d samples do not fit into %d bytes", count, len(b))
	}
	s.Samples = make([]Sample, count)
	for i := range s.Samples {
		rest, ok := decodeSample(b, &s.Samples[i])
		if !ok {
			return nil, fmt.Errorf("samples: sample %d of %d does not fit into the %d bytes that are left", i, count, len(b))
		}
		b = rest
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("samples: %d bytes after the last sample", len(b))
	}
	return s, nil
}

// decodeSample decodes the sample that b begins with, and returns what follows it.
func decodeSample(b []byte, s *Sample) (rest []byte, ok bool) {
	if len(b) < sampleSize {
		return nil, false
	}
	kernel, user := int(le.Uint16(b[22:])), int(le.Uint16(b[24:]))
	size := sampleSize + 8*(kernel+user)
	if len(b) < size {
		return nil, false
	}
	frames := bytesSlots(b[sampleSize:size])
	*s = Sample{
		Time: le.Uint64(b), Tid: le.Uint32(b[8:]), Tgid: le.Uint32(b[12:]), CPU: le.Uint16(b[16:]),
		Flags: SampleFlags(b[18]), Way: StackWay(b[19]), End: StackEnd(b[20]), Weight: le.Uint64(b[32:]),
		Kernel: frames[:kernel:kernel], User: frames[kernel:],
	}
	return b[size:], true
}

// WriteSamples appends a samples section.
func (w *Writer) WriteSamples(s *Samples) error {
	return w.WriteSection(KindSamples, AppendSamples(nil, s))
}

// Samples yields every undamaged samples section in the order of the file. Its frames are only valid until the next
// one. A second value that is not nil is an error of reading, and the last.
func (r *Reader) Samples() iter.Seq2[*Samples, error] {
	return func(yield func(*Samples, error) bool) {
		var buf []byte
		for s := range r.Sections(KindSamples) {
			b, err := r.Content(s, buf)
			if errors.Is(err, ErrChecksum) {
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			buf = b
			samples, err := DecodeSamples(b)
			if err != nil {
				_ = r.damaged(s, ErrContent, "%v", err)
				continue
			}
			if !yield(samples, nil) {
				return
			}
		}
	}
}
