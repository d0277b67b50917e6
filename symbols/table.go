package symbols

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
)

// Options say where files are looked for. The zero value is the default.
type Options struct {
	// Root is put before the paths of modules whose process is gone, for files copied from another machine.
	Root string
	// DebugRoots are searched for debug files before /usr/lib/debug, as .build-id/xx/yyyy.debug below each.
	DebugRoots []string
	// NoDebugFiles leaves separate debug files alone.
	NoDebugFiles bool
}

// Symbol is the answer for a run-time address. It is what a trace file keeps.
type Symbol struct {
	Addr   uint64 // run-time address of the function's first instruction; the address itself where nothing is known
	Size   uint64 // bytes; 0 where nothing is known
	Name   string // demangled; "module+0xoffset" or "[unknown]+0xaddress" where nothing is known
	Raw    string // as in the symbol table; "" where nothing is known
	Module int    // index in Table.Modules, -1 for none
}

// ModuleInfo is a module of a table with what became of it.
type ModuleInfo struct {
	Module
	Image *Image // nil if the file could not be read
	Err   error  // why no function of the module has a name; nil if some have
}

// Stats counts answers of a table.
type Stats struct {
	Resolved, Unresolved uint64
}

// Table answers for the run-time addresses of one process. It does not change once it is built, except for its counters,
// and may be used by many goroutines.
type Table struct {
	mods   []ModuleInfo
	ranges nesting
	owner  []int32 // of each range: the module
	low    lowIndex

	resolved, unresolved atomic.Uint64
}

// NewTable reads the files of all modules. It always succeeds: a module that cannot be read has its reason in Modules,
// and its addresses are rendered as module+offset. Files that several modules share are read once.
//
// Ranges may overlap, as those of libraries that were loaded after one another at the same place. The module whose range
// starts last answers first, and of two that start at the same address the one that stands last in mods.
func NewTable(mods []Module, opts Options) *Table {
	t := &Table{mods: make([]ModuleInfo, len(mods))}
	ld := &loader{opts: opts, cache: make(map[string]*Image)}
	for i, m := range mods {
		info := &t.mods[i]
		info.Module = m
		info.Image, info.Err = ld.load(&info.Module)
		if info.Err == nil && info.Image.Len() == 0 {
			info.Err = ErrStripped
		}
		if info.Err != nil {
			info.Err = fmt.Errorf("names of %s: %w", m.Name(), info.Err)
		}
		if len(m.Ranges) == 0 && info.Image != nil {
			info.Ranges = info.Image.ranges(info.Bias)
		}
	}
	t.placeModules()
	t.low = newLowIndex(t.mods)
	return t
}

// ranges returns where the executable segments are at a bias.
func (img *Image) ranges(bias uint64) []Range {
	var rs []Range
	for _, s := range img.Segments {
		start := s.Vaddr + bias
		if s.Exec && s.Memsz != 0 && start+s.Memsz > start {
			rs = append(rs, Range{start, start + s.Memsz})
		}
	}
	return rs
}

func (t *Table) placeModules() {
	type placed struct {
		Range
		mod int32
	}
	var all []placed
	for i := range t.mods {
		for _, r := range t.mods[i].Ranges {
			all = append(all, placed{r, int32(i)})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.Start, b.Start) })
	starts, ends := make([]uint64, len(all)), make([]uint64, len(all))
	t.owner = make([]int32, len(all))
	for i, p := range all {
		starts[i], ends[i], t.owner[i] = p.Start, p.End, p.mod
	}
	t.ranges = newNesting(starts, ends)
}

// Modules returns the modules in the order of NewTable's argument, with biases and build ids filled in. The slice
// belongs to the table.
func (t *Table) Modules() []ModuleInfo { return t.mods }

// Stats returns how many lookups of all kinds found a function, and how many did not.
func (t *Table) Stats() Stats {
	return Stats{t.resolved.Load(), t.unresolved.Load()}
}

// Lookup returns the function that contains the run-time address. If there is none it returns false and a symbol whose
// Name renders the address: module+0xoffset, where the offset is the link-time address that addr2line and objdump take,
// or the offset in the file if the module's file could not be read.
func (t *Table) Lookup(addr uint64) (Symbol, bool) {
	if mod, fn := t.find(addr); fn >= 0 {
		t.resolved.Add(1)
		return t.symbol(mod, fn), true
	}
	t.unresolved.Add(1)
	return t.unknown(addr), false
}

// find returns the module and the number of its function that contains addr; -1 for none.
func (t *Table) find(addr uint64) (mod, fn int) {
	for r := range t.ranges.containing(addr) {
		mod := int(t.owner[r])
		m := &t.mods[mod]
		if m.Image == nil {
			continue
		}
		if fn := m.Image.find(addr - m.Bias); fn >= 0 {
			return mod, fn
		}
	}
	return -1, -1
}

func (t *Table) symbol(mod, fn int) Symbol {
	m := &t.mods[mod]
	f := m.Image.Function(fn)
	return Symbol{Addr: f.Addr + m.Bias, Size: f.Size, Name: f.Name, Raw: f.Raw, Module: mod}
}

func (t *Table) unknown(addr uint64) Symbol {
	for r := range t.ranges.containing(addr) {
		return t.render(int(t.owner[r]), addr)
	}
	return Symbol{Addr: addr, Name: fmt.Sprintf("[unknown]+%#x", addr), Module: -1}
}

// render names an address by its module.
func (t *Table) render(mod int, addr uint64) Symbol {
	m := &t.mods[mod]
	off := addr - m.Bias
	if !m.Known {
		off = addr - m.Mapping.Start + m.Mapping.Offset
	}
	return Symbol{Addr: addr, Name: fmt.Sprintf("%s+%#x", m.Name(), off), Module: mod}
}

// Functions yields all functions of instrumented modules, module by module, in the order of addresses.
func (t *Table) Functions() iter.Seq[Symbol] {
	return func(yield func(Symbol) bool) {
		for mod := range t.mods {
			m := &t.mods[mod]
			if !m.Instrumented || m.Image == nil {
				continue
			}
			for fn := range m.Image.Len() {
				if !yield(t.symbol(mod, fn)) {
					return
				}
			}
		}
	}
}

// Select returns the symbols for the addresses, each function once, in the order of addresses; unresolved addresses are
// among them. The strings are copies, so that they do not keep the table's memory. Each different address counts in
// Stats once.
func (t *Table) Select(addrs []uint64) []Symbol {
	addrs = slices.Clone(addrs)
	slices.Sort(addrs)
	var out []Symbol
	for _, a := range slices.Compact(addrs) {
		s, _ := t.Lookup(a)
		out = append(out, s)
	}
	return detach(out)
}

// detach sorts symbols, drops repetitions and copies strings.
func detach(syms []Symbol) []Symbol {
	slices.SortFunc(syms, func(a, b Symbol) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
	})
	syms = slices.Compact(syms)
	for i := range syms {
		syms[i].Name, syms[i].Raw = strings.Clone(syms[i].Name), strings.Clone(syms[i].Raw)
	}
	return syms
}
