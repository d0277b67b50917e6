package control

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
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
	Tid     int // the thread's id as the program sees it
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

// Gone reports whether the thread has ended.
func (t *Thread) Gone() bool {
	_, err := os.Lstat("/proc/" + strconv.Itoa(t.area.pid) + "/task/" + strconv.Itoa(t.Tid))
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// RequestStop asks the thread to stop at its next trace point. It does not wait.
func (t *Thread) RequestStop() {
	if t.On() {
		atomic.AndUint64(&t.block.Mask, ^runtime.CursorOn)
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

// Segment is what a thread recorded, oldest first.
type Segment struct {
	inline.Segment
	// Exact says that the end is where the thread stopped or died. Otherwise it did not answer (it waits somewhere
	// outside instrumented code) and the segment ends where it was seen.
	Exact bool
	// Dropped counts the oldest slots that were left out because an unanswered thread may be writing there (C4).
	Dropped int
	// DroppedNewest counts the newest slots that were left out because they are reserved but not written (C2).
	DroppedNewest int
	// Gone says that the thread has ended.
	Gone bool
}

// settling is how long a thread that has stopped, or is about to, may take to write the record that it has a slot for.
const settling = 5 * time.Millisecond

// unwritten returns how many slots before the cursor's are reserved and not written: none, after a moment, unless the
// thread was killed or has lost its processor just there. The record has at most two slots; where more are missing, a
// signal handler has recorded within a stub, and what is behind done is written.
func (t *Thread) unwritten(r ring, pos uint64) uint64 {
	n := r.bytes / 8
	for deadline := time.Now().Add(settling); ; time.Sleep(20 * time.Microsecond) {
		done := atomic.LoadUint64(&t.block.Done)
		if done == 0 {
			return min(pos, 2)
		}
		at, ok := r.slot(done)
		if !ok {
			return 0
		}
		missing := (pos + n - 1 - at) % n
		if missing == 0 || missing > 2 {
			return 0
		}
		if t.Gone() || time.Now().After(deadline) {
			return missing
		}
	}
}

// Collect copies what the thread recorded. Ask it to stop first, and give it a moment: for a thread that has stopped or
// ended the copy is exact. buf is used for the slots if it is large enough.
func (t *Thread) Collect(buf []uint64) (Segment, error) {
	var s Segment
	r, ok := t.ring()
	if !ok {
		return s, fmt.Errorf("%w: thread %d has no ring", ErrArena, t.Tid)
	}
	s.Gone = t.Gone()
	c := atomic.LoadUint64(&t.block.Cursor)
	s.Exact = s.Gone || t.area.over != 0 || c&runtime.CursorTag == runtime.CursorOff
	pos, ok := r.slot(c)
	if !ok {
		return s, fmt.Errorf("%w: cursor %#x of thread %d is outside its ring", ErrArena, c, t.Tid)
	}
	n := r.bytes / 8
	missing := t.unwritten(r, pos) // before anything is copied
	var end [8]byte
	if _, err := t.area.mem.f.ReadAt(end[:], r.off+int64(n-1)*8); err != nil {
		return s, fmt.Errorf("reading a ring: %w", err)
	}
	done, ok := r.slot(atomic.LoadUint64(&t.block.Done))
	wrapped := end != [8]byte{} || ok && done >= pos
	size, from := pos, uint64(0)
	if wrapped {
		size, from = n, pos
		if !s.Exact {
			s.Dropped = 4
			size, from = n-4, pos+4
		}
	}
	missing = min(missing, size)
	size -= missing
	s.DroppedNewest = int(missing)
	if uint64(cap(buf)) < size {
		buf = make([]uint64, size)
	}
	s.Slots = buf[:size]
	for done := uint64(0); done < size; {
		at := (from + done) % n
		k := min(size-done, n-at)
		b := unsafe.Slice((*byte)(unsafe.Pointer(&s.Slots[done])), k*8)
		if _, err := t.area.mem.f.ReadAt(b, r.off+int64(at)*8); err != nil {
			return s, fmt.Errorf("reading a ring: %w", err)
		}
		done += k
	}
	s.Complete = !wrapped
	s.Begin, s.End = t.block.Start, counter.Now()
	if t.area.over != 0 {
		s.End = max(s.Begin, t.area.over)
	}
	for _, a := range t.anchors {
		i := (a.Slot + n - from) % n
		if !wrapped {
			i = a.Slot
		}
		if i == 0 && wrapped {
			i = n // the boundary at the very end
		}
		if i > size || i == 0 {
			continue
		}
		a.Slot = i
		s.Anchors = append(s.Anchors, a)
	}
	return s, nil
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

// StopAll asks every recording thread of the areas to stop and waits until all have answered or patience is over. It
// returns how many did not answer. Threads that were killed need not.
func StopAll(areas []*Area, patience time.Duration) int {
	var wait []*Thread
	for _, a := range areas {
		a.Disarm()
		for _, t := range a.Threads() {
			t.RequestStop()
			if !t.Stopped() {
				wait = append(wait, t)
			}
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Microsecond) {
		rest := wait[:0]
		for _, t := range wait {
			if !t.Stopped() && !t.Gone() {
				rest = append(rest, t)
			}
		}
		wait = rest
		if len(wait) == 0 || time.Now().After(deadline) {
			break
		}
	}
	return len(wait)
}
