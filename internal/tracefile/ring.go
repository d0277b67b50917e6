package tracefile

import (
	"bytes"
	"fmt"

	"braid/inline"
)

// RingFlags tells what the recorder knew of a ring segment.
type RingFlags uint32

// The flags. Their values never change meaning.
const (
	// RingComplete: slots[0] is the first that the thread wrote since it was started, or since the segment before
	// this one. Without it, older slots were overwritten.
	RingComplete RingFlags = 1 << 0
	// RingExited: the thread has ended; no further segment follows.
	RingExited RingFlags = 1 << 1
	// RingExactEnd: the thread itself recorded its end. Without it the recorder read the ring while the thread could
	// still have written to it, and has left out the slots that may be torn.
	RingExactEnd RingFlags = 1 << 2
	// RingContinues: the segment begins where the one before it, with the preceding sequence number, ended.
	RingContinues RingFlags = 1 << 3
	// RingProcessGone: the process had ended, perhaps killed, when the ring was read.
	RingProcessGone RingFlags = 1 << 4
)

// Ring is one segment of one thread's ring: what was in it at one drain. The segments of a thread are in order of
// Sequence.
type Ring struct {
	Pid, Tid uint32
	Name     [16]byte // comm, zero-padded
	Flags    RingFlags
	Sequence uint32 // 0 for the thread's first segment
	Width    uint32 // record form: 0, the one of package inline
	Begin    uint64 // counter: no record is earlier
	End      uint64 // counter: no record is later
	// DroppedNewest counts slots at the new end that were left out because they may be torn, DroppedOldest those that
	// the thread is known to have written before slots[0] and that were overwritten.
	DroppedNewest, DroppedOldest uint64
	// Anchors in order of time; see package inline.
	Anchors []inline.Anchor
	Slots   []uint64 // oldest first
}

const (
	ringHeaderSize = 80
	anchorSize     = 32
)

// Comm is the thread's name.
func (r *Ring) Comm() string {
	name, _, _ := bytes.Cut(r.Name[:], []byte{0})
	return string(name)
}

// Segment is what the decoder of package inline takes. It shares Slots and Anchors.
func (r *Ring) Segment() inline.Segment {
	return inline.Segment{
		Slots: r.Slots, Complete: r.Flags&RingComplete != 0, Begin: r.Begin, End: r.End, Anchors: r.Anchors,
	}
}

// appendHead appends the header and the anchors, after which the slots follow.
func (r *Ring) appendHead(b []byte) []byte {
	b = le.AppendUint32(b, r.Pid)
	b = le.AppendUint32(b, r.Tid)
	b = append(b, r.Name[:]...)
	b = le.AppendUint32(b, uint32(r.Flags))
	b = le.AppendUint32(b, r.Sequence)
	b = le.AppendUint32(b, r.Width)
	b = le.AppendUint32(b, uint32(len(r.Anchors)))
	b = le.AppendUint64(b, r.Begin)
	b = le.AppendUint64(b, r.End)
	b = le.AppendUint64(b, r.DroppedNewest)
	b = le.AppendUint64(b, r.DroppedOldest)
	b = le.AppendUint64(b, uint64(len(r.Slots)))
	for _, a := range r.Anchors {
		b = le.AppendUint64(b, a.Slot)
		b = le.AppendUint64(b, a.Last)
		b = le.AppendUint64(b, a.First)
		b = le.AppendUint64(b, a.Until)
	}
	return b
}

// AppendRing appends a ring section's content.
func AppendRing(b []byte, r *Ring) []byte {
	return append(r.appendHead(b), slotBytes(r.Slots)...)
}

// WriteRing appends a ring section. The slots are written as they are, without a copy.
func (w *Writer) WriteRing(r *Ring) error {
	if uint64(len(r.Anchors)) > maxAnchors {
		return fmt.Errorf("write ring: %d anchors exceed the limit of %d", len(r.Anchors), uint64(maxAnchors))
	}
	return w.WriteSection(KindRing, r.appendHead(nil), slotBytes(r.Slots))
}

// maxAnchors is 34 years of them, at one in half a second.
const maxAnchors = 1 << 31

// DecodeRing decodes a ring section's content. The slots alias b where that is possible.
func DecodeRing(b []byte) (*Ring, error) {
	if len(b) < ringHeaderSize {
		return nil, fmt.Errorf("ring: %d bytes, shorter than its header", len(b))
	}
	r, anchors, slots := decodeRingHeader(b)
	b = b[ringHeaderSize:]
	if room := uint64(len(b)); anchors > room/anchorSize || slots > room/8 || anchors*anchorSize+slots*8 != room {
		return nil, fmt.Errorf("ring of thread %d: %d anchors and %d slots do not take %d bytes", r.Tid, anchors, slots, room)
	}
	if r.Width != 0 {
		return nil, fmt.Errorf("ring of thread %d: its records have form %d, which this braid does not know; use a newer braid", r.Tid, r.Width)
	}
	if anchors > 0 {
		r.Anchors = make([]inline.Anchor, anchors)
	}
	for i := range r.Anchors {
		r.Anchors[i] = inline.Anchor{Slot: le.Uint64(b), Last: le.Uint64(b[8:]), First: le.Uint64(b[16:]), Until: le.Uint64(b[24:])}
		b = b[anchorSize:]
		if a := &r.Anchors[i]; a.Slot > slots {
			return nil, fmt.Errorf("ring of thread %d: anchor %d stands at slot %d of %d", r.Tid, i, a.Slot, slots)
		}
	}
	r.Slots = bytesSlots(b)
	return r, nil
}

// decodeRingHeader decodes the first ringHeaderSize bytes of b.
func decodeRingHeader(b []byte) (r *Ring, anchors, slots uint64) {
	return &Ring{
		Pid: le.Uint32(b), Tid: le.Uint32(b[4:]), Name: [16]byte(b[8:24]),
		Flags: RingFlags(le.Uint32(b[24:])), Sequence: le.Uint32(b[28:]), Width: le.Uint32(b[32:]),
		Begin: le.Uint64(b[40:]), End: le.Uint64(b[48:]),
		DroppedNewest: le.Uint64(b[56:]), DroppedOldest: le.Uint64(b[64:]),
	}, uint64(le.Uint32(b[36:])), le.Uint64(b[72:])
}
