package tracefile

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
)

// maxSections bounds the index of a hostile file of empty sections. A recording that writes ten sections a second
// for four days stays below it.
const maxSections = 1 << 22

// Section is one whole section of a file. Its content has not been checked yet.
type Section struct {
	Kind   Kind
	Offset uint64 // of its header in the file
	Length uint64 // of its content; at most MaxContent, and within the file
	crc    uint32
	bad    bool // already reported
}

// Reader reads a trace file, whole or damaged. Only section headers are read at first, and contents one at a time
// when they are asked for, so that a file may be larger than memory. It may be used from one goroutine at a time.
type Reader struct {
	src      io.ReaderAt
	size     uint64
	closer   io.Closer
	sections []Section
	unknown  map[Kind]int
	problems []error
	version  uint32
	complete bool
}

// Open reads the file at path. Errors are those of NewReader. The caller closes the Reader.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace file: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; braid needs to seek in it", path)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open trace file: %w", err)
	}
	r, err := NewReader(f, st.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.closer = f
	return r, nil
}

// NewReader reads a file of the given size in bytes. It fails with ErrNotTrace or ErrVersion if nothing can be read,
// or with an error of src. A file that is damaged or cut short further on is no error; see Problems.
func NewReader(src io.ReaderAt, size int64) (*Reader, error) {
	if size < 0 {
		return nil, fmt.Errorf("read trace file: negative size %d", size)
	}
	r := &Reader{src: src, size: uint64(size), unknown: map[Kind]int{}}
	head := make([]byte, min(r.size, 64)) // more than the header, to see what else it may be
	if err := r.readAt(head, 0); err != nil {
		return nil, err
	}
	damaged, err := checkFileHeader(head)
	if err != nil {
		return nil, err
	}
	r.version = le.Uint32(head[12:])
	if damaged {
		r.version = Version
		r.problem(0, 0, ErrDamaged, "it is the file's own header; its sections are not affected")
	}
	if err := r.index(); err != nil {
		return nil, err
	}
	return r, nil
}

// Close closes the file that Open opened.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// index walks the section headers.
func (r *Reader) index() error {
	w := walker{Reader: r, off: fileHeaderSize, buf: make([]byte, 0, walkBuffer)}
	for {
		h, ok, err := w.header(w.off)
		if err != nil {
			return err
		}
		switch {
		case r.size-w.off < sectionHeaderSize:
			r.problem(w.off, 0, ErrTruncated, "no end section; %d whole sections were saved", len(r.sections))
			return nil
		case !ok:
			more, err := w.resync()
			if err != nil || !more {
				return err
			}
			continue
		case len(r.sections) == maxSections:
			r.problem(w.off, h.kind, ErrTooMany, "only the first %d are read", maxSections)
			return nil
		}
		if h.index != w.next {
			r.problem(w.off, h.kind, ErrCount, "section number %d where %d was expected", h.index, w.next)
		}
		w.next = h.index + 1
		room := r.size - w.off - sectionHeaderSize
		if h.length > room {
			r.problem(w.off, h.kind, ErrTruncated, "%d of %d bytes are there; %d whole sections were saved", room, h.length, len(r.sections))
			return nil
		}
		end := min(w.off+sectionHeaderSize+h.length+padding(h.length), r.size)
		if h.kind == KindEnd {
			return r.finish(w.off, h, end)
		}
		r.add(w.off, h)
		w.off = end
	}
}

// add puts a section with a good header into the index, unless it is not known.
func (r *Reader) add(off uint64, h sectionHeader) {
	_, known := kindNames[h.kind]
	switch {
	case h.length > MaxContent:
		r.problem(off, h.kind, ErrContent, "%d bytes exceed the limit of %d; skipped", h.length, uint64(MaxContent))
	case !known || h.flags != 0:
		if r.unknown[h.kind]++; r.unknown[h.kind] == 1 && len(r.unknown) <= maxProblems {
			r.problem(off, h.kind, ErrUnknown, "flags 0x%x; skipped; a newer braid may read it", h.flags)
		}
	default:
		r.sections = append(r.sections, Section{Kind: h.kind, Offset: off, Length: h.length, crc: h.crc})
	}
}

