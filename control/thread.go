package control

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"braid/inline"
	"braid/inline/runtime"
	"braid/internal/counter"

	"golang.org/x/sys/unix"
)

// Thread is one thread that registered itself. Use it from the goroutine that uses its Area.
type Thread struct {
	area     *Area
	index    uint32
	block    *runtime.Block
	uses     uint32
	cur      lane   // where it records, or recorded last, as last seen; see follow
	old      lane   // what it left at a swap and was not released
	rings    []ring // its own, where it is or not
	swap     swap
	tail     tail
	meter    meter
	begun    uint64 // counter when this recorder asked it to start, or 0
	stopping bool
	settled  place // what was seen of the thread before the last barrier
	Tid      int   // the thread's id as the program sees it
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
		point(101)
		t := a.threads[i]
		if uses := atomic.LoadUint32(&b.Uses); t == nil || t.uses != uses {
			t = &Thread{area: a, index: i, block: b, uses: uses, Tid: int(b.Tid)}
			a.threads[i] = t
			t.adopt()
		}
		out = append(out, t)
	}
	return out
}

// On reports whether the thread is recording, or was when it ended. One that has left its ring for the next, and has reached
// no trace point since, is recording.
func (t *Thread) On() bool {
	c := atomic.LoadUint64(&t.block.Cursor)
	return c&runtime.CursorTag == runtime.CursorOn || answered(c)
}

// Recorded reports whether the thread has, or had, a ring.
func (t *Thread) Recorded() bool {
	return atomic.LoadUint64(&t.block.RingAddr) != 0 && atomic.LoadUint64(&t.block.Cursor)&^runtime.CursorTag != 0 &&
		(atomic.LoadUint64(&t.block.Start) != 0 || t.On())
}

// Asked returns what the program has asked for this thread itself: runtime.APIOn, APIOff, or APINone.
func (t *Thread) Asked() int {
	if v := atomic.LoadUint32(&t.block.API); v <= runtime.APIOff {
		return int(v)
	}
	return int(runtime.APINone)
}

// Start makes a registered thread that is off take a ring at its next trace point and record from there on. What was
// recorded before is forgotten.
func (t *Thread) Start() {
	c := atomic.LoadUint64(&t.block.Cursor)
	// It attends anew because it was stopped and started before, or it turns itself on and has not seen yet that it was stopped.
	again := c&runtime.CursorTag == runtime.CursorAttend && t.stopping
	if c&runtime.CursorTag != runtime.CursorOff && !again || !t.forget() {
		return // C1
	}
	point(103)
	t.begun = counter.Now()
	atomic.StoreUint32(&t.block.Want, 1)
	point(104)
	atomic.OrUint64(&t.block.Mask, runtime.MaskStop) // it has answered what it was asked for (C5)
	point(105)
	// Unless it has just started by itself. It may be about to answer the stop before this.
	if !atomic.CompareAndSwapUint64(&t.block.Cursor, c, runtime.CursorAttend) {
		atomic.CompareAndSwapUint64(&t.block.Cursor, c&^runtime.CursorTag, runtime.CursorAttend)
	}
}

// forget gives the memory of all rings of a thread that is off back. They stay its own. It reports false, and does nothing,
// if the block has gone to another thread since (C15).
func (t *Thread) forget() bool {
	named := t.named()
	point(102)
	if !t.has() {
		return false
	}
	for _, r := range named { // of this thread: another's would have been stored after its number
		t.own(r)
	}
	for _, r := range t.rings {
		t.area.mem.clear(r)
	}
	t.cur, t.old, t.swap, t.tail, t.meter, t.stopping = lane{}, lane{}, swap{}, tail{}, meter{}, false
	return true
}

// has reports whether the block is still this thread's.
func (t *Thread) has() bool {
	s := atomic.LoadUint32(&t.block.State)
	return (s == runtime.StateReady || s == runtime.StateExiting) && atomic.LoadUint32(&t.block.Uses) == t.uses
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

// RequestStop asks the thread to stop at its next trace point. It does not wait: poll Stopped. A swap that is pending may
// come before the stop or be dropped for it.
func (t *Thread) RequestStop() {
	t.stopping = true
	point(106)
	atomic.StoreUint32(&t.block.Want, 0)
	point(107)
	atomic.AndUint64(&t.block.Mask, ^runtime.MaskStop) // of a thread that is off, too: it must not start itself
	point(108)
	for range 8 { // it may be in the slow path
		c := atomic.LoadUint64(&t.block.Cursor)
		point(109)
		if c&runtime.CursorTag != runtime.CursorAttend || atomic.CompareAndSwapUint64(&t.block.Cursor, c, c&^runtime.CursorTag) {
			return
		}
	}
}

// Stopped reports whether the thread has answered a request to stop, or was never on. It asks again: a thread that has
// answered a swap instead, and waits in the kernel since, is off at once then (C11).
func (t *Thread) Stopped() bool {
	if t.On() && t.stopping {
		t.RequestStop()
	}
	return !t.On()
}

// Note looks where the thread is and remembers it with the time, so that the decoder can place records whose counter
// has wrapped in between. Call it for every recording thread at least twice in 2^32 ticks.
func (t *Thread) Note() {
	before := counter.Now()
	c, ok := t.follow()
	after := counter.Now()
	t.meter.see(&t.cur.ring, c, ok)
	if !ok || c&runtime.CursorTag == runtime.CursorOff || t.swap.drained {
		return
	}
	pos, _ := t.cur.slot(c)
	value, err := t.area.mem.readSlot(t.cur.ring, pos+t.cur.slots()-1)
	if err != nil || atomic.LoadUint64(&t.block.Cursor) != c {
		return // it runs: its records are close together and need no anchor
	}
	if k := len(t.cur.anchors); k > 0 && t.cur.anchors[k-1].Slot == pos && t.cur.anchors[k-1].Last == value {
		t.cur.anchors[k-1].Until = before
		return
	}
	if len(t.cur.anchors) == maxAnchors {
		t.StaleAnchors += maxAnchors / 2
		t.cur.anchors = append(t.cur.anchors[:0], t.cur.anchors[maxAnchors/2:]...)
	}
	t.cur.anchors = append(t.cur.anchors, inline.Anchor{Slot: pos, Last: value, First: after, Until: after})
}

// Release gives the memory of both rings back, and the block as well if the thread is gone (C6). What the thread recorded
// is forgotten. A thread that has not answered a request to stop may still write one page when it wakes.
func (t *Thread) Release() {
	ended := t.area.over != 0 || t.Gone()
	if !t.forget() {
		return
	}
	start := atomic.LoadUint64(&t.block.Start)
	gone := ended || t.Gone()
	point(110)
	if !t.has() { // it has ended meanwhile, and freed the block itself
		return
	}
	if !gone {
		if atomic.LoadUint64(&t.block.Cursor)&runtime.CursorTag != runtime.CursorOn { // or it has started by itself
			atomic.CompareAndSwapUint64(&t.block.Start, start, 0)
		}
		return
	}
	if !ended { // it may have written on until now
		for _, r := range t.rings {
			t.area.mem.clear(r)
		}
	}
	point(111)
	atomic.StoreUint64(&t.block.Start, 0)
	atomic.StoreUint64(&t.block.PrevCursor, 0) // its records are not the next thread's
	atomic.StoreUint64(&t.block.Cursor, runtime.CursorOff)
	point(112)
	atomic.StoreUint32(&t.block.State, runtime.StateFree)
	delete(t.area.threads, t.index)
}
