package sample

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"braid/internal/unwind"
	"braid/symbols"
)

// maxHeld bounds the files that are kept open for their names.
const maxHeld = 512

// fileKey is a file as the kernel names it in its records.
type fileKey struct {
	dev, inode uint64
	path       string
}

// file is an ELF file that frames lie in, or the vdso.
type file struct {
	key    fileKey
	table  *unwind.Table // nil: none
	progs  []elf.ProgHeader
	id     string // its build id, hexadecimal
	opened bool   // it is an ELF file and could be read
	held   *os.File
	module symbols.Module // where the file may be found
	image  []byte         // the vdso's
	// trampoline is the offset of the kernel's signal trampoline in the vdso; 0: none.
	trampoline uint64
}

// openFile reads a mapped file. It always succeeds: what could not be opened has no tables.
func openFile(key fileKey, pid int, m symbols.Mapping, keep bool) *file {
	f := &file{key: key, module: symbols.Module{Path: m.Path, Deleted: m.Deleted, Pid: pid, Mapping: m,
		Ranges: []symbols.Range{{Start: m.Start, End: m.End}}, File: symbols.FileID{Ino: m.Inode}}}
	if !m.File() {
		return f
	}
	h, err := symbols.Hold(f.module)
	if err != nil {
		return f
	}
	f.read(h)
	if f.opened && keep {
		f.held = h
		f.module.Held = h
	} else {
		h.Close()
	}
	return f
}

func (f *file) read(r io.ReaderAt) {
	e, err := elf.NewFile(r)
	if err != nil {
		return
	}
	for _, p := range e.Progs {
		switch p.Type {
		case elf.PT_LOAD:
			f.progs = append(f.progs, p.ProgHeader)
		case elf.PT_NOTE:
			f.id = cmp.Or(f.id, buildID(p))
		}
	}
	f.opened = true
	f.table, _ = unwind.Read(r)
}

// maxNotes bounds what is read of a file's notes, in bytes.
const maxNotes = 1 << 16

// buildID returns the build id that a segment of notes has, in hexadecimal, or "".
func buildID(p *elf.Prog) string {
	const gnuBuildID = 3 // NT_GNU_BUILD_ID
	b := make([]byte, min(p.Filesz, maxNotes))
	if _, err := p.ReadAt(b, 0); err != nil {
		return ""
	}
	for len(b) >= 12 {
		name, desc, typ := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
		padded := (name + 3) &^ 3
		end := 12 + padded + (desc+3)&^3
		if end > uint64(len(b)) {
			return ""
		}
		if typ == gnuBuildID && name == 4 && string(b[12:16]) == "GNU\x00" {
			return hex.EncodeToString(b[12+padded : 12+padded+desc])
		}
		b = b[end:]
	}
	return ""
}

// bias is the run-time minus the link-time address of a mapping. Of two segments that share a page the one with the larger
// part in the mapping counts.
func (f *file) bias(m symbols.Mapping) uint64 {
	var bias, best uint64
	end := m.Offset + (m.End - m.Start)
	for _, p := range f.progs {
		lo, hi := max(p.Off, m.Offset), min(p.Off+p.Filesz, end)
		if p.Flags&elf.PF_X != 0 && lo < hi && hi-lo > best {
			best, bias = hi-lo, m.Start+(p.Off-m.Offset)-p.Vaddr
		}
	}
	return bias
}

// maxVDSO is more than any kernel's vdso has.
const maxVDSO = 1 << 20

var errNoVDSO = errors.New("this process has no vdso")

// readVDSO copies this process's vdso: all processes of the same width have the same.
func readVDSO() (*file, error) {
	maps, err := symbols.ReadMaps(os.Getpid())
	if err != nil {
		return nil, err
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	for _, m := range maps {
		if m.Path != "[vdso]" || m.End-m.Start > maxVDSO {
			continue
		}
		b := make([]byte, m.End-m.Start)
		if _, err := mem.ReadAt(b, int64(m.Start)); err != nil {
			return nil, err
		}
		f := &file{key: fileKey{path: "[vdso]"}, image: b}
		f.read(bytes.NewReader(b))
		f.trampoline = findTrampoline(b)
		return f, nil
	}
	return nil, errNoVDSO
}

// findTrampoline finds where an arm64 vdso returns from a signal: mov x8, #__NR_rt_sigreturn; svc #0.
func findTrampoline(vdso []byte) uint64 {
	const mov, svc = 0xd2801168, 0xd4000001
	for i := 0; i+8 <= len(vdso) && arch == unwind.ARM64; i += 4 {
		if binary.LittleEndian.Uint32(vdso[i:]) == mov && binary.LittleEndian.Uint32(vdso[i+4:]) == svc {
			return uint64(i)
		}
	}
	return 0
}
