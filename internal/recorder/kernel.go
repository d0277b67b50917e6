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

	notices chan notice // what is announced of processes; see choose.go
	missed  uint64      // announcements that nobody took in time

	partners partners
}

// readPeriod is how often kernel events are fetched. The ring wakes its reader before it is full.
const readPeriod = 50 * time.Millisecond

func loadKernel(o *Options) (*kernelSide, error) {
	r, err := bpf.Load(bpf.Options{Units: o.Units, RingBytes: o.KernelBuffer, BTFPath: o.BTF, Watch: o.watchOptions()})
	if err != nil {
		return nil, err
	}
	return &kernelSide{rec: r, done: make(chan struct{}), notices: make(chan notice, 4096), partners: partners{}}, nil
}

// pump runs until the kernel side is stopped and everything has been written.
func (k *kernelSide) pump(out *capture.Output) {
	defer close(k.done)
	buf := make([]byte, 0, 1<<20)
	for {
		b, err := k.rec.Read(buf[:0], time.Now().Add(readPeriod))
		b, bad := k.sift(k.mark(b))
		if bad != nil {
			k.err = fmt.Errorf("kernel events: %w", bad)
			return
		}
		if len(b) > 0 && out.Do(func(w *tracefile.Writer) error { return w.WriteEvents(b) }) != nil {
			return
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

// sift hands announcements on and returns the other events, which are for the file, in the same memory.
func (k *kernelSide) sift(b []byte) (kept []byte, err error) {
	kept = b[:0]
	for rest := b; len(rest) > 0; {
		h, body, next, err := kevent.Next(rest)
		if err != nil {
			return nil, err
		}
		event := rest[:len(rest)-len(next)]
		if h.Kind == kevent.KindBinderTransaction {
			k.partners.meet(kevent.DecodeBinderTransaction(body))
		}
		if rest = next; h.Kind != kevent.KindAnnounce {
			kept = append(kept, event...)
			k.events++
			continue
		}
		a := kevent.DecodeAnnounce(body)
		select {
		case k.notices <- notice{tgid: int(a.Tgid), parent: int(a.ParentTgid), what: a.What}:
		default:
			k.missed++
		}
	}
	return kept, nil
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
	if k.missed > 0 {
		lost["kernel_notices"] = k.missed
	}
	targets, terr := k.rec.Targets()
	return lost, targets, errors.Join(err, lerr, terr, k.rec.Close())
}
