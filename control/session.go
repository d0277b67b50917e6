package control

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"braid/inline/runtime"

	"golang.org/x/sys/unix"
)

// Session is a recorder's own memory file, in which the processes that it launches make their arenas. Because the
// recorder holds the memory, the records of a process that lives for a millisecond, or is killed, are still there.
type Session struct {
	mem    *memory
	page   []byte
	hdr    *runtime.Session
	series [2]series
	rings  uint64 // bytes of each
}

// series is one sequence of areas in a session's memory: those of 64-bit programs, or those of 32-bit programs, which can
// map its beginning alone.
type series struct {
	next          *uint32 // how many programs have taken; they add to it
	max, seen     uint32
	first, stride int64 // where area 0 lies, and how far apart they are; bytes
}

// made returns how many areas programs have taken so far.
func (s *series) made() uint32 { return min(atomic.LoadUint32(s.next), s.max) }

// NewSession makes the memory. policy (runtime.Policy...) and ringBytes go for every process that joins. Rings take
// memory only where they have been written.
func NewSession(policy uint32, ringBytes uint64) (*Session, error) {
	fd, err := unix.MemfdCreate("braid", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("making shared memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memfd:braid")
	if err := unix.Ftruncate(fd, runtime.AreaFirst+runtime.AreaMax*runtime.AreaStride); err != nil {
		f.Close()
		return nil, fmt.Errorf("sizing shared memory (a file size limit? see ulimit -f): %w", err)
	}
	if err := seal(f); err != nil {
		f.Close()
		return nil, err
	}
	if err := claim(f, 0, 0); err != nil { // all of it
		f.Close()
		return nil, err
	}
	page, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("mapping shared memory: %w", err)
	}
	s := &Session{mem: (&memory{f: f}).open(), page: page, hdr: (*runtime.Session)(unsafe.Pointer(&page[0])), rings: ringBytes}
	s.hdr.Version, s.hdr.AreaMax, s.hdr.AreaStride = runtime.Version, runtime.AreaMax, runtime.AreaStride
	s.hdr.AreaFirst, s.hdr.NarrowMax, s.hdr.NarrowStride = runtime.AreaFirst, runtime.NarrowMax, runtime.NarrowStride
	s.hdr.Policy, s.hdr.RingBytes, s.hdr.Armed = policy, ringBytes, 1
	s.series = [2]series{{next: &s.hdr.AreaNext, max: runtime.AreaMax, first: runtime.AreaFirst, stride: runtime.AreaStride},
		{next: &s.hdr.NarrowNext, max: runtime.NarrowMax, first: runtime.NarrowStride, stride: runtime.NarrowStride}}
	atomic.StoreUint64(&s.hdr.Magic, runtime.SessionMagic)
	return s, nil
}

// Env returns the environment variable, NAME=value, that makes a launched process join.
func (s *Session) Env() string {
	return fmt.Sprintf("%s=/proc/%d/fd/%d", runtime.SessionEnv, os.Getpid(), s.mem.f.Fd())
}

// Areas returns the arenas that were made since the last call. One that a process is still setting up comes next time.
func (s *Session) Areas() ([]*Area, error) {
	var out []*Area
	for k := range s.series {
		for r := &s.series[k]; r.seen < r.made(); r.seen++ {
			a, err := mapArea(s.mem, r.first+int64(r.seen)*r.stride)
			if errors.Is(err, ErrArena) {
				break // not finished, or its process died in between: the recorder gives up on it at the end
			}
			if err != nil {
				return out, err
			}
			a.asked = s.rings
			out = append(out, a)
		}
	}
	return out, nil
}

// SkipUnfinished steps over an arena whose process died while setting it up, and reports whether there was one.
func (s *Session) SkipUnfinished() bool {
	for k := range s.series {
		if r := &s.series[k]; r.seen < r.made() {
			r.seen++
			return true
		}
	}
	return false
}

// Disarm makes processes that join from now on record nothing.
func (s *Session) Disarm() {
	atomic.StoreUint32(&s.hdr.Armed, 0)
	atomic.StoreUint32(&s.hdr.Policy, runtime.PolicyNone)
}

// Close gives the session's own hold on the memory back; areas stay mapped until they are closed.
func (s *Session) Close() {
	if s.page != nil {
		unix.Munmap(s.page)
		s.page = nil
		s.mem.close()
	}
}
