package symbols

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync/atomic"
)

// Function is a function of an [Image].
type Function struct {
	Addr uint64 // link-time address of its first instruction; for Thumb code without the mode bit
	Size uint64 // bytes; up to the next function where the symbol has no size
	Name string // demangled, see Demangle
	Raw  string // as in the symbol table
}

// Image is what an ELF file says about its code. It does not change and may be used by many goroutines. It keeps the
// string tables in memory, but not the file.
type Image struct {
	Type     elf.Type // ET_EXEC or ET_DYN
	Machine  elf.Machine
	BuildID  string // lower-case hex; "" if the file has none
	Segments []Segment
	Sources  []string // where names came from: ".symtab", ".dynsym", ".gnu_debugdata", or the path of a debug file
	Problems []error  // tables that could not be read; the others were

	blobs []string
	funcs nesting
	names []funcName
	shown []atomic.Pointer[string] // demangled names, made when first asked for
}

type funcName struct {
	off  uint32
	blob uint8
}

// ReadImage reads an executable or shared object of the given size in bytes, with the tables that are in the file
// itself. It fails if the file is no ELF file (ErrNotELF), is damaged so that it could not be loaded, or is not a file
// that is loaded at all; damaged symbol tables are reported in Problems.
func ReadImage(r io.ReaderAt, size int64) (*Image, error) {
	l, err := newImageReader(r, size)
	if err != nil {
		return nil, err
	}
	l.readOwnTables()
	return l.finish(), nil
}

// imageReader is an Image that is being read.
type imageReader struct {
	img    *Image
	elf    *elfFile
	syms   symReader
	hasSym bool // .symtab has functions, in the file or in a debug file
}

// newImageReader reads what is needed to recognise and place the file: headers, segments, build id.
func newImageReader(r io.ReaderAt, size int64) (*imageReader, error) {
	f, err := openELF(r, size)
	if err != nil {
		return nil, err
	}
	if f.typ != elf.ET_EXEC && f.typ != elf.ET_DYN {
		return nil, fmt.Errorf("ELF: a file of type %v is never mapped as a program", f.typ)
	}
	img := &Image{Type: f.typ, Machine: f.machine, BuildID: f.buildID(), Segments: f.segs}
	if f.sectErr != nil {
		img.Problems = append(img.Problems, f.sectErr)
	}
	return &imageReader{img: img, elf: f}, nil
}

func (l *imageReader) problem(err error) {
	l.img.Problems = append(l.img.Problems, err)
}

// readTable reports whether it found functions.
func (l *imageReader) readTable(f *elfFile, typ elf.SectionType, source string) bool {
	before := len(l.syms.syms)
	if err := l.syms.readTable(f, typ); err != nil {
		l.problem(fmt.Errorf("%s: %w", source, err))
	}
	found := len(l.syms.syms) > before
	if found {
		l.img.Sources = append(l.img.Sources, source)
	}
	return found
}

// readOwnTables reads .symtab, or what a stripped file has instead.
func (l *imageReader) readOwnTables() {
	l.hasSym = l.readTable(l.elf, elf.SHT_SYMTAB, ".symtab")
	l.readTable(l.elf, elf.SHT_DYNSYM, ".dynsym")
	if s := l.elf.section(".gnu_debugdata"); s != nil && !l.hasSym {
		if err := l.readMiniDebug(s); err != nil {
			l.problem(fmt.Errorf(".gnu_debugdata: %w", err))
		}
	}
}

