package bpf

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"testing"

	"braid/internal/kevent"
)

// memoryRing is a ring whose memory the test writes in place of the kernel, of one page, its data there twice.
func memoryRing(data []byte, consumer, producer uint64) *ring {
	size := os.Getpagesize()
	r := &ring{consumer: make([]byte, 8), producer: make([]byte, 8), data: make([]byte, 2*size), mask: uint64(size - 1)}
	copy(r.data[:size], data)
	copy(r.data[size:], r.data[:size])
	binary.NativeEndian.PutUint64(r.consumer, consumer)
	binary.NativeEndian.PutUint64(r.producer, producer)
	return r
}

func record(b []byte, head uint32, event []byte) []byte {
	b = binary.NativeEndian.AppendUint32(b, head|uint32(len(event)))
	b = binary.NativeEndian.AppendUint32(b, 0)
	return append(b, event...)
}

func TestDrain(t *testing.T) {
	event := kevent.AppendExit(nil, kevent.Header{Tid: 7}, kevent.Exit{Tgid: 7})
	data := record(nil, 0, event)
	data = record(data, recordDiscard, event)
	data = record(data, 0, event)
	data = record(data, recordBusy, event)
	end := uint64(len(data))
	r := memoryRing(data, 0, end)
	got, err := r.drain(make([]byte, 0, 4096))
	if err != nil || len(got) != 2*len(event) {
		t.Errorf("drained %d bytes, %v; want the two events before the busy one", len(got), err)
	}
	if r.available() != uint64(recordHead+len(event)) {
		t.Errorf("%d bytes left, want the busy record", r.available())
	}

	r = memoryRing(data, 0, end)
	if got, err := r.drain(make([]byte, 0, len(event))); err != nil || len(got) != len(event) {
		t.Errorf("room for one: %d bytes, %v", len(got), err)
	}
	r = memoryRing(data, 0, end)
	if _, err := r.drain(make([]byte, 0, len(event)-1)); !errors.Is(err, io.ErrShortBuffer) || r.available() != end {
		t.Errorf("room for less than one: %v, %d of %d left", err, r.available(), end)
	}

	for name, r := range map[string]*ring{
		"more than the ring holds":  memoryRing(data, 0, uint64(os.Getpagesize())+8),
		"consumer before producer":  memoryRing(data, 8, 0),
		"a record past the end":     memoryRing(data, 0, 16),
		"a record of no bytes":      memoryRing(make([]byte, 16), 0, 16),
		"a record of uneven length": memoryRing([]byte{9, 0, 0, 0}, 0, 64),
	} {
		if _, err := r.drain(make([]byte, 0, 4096)); !errors.Is(err, errBadRing) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDrain reads a ring of hostile memory: no panic, and never past what the producer's position covers.
func FuzzDrain(f *testing.F) {
	event := kevent.AppendExit(nil, kevent.Header{Tid: 7}, kevent.Exit{Tgid: 7})
	f.Add(record(record(nil, 0, event), recordDiscard, event), uint64(0), uint64(64), uint16(4096))
	f.Add(record(nil, recordBusy, event), uint64(0), uint64(32), uint16(24))
	f.Fuzz(func(t *testing.T, data []byte, consumer, producer uint64, room uint16) {
		consumer &^= 7 // this side's own
		r := memoryRing(data, consumer, producer)
		got, _ := r.drain(make([]byte, 0, room))
		if len(got) > int(room) {
			t.Fatalf("%d bytes into %d", len(got), room)
		}
		if after := binary.NativeEndian.Uint64(r.consumer); after-consumer > producer-consumer {
			t.Fatalf("consumer went from %d to %d, past %d", consumer, after, producer)
		}
	})
}
