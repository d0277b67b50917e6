package perfetto

import (
	"encoding/binary"
	"math/bits"
)

// buffer is a protobuf message under construction. Its methods append.
type buffer []byte

// varint appends v in base 128.
func (b *buffer) varint(v uint64) {
	s := *b
	for v >= 0x80 {
		s = append(s, byte(v)|0x80)
		v >>= 7
	}
	*b = append(s, byte(v))
}

// uint appends a varint field. A negative int32, int64 or enum is passed as uint64(int64(v)).
func (b *buffer) uint(tag, v uint64) {
	b.varint(tag)
	b.varint(v)
}

func (b *buffer) fixed64(tag, v uint64) {
	b.varint(tag)
	*b = binary.LittleEndian.AppendUint64(*b, v)
}

func (b *buffer) string(tag uint64, s string) {
	b.varint(tag)
	b.varint(uint64(len(s)))
	*b = append(*b, s...)
}

func (b *buffer) bytes(tag uint64, s []byte) {
	b.varint(tag)
	b.varint(uint64(len(s)))
	*b = append(*b, s...)
}

// open begins a message within the message and returns what close needs.
func (b *buffer) open(tag uint64) int {
	b.varint(tag)
	*b = append(*b, 0)
	return len(*b)
}

// close ends the message that began at start. Its length took one byte so far, and gets more if it needs them.
func (b *buffer) close(start int) {
	n := len(*b) - start
	if n < 0x80 {
		(*b)[start-1] = byte(n)
		return
	}
	more := varintSize(uint64(n)) - 1
	*b = append(*b, zeros[:more]...)
	copy((*b)[start+more:], (*b)[start:start+n])
	length := (*b)[:start-1]
	(*buffer)(&length).varint(uint64(n))
}

var zeros [10]byte

// varintSize is the number of bytes that varint appends.
func varintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
