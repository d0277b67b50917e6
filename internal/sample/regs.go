package sample

import (
	"encoding/binary"

	"braid/internal/unwind"
)

var le = binary.LittleEndian

// regsMask is attr.sample_regs_user.
var regsMask = func() (mask uint64) {
	for _, r := range perfRegs {
		mask |= 1 << r.bit
	}
	return mask
}()

// decodeRegs reads sampled registers.
func decodeRegs(b []byte) (regs unwind.Regs) {
	for i, r := range perfRegs {
		v := le.Uint64(b[8*i:])
		if r.dwarf == dwarfPC {
			regs.PC = v
		} else {
			regs.R[r.dwarf] = v
		}
	}
	return regs
}

// stackCopy is the newest part of a thread's stack.
type stackCopy struct {
	base uint64 // address of the first byte
	b    []byte
}

// Word implements unwind.Memory.
func (s *stackCopy) Word(addr uint64) (uint64, bool) {
	off := addr - s.base
	if off >= uint64(len(s.b)) || uint64(len(s.b))-off < 8 {
		return 0, false
	}
	return le.Uint64(s.b[off:]), true
}
