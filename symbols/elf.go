package symbols

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits on what is read of one ELF file. They are far above what linkers write and bound memory and time for files
// that were made to hurt.
const (
	maxSegments = 4096
	maxSections = 1 << 16
	maxNotes    = 1 << 16  // bytes of one note section or segment
	maxBuildID  = 64       // bytes
	maxEntries  = 16 << 20 // entries of one symbol table
	maxFuncs    = 4 << 20  // function symbols of one image
	maxStrings  = 1 << 29  // bytes of one string table
	maxMiniDbg  = 1 << 27  // bytes of .gnu_debugdata, uncompressed
)

// ErrNotELF says that a file is no ELF file at all.
var ErrNotELF = errors.New("not an ELF file")

// A parseError says what is wrong with a file, and where.
type parseError struct {
	off uint64 // in the file
	msg string
	val any
}

func (e *parseError) Error() string {
	return fmt.Sprintf("ELF: %s (%v) at offset %#x", e.msg, e.val, e.off)
}

// Segment is a PT_LOAD program header: file bytes [Off, Off+Filesz) appear at link-time addresses from Vaddr.
type Segment struct {
	Off, Vaddr     uint64
	Filesz, Memsz  uint64
	Exec, Writable bool
}

// section is a section header.
type section struct {
	name      string
	nameOff   uint32
	typ       elf.SectionType
	flags     elf.SectionFlag
	addr, off uint64
	size      uint64
	link      uint32
	entsize   uint64
}

// elfFile reads the structures of an ELF file, of either class and byte order (System V ABI, gabi 4.1, chapters 4
// and 5). Sections are optional: a file without or with damaged ones still has segments.
type elfFile struct {
	r       io.ReaderAt
	size    uint64
	order   binary.ByteOrder
	is64    bool
	typ     elf.Type
	machine elf.Machine
	segs    []Segment // PT_LOAD only
	notes   []section // PT_NOTE, as off and size
	sects   []section
	sectErr error // why sects is empty, if the header says that there are some
}

