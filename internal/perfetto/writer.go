// Package perfetto writes traces in Perfetto's protobuf format, for ui.perfetto.dev and its trace processor.
//
// A Writer encodes by hand into one buffer: no generated code, no allocation for each packet, nothing kept of what was
// written but names. All times are CLOCK_BOOTTIME nanoseconds, which the trace declares as its clock.
//
// Each track is a packet sequence of its own, with its own incremental clock: an event then says neither its track
// nor its absolute time, and a slice takes about 30 bytes. Within one track times should not go back; an event that
// does is written with its absolute time and is just as right.
package perfetto

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Options describe the recording. Every field may be zero.
type Options struct {
	Start         uint64 // CLOCK_BOOTTIME ns of the recording's start
	StartWall     int64  // CLOCK_REALTIME ns since 1970 at Start; 0: unknown
	KernelRelease string // uname -r; 6.1 if empty, as scheduler states are read differently for kernels before 4.14
	KernelVersion string // uname -v
	Machine       string // uname -m
	CPUs          int
	UUID          [16]byte // identifies the trace; zero: none
}

// Writer writes one trace. It may be used from one goroutine at a time. Errors of the destination stay: they end all
// writing and come back from Close.
type Writer struct {
	out    io.Writer
	buf    buffer
	err    error
	start  uint64
	tracks uint64 // number of tracks; the next one's uuid is one more
	seqs   uint32 // number of packet sequences
	names  intern
	keys   intern
	cpus   []*cpu
	caller bool // internCaller was called
}

const (
	bufferSize = 256 << 10
	flushSize  = bufferSize - 4<<10 // most packets fit into what is left then

	// sequenceGlobal is the sequence of packets that belong to no track.
	sequenceGlobal = 1
)

// NewWriter begins a trace. Out gets few large writes; the caller closes it after Close.
func NewWriter(out io.Writer, o Options) *Writer {
	w := &Writer{out: out, buf: make(buffer, 0, bufferSize), start: o.Start, seqs: sequenceGlobal, names: newIntern(), keys: newIntern()}
	w.clocks(o)
	if o.UUID != [16]byte{} {
		p := w.globalPacket()
		u := w.buf.open(tagTraceUUID)
		w.buf.uint(tagUUIDHigh, binary.BigEndian.Uint64(o.UUID[:8]))
		w.buf.uint(tagUUIDLow, binary.BigEndian.Uint64(o.UUID[8:]))
		w.buf.close(u)
		w.buf.close(p)
	}
	w.systemInfo(o)
	return w
}

// clocks declares CLOCK_BOOTTIME as the clock of the trace.
func (w *Writer) clocks(o Options) {
	p := w.globalPacket()
	w.buf.uint(tagSequenceFlags, sequenceCleared)
	w.buf.uint(tagFirstPacket, 1)
	s := w.buf.open(tagClockSnapshot)
	w.clock(clockBoottime, o.Start)
	if o.StartWall != 0 {
		w.clock(clockRealtime, uint64(o.StartWall))
	}
	w.buf.uint(tagPrimaryClock, clockBoottime)
	w.buf.close(s)
	w.buf.close(p)
}

func (w *Writer) clock(id, time uint64) {
	c := w.buf.open(tagClock)
	w.buf.uint(tagClockClockID, id)
	w.buf.uint(tagClockTimestamp, time)
	if id == clockDelta {
		w.buf.uint(tagClockIncremental, 1)
	}
	w.buf.close(c)
}

func (w *Writer) systemInfo(o Options) {
	if o.KernelRelease == "" {
		o.KernelRelease = "6.1.0"
	}
	p := w.globalPacket()
	s := w.buf.open(tagSystemInfo)
	u := w.buf.open(tagUtsname)
	w.buf.string(tagSysname, "Linux")
	w.buf.string(tagRelease, o.KernelRelease)
	if o.KernelVersion != "" {
		w.buf.string(tagVersion, o.KernelVersion)
	}
	if o.Machine != "" {
		w.buf.string(tagMachine, o.Machine)
	}
	w.buf.close(u)
	if o.CPUs > 0 {
		w.buf.uint(tagNumCPUs, uint64(o.CPUs))
	}
	w.buf.close(s)
	w.buf.close(p)
}

// packet begins a packet; buf.close ends it.
func (w *Writer) packet() int {
	w.room()
	return w.buf.open(tagPacket)
}

func (w *Writer) globalPacket() int {
	p := w.packet()
	w.buf.uint(tagSequenceID, sequenceGlobal)
	return p
}

// room hands the buffer on when it is nearly full.
func (w *Writer) room() {
	if len(w.buf) >= flushSize {
		w.flush()
	}
}

func (w *Writer) flush() {
	if w.err == nil && len(w.buf) > 0 {
		if _, err := w.out.Write(w.buf); err != nil {
			w.err = fmt.Errorf("write Perfetto trace: %w", err)
		}
	}
	w.buf = w.buf[:0]
}

// Err returns the first error of the destination, so that a long export can stop early.
func (w *Writer) Err() error { return w.err }

// Close writes what is left and returns the first error. Slices that are open stay open: they have no end in the
// trace. The destination is not closed.
func (w *Writer) Close() error {
	for _, c := range w.cpus {
		if c != nil {
			w.flushCPU(c)
		}
	}
	w.flush()
	return w.err
}
