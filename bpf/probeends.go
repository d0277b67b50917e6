package bpf

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
)

// maxEnds is at how many places a method may end: each takes a breakpoint and three open files.
const maxEnds = 128

// maxMethodBytes is far above what a compiler makes of a method.
const maxMethodBytes = 16 << 20

type flowKind int

const (
	flowOn       flowKind = iota // to the next instruction, or to another method and back
	flowReturn                   // to the caller
	flowJump                     // to the target
	flowBranch                   // to the target, or to the next
	flowIndirect                 // to where a register says: within the method, or as its last act to another
)

// flow is what an instruction does to the flow of control.
type flow struct {
	kind   flowKind
	target int64 // bytes from the instruction's own first one
}

// reader reads the code of one processor.
type reader func([]byte) (flow, int, error)

var readers = map[elf.Machine]reader{elf.EM_X86_64: x86Next, elf.EM_AARCH64: arm64Next}

// methodPlaces are offsets in a file.
type methodPlaces struct {
	entry uint64
	ends  []uint64 // ascending
}

// codeRange is a part of a method, by addresses as the file has them.
type codeRange struct{ start, end uint64 }

func (r codeRange) contains(addr uint64) bool { return r.start <= addr && addr < r.end }

// findPlaces finds where a method begins and where it may end.
func findPlaces(m Method, machine elf.Machine) (methodPlaces, error) {
	f, err := os.Open(m.Path)
	if err != nil {
		return methodPlaces{}, err
	}
	defer f.Close()
	e, err := elf.NewFile(f)
	if err != nil {
		return methodPlaces{}, err
	}
	if e.Machine != machine || e.Class != elf.ELFCLASS64 {
		return methodPlaces{}, fmt.Errorf("%w: it is for %v, %v, and this machine's programs are %v", ErrNoProbe, e.Class, e.Machine, machine)
	}
	own, cold, err := methodRanges(e, m)
	if err != nil {
		return methodPlaces{}, err
	}
	s := scan{file: e, read: readers[machine], start: own.start, ranges: append([]codeRange{own}, cold...)}
	for _, r := range s.ranges {
		if err := s.scan(r); err != nil {
			return methodPlaces{}, err
		}
	}
	if len(s.ends) == 0 {
		return methodPlaces{}, fmt.Errorf("%w: it has no return", ErrNoProbe)
	}
	if len(s.ends) > maxEnds {
		return methodPlaces{}, fmt.Errorf("%w: it ends at %d places, at most %d are possible", ErrNoProbe, len(s.ends), maxEnds)
	}
	entry, _, err := segmentOf(e, own.start)
	if slices.Contains(s.ends, entry) {
		return methodPlaces{}, fmt.Errorf("%w: it ends with its first instruction", ErrNoProbe)
	}
	slices.Sort(s.ends)
	return methodPlaces{entry: entry, ends: s.ends}, err
}

// methodRanges finds the method's code: from its address to its end, and what compilers moved away from it, which has
// the method's name and ".cold".
func methodRanges(e *elf.File, m Method) (own codeRange, cold []codeRange, err error) {
	own = codeRange{m.Address, m.Address + m.Size}
	symbols, _ := e.Symbols() // none, if the file was stripped
	dynamic, _ := e.DynamicSymbols()
	var names []string
	for _, s := range append(symbols, dynamic...) {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Value != m.Address || s.Section == elf.SHN_UNDEF {
			continue
		}
		names = append(names, s.Name)
		own.end = max(own.end, s.Value+s.Size)
	}
	for _, s := range symbols {
		base, _, ok := strings.Cut(s.Name, ".cold")
		if ok && elf.ST_TYPE(s.Info) == elf.STT_FUNC && slices.Contains(names, base) {
			cold = append(cold, codeRange{s.Value, s.Value + s.Size})
		}
	}
	if own.end <= own.start {
		return own, nil, fmt.Errorf("%w: no symbol tells where it ends", ErrNoProbe)
	}
	return own, cold, nil
}

// segmentOf returns where in the file an address of code is, and how many bytes of the segment follow.
func segmentOf(e *elf.File, addr uint64) (offset, left uint64, err error) {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Vaddr <= addr && addr-p.Vaddr < p.Filesz {
			return p.Off + (addr - p.Vaddr), p.Filesz - (addr - p.Vaddr), nil
		}
	}
	return 0, 0, fmt.Errorf("%w: the file has no code at %#x", ErrNoProbe, addr)
}

// scan collects the places at which a method may end.
type scan struct {
	file   *elf.File
	read   reader
	start  uint64
	ranges []codeRange
	ends   []uint64
}

func (s *scan) scan(r codeRange) error {
	offset, left, err := segmentOf(s.file, r.start)
	if err != nil {
		return err
	}
	n := r.end - r.start
	if n > left || n > maxMethodBytes {
		return fmt.Errorf("%w: %d bytes of code at %#x", ErrNoProbe, n, r.start)
	}
	code := make([]byte, n)
	for _, p := range s.file.Progs {
		if p.Type == elf.PT_LOAD && p.Off <= offset && offset-p.Off < p.Filesz {
			if _, err := p.ReadAt(code, int64(offset-p.Off)); err != nil {
				return fmt.Errorf("read the code at %#x: %w", r.start, err)
			}
			break
		}
	}
	for at := uint64(0); at < n; {
		f, size, err := s.read(code[at:])
		if err != nil {
			return fmt.Errorf("%w: %w at %#x", ErrNoProbe, err, r.start+at)
		}
		target := r.start + at + uint64(f.target)
		inside := slices.ContainsFunc(s.ranges, func(r codeRange) bool { return r.contains(target) })
		switch {
		case f.kind == flowBranch && !inside:
			return fmt.Errorf("%w: at %#x it may jump to other code at %#x", ErrNoProbe, r.start+at, target)
		case f.kind == flowReturn, f.kind == flowIndirect, f.kind == flowJump && (!inside || target == s.start):
			s.ends = append(s.ends, offset+at)
		}
		at += uint64(size)
	}
	return nil
}

// arm64Next reads one instruction of arm64 code. Source: Arm's manual of the A64 instruction set, branches.
func arm64Next(b []byte) (flow, int, error) {
	if len(b) < 4 {
		return flow{}, 0, errCode
	}
	w := binary.LittleEndian.Uint32(b)
	offset := func(shift, bits uint) int64 { // a signed number of instructions
		return int64(int32(w<<(32-bits-shift))>>(32-bits)) * 4
	}
	switch {
	case w&0xfffffc1f == 0xd65f0000, w == 0xd65f0bff, w == 0xd65f0fff: // ret, retaa, retab
		return flow{kind: flowReturn}, 4, nil
	case w&0xfffffc1f == 0xd61f0000, w&0xfefff800 == 0xd61f0800: // br, braa and the like
		return flow{kind: flowIndirect}, 4, nil
	case w&0xfc000000 == 0x14000000: // b
		return flow{kind: flowJump, target: offset(0, 26)}, 4, nil
	case w&0xff000000 == 0x54000000, w&0x7e000000 == 0x34000000: // b.cond, bc.cond; cbz, cbnz
		return flow{kind: flowBranch, target: offset(5, 19)}, 4, nil
	case w&0x7e000000 == 0x36000000: // tbz, tbnz
		return flow{kind: flowBranch, target: offset(5, 14)}, 4, nil
	}
	return flow{}, 4, nil
}
