package probe

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Functions finds all functions of a file whose names match, each place once, in the order of their addresses. It leaves out where no
// probe at a return may be: there the kernel would take for a return address what is none.
func Functions(path string, match func(name string) bool) ([]Site, error) {
	fail := func(err error) ([]Site, error) { return nil, fmt.Errorf("find functions in %s: %w", path, err) }
	e, err := elf.Open(path)
	if err != nil {
		return fail(err)
	}
	defer e.Close()
	switch {
	case e.Class != elf.ELFCLASS64:
		return fail(errors.New("it is no program for 64-bit processors"))
	case e.Section(".gopclntab") != nil:
		return fail(errors.New("it is written in Go, which moves stacks: probes at returns would break it"))
	}
	var all []elf.Symbol
	for _, read := range []func() ([]elf.Symbol, error){e.Symbols, e.DynamicSymbols} {
		symbols, err := read()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return fail(err)
		}
		all = append(all, symbols...)
	}
	if len(all) == 0 {
		return fail(errors.New("it has no symbols"))
	}
	seen := map[uint64]bool{}
	var sites []Site
	for _, s := range all {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || s.Value == e.Entry || seen[s.Value] || !returns(s.Name) || !match(s.Name) {
			continue
		}
		site := Site{Symbol: s.Name, Address: s.Value}
		if err := site.locate(e); err != nil {
			return fail(err)
		}
		seen[s.Value] = true
		sites = append(sites, site)
	}
	slices.SortFunc(sites, func(a, b Site) int { return cmp.Compare(a.Address, b.Address) })
	return sites, nil
}

// strange are beginnings of the names of functions that are not called and left once as others are: what is started by the kernel, what
// returns twice, what runs on another stack then, and braid's own, which stubs jump to.
var strange = []string{"_start", "_init", "_fini", "_dl_", "__restore", "setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "longjmp", "_longjmp",
	"siglongjmp", "__longjmp", "vfork", "__vfork", "clone", "__clone", "getcontext", "setcontext", "swapcontext", "makecontext", "__tls", "_Unwind", "__braid_"}

// returns says whether a function that is called so has its return address where a call leaves it, and goes back there once.
func returns(name string) bool {
	if strings.Contains(name, ".cold") { // a piece of a function: it is jumped to
		return false
	}
	return !slices.ContainsFunc(strange, func(s string) bool { return strings.HasPrefix(name, s) })
}
