package tracefile

import "unsafe"

// littleEndian reports whether this machine stores integers as the file does.
var littleEndian = func() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}()

// alignedBytes returns n bytes that begin at a multiple of 8, so that slots within them can be used in place.
func alignedBytes(n int) []byte {
	if n == 0 {
		return []byte{}
	}
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// slotBytes is the file's form of slots. On a little-endian machine it is the slots themselves.
func slotBytes(slots []uint64) []byte {
	if len(slots) == 0 {
		return nil
	}
	if littleEndian {
		return unsafe.Slice((*byte)(unsafe.Pointer(&slots[0])), len(slots)*8)
	}
	b := make([]byte, 0, len(slots)*8)
	for _, s := range slots {
		b = le.AppendUint64(b, s)
	}
	return b
}

// bytesSlots is the inverse of slotBytes. It uses b in place if it is aligned. len(b) is a multiple of 8.
func bytesSlots(b []byte) []uint64 {
	if len(b) == 0 {
		return nil
	}
	if p := unsafe.Pointer(&b[0]); littleEndian && uintptr(p)%8 == 0 {
		return unsafe.Slice((*uint64)(p), len(b)/8)
	}
	slots := make([]uint64, len(b)/8)
	for i := range slots {
		slots[i] = le.Uint64(b[i*8:])
	}
	return slots
}
