package recorder

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"braid/bpf"
	"braid/internal/capture"
	"braid/internal/counter"
	"braid/internal/kevent"
	"braid/internal/tracefile"
)

// kernelSide reads kernel events into the trace file.
type kernelSide struct {
	rec    *bpf.Recorder
	done   chan struct{}
	events uint64
	seen   map[string]uint64 // the loss counters when last looked at
	marked uint64            // when that was, CLOCK_BOOTTIME ns
	err    error
}

// readPeriod is how often kernel events are fetched. The ring wakes its reader before it is full.
const readPeriod = 50 * time.Millisecond

func loadKernel(units []string, buffer int) (*kernelSide, error) {
	r, err := bpf.Load(bpf.Options{Units: units, RingBytes: buffer})
	if err != nil {
		return nil, err
	}
	return &kernelSide{rec: r, done: make(chan struct{})}, nil
}

// pump runs until the kernel side is stopped and everything has been written.
func (k *kernelSide) pump(out *capture.Output) {
	defer close(k.done)
	buf := make([]byte, 0, 1<<20)
	for {
		b, err := k.rec.Read(buf[:0], time.Now().Add(readPeriod))
		b = k.mark(b)
		if len(b) > 0 {
			for rest := b; len(rest) > 0; {
				_, _, next, err := kevent.Next(rest)
				if err != nil {
					k.err = fmt.Errorf("kernel events: %w", err)
					return
				}
				k.events++
				rest = next
			}
			if out.Do(func(w *tracefile.Writer) error { return w.WriteEvents(b) }) != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			k.err = fmt.Errorf("kernel events: %w", err)
			return
		}
	}
}

// mark appends an event for each loss counter that has grown, so that a loss shows on the timeline where it happened.
func (k *kernelSide) mark(b []byte) []byte {
	now, err := counter.Boottime()
	if err != nil {
		return b
	}
	if lost, err := k.rec.Lost(); err == nil && len(lost) > 0 {
		for _, name := range slices.Sorted(maps.Keys(lost)) {
			if n := lost[name] - k.seen[name]; n > 0 {
				e := kevent.Lost{SinceNs: k.marked, Count: n}
				copy(e.Name[:], name)
				b = kevent.AppendLost(b, kevent.Header{Time: now}, e)
			}
		}
		k.seen = lost
	}
	k.marked = now
	return b
}

// finish detaches the kernel side and waits until all that it recorded is written.
func (k *kernelSide) finish() (lost map[string]uint64, targets []int, err error) {
	err = k.rec.Stop()
	<-k.done
	err = errors.Join(err, k.err)
	lost, lerr := k.rec.Lost()
	targets, terr := k.rec.Targets()
	return lost, targets, errors.Join(err, lerr, terr, k.rec.Close())
}
