// Package tracefile is the container of a recording, the file app.braid, and the content of its sections.
// docs/format.md describes it byte by byte; this package is its only reader and writer.
//
// A file is a header, sections, and an End section that counts them, so that a file cut anywhere is noticed. Each
// section carries its length and two CRC-32C checksums, one of its own header and one of its content: a damaged
// section costs itself and nothing else. Sections of one kind may come in any number; the recorder appends rings and
// kernel events as it drains them.
//
// All integers are little-endian. Times are CLOCK_BOOTTIME nanoseconds unless a field says otherwise, and counter
// values are full 64-bit readings of the processor's counter (Clock says which).
package tracefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Version is the format's version. A reader accepts its own and older ones.
const Version = 1

// Kind says what a section holds.
type Kind uint32

// The kinds of section. Their values never change meaning.
const (
	KindMeta      Kind = 1  // Meta, JSON
	KindClock     Kind = 2  // Clock, binary
	KindProcesses Kind = 3  // Processes, JSON
	KindModules   Kind = 4  // []Module, JSON
	KindSymbols   Kind = 5  // []Symbol, binary
	KindRing      Kind = 6  // Ring, binary
	KindEvents    Kind = 7  // whole events of internal/kevent, binary
	KindLost      Kind = 8  // Lost, JSON
	KindSnapshot  Kind = 9  // Snapshot, JSON
	KindSamples   Kind = 10 // Samples, binary
	KindFrames    Kind = 11 // Frames, binary
	KindEnd       Kind = 0xff
)

var kindNames = map[Kind]string{
	KindMeta: "meta", KindClock: "clock", KindProcesses: "processes", KindModules: "modules",
	KindSymbols: "symbols", KindRing: "ring", KindEvents: "kernel events", KindLost: "lost", KindSnapshot: "snapshot",
	KindSamples: "samples", KindFrames: "frames", KindEnd: "end",
}

// String is the kind's name, as in docs/format.md.
func (k Kind) String() string {
	if n, ok := kindNames[k]; ok {
		return n
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// MaxContent is the longest content of one section, 2 GiB. A ring beyond it is written as several segments.
const MaxContent = 1 << 31

const (
	fileHeaderSize    = 24
	sectionHeaderSize = 32
	endSize           = 16

	byteOrderMark = 0x01020304
	sectionMark   = 0x43455342 // "BSEC"
)

// fileMagic begins every file: a byte outside ASCII, the name, and the two bytes that a transfer as text would change.
var fileMagic = [8]byte{0x89, 'b', 'r', 'a', 'i', 'd', '\n', 0x1a}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var le = binary.LittleEndian

// appendFileHeader appends the file's header.
func appendFileHeader(b []byte) []byte {
	n := len(b)
	b = append(b, fileMagic[:]...)
	b = le.AppendUint32(b, byteOrderMark)
	b = le.AppendUint32(b, Version)
	b = le.AppendUint32(b, 0)
	return le.AppendUint32(b, crc32.Checksum(b[n:], castagnoli))
}

// sectionHeader is the decoded header of a section.
type sectionHeader struct {
	kind   Kind
	flags  uint32
	index  uint32 // the number of sections before this one
	length uint64 // of the content, without its padding
	crc    uint32 // of the content, without its padding
}

// append appends the header's 32 bytes.
func (h sectionHeader) append(b []byte) []byte {
	n := len(b)
	b = le.AppendUint32(b, sectionMark)
	b = le.AppendUint32(b, uint32(h.kind))
	b = le.AppendUint32(b, h.flags)
	b = le.AppendUint32(b, h.index)
	b = le.AppendUint64(b, h.length)
	b = le.AppendUint32(b, h.crc)
	return le.AppendUint32(b, crc32.Checksum(b[n:], castagnoli))
}

// parseSectionHeader decodes the first 32 bytes of b and reports whether they are a whole section header.
func parseSectionHeader(b []byte) (sectionHeader, bool) {
	if len(b) < sectionHeaderSize || le.Uint32(b) != sectionMark ||
		le.Uint32(b[28:]) != crc32.Checksum(b[:28], castagnoli) {
		return sectionHeader{}, false
	}
	return sectionHeader{
		kind:   Kind(le.Uint32(b[4:])),
		flags:  le.Uint32(b[8:]),
		index:  le.Uint32(b[12:]),
		length: le.Uint64(b[16:]),
		crc:    le.Uint32(b[24:]),
	}, true
}

// padding is the number of zero bytes after a content of n bytes: every header begins at a multiple of 8.
func padding(n uint64) uint64 { return -n & 7 }
