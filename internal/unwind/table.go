package unwind

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Limits on one file's tables, far above what linkers write.
const (
	maxTable   = 1 << 29 // bytes
	maxEntries = 8 << 20
	maxRows    = 1 << 16 // rows that are kept
)

// ErrNoTable says that a file has no unwind tables.
var ErrNoTable = errors.New("the file has no unwind tables")

// Table is one file's unwind tables, at link-time addresses. It may be used by one goroutine at a time: it remembers what
// it found.
type Table struct {
	arch    *Arch
	entries []entry // in order of addresses
	cies    []cie
	rows    map[uint64]*row // by link-time address; nil where the tables make no sense
}

// entry is a frame description entry: how to leave a range of addresses.
type entry struct {
	start, end uint64
	program    []byte
	cie        uint32
}

// cie is a common information entry.
type cie struct {
	program   []byte
	codeAlign uint64
	dataAlign int64
	ra        int
	encoding  uint8 // of addresses in its entries
	sized     bool  // its entries have augmentation data
	signal    bool  // its entries are of signal trampolines
	bad       bool
}

// Read reads the tables of an ELF file: .eh_frame, and where that says nothing .debug_frame. ErrNoTable if there are
// none. Entries that make no sense are left out.
func Read(r io.ReaderAt) (*Table, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, fmt.Errorf("read unwind tables: %w", err)
	}
	t := &Table{rows: map[uint64]*row{}}
	for _, a := range []*Arch{AMD64, ARM64} {
		if f.Machine == a.machine && f.Class == elf.ELFCLASS64 && f.Data == elf.ELFDATA2LSB {
			t.arch = a
		}
	}
	if t.arch == nil {
		return nil, fmt.Errorf("read unwind tables: no tables of %v, %v are known", f.Machine, f.Class)
	}
	for _, name := range []string{".eh_frame", ".debug_frame"} {
		s := f.Section(name)
		if s == nil || s.Type == elf.SHT_NOBITS || s.Size > maxTable || s.FileSize > maxTable {
			continue
		}
		b, err := s.Data()
		if err != nil {
			continue
		}
		t.scan(b, s.Addr, name == ".eh_frame")
	}
	if len(t.entries) == 0 {
		return nil, ErrNoTable
	}
	// Of entries that begin at the same address, that of .eh_frame comes first.
	slices.SortStableFunc(t.entries, func(a, b entry) int { return cmp.Compare(a.start, b.start) })
	return t, nil
}

// scan reads all entries of a section, which begins at a link-time address.
func (t *Table) scan(b []byte, addr uint64, eh bool) {
	known := map[int]uint32{} // offset of a common entry to its index
	c := cursor{b: b}
	for !c.done() && len(t.entries) < maxEntries {
		begin := c.off
		length := uint64(c.u32())
		wide := length == 0xffffffff
		if wide {
			length = c.u64()
		}
		if length == 0 && eh && c.off < len(b) {
			continue // what several files were linked from may end in between
		}
		body := c.off
		if c.err != nil || length > uint64(len(b)-body) || length < 4 {
			return
		}
		c.off = body + int(length)
		at := cursor{b: b[:c.off], off: body}
		id, common := uint64(at.u32()), false
		if wide && !eh {
			at.off = body
			id = at.u64()
		}
		switch {
		case eh:
			common = id == 0
		case wide:
			common = id == math.MaxUint64
		default:
			common = id == math.MaxUint32
		}
		if common {
			known[begin] = uint32(len(t.cies))
			t.cies = append(t.cies, t.common(&at, eh))
			continue
		}
		parent := int(id)
		if eh {
			parent = body - int(id) // counted back from the id itself
		}
		i, ok := known[parent]
		if !ok || t.cies[i].bad {
			continue
		}
		if e, ok := t.entry(&at, i, addr); ok {
			t.entries = append(t.entries, e)
		}
	}
}

