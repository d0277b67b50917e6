package control

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"braid/inline/runtime"

	"golang.org/x/sys/unix"
)

// ErrArena is wrapped by every error about memory that is not laid out as it must be.
var ErrArena = errors.New("not a braid arena")

// memory is a memory file that holds areas. It is shared by the areas and closed with the last of them.
type memory struct {
	f    *os.File
	refs atomic.Int32
}

func (m *memory) open() *memory {
	m.refs.Add(1)
	return m
}

func (m *memory) close() {
	if m.refs.Add(-1) == 0 {
		m.f.Close()
	}
}

// seal keeps the program from shrinking the file under our mapping, which would kill us with SIGBUS (C7).
func seal(f *os.File) error {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err == nil {
		return nil
	}
	if s, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0); err == nil && s&unix.F_SEAL_SHRINK != 0 {
		return nil
	}
	return fmt.Errorf("%w: %s can't be sealed against shrinking", ErrArena, f.Name())
}

// ErrBusy says that another recorder is at work on a process. Two would stop each other's threads.
var ErrBusy = errors.New("another braid is recording it: wait until that one has ended")

// claim keeps other recorders from part of a memory file until f is closed, or its recorder has died. The lock belongs to
// the open file (F_OFD_SETLK, fcntl(2)); programs know nothing of it.
func claim(f *os.File, off, length int64) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET, Start: off, Len: length})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrBusy
	}
	if err != nil {
		return fmt.Errorf("claiming an arena: %w", err)
	}
	return nil
}

// Area is one process's arena, mapped. Its methods may be called from one goroutine at a time; the program runs on
// meanwhile. Close it when done; the program goes on as it is.
type Area struct {
	mem     *memory
	off     int64 // in the memory file
	meta    []byte
	hdr     *runtime.Header
	pid     int
	base    uint64
	bytes   uint64
	threads map[uint32]*Thread // by block
	over    uint64             // counter, if the process has left it by executing another program; else 0
	asked   uint64             // the largest ring that this recorder has asked for, bytes
}

// mapArea maps the area at off in a memory file. The program says how long it is: it must end before the next one begins,
// and within the file, or else a recorder could be made to touch what is not the program's (C7).
func mapArea(m *memory, off int64) (*Area, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(m.f.Fd()), &st); err != nil {
		return nil, fmt.Errorf("mapping an arena: %w", err)
	}
	limit := min(st.Size-off, stride(off))
	if limit < runtime.RingsOff {
		return nil, fmt.Errorf("%w: %d bytes of memory", ErrArena, limit)
	}
	meta, err := unix.Mmap(int(m.f.Fd()), off, runtime.RingsOff, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping an arena: %w", err)
	}
	a := &Area{mem: m.open(), off: off, meta: meta, hdr: (*runtime.Header)(unsafe.Pointer(&meta[0])), threads: map[uint32]*Thread{}}
	if got := atomic.LoadUint64(&a.hdr.Magic); got != runtime.ArenaMagic {
		a.Close()
		return nil, fmt.Errorf("%w: magic %#x", ErrArena, got)
	}
	if v := a.hdr.Version; v != runtime.Version {
		a.Close()
		return nil, fmt.Errorf("%w: the program was linked with version %d of the runtime, this braid knows %d: link it again with this braid cc",
			ErrArena, v, runtime.Version)
	}
	a.pid, a.base, a.bytes = int(a.hdr.Pid), a.hdr.Base, a.hdr.Bytes
	if a.bytes < runtime.RingsOff || a.bytes > uint64(limit) || a.base%4096 != 0 || a.base+a.bytes < a.base {
		a.Close()
		return nil, fmt.Errorf("%w: %d bytes at %#x", ErrArena, a.bytes, a.base)
	}
	return a, nil
}

// stride returns how far behind the area at off the next one may begin.
func stride(off int64) int64 {
	if off > 0 && off < runtime.AreaFirst {
		return runtime.NarrowStride
	}
	return runtime.AreaStride
}

