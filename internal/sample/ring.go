package sample

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is the memory that the kernel writes the records of one CPU into. One goroutine reads it.
//
// The kernel moves data_head after it has written a record, and does not overwrite from data_tail on; both count bytes
// from the beginning of time, and data's size is a power of two.
type ring struct {
	cpu  int
	fd   int // of the event that owns it
	mem  []byte
	data []byte
}

// newRing maps the ring of an event with as many data bytes as it may have, at most size.
func newRing(fd, cpu, size int) (*ring, error) {
	page := unix.Getpagesize()
	for {
		mem, err := unix.Mmap(fd, 0, page+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err == nil {
			return &ring{cpu, fd, mem, mem[page:]}, nil
		}
		if size /= 2; size < 4*page { // locked memory is limited
			return nil, fmt.Errorf("map the buffer of CPU %d's samples: %w (see /proc/sys/kernel/perf_event_mlock_kb; braid doctor: memlock)", cpu, err)
		}
	}
}

func (r *ring) close() error { return unix.Munmap(r.mem) }

// read appends all whole records to b.
func (r *ring) read(b []byte) []byte {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.mem[0]))
	head, tail := atomic.LoadUint64(&page.Data_head), page.Data_tail
	mask := uint64(len(r.data) - 1)
	if n := head - tail; n > 0 && n <= uint64(len(r.data)) {
		at := tail & mask
		first := min(n, uint64(len(r.data))-at)
		b = append(b, r.data[at:at+first]...)
		b = append(b, r.data[:n-first]...)
	}
	atomic.StoreUint64(&page.Data_tail, head)
	return b
}
