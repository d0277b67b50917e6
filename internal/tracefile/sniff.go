package tracefile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"unicode/utf8"
)

// Errors of NewReader about the file as a whole.
var (
	// ErrNotTrace: the file is something else; the message says what it looks like.
	ErrNotTrace = errors.New("not a braid trace")
	// ErrVersion: the file was written by a newer braid, or on a machine with another byte order.
	ErrVersion = errors.New("unsupported trace file")
)

// checkFileHeader says why b, the beginning of a file, is not the header of a readable trace. Its first 24 bytes mean
// the same in every version. A damaged header is forgiven if a section follows it: damaged is then true.
func checkFileHeader(b []byte) (damaged bool, err error) {
	if len(b) < fileHeaderSize {
		if n := min(len(b), len(fileMagic)); n > 0 && bytes.Equal(b[:n], fileMagic[:n]) {
			return false, fmt.Errorf("%w: the file ends within its header after %d bytes; nothing can be saved", ErrNotTrace, len(b))
		}
		return false, fmt.Errorf("%w: this %s", ErrNotTrace, looksLike(b))
	}
	magic := bytes.Equal(b[:8], fileMagic[:])
	if !magic || le.Uint32(b[20:]) != crc32.Checksum(b[:20], castagnoli) {
		if _, ok := parseSectionHeader(b[fileHeaderSize:]); ok {
			return true, nil
		}
		switch {
		case magic && le.Uint32(b[8:]) == 0x04030201:
			return false, fmt.Errorf("%w: it was written with big-endian byte order, which braid does not read", ErrVersion)
		case magic && len(b) < fileHeaderSize+sectionHeaderSize:
			return false, fmt.Errorf("%w: its header is damaged and no section follows it", ErrNotTrace)
		case magic:
			return false, fmt.Errorf("%w: its header and its first section are damaged", ErrNotTrace)
		}
		return false, fmt.Errorf("%w: this %s", ErrNotTrace, looksLike(b))
	}
	if v := le.Uint32(b[12:]); v > Version {
		return false, fmt.Errorf("%w: it has format version %d, this braid reads up to version %d; use a newer braid", ErrVersion, v, Version)
	}
	return false, nil
}

// looksLike names the file type that b begins, as in "this is a gzip file".
func looksLike(b []byte) string {
	if len(b) == 0 {
		return "file is empty; was the recording interrupted?"
	}
	for _, t := range []struct{ magic, name string }{
		{"\x7fELF", "is an ELF file (a program or library)"},
		{"\x1f\x8b", "is a gzip file; unpack it first"},
		{"\x28\xb5\x2f\xfd", "is a zstd file; unpack it first"},
		{"\xfd7zXZ\x00", "is an xz file; unpack it first"},
		{"BZh", "is a bzip2 file; unpack it first"},
		{"PK\x03\x04", "is a zip archive"},
		{"PERFILE2", "is perf.data, of perf record or simpleperf"},
		{"PERFFILE", "is perf.data, of perf record"},
		{"Ftrace!\x00", "is a uftrace recording"},
		{"\x17\x08\x44tracing", "is a trace-cmd recording"},
		{"\x10\x00\x04\x46\x78\x54\x16\x00", "is a Fuchsia trace, as magic-trace writes"},
		{"SQLite format 3\x00", "is an SQLite database"},
		{"\x89braid\r\n", "was a braid trace until it was transferred as text; transfer it again as binary"},
		{"#!", "is a script"},
		{"<", "is HTML or XML"},
	} {
		if bytes.HasPrefix(b, []byte(t.magic)) {
			return t.name
		}
	}
	if isPerfetto(b) {
		return "is a Perfetto trace, not a braid trace; open it in Perfetto"
	}
	switch c := bytes.TrimLeft(b, " \t\r\n"); {
	case len(bytes.Trim(b, "\x00")) == 0:
		return "file begins with zeros; was the disk full or the machine powered off while it was written?"
	case len(c) > 0 && (c[0] == '{' || c[0] == '['):
		return "is JSON, perhaps an exported report"
	case isText(b):
		return "is text"
	}
	return fmt.Sprintf("is an unknown kind of file (it begins with % x)", b[:min(len(b), 8)])
}

// isPerfetto recognises a run of Trace.packet (field 1, length-delimited) that begins with a field of TracePacket.
func isPerfetto(b []byte) bool {
	if b[0] != 0x0a {
		return false
	}
	for i := 1; i < len(b)-1 && i < 6; i++ {
		if b[i] < 0x80 {
			wire := b[i+1] & 7
			return (wire == 0 || wire == 2) && b[i+1] >= 8
		}
	}
	return false
}

func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(b[:max(0, len(b)-3)]) || utf8.Valid(b) // b may end within a character
}
