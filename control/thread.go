package control

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"braid/inline"
	"braid/inline/runtime"
	"braid/internal/counter"

	"golang.org/x/sys/unix"
)

// Thread is one thread that registered itself. Use it from the goroutine that uses its Area.
type Thread struct {
	area    *Area
	index   uint32
	block   *runtime.Block
	uses    uint32
	anchors []inline.Anchor
	settled place // what was seen of the thread before the last barrier
	Tid     int   // the thread's id as the program sees it
	// StaleAnchors counts anchors that were dropped because there were too many.
	StaleAnchors uint64
}

// maxAnchors bounds the notes kept for a thread; the oldest go first. At ten a second they cover 27 minutes of a thread
// that never rests, whose ring has long been overwritten by then; a resting thread needs none.
const maxAnchors = 16384

func inodeOf(f *os.File) uint64 {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return 0
	}
	return st.Ino
}

// Threads returns the threads that are registered now, on or off. The same thread is the same *Thread each time.
func (a *Area) Threads() []*Thread {
	n := min(atomic.LoadUint32(&a.hdr.BlockUsed), runtime.BlockMax)
	var out []*Thread
	for i := range n {
		b := a.block(i)
		if s := atomic.LoadUint32(&b.State); s != runtime.StateReady && s != runtime.StateExiting {
			delete(a.threads, i)
			continue
		}
		t := a.threads[i]
		if uses := atomic.LoadUint32(&b.Uses); t == nil || t.uses != uses {
			t = &Thread{area: a, index: i, block: b, uses: uses, Tid: int(b.Tid)}
			a.threads[i] = t
		}
		out = append(out, t)
	}
	return out
}

// ring is a thread's ring after the checks of C7.
type ring struct {
	addr, bytes uint64
	off         int64 // in the memory file
}

func (t *Thread) ring() (ring, bool) {
	addr := atomic.LoadUint64(&t.block.RingAddr)
	if addr == 0 {
		return ring{}, false
	}
	r := ring{addr: addr, bytes: t.block.RingBytes}
	off := t.block.RingOff
	if r.bytes < 4096 || r.bytes > runtime.AreaStride/2 || r.bytes&(r.bytes-1) != 0 || off < runtime.RingsOff ||
		off > t.area.bytes || t.area.bytes-off < r.bytes || addr != t.area.base+off {
		return ring{}, false
	}
	r.off = t.area.off + int64(off)
	return r, true
}

// slot returns the index of the slot that a cursor points at.
func (r ring) slot(cursor uint64) (uint64, bool) {
	d := cursor&^runtime.CursorTag - r.addr
	return d / 8, d < r.bytes
}

// On reports whether the thread is recording, or was when it ended.
func (t *Thread) On() bool {
	return atomic.LoadUint64(&t.block.Cursor)&runtime.CursorTag == runtime.CursorOn
}

// Recorded reports whether the thread has, or had, a ring.
func (t *Thread) Recorded() bool {
	return atomic.LoadUint64(&t.block.RingAddr) != 0 && t.block.Start != 0
}

// Start makes a registered thread that is off take a ring at its next trace point and record from there on.
func (t *Thread) Start() {
	if atomic.LoadUint64(&t.block.Cursor)&runtime.CursorTag != runtime.CursorOff {
		return // C1
	}
	if r, ok := t.ring(); ok {
		t.clear(r)
	}
	t.anchors = nil
	atomic.StoreUint64(&t.block.Start, 0) // until the thread itself has started
	atomic.StoreUint32(&t.block.Want, 1)
	atomic.StoreUint64(&t.block.Cursor, runtime.CursorAttend)
}

// Name returns the thread's name: what /proc says, or for a thread that is gone what it was when it ended. A thread that
// was killed is known by the name that it registered with.
func (t *Thread) Name() string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(t.area.pid) + "/task/" + strconv.Itoa(t.Tid) + "/comm")
	if err != nil {
		return cString(t.block.Comm[:])
	}
	return strings.TrimSuffix(string(b), "\n")
}

// Exiting reports whether the thread's exit hook has run, and left its block to the recorder.
func (t *Thread) Exiting() bool { return atomic.LoadUint32(&t.block.State) == runtime.StateExiting }

// Gone reports whether the thread has ended.
func (t *Thread) Gone() bool {
	_, err := os.Lstat("/proc/" + strconv.Itoa(t.area.pid) + "/task/" + strconv.Itoa(t.Tid))
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// RequestStop asks the thread to stop at its next trace point. It does not wait.
func (t *Thread) RequestStop() {
	if t.On() {
		atomic.AndUint64(&t.block.Mask, ^runtime.MaskStop)
	}
	atomic.StoreUint32(&t.block.Want, 0)
	atomic.CompareAndSwapUint64(&t.block.Cursor, runtime.CursorAttend, runtime.CursorOff)
}

// Stopped reports whether the thread has answered a request to stop, or was never on.
func (t *Thread) Stopped() bool { return !t.On() }

// Note looks where the thread is and remembers it with the time, so that the decoder can place records whose counter
// has wrapped in between. Call it for every recording thread at least twice in 2^32 ticks.
func (t *Thread) Note() {
	r, ok := t.ring()
	if !ok {
		return
	}
	before := counter.Now()
	c := atomic.LoadUint64(&t.block.Cursor)
	after := counter.Now()
	pos, ok := r.slot(c)
	if !ok || c&runtime.CursorTag != runtime.CursorOn {
		return
	}
	n := r.bytes / 8
	var last [8]byte
	if _, err := t.area.mem.f.ReadAt(last[:], r.off+int64((pos+n-1)%n)*8); err != nil {
		return
	}
	value := *(*uint64)(unsafe.Pointer(&last))
	if atomic.LoadUint64(&t.block.Cursor) != c {
		return // it runs: its records are close together and need no anchor
	}
	if k := len(t.anchors); k > 0 && t.anchors[k-1].Slot == pos && t.anchors[k-1].Last == value {
		t.anchors[k-1].Until = before
		return
	}
	if len(t.anchors) == maxAnchors {
		t.StaleAnchors += maxAnchors / 2
		t.anchors = append(t.anchors[:0], t.anchors[maxAnchors/2:]...)
	}
	t.anchors = append(t.anchors, inline.Anchor{Slot: pos, Last: value, First: after, Until: after})
}

// Release gives the ring's memory back, and the block as well if the thread is gone (C6). What the thread recorded is
// forgotten. A thread that has not answered a request to stop may still write one page when it wakes.
func (t *Thread) Release() {
	if r, ok := t.ring(); ok {
		t.clear(r)
	}
	t.anchors = nil
	atomic.StoreUint64(&t.block.Start, 0)
	if t.area.over != 0 || t.Gone() {
		atomic.StoreUint64(&t.block.Cursor, runtime.CursorOff)
		atomic.StoreUint32(&t.block.State, runtime.StateFree)
		delete(t.area.threads, t.index)
	}
}

func (t *Thread) clear(r ring) {
	unix.Fallocate(int(t.area.mem.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, r.off, int64(r.bytes))
}