// bytesAt reads [off, off+n) after checking that the file has it and that n is at most limit.
func (f *elfFile) bytesAt(what string, off, n, limit uint64) ([]byte, error) {
	if n > limit {
		return nil, &parseError{off, what + " is too large", n}
	}
	if off > f.size || n > f.size-off {
		return nil, &parseError{off, what + " is beyond the end of the file", n}
	}
	b := make([]byte, n)
	if _, err := f.r.ReadAt(b, int64(off)); err != nil && !(errors.Is(err, io.EOF) && n == 0) {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return b, nil
}

// fields reads the integers of one structure in turn.
type fields struct {
	b     []byte
	order binary.ByteOrder
	is64  bool
}

func (f *fields) u16() uint16 { v := f.order.Uint16(f.b); f.b = f.b[2:]; return v }
func (f *fields) u32() uint32 { v := f.order.Uint32(f.b); f.b = f.b[4:]; return v }

// word reads an integer that is as wide as an address.
func (f *fields) word() uint64 {
	if !f.is64 {
		return uint64(f.u32())
	}
	v := f.order.Uint64(f.b)
	f.b = f.b[8:]
	return v
}

// openELF reads headers, segments and section headers.
func openELF(r io.ReaderAt, size int64) (*elfFile, error) {
	f := &elfFile{r: r, size: uint64(max(size, 0))}
	ident, err := f.bytesAt("identification", 0, 16, 16)
	if err != nil || string(ident[:4]) != elf.ELFMAG {
		return nil, ErrNotELF
	}
	switch elf.Class(ident[4]) {
	case elf.ELFCLASS32:
	case elf.ELFCLASS64:
		f.is64 = true
	default:
		return nil, &parseError{4, "unknown class", ident[4]}
	}
	switch elf.Data(ident[5]) {
	case elf.ELFDATA2LSB:
		f.order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		f.order = binary.BigEndian
	default:
		return nil, &parseError{5, "unknown byte order", ident[5]}
	}
	n := uint64(36)
	if f.is64 {
		n = 48
	}
	b, err := f.bytesAt("file header", 16, n, n)
	if err != nil {
		return nil, err
	}
	h := &fields{b, f.order, f.is64}
	f.typ, f.machine = elf.Type(h.u16()), elf.Machine(h.u16())
	h.u32()  // version
	h.word() // entry
	phoff, shoff := h.word(), h.word()
	h.u32() // flags
	h.u16() // size of this header
	phentsize, phnum, shentsize, shnum, shstrndx := h.u16(), h.u16(), h.u16(), h.u16(), h.u16()

	if err := f.readSegments(phoff, uint64(phentsize), uint64(phnum)); err != nil {
		return nil, err
	}
	f.sects, f.sectErr = f.readSections(shoff, uint64(shentsize), uint64(shnum), uint32(shstrndx))
	return f, nil
}

func (f *elfFile) readSegments(off, entsize, num uint64) error {
	if num == 0 {
		return nil
	}
	want := uint64(32)
	if f.is64 {
		want = 56
	}
	if entsize != want {
		return &parseError{off, "wrong size of a program header", entsize}
	}
	b, err := f.bytesAt("program headers", off, num*entsize, maxSegments*entsize)
	if err != nil {
		return err
	}
	for ; len(b) > 0; b = b[want:] {
		h := &fields{b[:want], f.order, f.is64}
		var s Segment
		var flags elf.ProgFlag
		typ := elf.ProgType(h.u32())
		if f.is64 {
			flags = elf.ProgFlag(h.u32())
		}
		s.Off, s.Vaddr = h.word(), h.word()
		h.word() // physical address
		s.Filesz, s.Memsz = h.word(), h.word()
		if !f.is64 {
			flags = elf.ProgFlag(h.u32())
		}
		s.Exec, s.Writable = flags&elf.PF_X != 0, flags&elf.PF_W != 0
		switch typ {
		case elf.PT_LOAD:
			if s.Vaddr+s.Memsz < s.Vaddr || s.Off+s.Filesz < s.Off || s.Memsz < s.Filesz {
				return &parseError{off, "segment with an impossible range", s.Vaddr}
			}
			f.segs = append(f.segs, s)
		case elf.PT_NOTE:
			f.notes = append(f.notes, section{off: s.Off, size: s.Filesz})
		}
	}
	return nil
}

func (f *elfFile) readSections(off, entsize, num uint64, shstrndx uint32) ([]section, error) {
	if off == 0 {
		return nil, nil
	}
	want := uint64(40)
	if f.is64 {
		want = 64
	}
	if entsize != want {
		return nil, &parseError{off, "wrong size of a section header", entsize}
	}
	if num == 0 || shstrndx == uint32(elf.SHN_XINDEX) {
		// The numbers do not fit into the file header; section 0 has them.
		b, err := f.bytesAt("first section header", off, want, want)
		if err != nil {
			return nil, err
		}
		s := f.parseSection(b)
		if num == 0 {
			num = s.size
		}
		if shstrndx == uint32(elf.SHN_XINDEX) {
			shstrndx = s.link
		}
	}
	if num > maxSections {
		return nil, &parseError{off, "too many sections", num}
	}
	b, err := f.bytesAt("section headers", off, num*want, maxSections*want)
	if err != nil {
		return nil, err
	}
	sects := make([]section, 0, num)
	for ; len(b) > 0; b = b[want:] {
		sects = append(sects, f.parseSection(b[:want]))
	}
	if uint64(shstrndx) >= uint64(len(sects)) {
		return nil, &parseError{off, "no table of section names", shstrndx}
	}
	names, err := f.textAt("section names", sects[shstrndx].off, sects[shstrndx].size, 1<<24)
	if err != nil {
		return nil, err
	}
	for i := range sects {
		sects[i].name = stringAt(names, uint64(sects[i].nameOff), 256)
	}
	return sects, nil
}

func (f *elfFile) parseSection(b []byte) section {
	h := &fields{b, f.order, f.is64}
	var s section
	s.nameOff, s.typ = h.u32(), elf.SectionType(h.u32())
	s.flags = elf.SectionFlag(h.word())
	s.addr, s.off, s.size = h.word(), h.word(), h.word()
	s.link = h.u32()
	h.u32()  // info
	h.word() // alignment
	s.entsize = h.word()
	return s
}

// textAt is bytesAt for a table of strings, without a second copy.
func (f *elfFile) textAt(what string, off, n, limit uint64) (string, error) {
	if n > limit {
		return "", &parseError{off, what + " are too large", n}
	}
	if off > f.size || n > f.size-off {
		return "", &parseError{off, what + " are beyond the end of the file", n}
	}
	var text strings.Builder
	text.Grow(int(n))
	if _, err := io.Copy(&text, io.NewSectionReader(f.r, int64(off), int64(n))); err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	return text.String(), nil
}

// stringAt returns the NUL-terminated string at off, cut after limit bytes, or "" if off is outside. It does not copy.
func stringAt(text string, off, limit uint64) string {
	if off >= uint64(len(text)) {
		return ""
	}
	text = text[off:]
	text = text[:min(uint64(len(text)), limit)]
	if i := strings.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	return text
}

// section returns the first section of that name that has bytes in the file.
func (f *elfFile) section(name string) *section {
	for i := range f.sects {
		s := &f.sects[i]
		if s.name == name && s.typ != elf.SHT_NOBITS && s.flags&elf.SHF_COMPRESSED == 0 {
			return s
		}
	}
	return nil
}

// buildID returns the GNU build id in lower-case hex, or "". Sections come first: a separate debug file has them in
// place, while its segments' offsets are those of the file that it was split from.
func (f *elfFile) buildID() string {
	var notes []section
	for _, s := range f.sects {
		if s.typ == elf.SHT_NOTE {
			notes = append(notes, s)
		}
	}
	for _, s := range append(notes, f.notes...) {
		b, err := f.bytesAt("notes", s.off, s.size, maxNotes)
		if err != nil {
			continue
		}
		if id := buildIDNote(b, f.order); id != nil {
			return hex.EncodeToString(id)
		}
	}
	return ""
}

// buildIDNote finds the descriptor of the NT_GNU_BUILD_ID note. Names and descriptors are padded to 4 bytes. (Notes
// padded to 8, which x86 uses for properties, stand in segments of their own.)
func buildIDNote(b []byte, order binary.ByteOrder) []byte {
	const ntGNUBuildID = 3 // elf.h
	for len(b) >= 12 {
		namesz, descsz, typ := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:])), order.Uint32(b[8:])
		b = b[12:]
		name := (namesz + 3) &^ 3
		desc := (descsz + 3) &^ 3
		if name > uint64(len(b)) || desc > uint64(len(b))-name {
			return nil
		}
		if typ == ntGNUBuildID && namesz == 4 && string(b[:4]) == "GNU\x00" && descsz > 0 && descsz <= maxBuildID {
			return b[name : name+descsz]
		}
		b = b[name+desc:]
	}
	return nil
}

// debugLink returns the name of the separate debug file and its CRC-32, or "".
func (f *elfFile) debugLink() (string, uint32) {
	s := f.section(".gnu_debuglink")
	if s == nil || s.size < 8 {
		return "", 0
	}
	b, err := f.bytesAt(".gnu_debuglink", s.off, s.size, 4096+8)
	if err != nil {
		return "", 0
	}
	name := stringAt(string(b[:len(b)-4]), 0, 4096)
	return name, f.order.Uint32(b[len(b)-4:])
}
