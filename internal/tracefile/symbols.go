package tracefile

import (
	"fmt"
	"strings"
)

// NoModule is the module index of a symbol that belongs to none.
const NoModule = ^uint32(0)

// Symbol names one function.
type Symbol struct {
	Addr   uint64 // at run time; what a method pointer in a ring holds
	Size   uint64 // in bytes; 0 if unknown
	Module uint32 // index into the file's modules, or NoModule; check it against what Modules returned
	Name   string // demangled
	Raw    string // as in the symbol table; equal to Name if it was not mangled
}

const (
	symbolsHeaderSize = 16
	symbolSize        = 32
	maxName           = 1 << 16 // bytes; many symbols may share one name
)

// stringTable collects names, each once.
type stringTable struct {
	offsets map[string]uint32
	table   []byte
}

// intern returns the name's offset in the table. A name ends at its first zero byte, or before maxName bytes.
func (t *stringTable) intern(s string) uint32 {
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	s = s[:min(len(s), maxName-1)]
	off, ok := t.offsets[s]
	if !ok {
		off = uint32(len(t.table))
		t.offsets[s] = off
		t.table = append(append(t.table, s...), 0)
	}
	return off
}

// AppendSymbols appends a symbols section's content. A name ends at its first zero byte, or before 64 KiB.
func AppendSymbols(b []byte, symbols []Symbol) ([]byte, error) {
	t := stringTable{offsets: map[string]uint32{}}
	start := len(b)
	b = le.AppendUint64(b, uint64(len(symbols)))
	b = le.AppendUint64(b, 0)
	for i := range symbols {
		s := &symbols[i]
		b = le.AppendUint64(b, s.Addr)
		b = le.AppendUint64(b, s.Size)
		b = le.AppendUint32(b, s.Module)
		b = le.AppendUint32(b, t.intern(s.Name))
		b = le.AppendUint32(b, t.intern(s.Raw))
		b = le.AppendUint32(b, 0)
		if len(t.table) > MaxContent/2 {
			return nil, fmt.Errorf("symbols: the names exceed %d bytes; write several sections", MaxContent/2)
		}
	}
	le.PutUint64(b[start+8:], uint64(len(t.table)))
	return append(b, t.table...), nil
}

// DecodeSymbols decodes a symbols section's content. The names share one copy of the string table.
func DecodeSymbols(b []byte) ([]Symbol, error) {
	if len(b) < symbolsHeaderSize {
		return nil, fmt.Errorf("symbols: %d bytes, shorter than their header", len(b))
	}
	count, tableSize := le.Uint64(b), le.Uint64(b[8:])
	b = b[symbolsHeaderSize:]
	if count > uint64(len(b)/symbolSize) || tableSize != uint64(len(b))-count*symbolSize {
		return nil, fmt.Errorf("symbols: %d symbols and %d bytes of names do not take %d bytes", count, tableSize, len(b))
	}
	names := string(b[count*symbolSize:])
	if names != "" && names[len(names)-1] != 0 {
		return nil, fmt.Errorf("symbols: the last name has no end")
	}
	symbols := make([]Symbol, count)
	for i := range symbols {
		e := b[i*symbolSize:]
		s := Symbol{Addr: le.Uint64(e), Size: le.Uint64(e[8:]), Module: le.Uint32(e[16:])}
		nameAt, rawAt := le.Uint32(e[20:]), le.Uint32(e[24:])
		if uint64(nameAt) >= tableSize || uint64(rawAt) >= tableSize {
			return nil, fmt.Errorf("symbols: symbol %d of %d names offset %d or %d of %d", i, count, nameAt, rawAt, tableSize)
		}
		var ok, rawOK bool
		s.Name, ok = nameFrom(names[nameAt:])
		s.Raw, rawOK = s.Name, true
		if rawAt != nameAt {
			s.Raw, rawOK = nameFrom(names[rawAt:])
		}
		if !ok || !rawOK {
			return nil, fmt.Errorf("symbols: a name of symbol %d of %d is longer than %d bytes", i, count, maxName)
		}
		symbols[i] = s
	}
	return symbols, nil
}

func nameFrom(s string) (string, bool) {
	name, _, ok := strings.Cut(s[:min(len(s), maxName)], "\x00")
	return name, ok
}

// WriteSymbols appends a symbols section.
func (w *Writer) WriteSymbols(symbols []Symbol) error {
	b, err := AppendSymbols(nil, symbols)
	if err != nil {
		return err
	}
	return w.WriteSection(KindSymbols, b)
}
