package sample

import "braid/internal/unwind"

var arch = unwind.ARM64

// perfRegs are the registers that are sampled: enum perf_event_arm_regs (arch/arm64/include/uapi/asm/perf_regs.h, Linux 6.12) numbers them as
// DWARF does, with the program counter after sp.
var perfRegs = func() (r []struct{ bit, dwarf uint }) {
	for i := uint(0); i <= dwarfPC; i++ {
		r = append(r, struct{ bit, dwarf uint }{i, i})
	}
	return r
}()

const dwarfPC, dwarfSP = 32, 31
