package probe

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// Site is a place in a file's code that a probe can be put on. It is plain data.
type Site struct {
	Symbol    string // the function that it is in
	Address   uint64 // as the file's symbols have it, not where the file is loaded
	Offset    uint64 // in the file
	Semaphore uint64 // offset in the file of a 16-bit number that says how many watch a static probe; 0 if there is none
	Return    bool   // a static probe at a return
	Code      []byte // what stands there, at most 16 bytes
}

const maxCode = 16

// Entries finds where functions begin, by the names of their symbols. A name that is not there is an error.
func Entries(path string, functions []string) ([]Site, error) {
	return find(path, functions, func(e *elf.File, symbols []elf.Symbol) ([]Site, error) {
		var sites []Site
		for _, s := range symbols {
			sites = append(sites, Site{Symbol: s.Name, Address: s.Value})
		}
		return sites, nil
	})
}

// find opens a file, and completes the sites that choose makes of the functions' symbols, which are in the functions' order.
func find(path string, functions []string, choose func(*elf.File, []elf.Symbol) ([]Site, error)) ([]Site, error) {
	fail := func(err error) ([]Site, error) { return nil, fmt.Errorf("find places for probes in %s: %w", path, err) }
	e, err := elf.Open(path)
	if err != nil {
		return fail(err)
	}
	defer e.Close()
	all, err := e.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return fail(err)
	}
	byName := map[string]elf.Symbol{}
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
			byName[s.Name] = s
		}
	}
	var symbols []elf.Symbol
	for _, name := range functions {
		s, ok := byName[name]
		if !ok {
			return fail(fmt.Errorf("it has no function %s", name))
		}
		symbols = append(symbols, s)
	}
	sites, err := choose(e, symbols)
	if err != nil {
		return fail(err)
	}
	for i := range sites {
		if err := sites[i].locate(e); err != nil {
			return fail(err)
		}
	}
	return sites, nil
}

// locate fills in the offset and the code.
func (s *Site) locate(e *elf.File) error {
	p := segment(e, s.Address)
	if p == nil || p.Flags&elf.PF_X == 0 {
		return fmt.Errorf("%s: there is no code at %#x", s.Symbol, s.Address)
	}
	in := s.Address - p.Vaddr
	s.Offset = p.Off + in
	s.Code = make([]byte, min(maxCode, p.Filesz-in))
	if _, err := p.ReadAt(s.Code, int64(in)); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the code at %#x: %w", s.Address, err)
	}
	return nil
}

// segment returns the part of the file that an address belongs to, or nil.
func segment(e *elf.File, address uint64) *elf.Prog {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && p.Vaddr <= address && address-p.Vaddr < p.Filesz {
			return p
		}
	}
	return nil
}

// Text is the instruction at the site in the notation of GNU's assembler, or its bytes if they can't be read.
func (s Site) Text(goarch string) string {
	switch {
	case goarch == "amd64" && strings.HasPrefix(string(s.Code), "\xf3\x0f\x1e\xfa"): // x86asm does not know it
		return "endbr64"
	case goarch == "amd64":
		if in, err := x86asm.Decode(s.Code, 64); err == nil {
			return x86asm.GNUSyntax(in, s.Address, nil)
		}
	case goarch == "arm64":
		if in, err := arm64asm.Decode(s.Code); err == nil {
			return strings.TrimSpace(arm64asm.GNUSyntax(in))
		}
	}
	return hex.EncodeToString(s.Code[:min(4, len(s.Code))])
}
