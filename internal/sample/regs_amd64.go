package sample

import "braid/internal/unwind"

var arch = unwind.AMD64

// perfRegs are the registers that are sampled, in the order of enum perf_event_x86_regs (arch/x86/include/uapi/asm/perf_regs.h, Linux
// 6.12), as DWARF numbers; 16 is the program counter.
var perfRegs = []struct{ bit, dwarf uint }{
	{0, 0}, {1, 3}, {2, 2}, {3, 1}, {4, 4}, {5, 5}, {6, 6}, {7, 7}, {8, 16}, // ax, bx, cx, dx, si, di, bp, sp, ip
	{16, 8}, {17, 9}, {18, 10}, {19, 11}, {20, 12}, {21, 13}, {22, 14}, {23, 15},
}

const dwarfPC, dwarfSP = 16, 7
