package programs

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// image is what a linked file's symbol table and code say of its functions.
type image struct {
	name      string // as of objectName
	functions []function
	text      *elf.Section
	code      []byte
	slow      uint64 // address of __braid_slow
	static    bool   // it holds a C library without stubs
}

// function is a function, or the .cold part of one.
type function struct {
	addr, end uint64
	name      string
	stub      bool   // its code has a trace point
	entry     uint64 // its own address; of a part, that of the function, or 0 if its name does not tell
}

// tracePoint is what every trace point tests: testb $7, (%r11).
var tracePoint = []byte{0x41, 0xf6, 0x03, 7}

func openImage(t *testing.T, path string) *image {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := &image{name: objectName(path), text: f.Section(".text")}
	m.static = f.Section(".interp") == nil && f.Section(".dynamic") == nil
	if m.code, err = m.text.Data(); err != nil {
		t.Fatal(err)
	}
	syms, err := f.Symbols()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	byName := map[string][]uint64{}
	for _, s := range syms {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || s.Size == 0 {
			continue
		}
		if s.Name == "__braid_slow" {
			m.slow = s.Value
		}
		code := m.bytes(s.Value, s.Size)
		m.functions = append(m.functions, function{s.Value, s.Value + s.Size, s.Name, bytes.Contains(code, tracePoint), s.Value})
		byName[s.Name] = append(byName[s.Name], s.Value)
	}
	for i := range m.functions {
		f := &m.functions[i]
		whole, _, cold := strings.Cut(f.name, ".cold")
		if !cold {
			continue
		}
		f.entry = 0
		if len(byName[whole]) == 1 {
			f.entry = byName[whole][0]
		}
	}
	slices.SortFunc(m.functions, func(a, b function) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.end, b.end), cmp.Compare(len(a.name), len(b.name)))
	})
	m.functions = slices.CompactFunc(m.functions, func(a, b function) bool { return a.addr == b.addr }) // aliases
	if m.slow == 0 || len(m.functions) < 2 {
		t.Fatalf("%s: no symbols of the runtime: is it built with braid cc?", path)
	}
	return m
}

// objectName is what a file is called here: callgrind names a library's file, braid the link by which it was loaded.
func objectName(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return filepath.Base(path)
}

// bytes is the code from addr on; it is empty outside of .text.
func (m *image) bytes(addr, size uint64) []byte {
	if addr < m.text.Addr || addr+size > m.text.Addr+uint64(len(m.code)) {
		return nil
	}
	return m.code[addr-m.text.Addr:][:size]
}

// at is the function that an address is in, or nil.
func (m *image) at(addr uint64) *function {
	i, ok := slices.BinarySearchFunc(m.functions, addr, func(f function, a uint64) int { return cmp.Compare(f.addr, a) })
	if !ok {
		i--
	}
	if i < 0 || addr >= m.functions[i].end {
		return nil
	}
	return &m.functions[i]
}

// backFromSlow reports whether the instruction at addr is the jump with which a trace point's out-of-line code goes
// back after a call of the runtime's slow path.
func (m *image) backFromSlow(addr uint64) bool {
	b := m.bytes(addr-5, 6)
	return b != nil && b[0] == 0xe8 && addr+uint64(int64(int32(binary.LittleEndian.Uint32(b[1:])))) == m.slow &&
		(b[5] == 0xe9 || b[5] == 0xeb)
}