// Close unmaps the area.
func (a *Area) Close() {
	if a.meta != nil {
		unix.Munmap(a.meta)
		a.meta, a.hdr = nil, nil
		a.mem.close()
	}
}

// Discard closes the area of a process that is gone and gives its memory back.
func (a *Area) Discard() {
	unix.Fallocate(int(a.mem.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, a.off, int64(a.bytes))
	a.Close()
}

// Pid returns the process's id as the process sees it.
func (a *Area) Pid() int { return a.pid }

// Parent returns the id of the process that this one was forked from while it was traced, or 0.
func (a *Area) Parent() int { return int(a.hdr.Parent) }

// Left reports whether the process no longer maps the area, having executed another program or ended. It reads
// /proc/PID/maps; where that can't be read, the process is gone.
func (a *Area) Left() bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", a.pid))
	if err != nil {
		return true
	}
	inode := strconv.FormatUint(inodeOf(a.mem.f), 10) // the next program's own area may be at the same place of another file
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.HasPrefix(f[5], runtime.MemoryName) || f[4] != inode {
			continue
		}
		if off, err := strconv.ParseInt(f[2], 16, 64); err == nil && off == a.off {
			return false
		}
	}
	return true
}

// End says that the process has left the area, at the latest at this counter. Its threads then count as stopped there.
func (a *Area) End(counter uint64) { a.over = counter }

// Started returns the counter when the process made its arena.
func (a *Area) Started() uint64 { return a.hdr.Started }

func (a *Area) block(i uint32) *runtime.Block {
	return (*runtime.Block)(unsafe.Pointer(&a.meta[runtime.BlocksOff+uintptr(i)*unsafe.Sizeof(runtime.Block{})]))
}

// Arm makes every thread register at its next trace point; those that policy names take a ring of ringBytes and start.
func (a *Area) Arm(policy uint32, ringBytes uint64) {
	a.asked = max(a.asked, ringBytes)
	atomic.StoreUint64(&a.hdr.RingBytes, ringBytes)
	atomic.StoreUint32(&a.hdr.Policy, policy)
	atomic.StoreUint32(&a.hdr.Armed, 1)
	atomic.StoreUint64(&a.hdr.Dummy.Cursor, runtime.CursorAttend)
}

// Disarm makes unregistered threads stay so. Threads that are on are not stopped.
func (a *Area) Disarm() {
	atomic.StoreUint64(&a.hdr.Dummy.Cursor, runtime.CursorOff)
	atomic.StoreUint32(&a.hdr.Armed, 0)
	atomic.StoreUint32(&a.hdr.Policy, runtime.PolicyNone)
}

// Lost returns what the program could not record, by name.
func (a *Area) Lost() map[string]uint64 {
	return map[string]uint64{
		"threads_without_block": atomic.LoadUint64(&a.hdr.LostThreads),
		"threads_without_ring":  atomic.LoadUint64(&a.hdr.LostRings),
		"modules_without_entry": atomic.LoadUint64(&a.hdr.LostModules),
	}
}

// Module is an instrumented executable or library, as the process described it.
type Module struct {
	Path             string
	BuildID          []byte
	Bias             uint64 // run-time address minus ELF virtual address
	Low, High        uint64 // run-time addresses
	Loaded, Unloaded uint64 // counter; Unloaded is 0 while loaded
}

// Modules lists the instrumented modules, also those that were unloaded since.
func (a *Area) Modules() []Module {
	n := min(atomic.LoadUint32(&a.hdr.ModuleUsed), runtime.ModuleMax)
	var out []Module
	for i := range n {
		p := (*runtime.Module)(unsafe.Pointer(&a.meta[runtime.ModulesOff+uintptr(i)*unsafe.Sizeof(runtime.Module{})]))
		if atomic.LoadUint32(&p.State) != 1 {
			continue
		}
		m := *p
		out = append(out, Module{Path: cString(m.Path[:]), BuildID: append([]byte(nil), m.BuildID[:min(m.BuildIDLen, 32)]...),
			Bias: m.Bias, Low: m.Low, High: m.High, Loaded: m.Loaded, Unloaded: m.Unloaded})
	}
	return out
}

func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