// common reads a common entry after its id.
func (t *Table) common(c *cursor, eh bool) cie {
	version := c.u8()
	augmentation := c.text()
	if version == 4 {
		if size, segment := c.u8(), c.u8(); size != 8 || segment != 0 {
			return cie{bad: true}
		}
	}
	e := cie{encoding: peAbsolute}
	e.codeAlign, e.dataAlign = c.uleb(), c.sleb()
	if version == 1 {
		e.ra = int(c.u8())
	} else {
		e.ra = int(min(c.uleb(), maxRegs))
	}
	e.bad = e.ra >= t.arch.regs || version != 1 && version != 3 && version != 4
	if len(augmentation) > 0 && augmentation[0] == 'z' {
		e.sized = true
		data := cursor{b: c.block()}
		for _, a := range augmentation[1:] {
			switch a {
			case 'R':
				e.encoding = data.u8()
			case 'P':
				encoding := data.u8()
				data.pointer(encoding, 0)
			case 'L':
				data.u8()
			case 'S':
				e.signal = true
			case 'B', 'G': // arm64: the key of return addresses' signatures; tagged stacks
			}
		}
		e.bad = e.bad || data.err != nil
	} else {
		e.bad = e.bad || augmentation != ""
	}
	e.program = c.b[min(c.off, len(c.b)):]
	e.bad = e.bad || c.err != nil
	return e
}

// entry reads a frame description after its pointer to the common entry.
func (t *Table) entry(c *cursor, parent uint32, section uint64) (entry, bool) {
	p := &t.cies[parent]
	start := c.pointer(p.encoding, section)
	size := c.pointer(p.encoding&0x0f, 0) // a size has the same form, and is relative to nothing
	if p.sized {
		c.block()
	}
	if c.err != nil || size == 0 || start+size < start || start == 0 { // of a function that the linker dropped
		return entry{}, false
	}
	return entry{start: start, end: start + size, program: c.b[c.off:], cie: parent}, true
}

// How a pointer is encoded (LSB 5.0 core, 10.5.1).
const (
	peAbsolute = 0x00
	peULEB     = 0x01
	peU2       = 0x02
	peU4       = 0x03
	peU8       = 0x04
	peSLEB     = 0x09
	peS2       = 0x0a
	peS4       = 0x0b
	peS8       = 0x0c
	pePCRel    = 0x10
	peOmit     = 0xff
)

// pointer reads an encoded pointer of a section at a link-time address.
func (c *cursor) pointer(encoding uint8, section uint64) uint64 {
	if encoding == peOmit {
		return 0
	}
	at := section + uint64(c.off)
	var v uint64
	switch encoding & 0x0f {
	case peAbsolute, peU8, peS8:
		v = c.u64()
	case peULEB:
		v = c.uleb()
	case peU2:
		v = uint64(c.u16())
	case peU4:
		v = uint64(c.u32())
	case peSLEB:
		v = uint64(c.sleb())
	case peS2:
		v = uint64(int16(c.u16()))
	case peS4:
		v = uint64(int32(c.u32()))
	default:
		c.err = errors.New("a pointer of unknown form")
	}
	switch encoding & 0x70 {
	case 0:
	case pePCRel:
		v += at
	default:
		c.err = errors.New("a pointer of unknown base")
	}
	return v
}

// Covers reports whether the tables say how to leave a link-time address.
func (t *Table) Covers(addr uint64) bool { return t.find(addr) != nil }

// find returns the entry for an address, or nil.
func (t *Table) find(addr uint64) *entry {
	i, found := slices.BinarySearchFunc(t.entries, addr, func(e entry, addr uint64) int { return cmp.Compare(e.start, addr) })
	if !found {
		i--
	}
	// .debug_frame may repeat what .eh_frame says; entries do not overlap otherwise.
	for ; i >= 0; i-- {
		if e := &t.entries[i]; addr < e.end {
			return e
		} else if i == 0 || t.entries[i-1].start != e.start {
			return nil
		}
	}
	return nil
}
