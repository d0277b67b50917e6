package watch

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"braid/bpf"
	"braid/internal/counter"
	"braid/internal/kevent"
)

// readPeriod is how often kernel events are fetched. The kernel wakes the reader at once when a limit was passed.
const readPeriod = 250 * time.Millisecond

// kernelSide reads kernel events, keeps those of the last seconds, and passes on what the daemon has to act on.
type kernelSide struct {
	rec    *bpf.Recorder
	past   *past
	notice chan notice
	done   chan struct{}
	missed atomic.Uint64 // notices that the daemon was too slow to take

	mu   sync.Mutex
	lost map[string]uint64
	err  error
}

// notice is an event that is not for a trace alone.
type notice struct {
	h        kevent.Header
	announce *kevent.Announce
	fired    *kevent.Fired
}

func loadKernel(o bpf.Options, keep time.Duration, limit int) (*kernelSide, error) {
	r, err := bpf.Load(o)
	if err != nil {
		return nil, err
	}
	k := &kernelSide{rec: r, past: &past{keep: uint64(keep), limit: limit}, notice: make(chan notice, 4096), done: make(chan struct{}), lost: map[string]uint64{}}
	go k.pump()
	return k, nil
}

// pump runs until the kernel side is stopped.
func (k *kernelSide) pump() {
	defer close(k.done)
	buf, kept := make([]byte, 0, 64<<10), make([]byte, 0, 64<<10)
	var marked uint64
	for {
		b, err := k.rec.Read(buf[:0], time.Now().Add(readPeriod))
		buf = b
		kept = kept[:0]
		n := 0
		now, _ := counter.Boottime()
		for rest := b; len(rest) > 0; {
			h, body, next, err := kevent.Next(rest)
			if err != nil {
				k.fail(err)
				return
			}
			switch h.Kind {
			case kevent.KindAnnounce:
				a := kevent.DecodeAnnounce(body)
				k.pass(notice{h: h, announce: &a})
			case kevent.KindFired:
				f := kevent.DecodeFired(body)
				k.pass(notice{h: h, fired: &f})
			default:
				kept = append(kept, rest[:len(rest)-len(next)]...)
				n++
			}
			rest = next
		}
		if now-marked >= uint64(time.Second) {
			kept = k.mark(kept, marked, now)
			marked = now
		}
		k.past.add(now, kept, n)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			k.fail(err)
			return
		}
	}
}

func (k *kernelSide) pass(n notice) {
	select {
	case k.notice <- n:
	default:
		k.missed.Add(1)
	}
}

func (k *kernelSide) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = fmt.Errorf("kernel events: %w", err)
}

// failed says why there are no more kernel events.
func (k *kernelSide) failed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// mark appends an event for each loss counter that has grown, so that a loss shows on the timeline where it happened.
func (k *kernelSide) mark(b []byte, since, now uint64) []byte {
	lost, err := k.rec.Lost()
	if err != nil {
		return b
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		if n := lost[name] - k.lost[name]; n > 0 {
			e := kevent.Lost{SinceNs: since, Count: n}
			copy(e.Name[:], name)
			b = kevent.AppendLost(b, kevent.Header{Time: now}, e)
		}
	}
	k.lost = lost
	return b
}

// losses returns the counters, as they were within the last second.
func (k *kernelSide) losses() map[string]uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := maps.Clone(k.lost)
	if n := k.missed.Load(); n > 0 {
		out["kernel_notices"] = n
	}
	return out
}

func (k *kernelSide) close() error {
	err := k.rec.Stop()
	<-k.done
	return errors.Join(err, k.rec.Close())
}
