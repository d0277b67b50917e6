package bpf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"braid/internal/kevent"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The head of a record in the BPF ring buffer, include/uapi/linux/bpf.h and kernel/bpf/ringbuf.c (Linux 6.12): the
// length with two flag bits, then a word for the kernel.
const (
	recordHead     = 8
	recordBusy     = 1 << 31 // BPF_RINGBUF_BUSY_BIT: reserved, not yet submitted
	recordDiscard  = 1 << 30 // BPF_RINGBUF_DISCARD_BIT
	maxRecordBytes = 4096    // far above kevent.MaxSize; more means that positions are wrong
)

// ring reads the BPF ring buffer. cilium's reader takes one event a call and wakes at every event that is there; this
// one moves all there are with one store of the consumer's position, and sleeps until the kernel says that the ring is
// half full.
//
// Shared memory: one page with the consumer's position, which only this side writes; one page with the producers'
// position, which only the kernel writes; the data, mapped twice in a row, so that no record is broken at the end.
//
//  1. Bytes below the producers' position are read only after that position was loaded; otherwise they may be older.
//  2. A record is read only after its head was loaded without recordBusy; otherwise it may be half written. The first
//     busy one ends the reading: order is that of reservation.
//  3. The consumer's position is stored after the last byte was copied; otherwise the kernel may write over it.
type ring struct {
	epoll, event int // event is an eventfd: stop wakes the reader with it
	wakeBytes    uint64
	urgent       bool // the kernel also wakes the reader for single events
	stopped      atomic.Bool

	mu       sync.Mutex // held while reading and closing
	consumer []byte
	producer []byte
	data     []byte // within producer's mapping
	mask     uint64
	closed   bool
}

var errBadRing = errors.New("kernel ring buffer is inconsistent")

func newRing(m *ebpf.Map, wakeBytes int, urgent bool) (_ *ring, err error) {
	r := &ring{epoll: -1, event: -1, wakeBytes: uint64(wakeBytes), urgent: urgent}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	page, size := os.Getpagesize(), int(m.MaxEntries())
	r.mask = uint64(size - 1)
	if r.consumer, err = unix.Mmap(m.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map the ring buffer's position: %w", err)
	}
	if r.producer, err = unix.Mmap(m.FD(), int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map the ring buffer's %d bytes: %w", size, err)
	}
	r.data = r.producer[page:]
	if r.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("create an epoll for the ring buffer: %w", err)
	}
	if r.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("create an eventfd for the ring buffer: %w", err)
	}
	// Edge-triggered: a ring that merely has data must not wake anybody.
	for fd, events := range map[int]uint32{m.FD(): unix.EPOLLIN | unix.EPOLLET, r.event: unix.EPOLLIN} {
		if err = unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
			return nil, fmt.Errorf("watch the ring buffer: %w", err)
		}
	}
	return r, nil
}

// Read appends whole events to buf, as the kernel wrote them and in the ring's order, as many as there are and fit into
// buf's capacity, and returns the longer slice. It first waits until the deadline, or until the ring is half full, or
// Stop is called; a deadline in the past does not wait. Polling every 50 to 100 ms costs the traced program least.
// Returning no event is no error. With Options.Watch, an announcement or a limit that fires ends the wait too.
//
// After Stop, Read returns what is left and then io.EOF; after Close, os.ErrClosed. If the next event does not fit into
// buf at all (kevent.MaxSize always fits), it fails with io.ErrShortBuffer. Concurrent calls take turns.
func (r *Recorder) Read(buf []byte, deadline time.Time) ([]byte, error) {
	r.online.look(time.Now())
	return r.transport.read(buf, deadline)
}

func (r *ring) read(buf []byte, deadline time.Time) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return buf, fmt.Errorf("read kernel events: %w", os.ErrClosed)
	}
	if cap(buf)-len(buf) < kevent.HeaderSize {
		return buf, fmt.Errorf("read kernel events: %w: %d bytes of room", io.ErrShortBuffer, cap(buf)-len(buf))
	}
	if err := r.wait(deadline); err != nil {
		return buf, err
	}
	last := r.stopped.Load()
	grown, err := r.drain(buf)
	if err != nil {
		return grown, err
	}
	if last && len(grown) == len(buf) {
		return grown, io.EOF
	}
	return grown, nil
}

func (r *ring) positions() (consumer, producer *uint64) {
	return (*uint64)(unsafe.Pointer(&r.consumer[0])), (*uint64)(unsafe.Pointer(&r.producer[0]))
}

func (r *ring) available() uint64 {
	consumer, producer := r.positions()
	return atomic.LoadUint64(producer) - atomic.LoadUint64(consumer)
}

// wait returns at the deadline, when the ring is half full, when an urgent event woke it, or when reading is stopped.
func (r *ring) wait(deadline time.Time) error {
	for !r.stopped.Load() && r.available() < r.wakeBytes {
		left := time.Until(deadline)
		if left <= 0 {
			return nil
		}
		ms := min(int64((left+time.Millisecond-1)/time.Millisecond), 1<<30)
		var events [2]unix.EpollEvent
		n, err := unix.EpollWait(r.epoll, events[:], int(ms))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for kernel events: %w", err)
		}
		if n > 0 && r.urgent {
			return nil
		}
	}
	return nil
}

// drain copies what is submitted.
func (r *ring) drain(buf []byte) ([]byte, error) {
	consumer, producer := r.positions()
	start, end := atomic.LoadUint64(consumer), atomic.LoadUint64(producer)
	pos := start
	// Deferred to the end of the copying: see invariant 3.
	defer func() {
		if pos != start {
			atomic.StoreUint64(consumer, pos)
		}
	}()
	if end-pos > r.mask+1 {
		return buf, fmt.Errorf("%w: %d bytes in a ring of %d", errBadRing, end-pos, r.mask+1)
	}
	for pos < end {
		at := pos & r.mask
		head := atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[at])))
		if head&recordBusy != 0 {
			break
		}
		n := uint64(head &^ (recordBusy | recordDiscard))
		if n == 0 || n > maxRecordBytes || n%8 != 0 || recordHead+n > end-pos {
			return buf, fmt.Errorf("%w: a record of %d bytes at %d", errBadRing, n, pos)
		}
		if head&recordDiscard == 0 {
			if uint64(cap(buf)-len(buf)) < n {
				if pos == start {
					return buf, fmt.Errorf("read kernel events: %w: the next event has %d bytes", io.ErrShortBuffer, n)
				}
				break
			}
			buf = append(buf, r.data[at+recordHead:at+recordHead+n]...)
		}
		pos += recordHead + n
	}
	return buf, nil
}

func (r *ring) isStopped() bool { return r.stopped.Load() }

// stop makes wait return from now on.
func (r *ring) stop() {
	if r.stopped.Swap(true) || r.event < 0 {
		return
	}
	// Cannot fail: the counter is far from its limit.
	_, _ = unix.Write(r.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// close waits for a reader that stop has woken, and frees everything.
func (r *ring) close() error {
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	var errs []error
	for _, mapping := range [][]byte{r.consumer, r.producer} {
		if mapping != nil {
			errs = append(errs, unix.Munmap(mapping))
		}
	}
	for _, fd := range []int{r.epoll, r.event} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}
