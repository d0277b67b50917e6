package bpf

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"braid/internal/kevent"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/perf"
)

// transport brings events from the programs to the reader. Its methods are safe for concurrent use.
type transport interface {
	// read is Recorder.Read.
	read(buf []byte, deadline time.Time) ([]byte, error)
	// stop ends a wait; what is there can still be read.
	stop()
	isStopped() bool
	// close waits for a reader, and frees everything.
	close() error
}

// perfRing reads a perf event array, which kernels without the BPF ring buffer have: a buffer for each CPU. Each read
// takes all that is in them and merges it by time. What finds no room is counted by the programs, by kind.
type perfRing struct {
	reader  *perf.Reader
	stopped atomic.Bool

	mu      sync.Mutex // held while reading and closing
	pending []perfEvent
	closed  bool
	ended   bool // the last of the events is in pending
}

type perfEvent struct {
	time uint64
	data []byte
}

// minPerfBytes is what each CPU's buffer has at least.
const minPerfBytes = 64 << 10

// newPerfRing divides the bytes among the CPUs. If urgent, each event wakes the reader, otherwise a half-full buffer.
func newPerfRing(m *ebpf.Map, bytes int, urgent bool) (*perfRing, error) {
	each := max(bytes/int(m.MaxEntries()), minPerfBytes)
	opts := perf.ReaderOptions{Watermark: each / 2}
	if urgent {
		opts = perf.ReaderOptions{WakeupEvents: 1}
	}
	reader, err := perf.NewReaderWithOptions(m, each, opts)
	if err != nil {
		return nil, fmt.Errorf("open perf buffers of %d bytes for each CPU: %w", each, err)
	}
	return &perfRing{reader: reader}, nil
}

func (r *perfRing) read(buf []byte, deadline time.Time) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return buf, fmt.Errorf("read kernel events: %w", os.ErrClosed)
	}
	if cap(buf)-len(buf) < kevent.HeaderSize {
		return buf, fmt.Errorf("read kernel events: %w: %d bytes of room", io.ErrShortBuffer, cap(buf)-len(buf))
	}
	if len(r.pending) == 0 {
		if r.ended {
			return buf, io.EOF
		}
		if err := r.fetch(deadline); err != nil {
			return buf, err
		}
	}
	n := 0
	for _, e := range r.pending {
		if cap(buf)-len(buf) < len(e.data) {
			if n == 0 {
				return buf, fmt.Errorf("read kernel events: %w: the next event has %d bytes", io.ErrShortBuffer, len(e.data))
			}
			break
		}
		buf = append(buf, e.data...)
		n++
	}
	r.pending = slices.Delete(r.pending, 0, n)
	if n == 0 && r.ended {
		return buf, io.EOF
	}
	return buf, nil
}

// fetch waits and takes all events there are.
func (r *perfRing) fetch(deadline time.Time) error {
	// After a stop the programs are detached: what is there now is all.
	r.ended = r.stopped.Load()
	if r.ended {
		deadline = time.Unix(1, 0)
	}
	r.reader.SetDeadline(deadline)
	var record perf.Record
	for {
		err := r.reader.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, perf.ErrFlushed) {
			break
		}
		if err != nil {
			return fmt.Errorf("read kernel events: %w", err)
		}
		// The kernel pads so that sample and its length are a multiple of 8; events are multiples of 8 by themselves.
		data := record.RawSample[:len(record.RawSample)&^7]
		if record.LostSamples == 0 && len(data) >= kevent.HeaderSize { // the programs count what is lost
			r.pending = append(r.pending, perfEvent{binary.LittleEndian.Uint64(data), slices.Clone(data)})
		}
		if record.LostSamples == 0 && record.Remaining == 0 && !r.ended {
			// The last of one buffer: take what the others have, and do not wait for more.
			r.reader.SetDeadline(time.Unix(1, 0))
		}
	}
	slices.SortStableFunc(r.pending, func(a, b perfEvent) int { return cmp.Compare(a.time, b.time) })
	return nil
}

func (r *perfRing) isStopped() bool { return r.stopped.Load() }

func (r *perfRing) stop() {
	if !r.stopped.Swap(true) {
		_ = r.reader.Flush() // fails only when it is closed
	}
}

func (r *perfRing) close() error {
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.reader.Close()
}
