package unwind

import (
	"debug/elf"
	"runtime"

	plain "braid/internal/address"
)

// maxRegs is the number of DWARF registers that are followed.
const maxRegs = 32

// An Arch is what differs between processors.
type Arch struct {
	machine elf.Machine
	regs    int  // DWARF registers that are followed
	sp, fp  int  // their DWARF numbers
	ra      int  // where a frame's return address is, if the tables do not say
	bits    int  // of a user address; those above are signature and tag. 0: all are the address
	linked  bool // a call leaves its return address in register ra, not on the stack
}

// AMD64 numbers its registers as the System V ABI does: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, and the return
// address as 16.
var AMD64 = &Arch{machine: elf.EM_X86_64, regs: 17, sp: 7, fp: 6, ra: 16}

// ARM64 numbers its registers as the DWARF ABI for AArch64 does: x0 to x30, and sp as 31. On another machine than the recorded
// one, its addresses are taken to have address.DefaultBits.
var ARM64 = &Arch{machine: elf.EM_AARCH64, regs: 32, sp: 31, fp: 29, ra: 30, bits: arm64Bits(), linked: true}

func arm64Bits() int {
	if runtime.GOARCH == "arm64" {
		return plain.Bits()
	}
	return plain.DefaultBits
}

// Strip removes signature and tag from a user address.
func (a *Arch) Strip(addr uint64) uint64 {
	if a.bits == 0 {
		return addr
	}
	return plain.Strip("arm64", a.bits, addr)
}

// Regs are a thread's registers by their DWARF numbers, and its program counter.
type Regs struct {
	R  [maxRegs]uint64
	PC uint64
}
