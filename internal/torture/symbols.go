package torture

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"
)

// functions are a program's functions by address.
type functions []function

type function struct {
	addr, end uint64
	name      string
}

func readFunctions(path string) (functions, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	var list functions
	for _, s := range symbols {
		if t := elf.ST_TYPE(s.Info); (t == elf.STT_FUNC || t == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF {
			addr := s.Value
			if f.Machine == elf.EM_ARM {
				addr &^= 1 // of Thumb
			}
			list = append(list, function{addr, addr + s.Size, s.Name})
		}
	}
	slices.SortStableFunc(list, func(a, b function) int { return cmp.Compare(a.addr, b.addr) })
	return list, nil
}

// at returns the functions that begin at an address, by the low half of its run-time value.
func (f functions) at(bias uint64, low uint32) []string {
	var names []string
	for _, g := range f {
		if uint32(g.addr+bias) == low {
			names = append(names, g.name)
		}
	}
	return names
}

// around returns the names of the functions that an address is in; without what a compiler adds for a split-off part.
func (f functions) around(addr uint64) []string {
	var names []string
	for _, g := range f {
		if addr >= g.addr && addr < g.end {
			whole, _, _ := strings.Cut(g.name, ".cold")
			names = append(names, whole)
		}
	}
	return names
}
