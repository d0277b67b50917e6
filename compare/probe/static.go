package probe

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Static probes (SystemTap's sys/sdt.h, "USDT"): a nop in the code, and a note that says where. Source: SystemTap's
// UserSpaceProbeImplementation, and libbpf's src/usdt.c.

// atReturns matches the names that people give to static probes at returns.
var atReturns = regexp.MustCompile(`(?i)(^|_)(ret|return|exit|leave)$`)

// note is one of a file's static probes.
type note struct {
	address   uint64 // of the nop, as the file has it
	semaphore uint64 // address of the count of watchers; 0 if there is none
	provider  string
	name      string
}

// Statics finds the static probes within functions, and tells those at returns by their names. A function without any is an
// error.
func Statics(path string, functions []string) ([]Site, error) {
	return find(path, functions, func(e *elf.File, symbols []elf.Symbol) ([]Site, error) {
		notes, err := readNotes(e)
		if err != nil {
			return nil, err
		}
		var sites []Site
		for _, s := range symbols {
			before := len(sites)
			for _, n := range notes {
				if n.address < s.Value || n.address-s.Value >= s.Size {
					continue
				}
				site := Site{Symbol: s.Name, Address: n.address, Return: atReturns.MatchString(n.name)}
				if n.semaphore != 0 {
					p := segment(e, n.semaphore)
					if p == nil {
						return nil, fmt.Errorf("the semaphore of %s:%s is not in the file", n.provider, n.name)
					}
					site.Semaphore = p.Off + n.semaphore - p.Vaddr
				}
				sites = append(sites, site)
			}
			if len(sites) == before {
				return nil, fmt.Errorf("%s has no static probe", s.Name)
			}
		}
		return sites, nil
	})
}

var errNote = errors.New("a note of a static probe is broken")

// readNotes reads the section .note.stapsdt. Addresses in it were true when the file was linked; how far the section
// .stapsdt.base is from where its notes say tells how far tools that came later have moved them.
func readNotes(e *elf.File) ([]note, error) {
	section := e.Section(".note.stapsdt")
	if section == nil || e.Class != elf.ELFCLASS64 {
		return nil, errors.New("there are no notes of static probes")
	}
	data, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("read the notes of static probes: %w", err)
	}
	base := e.Section(".stapsdt.base")
	var notes []note
	for len(data) >= 12 {
		nameSize, size, kind := e.ByteOrder.Uint32(data), e.ByteOrder.Uint32(data[4:]), e.ByteOrder.Uint32(data[8:])
		from, to := 12+align4(nameSize), 12+align4(nameSize)+align4(size)
		if nameSize > 64 || size > 4096 || to > uint32(len(data)) {
			return nil, errNote
		}
		if kind == 3 && strings.HasPrefix(string(data[12:]), "stapsdt\x00") {
			n, linked, err := readNote(e.ByteOrder, data[from:from+size])
			if err != nil {
				return nil, err
			}
			if base != nil && linked != 0 {
				moved := base.Addr - linked
				n.address += moved
				if n.semaphore != 0 {
					n.semaphore += moved
				}
			}
			notes = append(notes, n)
		}
		data = data[to:]
	}
	return notes, nil
}

func align4(n uint32) uint32 { return (n + 3) &^ 3 }

// readNote reads three addresses and three strings: provider, name, arguments.
func readNote(order binary.ByteOrder, b []byte) (n note, base uint64, err error) {
	if len(b) < 24 {
		return n, 0, errNote
	}
	n.address, base, n.semaphore = order.Uint64(b), order.Uint64(b[8:]), order.Uint64(b[16:])
	words := bytes.SplitN(b[24:], []byte{0}, 3)
	if len(words) < 3 {
		return n, 0, errNote
	}
	n.provider, n.name = string(words[0]), string(words[1])
	return n, base, nil
}
