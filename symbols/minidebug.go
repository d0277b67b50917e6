package symbols

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// unpackXZ unpacks one .xz stream with LZMA2 blocks (xz file format 1.2.1) of at most limit bytes. The container is
// parsed here rather than by a library because LZMA2's chunk headers give the size of everything, compressed or not:
// it is known before the first byte is unpacked, and the dictionary, which a file may declare to be 4 GiB, is never
// larger than the block. The index at the end repeats what the blocks said and is not read.
func unpackXZ(b []byte, limit uint64) ([]byte, error) {
	if len(b) < 12 || string(b[:6]) != "\xfd7zXZ\x00" {
		return nil, errors.New("xz: no stream header")
	}
	if binary.LittleEndian.Uint32(b[8:]) != crc32.ChecksumIEEE(b[6:8]) {
		return nil, errors.New("xz: damaged stream header")
	}
	newCheck, checkLen, err := xzCheck(b[6], b[7])
	if err != nil {
		return nil, err
	}
	off := 12
	var out []byte
	for {
		if off >= len(b) {
			return nil, fmt.Errorf("xz: %w at offset %d", io.ErrUnexpectedEOF, off)
		}
		if b[off] == 0 { // the index
			return out, nil
		}
		header := (int(b[off]) + 1) * 4
		if len(b)-off < header {
			return nil, fmt.Errorf("xz: %w at offset %d", io.ErrUnexpectedEOF, off)
		}
		if err := checkXZBlock(b[off : off+header]); err != nil {
			return nil, fmt.Errorf("xz: block at offset %d: %w", off, err)
		}
		off += header
		packed, size, err := lzma2Extent(b[off:])
		if err != nil {
			return nil, fmt.Errorf("xz: block at offset %d: %w", off-header, err)
		}
		if size > limit-uint64(len(out)) {
			return nil, fmt.Errorf("xz: more than %d bytes", limit)
		}
		start := len(out)
		out = append(out, make([]byte, size)...)
		if err := unpackLZMA2(out[start:], b[off:off+packed]); err != nil {
			return nil, fmt.Errorf("xz: block at offset %d: %w", off-header, err)
		}
		off += packed
		pad := -packed & 3
		if len(b)-off < pad+checkLen {
			return nil, fmt.Errorf("xz: %w at offset %d", io.ErrUnexpectedEOF, off)
		}
		for range pad {
			if b[off] != 0 {
				return nil, fmt.Errorf("xz: padding is not zero at offset %d", off)
			}
			off++
		}
		if newCheck != nil {
			h := newCheck()
			h.Write(out[start:])
			sum := h.Sum(nil)
			if h.Size() < sha256.Size { // CRCs are stored little-endian, hash.Hash gives them big-endian
				for i, j := 0, len(sum)-1; i < j; i, j = i+1, j-1 {
					sum[i], sum[j] = sum[j], sum[i]
				}
			}
			if !bytes.Equal(sum, b[off:off+checkLen]) {
				return nil, fmt.Errorf("xz: wrong checksum at offset %d", off)
			}
		}
		off += checkLen
	}
}

// xzCheck returns how a block's check is computed and its length (2.1.1.2 of the format).
func xzCheck(reserved, id byte) (func() hash.Hash, int, error) {
	switch {
	case reserved == 0 && id == 0:
		return nil, 0, nil
	case reserved == 0 && id == 1:
		return func() hash.Hash { return crc32.NewIEEE() }, 4, nil
	case reserved == 0 && id == 4:
		return func() hash.Hash { return crc64.New(crc64.MakeTable(crc64.ECMA)) }, 8, nil
	case reserved == 0 && id == 10:
		return sha256.New, 32, nil
	}
	return nil, 0, fmt.Errorf("xz: unknown check %d", id)
}

// checkXZBlock checks a block header: its CRC, and LZMA2 as the only filter.
func checkXZBlock(h []byte) error {
	n := len(h) - 4
	if binary.LittleEndian.Uint32(h[n:]) != crc32.ChecksumIEEE(h[:n]) {
		return errors.New("damaged header")
	}
	flags, rest := h[1], h[2:n]
	if flags&0x3f != 0 {
		return errors.New("filters other than LZMA2, which braid cannot unpack")
	}
	for _, present := range []bool{flags&0x40 != 0, flags&0x80 != 0} { // both sizes; the chunks have them too
		if present {
			_, k := binary.Uvarint(rest)
			if k <= 0 {
				return errors.New("bad size in header")
			}
			rest = rest[k:]
		}
	}
	const idLZMA2 = 0x21
	if len(rest) < 3 || rest[0] != idLZMA2 || rest[1] != 1 {
		return errors.New("filters other than LZMA2, which braid cannot unpack")
	}
	return nil
}

// lzma2Extent walks over the chunks of an LZMA2 stream and returns its length with and without compression.
func lzma2Extent(b []byte) (packed int, size uint64, err error) {
	for {
		if packed >= len(b) {
			return 0, 0, io.ErrUnexpectedEOF
		}
		control := b[packed]
		header := 6 // control, uncompressed size (2), compressed size (2), properties
		switch {
		case control == 0:
			return packed + 1, size, nil
		case control <= 2:
			header = 3 // stored: control, size (2)
		case control < 0x80:
			return 0, 0, fmt.Errorf("unknown chunk %#x", control)
		case control < 0xc0:
			header = 5 // no properties
		}
		if len(b)-packed < header {
			return 0, 0, io.ErrUnexpectedEOF
		}
		h := b[packed:]
		low := uint64(binary.BigEndian.Uint16(h[1:])) + 1
		packed += header
		if control <= 2 {
			size += low
			packed += int(low)
		} else {
			size += uint64(control&0x1f)<<16 + low
			packed += int(binary.BigEndian.Uint16(h[3:])) + 1
		}
	}
}

func unpackLZMA2(out, packed []byte) error {
	dict := max(len(out), lzma.MinDictCap)
	r, err := lzma.Reader2Config{DictCap: dict}.NewReader2(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(r, out); err != nil {
		return err
	}
	return nil
}
