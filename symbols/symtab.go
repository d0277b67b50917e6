package symbols

import (
	"cmp"
	"debug/elf"
	"strings"
)

// rawSym is a function symbol as a table has it. Its name is read when it is needed: most never are.
type rawSym struct {
	addr, size uint64
	name       uint32 // offset in blobs[blob]
	blob       uint8  // which string table
	rank       uint8  // lower is better, see rankOf
}

// Parts of rawSym.rank, most important first.
const (
	rankNoType = 8 // a label, not a function
	rankNoSize = 4
	rankWeak   = 1
	rankLocal  = 2
)

func rankOf(typ elf.SymType, bind elf.SymBind, size uint64) uint8 {
	var r uint8
	if typ == elf.STT_NOTYPE {
		r |= rankNoType
	}
	if size == 0 {
		r |= rankNoSize
	}
	switch bind {
	case elf.STB_LOCAL:
		r |= rankLocal
	case elf.STB_WEAK:
		r |= rankWeak
	}
	return r
}

// symReader collects function symbols from any number of tables.
type symReader struct {
	syms  []rawSym
	blobs []string
}

// readTable appends the function symbols of the section of type typ, SHT_SYMTAB or SHT_DYNSYM, of which a file has one
// each at most. On an error, those before it have been appended.
func (sr *symReader) readTable(f *elfFile, typ elf.SectionType) error {
	for i := range f.sects {
		if f.sects[i].typ == typ {
			return sr.read(f, &f.sects[i])
		}
	}
	return nil
}

func (sr *symReader) read(f *elfFile, s *section) error {
	entsize := uint64(16)
	if f.is64 {
		entsize = 24
	}
	if s.entsize != entsize {
		return &parseError{s.off, "wrong size of a symbol", s.entsize}
	}
	if s.flags&elf.SHF_COMPRESSED != 0 {
		return &parseError{s.off, "compressed symbol table", s.size}
	}
	if s.size/entsize > maxEntries {
		return &parseError{s.off, "too many symbols", s.size / entsize}
	}
	if uint64(s.link) >= uint64(len(f.sects)) || f.sects[s.link].typ != elf.SHT_STRTAB {
		return &parseError{s.off, "no table of symbol names", s.link}
	}
	if len(sr.blobs) > 255 {
		return &parseError{s.off, "too many symbol tables", len(sr.blobs)}
	}
	str := &f.sects[s.link]
	blob, err := f.textAt("symbol names", str.off, str.size, maxStrings)
	if err != nil {
		return err
	}
	bi := uint8(len(sr.blobs))
	sr.blobs = append(sr.blobs, blob)

	const chunk = 4096 // symbols at a time: the table itself is never in memory as a whole
	for off, end := s.off, s.off+s.size/entsize*entsize; off < end; {
		n := min(chunk*entsize, end-off)
		b, err := f.bytesAt("symbols", off, n, chunk*entsize)
		if err != nil {
			return err
		}
		off += n
		for ; len(b) > 0; b = b[entsize:] {
			sym, ok := f.parseSym(b[:entsize], blob)
			if !ok {
				continue
			}
			if len(sr.syms) == maxFuncs {
				return &parseError{s.off, "too many functions", len(sr.syms)}
			}
			sym.blob = bi
			sr.syms = append(sr.syms, sym)
		}
	}
	return nil
}

// parseSym parses one symbol and reports whether it is a function: STT_FUNC, STT_GNU_IFUNC, or a label without a type
// in a section of code, as hand-written assembly has it.
func (f *elfFile) parseSym(b []byte, names string) (rawSym, bool) {
	h := &fields{b, f.order, f.is64}
	var sym rawSym
	var info uint8
	var shndx elf.SectionIndex
	sym.name = h.u32()
	if f.is64 {
		info = h.b[0]
		h.b = h.b[2:]
		shndx = elf.SectionIndex(h.u16())
		sym.addr, sym.size = h.word(), h.word()
	} else {
		sym.addr, sym.size = h.word(), h.word()
		info = h.b[0]
		h.b = h.b[2:]
		shndx = elf.SectionIndex(h.u16())
	}
	if shndx == elf.SHN_UNDEF || shndx == elf.SHN_ABS || shndx == elf.SHN_COMMON {
		return sym, false
	}
	if uint64(sym.name) >= uint64(len(names)) || names[sym.name] == 0 {
		return sym, false
	}
	typ, bind := elf.ST_TYPE(info), elf.ST_BIND(info)
	switch typ {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		if f.machine == elf.EM_ARM {
			sym.addr &^= 1 // Thumb code
		}
	case elf.STT_NOTYPE:
		// "$x" and the like mark where code and data start (AAELF32 and AAELF64, "mapping symbols"); "." starts a
		// compiler's own label.
		if c := names[sym.name]; c == '$' || c == '.' || int(shndx) >= len(f.sects) {
			return sym, false
		}
		s := &f.sects[shndx]
		if s.flags&elf.SHF_EXECINSTR == 0 || sym.addr < s.addr || sym.addr-s.addr >= s.size {
			return sym, false
		}
	default:
		return sym, false
	}
	sym.rank = rankOf(typ, bind, sym.size)
	return sym, true
}

func (sr *symReader) nameOf(s *rawSym) string {
	return stringAt(sr.blobs[s.blob], uint64(s.name), maxName)
}

// compare orders by address, and symbols of the same address by how likely users expect them: functions before labels,
// with a size before without, global before weak before local; then ordinary names before those of compilers and
// libraries (leading dots, "$", underscores); then the longer name, which says more (perf chooses so as well); then the
// alphabet, so that the choice does not depend on the order in the file.
func (sr *symReader) compare(a, b *rawSym) int {
	if c := cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.rank, b.rank)); c != 0 {
		return c
	}
	if a.name == b.name && a.blob == b.blob {
		return 0
	}
	an, bn := sr.nameOf(a), sr.nameOf(b)
	return cmp.Or(
		cmp.Compare(oddness(an), oddness(bn)),
		cmp.Compare(strings.Count(an, "@"), strings.Count(bn, "@")),
		cmp.Compare(len(bn), len(an)),
		cmp.Compare(an, bn),
	)
}

// oddness is 0 for ordinary and mangled names, then the number of leading underscores, and most for names that no source
// can have.
func oddness(name string) int {
	switch {
	case name == "" || name[0] == '.' || name[0] == '$':
		return 1 << 20
	case strings.HasPrefix(name, "_Z"), strings.HasPrefix(name, "_R"):
		return 0
	}
	return len(name) - len(strings.TrimLeft(name, "_"))
}
