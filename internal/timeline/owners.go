package timeline

import (
	"cmp"
	"slices"

	"braid/internal/tracefile"
)

// owner is a method while its module is loaded.
type owner struct {
	addr             uint64
	method           uint32 // its index
	loaded, unloaded uint64 // counter; unloaded is 0 while it is there, or if that is not known
}

// owners lists, by the index that the decoder gives to an event, the methods that it may stand for, in the order in which
// their modules were loaded. There is a list only where libraries were loaded one after another so that their methods
// have the same address, or the same low half of it.
type owners map[uint32][]owner

// at is the method that index stands for at a counter.
//
// An address belongs to the module that was loaded there last, even after that one's end: destructors and other threads
// may still record then. Different addresses with the same low half are told apart only if all but one are gone.
func (o owners) at(index uint32, counter uint64) uint32 {
	list := o[index]
	if len(list) == 0 {
		return index
	}
	var last, here *owner
	there := 0
	for i := range list {
		w := &list[i]
		if w.loaded > counter {
			break
		}
		if here != nil && here.addr == w.addr { // loaded over it
			here, there = nil, there-1
		}
		last = w
		if w.unloaded == 0 || counter <= w.unloaded {
			here = w
			there++
		}
	}
	switch {
	case there == 1:
		return here.method
	case there > 1:
		return index
	case last != nil:
		return last.method
	}
	return list[0].method
}

// contest finds indices that stand for several methods, and gives each method an index and a symbol of its own. symbols
// are those of the space, moduleOf gives a symbol's module, or nil.
func (s *Space) contest(symbols []*tracefile.Symbol, moduleOf func(*tracefile.Symbol) *tracefile.Module) {
	type file struct {
		addr       uint64
		name, path string
	}
	byIndex := make(map[uint32][]*tracefile.Symbol)
	for _, sym := range symbols {
		if m := moduleOf(sym); m != nil && m.Loaded != 0 {
			i := s.Methods.Low(uint32(sym.Addr))
			byIndex[i] = append(byIndex[i], sym)
		}
	}
	for index, claims := range byIndex {
		nameless := s.nameless(claims)
		if len(claims)+len(nameless) < 2 {
			continue
		}
		known := make(map[file]uint32) // a library that came back is the same one
		for _, sym := range claims {
			m := moduleOf(sym)
			f := file{sym.Addr, sym.Name, m.Path}
			method, ok := known[f]
			if !ok {
				if method = s.Methods.Add(sym.Addr); s.symbols[method] != sym {
					method = s.Methods.Twin(sym.Addr)
					s.name(method, sym)
				}
				known[f] = method
			}
			s.owners[index] = append(s.owners[index], owner{sym.Addr, method, m.Loaded, m.Unloaded})
		}
		for _, m := range nameless {
			method := s.Methods.Twin(claims[0].Addr)
			s.foreign[method] = m
			s.owners[index] = append(s.owners[index], owner{claims[0].Addr, method, m.Loaded, m.Unloaded})
		}
		slices.SortStableFunc(s.owners[index], func(a, b owner) int { return cmp.Compare(a.loaded, b.loaded) })
	}
}

// nameless are the modules that were loaded at a symbol's address as well, and have no symbol there: perhaps because their
// names could not be read.
func (s *Space) nameless(claims []*tracefile.Symbol) (found []*tracefile.Module) {
	addr := claims[0].Addr
	for _, m := range s.modules {
		if m.Start > addr {
			break
		}
		if m.Loaded != 0 && addr < m.End && !slices.ContainsFunc(claims, func(c *tracefile.Symbol) bool { return s.all[c.Module].Path == m.Path }) {
			found = append(found, m)
		}
	}
	return found
}

// name gives a method its symbol, unless it has one.
func (s *Space) name(method uint32, sym *tracefile.Symbol) {
	for len(s.symbols) <= int(method) {
		s.symbols = append(s.symbols, nil)
	}
	if s.symbols[method] == nil {
		s.symbols[method] = sym
	}
}
