package tracefile

// walkBuffer is how much a walker reads at once; small sections then share one read.
const walkBuffer = 64 << 10

// walker goes from section header to section header.
type walker struct {
	*Reader
	off  uint64 // of the next header
	next uint32 // its expected index
	buf  []byte
	base uint64 // the file offset of buf
}

// bytes returns n bytes at off, or what there is of them, n at most walkBuffer.
func (w *walker) bytes(off uint64, n int) ([]byte, error) {
	if off >= w.size {
		return nil, nil
	}
	n = int(min(uint64(n), w.size-off))
	if off < w.base || off+uint64(n) > w.base+uint64(len(w.buf)) {
		w.base, w.buf = off, w.buf[:min(walkBuffer, w.size-off)]
		if err := w.readAt(w.buf, off); err != nil {
			return nil, err
		}
	}
	return w.buf[off-w.base:][:n], nil
}

// header returns the section header at off, or false if there is none.
func (w *walker) header(off uint64) (sectionHeader, bool, error) {
	b, err := w.bytes(off, sectionHeaderSize)
	if err != nil {
		return sectionHeader{}, false, err
	}
	h, ok := parseSectionHeader(b)
	return h, ok, nil
}

// resync looks for the next good header after a damaged one at w.off, and reports whether there is one. Headers
// begin at multiples of 8. A header with an index that is not new is not taken: it could be one of a trace file
// within a content.
func (w *walker) resync() (bool, error) {
	bad := w.off
	for off := bad + 8; off+sectionHeaderSize <= w.size; off += 8 {
		b, err := w.bytes(off, sectionHeaderSize)
		if err != nil {
			return false, err
		}
		h, ok := parseSectionHeader(b)
		if !ok || h.index <= w.next || h.length > w.size-off-sectionHeaderSize {
			continue
		}
		w.problem(bad, 0, ErrDamaged, "%d sections, %d bytes skipped", h.index-w.next, off-bad)
		w.off, w.next = off, h.index
		return true, nil
	}
	w.problem(bad, 0, ErrDamaged, "no further section found; %d whole sections were saved", len(w.sections))
	return false, nil
}
