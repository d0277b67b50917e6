package timeline

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"braid/inline"
	"braid/internal/tracefile"
)

// Space is the methods and modules of one address space. Processes that were forked without executing a program share
// their parent's.
type Space struct {
	Methods *inline.Methods

	symbols []*tracefile.Symbol          // by method index; nil beyond the known
	owners  owners                       // of what is not one method all the time
	foreign map[uint32]*tracefile.Module // by method index: the module of one without a symbol, where another's has one
	modules []*tracefile.Module          // in order of Start
	all     []tracefile.Module           // that symbols refer to
}

// MethodName is how a method is called.
type MethodName struct {
	Name   string
	Module string // base name of its file, or empty
	// Resolved is false if the name is made of an address.
	Resolved bool
}

// UnknownName is the name of methods that were entered before the first record that is left.
const UnknownName = "[entered earlier]"

// spaceKey names a Space: a process, and the counter since when it executes the program.
type spaceKey struct {
	pid   int
	since uint64
}

// loadSpaces makes a Space for each process that has modules of its own, and for each program that it executed. Modules with process 0 belong to all.
func (t *Trace) loadSpaces() error {
	symbols, err := t.File.Symbols()
	if err != nil {
		return err
	}
	keys := []spaceKey{{}}
	for _, m := range t.Modules {
		if k := (spaceKey{m.Pid, m.Since}); m.Pid != 0 && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	collisions := uint64(0)
	for _, k := range keys {
		sp := &Space{all: t.Modules, owners: make(owners), foreign: make(map[uint32]*tracefile.Module)}
		moduleOf := func(s *tracefile.Symbol) *tracefile.Module {
			if int64(s.Module) < int64(len(t.Modules)) {
				return &t.Modules[s.Module]
			}
			return nil
		}
		ours := func(m *tracefile.Module) bool { return m.Pid == 0 || m.Pid == k.pid && m.Since == k.since }
		for i := range t.Modules {
			if m := &t.Modules[i]; ours(m) {
				sp.modules = append(sp.modules, m)
			}
		}
		slices.SortStableFunc(sp.modules, func(a, b *tracefile.Module) int { return cmp.Compare(a.Start, b.Start) })
		sp.Methods = inline.NewMethods(len(symbols))
		sp.Methods.Thumb = t.Meta.Thumb()
		var own []*tracefile.Symbol
		for i := range symbols {
			s := &symbols[i]
			if m := moduleOf(s); m == nil || ours(m) {
				own = append(own, s)
				sp.name(sp.Methods.Add(s.Addr), s)
			}
		}
		sp.contest(own, moduleOf)
		collisions += uint64(sp.Methods.Collisions())
		t.spaces[k] = sp
	}
	t.lose("symbols_colliding", collisions)
	return nil
}

// space is the address space of a process at a counter: its own, or its nearest ancestor's.
func (t *Trace) space(pid int, at uint64) *Space {
	for range 64 { // a damaged table may hold a cycle
		if sp := t.newest(pid, at); sp != nil && pid != 0 {
			return sp
		}
		i := slices.IndexFunc(t.Processes.Processes, func(p tracefile.Process) bool { return p.Pid == pid })
		if i < 0 {
			break
		}
		pid = t.Processes.Processes[i].PPid
	}
	if len(t.spaces) == 2 { // one process has modules, so they are everybody's
		for k, sp := range t.spaces {
			if k.pid != 0 {
				return sp
			}
		}
	}
	return t.spaces[spaceKey{}]
}

// newest is the newest of a process's own spaces that is not later than a counter, or nil.
func (t *Trace) newest(pid int, at uint64) (sp *Space) {
	best := uint64(0)
	for k, s := range t.spaces {
		if k.pid == pid && k.since <= at && (sp == nil || k.since > best) {
			sp, best = s, k.since
		}
	}
	return sp
}

// Name is a method's name, from its symbol; or else the module and the offset in its file, or the address.
func (s *Space) Name(method uint32) MethodName {
	if int(method) < len(s.symbols) {
		if sym := s.symbols[method]; sym != nil {
			n := MethodName{Name: sym.Name, Resolved: true}
			if int64(sym.Module) < int64(len(s.all)) {
				n.Module = path.Base(s.all[sym.Module].Path)
			}
			return n
		}
	}
	row := s.Methods.Row(method)
	if m := s.foreign[method]; m != nil {
		return offsetIn(m, row.Addr)
	}
	switch {
	case row.State == inline.MethodUnknown:
		return MethodName{Name: UnknownName}
	case row.State == inline.MethodAmbiguous:
		return MethodName{Name: fmt.Sprintf("[two methods at ...%08x]", row.Addr)}
	case !row.Wide:
		return s.narrow(uint32(row.Addr))
	}
	return s.at(row.Addr)
}

// narrow names an address of which the low half is known, by the only module that has such an address.
func (s *Space) narrow(word uint32) MethodName {
	var found uint64
	for _, m := range s.modules {
		addr := m.Start&^0xffff_ffff | uint64(word)
		if addr < m.Start {
			addr += 1 << 32
		}
		if addr < m.Start || addr >= m.End {
			continue
		}
		if found != 0 && found != addr {
			return MethodName{Name: fmt.Sprintf("...%08x", word)}
		}
		found = addr
	}
	if found == 0 {
		return MethodName{Name: fmt.Sprintf("...%08x", word)}
	}
	return s.at(found)
}

func (s *Space) at(addr uint64) MethodName {
	for _, m := range s.modules {
		if addr >= m.Start && addr < m.End {
			return offsetIn(m, addr)
		}
	}
	return MethodName{Name: fmt.Sprintf("%#x", addr)}
}

func offsetIn(m *tracefile.Module, addr uint64) MethodName {
	base := path.Base(m.Path)
	return MethodName{Name: fmt.Sprintf("%s+%#x", base, addr-m.Bias), Module: base}
}