// finish checks the End section, which begins at off and ends at end.
func (r *Reader) finish(off uint64, h sectionHeader, end uint64) error {
	s := Section{Kind: KindEnd, Offset: off, Length: h.length, crc: h.crc}
	if h.length != endSize {
		r.problem(off, KindEnd, ErrContent, "%d bytes instead of %d", h.length, endSize)
		return nil
	}
	b, err := r.Content(&s, nil)
	if err != nil {
		if errors.Is(err, ErrChecksum) {
			return nil
		}
		return err
	}
	count, size := le.Uint64(b), le.Uint64(b[8:])
	if count != uint64(h.index) || size != off {
		r.problem(off, KindEnd, ErrCount, "%d sections in %d bytes were written; it stands after %d sections and %d bytes", count, size, h.index, off)
		return nil
	}
	if end != r.size {
		r.problem(end, 0, ErrTrailing, "%d bytes", r.size-end)
	}
	r.complete = true
	return nil
}

// Version is the format version of the file.
func (r *Reader) Version() uint32 { return r.version }

// Complete reports whether the file was closed properly and its end is there. Single sections may still be damaged.
func (r *Reader) Complete() bool { return r.complete }

// Problems returns what was found wrong so far, each a *Problem. Damaged contents are found when they are read.
func (r *Reader) Problems() []error { return r.problems }

// Unknown returns how many sections of each kind were skipped because this version does not know them.
func (r *Reader) Unknown() map[Kind]int { return r.unknown }

// Len is the number of sections of known kinds.
func (r *Reader) Len() int { return len(r.sections) }

// Sections yields the sections of the given kinds, or all if none is given, in the order of the file.
func (r *Reader) Sections(kinds ...Kind) iter.Seq[*Section] {
	return func(yield func(*Section) bool) {
		for i := range r.sections {
			s := &r.sections[i]
			want := len(kinds) == 0
			for _, k := range kinds {
				want = want || k == s.Kind
			}
			if want && !yield(s) {
				return
			}
		}
	}
}

// Content reads a section's content into buf, which grows if it must, and checks it. A content that does not match
// its checksum is an ErrChecksum and becomes one of the Problems. The result begins at buf's first byte.
func (r *Reader) Content(s *Section, buf []byte) ([]byte, error) {
	if uint64(cap(buf)) < s.Length {
		buf = alignedBytes(int(s.Length))
	}
	buf = buf[:s.Length]
	if err := r.readAt(buf, s.Offset+sectionHeaderSize); err != nil {
		return nil, err
	}
	if crc32.Checksum(buf, castagnoli) != s.crc {
		return nil, r.damaged(s, ErrChecksum, "%d bytes skipped", s.Length)
	}
	return buf, nil
}

// damaged records, once a section, that its content is lost, and returns the problem.
func (r *Reader) damaged(s *Section, err error, detail string, args ...any) error {
	if !s.bad {
		s.bad = true
		r.problem(s.Offset, s.Kind, err, detail, args...)
	}
	return &Problem{s.Offset, s.Kind, err, fmt.Sprintf(detail, args...)}
}

// Verify reads the whole file and checks every content. What is wrong becomes one of the Problems; the error is one
// of reading.
func (r *Reader) Verify() error {
	buf := make([]byte, 256<<10)
	for s := range r.Sections() {
		crc, off, left := uint32(0), s.Offset+sectionHeaderSize, s.Length
		for left > 0 {
			b := buf[:min(left, uint64(len(buf)))]
			if err := r.readAt(b, off); err != nil {
				return err
			}
			crc = crc32.Update(crc, castagnoli, b)
			off, left = off+uint64(len(b)), left-uint64(len(b))
		}
		if crc != s.crc {
			_ = r.damaged(s, ErrChecksum, "%d bytes skipped", s.Length)
		}
	}
	return nil
}

func (r *Reader) readAt(b []byte, off uint64) error {
	if n, err := r.src.ReadAt(b, int64(off)); n < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read trace file at offset %d: %w; did it change meanwhile?", off, err)
	}
	return nil
}