// readMiniDebug reads the xz-compressed ELF file with the functions that .dynsym does not have
// (gdb manual, "MiniDebugInfo").
func (l *imageReader) readMiniDebug(s *section) error {
	packed, err := l.elf.bytesAt("section", s.off, s.size, maxMiniDbg)
	if err != nil {
		return err
	}
	data, err := unpackXZ(packed, maxMiniDbg)
	if err != nil {
		return err
	}
	f, err := openELF(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	if f.sectErr != nil {
		return f.sectErr
	}
	l.readTable(f, elf.SHT_SYMTAB, ".gnu_debugdata")
	return nil
}

// finish sorts the functions, keeps one for each address, and gives each an end.
func (l *imageReader) finish() *Image {
	img, syms := l.img, l.syms.syms
	syms = slices.DeleteFunc(syms, func(s rawSym) bool { return img.segmentEnd(s.addr) == 0 })
	slices.SortFunc(syms, func(a, b rawSym) int { return l.syms.compare(&a, &b) })
	syms = slices.CompactFunc(syms, func(a, b rawSym) bool { return a.addr == b.addr })
	syms = dropInnerLabels(syms)

	starts, ends := make([]uint64, len(syms)), make([]uint64, len(syms))
	img.names = make([]funcName, len(syms))
	for i, s := range syms {
		end := img.segmentEnd(s.addr)
		if s.size != 0 {
			end = s.addr + min(s.size, end-s.addr)
		} else {
			end = min(end, l.sectionEnd(s.addr))
			if i+1 < len(syms) {
				end = min(end, syms[i+1].addr)
			}
		}
		starts[i], ends[i] = s.addr, end
		img.names[i] = funcName{s.name, s.blob}
	}
	img.funcs = newNesting(starts, ends)
	img.blobs = l.syms.blobs
	img.shown = make([]atomic.Pointer[string], len(syms))
	return img
}

// dropInnerLabels removes labels without size inside functions with a size: places to jump to, not functions.
func dropInnerLabels(syms []rawSym) []rawSym {
	var end uint64 // of the functions so far
	kept := syms[:0]
	for _, s := range syms {
		if s.rank&(rankNoType|rankNoSize) == rankNoType|rankNoSize && s.addr < end {
			continue
		}
		if s.rank&rankNoType == 0 && s.addr+s.size > s.addr {
			end = max(end, s.addr+s.size)
		}
		kept = append(kept, s)
	}
	return kept
}

// segmentEnd returns the end of the executable segment that has addr, 0 if there is none.
func (img *Image) segmentEnd(addr uint64) uint64 {
	for _, s := range img.Segments {
		if s.Exec && addr >= s.Vaddr && addr-s.Vaddr < s.Memsz {
			return s.Vaddr + s.Memsz
		}
	}
	return 0
}

// sectionEnd returns the end of the section of code that has addr, or the highest address.
func (l *imageReader) sectionEnd(addr uint64) uint64 {
	for i := range l.elf.sects {
		s := &l.elf.sects[i]
		if s.flags&elf.SHF_EXECINSTR != 0 && addr >= s.addr && addr-s.addr < s.size && s.addr+s.size > s.addr {
			return s.addr + s.size
		}
	}
	return ^uint64(0)
}

// Len returns the number of functions.
func (img *Image) Len() int { return len(img.names) }

// Function returns the i-th function in the order of addresses.
func (img *Image) Function(i int) Function {
	raw := stringAt(img.blobs[img.names[i].blob], uint64(img.names[i].off), maxName)
	name := img.shown[i].Load()
	if name == nil {
		s := Demangle(raw)
		name = &s
		img.shown[i].Store(name)
	}
	start := img.funcs.starts[i]
	return Function{Addr: start, Size: img.funcs.ends[i] - start, Name: *name, Raw: raw}
}

// Functions yields all functions in the order of addresses, one for each address.
func (img *Image) Functions() iter.Seq[Function] {
	return func(yield func(Function) bool) {
		for i := range img.names {
			if !yield(img.Function(i)) {
				return
			}
		}
	}
}

// find returns the innermost function that contains the link-time address, or -1.
func (img *Image) find(addr uint64) int {
	for i := range img.funcs.containing(addr) {
		return i
	}
	return -1
}

// thumb reports whether addresses of functions may carry the bit that selects the Thumb instruction set.
func (img *Image) thumb() bool { return img.Machine == elf.EM_ARM }

// Vaddr translates an offset in the file to a link-time address.
func (img *Image) Vaddr(off uint64) (uint64, bool) {
	for _, s := range img.Segments {
		if off >= s.Off && off-s.Off < s.Filesz {
			return s.Vaddr + (off - s.Off), true
		}
	}
	return 0, false
}

// Offset translates a link-time address to an offset in the file, as uprobes need it.
func (img *Image) Offset(vaddr uint64) (uint64, bool) {
	for _, s := range img.Segments {
		if vaddr >= s.Vaddr && vaddr-s.Vaddr < s.Filesz {
			return s.Off + (vaddr - s.Vaddr), true
		}
	}
	return 0, false
}

// Bias computes where the image was loaded from one of its mappings. A mapping is rounded out to pages, so two segments
// may share the file's page at their border: the segment with the larger part in the mapping is taken, and of those only
// executable ones for an executable mapping.
func (img *Image) Bias(m Mapping) (uint64, bool) {
	var bias, best uint64
	mapEnd := m.Offset + (m.End - m.Start)
	for _, s := range img.Segments {
		lo, hi := max(s.Off, m.Offset), min(s.Off+s.Filesz, mapEnd)
		if s.Exec != m.Exec || lo >= hi || hi-lo <= best {
			continue
		}
		best = hi - lo
		bias = m.Start + (s.Off - m.Offset) - s.Vaddr
	}
	return bias, best > 0
}
