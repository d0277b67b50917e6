package control

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"braid/inline"
	"braid/inline/runtime"

	"golang.org/x/sys/unix"
)

// Bounds of a ring, in bytes. A program could name a ring of any size that costs it no memory; its recorder would have to
// take as much to copy it. Rings larger than maxRing are only believed in if this recorder has asked for them.
const (
	minRing = 4096
	maxRing = 64 << 20
)

// ring is a thread's ring after the checks of C7.
type ring struct {
	addr, bytes uint64
	off         int64 // in the memory file
}

// lane is a ring with what is known of the records that are in it.
type lane struct {
	ring
	start   uint64 // counter, before the first record
	own     uint64 // what the control block said of it, which changes if the thread starts itself anew
	anchors []inline.Anchor
	begin   uint64 // the slot from which on it was filled again, if what was before was released
}

// trim leaves out the oldest of a ring's slots that were released, and returns how many.
func (l *lane) trim(slots []uint64) (rest []uint64, released uint64) {
	for ; l.begin != 0 && released < uint64(len(slots)) && slots[released] == 0; released++ {
	}
	return slots[released:], released
}

// check makes a ring of what a control block says.
func (a *Area) check(addr, bytes, off uint64) (ring, bool) {
	if addr == 0 || bytes < minRing || bytes > max(maxRing, a.asked) || bytes&(bytes-1) != 0 || off < runtime.RingsOff ||
		off > a.bytes || a.bytes-off < bytes || addr != a.base+off {
		return ring{}, false
	}
	return ring{addr: addr, bytes: bytes, off: a.off + int64(off)}, true
}

func (r ring) there() bool { return r.bytes != 0 }

func (r ring) slots() uint64 { return r.bytes / 8 }

// slot returns the index of the slot that a cursor points at.
func (r ring) slot(cursor uint64) (uint64, bool) {
	d := cursor&^runtime.CursorTag - r.addr
	return d / 8, d < r.bytes
}

func (r ring) holds(cursor uint64) bool {
	_, ok := r.slot(cursor)
	return ok
}

// read copies slots from index at onwards, over the ring's end.
func (m *memory) read(r ring, at uint64, slots []uint64) error {
	n := r.slots()
	for done := uint64(0); done < uint64(len(slots)); {
		i := (at + done) % n
		k := min(uint64(len(slots))-done, n-i)
		b := unsafe.Slice((*byte)(unsafe.Pointer(&slots[done])), k*8)
		for got := 0; got < len(b); {
			more, err := m.f.ReadAt(b[got:], r.off+int64(i)*8+int64(got))
			if got += more; err != nil && got < len(b) {
				return fmt.Errorf("reading a ring: %w", err)
			}
		}
		done += k
	}
	return nil
}

// readSlot returns one slot.
func (m *memory) readSlot(r ring, at uint64) (uint64, error) {
	var v [1]uint64
	err := m.read(r, at%r.slots(), v[:])
	return v[0], err
}

// clear gives a ring's memory back. Its slots are 0 afterwards.
func (m *memory) clear(r ring) {
	if r.there() {
		unix.Fallocate(int(m.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, r.off, int64(r.bytes))
	}
}

// ErrNoRoom says that an area has no room for another ring.
var ErrNoRoom = errors.New("no room for another ring")

// newRing takes room for a ring behind the last one, by the program's own rule: at a multiple of twice its size in the
// program's addresses. The program takes rings there too, at the same moment.
func (a *Area) newRing(bytes uint64) (ring, error) {
	for range 1000 { // each failure is a ring that the program took, or a program that plays with the word
		next := atomic.LoadUint64(&a.hdr.RingNext)
		from := max(next, runtime.RingsOff)
		if from > a.bytes {
			break
		}
		off := (a.base+from+2*bytes-1)&^(2*bytes-1) - a.base
		r, ok := a.check(a.base+off, bytes, off)
		if !ok {
			break
		}
		if atomic.CompareAndSwapUint64(&a.hdr.RingNext, next, off+bytes) {
			return r, nil
		}
	}
	return ring{}, ErrNoRoom
}

// place moves anchors that count from a ring's first slot to where they lie in size slots that begin with slot from.
func (r ring) place(anchors []inline.Anchor, from, size uint64, wrapped bool) []inline.Anchor {
	var out []inline.Anchor
	n := r.slots()
	for _, a := range anchors {
		i := a.Slot - from
		if wrapped {
			i = (a.Slot + n - from) % n
			if i == 0 {
				i = n // the boundary at the very end
			}
		}
		if i == 0 || i > size {
			continue
		}
		a.Slot = i
		out = append(out, a)
	}
	return out
}
