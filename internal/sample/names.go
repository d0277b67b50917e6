package sample

import (
	"bytes"
	"cmp"
	"slices"

	"braid/internal/tracefile"
	"braid/symbols"
)

// Names tells what the addresses of all samples are called. It reads the files' symbol tables, which may take a while.
func (s *Sampler) Names() *tracefile.Frames {
	out := &tracefile.Frames{}
	tables := map[*file]lookup{}
	for _, m := range s.spaces.used {
		flags := tracefile.MappingFlags(0)
		if m.m.Deleted {
			flags |= tracefile.MappingDeleted
		}
		t := tables[m.file]
		switch {
		case m.m.Path == "[vdso]":
			flags |= tracefile.MappingVDSO
		case m.file == nil && !m.m.File():
			flags |= tracefile.MappingAnon
		}
		if t == nil && m.file != nil {
			t = m.file.names()
			tables[m.file] = t
		}
		index := uint32(len(out.Mappings))
		o := tracefile.Mapping{Pid: m.pid, Flags: flags, Start: m.m.Start, End: m.m.End, Offset: m.m.Offset, Bias: m.bias,
			Since: m.since, Path: m.m.Path}
		if m.file != nil {
			o.BuildID = m.file.id
		}
		out.Mappings = append(out.Mappings, o)
		if t != nil {
			out.Functions = append(out.Functions, functions(m, index, t)...)
		}
	}
	if len(s.kernel) > 0 {
		kernelNames(out, s.kernel)
	}
	return out
}

// lookup finds the function at a link-time address.
type lookup func(addr uint64) (symbols.Symbol, bool)

// functions lists those in which a mapping's frames lie, each once.
func functions(m *mapping, index uint32, find lookup) (out []tracefile.Function) {
	seen := map[uint64]bool{}
	for addr := range m.addrs {
		sym, ok := find(addr - m.bias)
		if !ok || seen[sym.Addr] {
			continue
		}
		seen[sym.Addr] = true
		start := sym.Addr + m.bias
		out = append(out, tracefile.Function{Mapping: index, Start: start, End: start + max(sym.Size, 1), Name: sym.Name, Raw: sym.Raw})
	}
	slices.SortFunc(out, func(a, b tracefile.Function) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// names reads the file's symbols.
func (f *file) names() lookup {
	if f.image != nil {
		return imageNames(f.image)
	}
	m := f.module
	m.Ranges, m.Mapping = nil, symbols.Mapping{}
	m.Known, m.Bias, m.BuildID = true, 0, f.id
	t := symbols.NewTable([]symbols.Module{m}, symbols.Options{})
	return t.Lookup
}

func imageNames(b []byte) lookup {
	img, err := symbols.ReadImage(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil
	}
	var all []symbols.Function
	for f := range img.Functions() {
		all = append(all, f)
	}
	return func(addr uint64) (symbols.Symbol, bool) {
		i, found := slices.BinarySearchFunc(all, addr, func(f symbols.Function, addr uint64) int { return cmp.Compare(f.Addr, addr) })
		if !found {
			i--
		}
		if i < 0 || addr >= all[i].Addr+all[i].Size {
			return symbols.Symbol{}, false
		}
		return symbols.Symbol{Addr: all[i].Addr, Size: all[i].Size, Name: all[i].Name, Raw: all[i].Raw}, true
	}
}
