package tracefile

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

func FuzzReader(f *testing.F) {
	whole := sample(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(whole[:fileHeaderSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !errors.Is(err, ErrNotTrace) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		end := uint64(fileHeaderSize)
		for s := range r.Sections() {
			if s.Offset < end || s.Offset+sectionHeaderSize+s.Length > uint64(len(b)) {
				t.Fatalf("section at %d, %d bytes, after %d of %d", s.Offset, s.Length, end, len(b))
			}
			end = s.Offset + sectionHeaderSize + s.Length
		}
		if err := Dump(io.Discard, r, DumpOptions{}); err != nil {
			t.Fatal(err)
		}
		meta, metaErr := r.Meta()
		if (meta == nil) == (metaErr == nil) {
			t.Fatalf("meta %v, %v", meta, metaErr)
		}
		for _, read := range []func() error{
			func() error { _, err := r.Clock(); return err },
			func() error { _, err := r.Processes(); return err },
			func() error { _, err := r.Modules(); return err },
			func() error { _, err := r.Lost(); return err },
			func() error { _, err := r.Snapshots(); return err },
		} {
			if err := read(); err != nil && !errors.Is(err, ErrNoSection) {
				t.Fatal(err)
			}
		}
		for _, err := range r.Events() {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range r.Rings() {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzSection lets the fuzzer write contents rather than checksums.
func FuzzSection(f *testing.F) {
	r := read(f, sample(f))
	for s := range r.Sections() {
		b, err := r.Content(s, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint32(s.Kind), b)
	}
	f.Fuzz(func(t *testing.T, kind uint32, content []byte) {
		b := appendFileHeader(nil)
		b = sectionHeader{kind: Kind(kind), length: uint64(len(content)), crc: checksum(content)}.append(b)
		b = append(b, content...)
		r := read(t, b)
		if err := Dump(io.Discard, r, DumpOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, read := range []func() error{
			func() error { _, err := r.Meta(); return err },
			func() error { _, err := r.Processes(); return err },
			func() error { _, err := r.Modules(); return err },
			func() error { _, err := r.Lost(); return err },
			func() error { _, err := r.Snapshots(); return err },
		} {
			if err := read(); err != nil && !errors.Is(err, ErrNoSection) {
				t.Fatal(err)
			}
		}
	})
}

func FuzzDecodeClock(f *testing.F) {
	f.Add(AppendClock(nil, sampleClock))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeClock(b)
		if err != nil {
			return
		}
		if again, err := DecodeClock(AppendClock(nil, c)); err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%v became %v, %v", c, again, err)
		}
	})
}

func FuzzDecodeSymbols(f *testing.F) {
	b, err := AppendSymbols(nil, sampleSymbols)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSymbols(b)
		if err != nil {
			return
		}
		b, err = AppendSymbols(nil, s)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeSymbols(b); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%v became %v, %v", s, again, err)
		}
	})
}

func FuzzDecodeRing(f *testing.F) {
	f.Add(AppendRing(nil, sampleRing))
	f.Add(AppendRing(nil, sampleTorn))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRing(b)
		if err != nil {
			return
		}
		if again := AppendRing(nil, r); !bytes.Equal(again, b) {
			t.Fatalf("%x became %x", b, again)
		}
		pointers(r.Slots)
	})
}
