package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// synthetic describes an ELF file that no compiler here would write.
type synthetic struct {
	is32    bool
	big     bool
	typ     elf.Type
	machine elf.Machine
	load    []Segment
	text    [2]uint64 // address and end of section 1
	syms    []syntheticSym
	extra   []byte // content of .gnu_debugdata
}

type syntheticSym struct {
	name  string
	addr  uint64
	size  uint64
	typ   elf.SymType
	bind  elf.SymBind
	shndx uint16 // 1 is .text, 2 a section of data
}

// bytes writes the file: header, program headers, section contents, section headers.
func (s synthetic) bytes() []byte {
	var order binary.ByteOrder = binary.LittleEndian
	if s.big {
		order = binary.BigEndian
	}
	word := func(b *bytes.Buffer, v uint64) {
		if s.is32 {
			binary.Write(b, order, uint32(v))
		} else {
			binary.Write(b, order, v)
		}
	}
	put := func(b *bytes.Buffer, vs ...any) {
		for _, v := range vs {
			binary.Write(b, order, v)
		}
	}
	var phdrs, symtab, strtab bytes.Buffer
	for _, l := range s.load {
		flags := elf.PF_R
		if l.Exec {
			flags |= elf.PF_X
		}
		put(&phdrs, uint32(elf.PT_LOAD))
		if !s.is32 {
			put(&phdrs, uint32(flags))
		}
		for _, v := range []uint64{l.Off, l.Vaddr, l.Vaddr, l.Filesz, l.Memsz} {
			word(&phdrs, v)
		}
		if s.is32 {
			put(&phdrs, uint32(flags))
		}
		word(&phdrs, 0x1000)
	}
	strtab.WriteByte(0)
	for _, sym := range append([]syntheticSym{{}}, s.syms...) {
		off := uint32(strtab.Len())
		strtab.WriteString(sym.name + "\x00")
		info := elf.ST_INFO(sym.bind, sym.typ)
		if s.is32 {
			put(&symtab, off, uint32(sym.addr), uint32(sym.size), info, uint8(0), sym.shndx)
		} else {
			put(&symtab, off, info, uint8(0), sym.shndx, sym.addr, sym.size)
		}
	}
	ehsize, phentsize, shentsize, symsize := 64, 56, 64, uint64(24)
	if s.is32 {
		ehsize, phentsize, shentsize, symsize = 52, 32, 40, 16
	}
	names := "\x00.text\x00.data\x00.symtab\x00.strtab\x00.shstrtab\x00.gnu_debugdata\x00"
	nameOf := func(n string) uint32 { return uint32(bytes.Index([]byte(names), []byte("\x00"+n+"\x00")) + 1) }
	offSym := uint64(ehsize + phdrs.Len())
	offStr := offSym + uint64(symtab.Len())
	offNames := offStr + uint64(strtab.Len())
	offExtra := offNames + uint64(len(names))
	var shdrs bytes.Buffer
	section := func(name string, typ elf.SectionType, flags elf.SectionFlag, addr, off, size uint64, link uint32, entsize uint64) {
		put(&shdrs, nameOf(name), uint32(typ))
		word(&shdrs, uint64(flags))
		word(&shdrs, addr)
		word(&shdrs, off)
		word(&shdrs, size)
		put(&shdrs, link, uint32(0))
		word(&shdrs, 1)
		word(&shdrs, entsize)
	}
	section("", elf.SHT_NULL, 0, 0, 0, 0, 0, 0)
	section(".text", elf.SHT_NOBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, s.text[0], 0, s.text[1]-s.text[0], 0, 0)
	section(".data", elf.SHT_NOBITS, elf.SHF_ALLOC, 0, 0, 1<<30, 0, 0)
	section(".symtab", elf.SHT_SYMTAB, 0, 0, offSym, uint64(symtab.Len()), 4, symsize)
	section(".strtab", elf.SHT_STRTAB, 0, 0, offStr, uint64(strtab.Len()), 0, 0)
	section(".shstrtab", elf.SHT_STRTAB, 0, 0, offNames, uint64(len(names)), 0, 0)
	section(".gnu_debugdata", elf.SHT_PROGBITS, 0, 0, offExtra, uint64(len(s.extra)), 0, 0)

	var out bytes.Buffer
	class, data := elf.ELFCLASS64, elf.ELFDATA2LSB
	if s.is32 {
		class = elf.ELFCLASS32
	}
	if s.big {
		data = elf.ELFDATA2MSB
	}
	out.WriteString(elf.ELFMAG)
	out.Write([]byte{byte(class), byte(data), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	put(&out, uint16(s.typ), uint16(s.machine), uint32(1))
	word(&out, 0)
	word(&out, uint64(ehsize))
	word(&out, offExtra+uint64(len(s.extra)))
	put(&out, uint32(0), uint16(ehsize), uint16(phentsize), uint16(len(s.load)), uint16(shentsize), uint16(7), uint16(5))
	out.Write(phdrs.Bytes())
	out.Write(symtab.Bytes())
	out.Write(strtab.Bytes())
	out.WriteString(names)
	out.Write(s.extra)
	out.Write(shdrs.Bytes())
	return out.Bytes()
}

func (s synthetic) image(t testing.TB) *Image {
	t.Helper()
	b := s.bytes()
	img, err := ReadImage(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range img.Problems {
		t.Errorf("problem: %v", p)
	}
	return img
}

// base is a small amd64 executable with room for 0x1000 bytes of code.
func base(syms ...syntheticSym) synthetic {
	return synthetic{
		typ: elf.ET_DYN, machine: elf.EM_X86_64,
		load: []Segment{{Off: 0x1000, Vaddr: 0x1000, Filesz: 0x1000, Memsz: 0x1000, Exec: true}},
		text: [2]uint64{0x1000, 0x1800}, syms: syms,
	}
}

func fn(name string, addr, size uint64) syntheticSym {
	return syntheticSym{name, addr, size, elf.STT_FUNC, elf.STB_GLOBAL, 1}
}

func TestEveryClassAndByteOrder(t *testing.T) {
	for _, is32 := range []bool{false, true} {
		for _, big := range []bool{false, true} {
			s := base(fn("one", 0x1000, 16), fn("two", 0x1020, 32))
			s.is32, s.big = is32, big
			img := s.image(t)
			if diff := cmp.Diff(map[uint64]string{0x1000: "one", 0x1020: "two"}, rawNames(img)); diff != "" {
				t.Errorf("32 bits %v, big endian %v: %s", is32, big, diff)
			}
			if diff := cmp.Diff(s.load, img.Segments); diff != "" {
				t.Errorf("32 bits %v, big endian %v: %s", is32, big, diff)
			}
		}
	}
}

func TestChoiceOfName(t *testing.T) {
	sym := func(name string, typ elf.SymType, bind elf.SymBind, size uint64) syntheticSym {
		return syntheticSym{name, 0x1000, size, typ, bind, 1}
	}
	for _, c := range []struct {
		want string
		syms []syntheticSym
	}{
		{"global", []syntheticSym{sym("weakweak", elf.STT_FUNC, elf.STB_WEAK, 8), sym("global", elf.STT_FUNC, elf.STB_GLOBAL, 8)}},
		{"weak", []syntheticSym{sym("locallocal", elf.STT_FUNC, elf.STB_LOCAL, 8), sym("weak", elf.STT_FUNC, elf.STB_WEAK, 8)}},
		{"function", []syntheticSym{sym("labellabel", elf.STT_NOTYPE, elf.STB_GLOBAL, 8), sym("function", elf.STT_FUNC, elf.STB_LOCAL, 8)}},
		{"sized", []syntheticSym{sym("unsized", elf.STT_FUNC, elf.STB_GLOBAL, 0), sym("sized", elf.STT_FUNC, elf.STB_LOCAL, 8)}},
		{"malloc", []syntheticSym{sym("__libc_malloc", elf.STT_FUNC, elf.STB_GLOBAL, 8), sym("malloc", elf.STT_FUNC, elf.STB_GLOBAL, 8)}},
		{"_ZN1A1BEv", []syntheticSym{sym("__b", elf.STT_FUNC, elf.STB_GLOBAL, 8), sym("_ZN1A1BEv", elf.STT_FUNC, elf.STB_GLOBAL, 8)}},
		{"f", []syntheticSym{sym("f@@V1", elf.STT_FUNC, elf.STB_GLOBAL, 8), sym("f", elf.STT_FUNC, elf.STB_GLOBAL, 8)}},
		{"f", []syntheticSym{sym(".text.f", elf.STT_FUNC, elf.STB_GLOBAL, 8), sym("f", elf.STT_FUNC, elf.STB_GLOBAL, 8)}},
		{"read_all", []syntheticSym{sym("read", elf.STT_FUNC, elf.STB_GLOBAL, 8), sym("read_all", elf.STT_FUNC, elf.STB_GLOBAL, 8)}},
		{"aa", []syntheticSym{sym("bb", elf.STT_FUNC, elf.STB_GLOBAL, 8), sym("aa", elf.STT_FUNC, elf.STB_GLOBAL, 8)}},
		{"ifunc", []syntheticSym{sym("$x", elf.STT_NOTYPE, elf.STB_LOCAL, 0), sym("ifunc", elf.STT_GNU_IFUNC, elf.STB_LOCAL, 0)}},
	} {
		for range 2 { // the order in the file does not matter
			img := base(c.syms...).image(t)
			if diff := cmp.Diff(map[uint64]string{0x1000: c.want}, rawNames(img)); diff != "" {
				t.Error(diff)
			}
			c.syms[0], c.syms[1] = c.syms[1], c.syms[0]
		}
	}
}

func TestExtents(t *testing.T) {
	label := func(name string, addr uint64, shndx uint16) syntheticSym {
		return syntheticSym{name, addr, 0, elf.STT_NOTYPE, elf.STB_LOCAL, shndx}
	}
	img := base(
		fn("outer", 0x1000, 0x100), fn("inner", 0x1040, 0x10), label("jump_here", 0x1080, 1),
		fn("unsized", 0x1200, 0), fn("next", 0x1300, 0x10), label("last", 0x1700, 1),
		label("etext", 0x1800, 1), label("some_data", 0x1400, 2), label(".L3", 0x1410, 1), label("$a.7", 0x1420, 1),
		fn("huge", 0x1480, 1<<63), fn("outside", 0x9000, 16),
		syntheticSym{"undefined", 0x1440, 8, elf.STT_FUNC, elf.STB_GLOBAL, 0},
		syntheticSym{"object", 0x1450, 8, elf.STT_OBJECT, elf.STB_GLOBAL, 1},
	).image(t)
	for addr, want := range map[uint64]string{
		0x0fff: "", 0x1000: "outer", 0x103f: "outer", 0x1040: "inner", 0x104f: "inner", 0x1050: "outer", 0x1080: "outer",
		0x10ff: "outer", 0x1100: "", 0x11ff: "", 0x1200: "unsized", 0x12ff: "unsized", 0x1300: "next", 0x1310: "",
		0x1400: "", 0x1410: "", 0x1420: "", 0x1440: "", 0x1450: "", 0x1480: "huge", 0x1700: "huge", 0x1fff: "huge",
		0x2000: "", 0x9000: "",
	} {
		got := ""
		if i := img.find(addr); i >= 0 {
			got = img.Function(i).Raw
		}
		if got != want {
			t.Errorf("%#x is in %q, want %q", addr, got, want)
		}
	}
}

func TestLastLabelEndsWithItsSection(t *testing.T) {
	img := base(syntheticSym{"last", 0x1700, 0, elf.STT_NOTYPE, elf.STB_GLOBAL, 1}).image(t)
	if got, want := img.Function(0), (Function{0x1700, 0x100, "last", "last"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestThumb(t *testing.T) {
	s := base(fn("thumb", 0x1001, 8), syntheticSym{"$t", 0x1000, 0, elf.STT_NOTYPE, elf.STB_LOCAL, 1}, fn("arm", 0x1010, 8))
	s.is32, s.machine = true, elf.EM_ARM
	table := tableOf(s.image(t), 0x40000)
	for low, want := range map[uint32]string{0x41000: "thumb", 0x41001: "thumb", 0x41010: "arm"} {
		if got, ok := table.Resolve32(low); !ok || got.Name != want {
			t.Errorf("Resolve32(%#x) = %+v, %v", low, got, ok)
		}
		if got, ok := table.Lookup(uint64(low)); !ok || got.Name != want {
			t.Errorf("Lookup(%#x) = %+v, %v", low, got, ok)
		}
	}
}

func TestBiasAndOffsets(t *testing.T) {
	// Text at the end of one page of the file, data at the start of the rest of it: the page is mapped twice.
	img := &Image{Segments: []Segment{
		{Off: 0x0, Vaddr: 0x40000, Filesz: 0x1000, Memsz: 0x1000},
		{Off: 0x1000, Vaddr: 0x42000, Filesz: 0x1800, Memsz: 0x1800, Exec: true},
		{Off: 0x2800, Vaddr: 0x45800, Filesz: 0x100, Memsz: 0x2000, Writable: true},
	}}
	for _, c := range []struct {
		m    Mapping
		bias uint64
		ok   bool
	}{
		{Mapping{Start: 0x7000001000, End: 0x7000003000, Offset: 0x1000, Exec: true}, 0x7000001000 - 0x42000, true},
		{Mapping{Start: 0x7000002000, End: 0x7000003000, Offset: 0x2000, Exec: true}, 0x7000001000 - 0x42000, true}, // split
		{Mapping{Start: 0x7000004000, End: 0x7000005000, Offset: 0x2000}, 0x7000004800 - 0x45800, true},             // data
		{Mapping{Start: 0x7000004000, End: 0x7000005000, Offset: 0x9000, Exec: true}, 0, false},                     // elsewhere
		{Mapping{Start: 0x1000, End: 0x3000, Offset: 0x1000, Exec: true}, ^uint64(0x42000 - 0x1000 - 1), true},      // downwards
		{Mapping{Start: 0x1000, End: 0x2000, Offset: 1<<64 - 0x1000, Exec: true}, 0, false},                         // wraps
	} {
		bias, ok := img.Bias(c.m)
		if ok != c.ok || ok && bias != c.bias {
			t.Errorf("%+v: bias %#x, %v, want %#x", c.m, bias, ok, c.bias)
		}
	}
	if v, ok := img.Vaddr(0x2000); !ok || v != 0x43000 {
		t.Errorf("Vaddr(0x2000) = %#x, %v", v, ok)
	}
	if o, ok := img.Offset(0x45810); !ok || o != 0x2810 {
		t.Errorf("Offset(0x45810) = %#x, %v", o, ok)
	}
	if _, ok := img.Offset(0x45a00); ok { // .bss is not in the file
		t.Error("an offset for .bss")
	}
}
