package probe

import "encoding/binary"

// The kernel's rules for arm64. Source: arch/arm64/kernel/probes/decode-insn.c (aarch64_insn_is_steppable,
// arm_probe_decode_insn), arch/arm64/include/asm/insn.h and arch/arm64/kernel/probes/uprobes.c of Linux 6.18. Nops are
// simulated since 6.13; before, they were stepped.

// pattern matches an instruction's fixed bits.
type pattern struct{ mask, value uint32 }

func (p pattern) is(insn uint32) bool { return insn&p.mask == p.value }

func isAny(insn uint32, patterns []pattern) bool {
	for _, p := range patterns {
		if p.is(insn) {
			return true
		}
	}
	return false
}

const arm64Nop = 0xd503201f

var (
	arm64Simulated = []pattern{
		{0xff000010, 0x54000000},                           // b.cond
		{0x7f000000, 0x34000000}, {0x7f000000, 0x35000000}, // cbz, cbnz
		{0x7f000000, 0x36000000}, {0x7f000000, 0x37000000}, // tbz, tbnz
		{0x9f000000, 0x10000000}, {0x9f000000, 0x90000000}, // adr, adrp
		{0xfc000000, 0x14000000}, {0xfc000000, 0x94000000}, // b, bl
		{0xfffffc1f, 0xd61f0000}, {0xfffffc1f, 0xd63f0000}, {0xfffffc1f, 0xd65f0000}, // br, blr, ret
	}
	// Among branches and system instructions.
	arm64Refused = []pattern{
		{0xfefff800, 0xd61f0800}, {0xfefff800, 0xd63f0800}, {0xfffffbff, 0xd65f0bff}, // braa, blraa, retaa and the like
		{0xffe0001f, 0xd4000001}, {0xffe0001f, 0xd4000002}, {0xffe0001f, 0xd4000003}, // svc, hvc, smc
		{0xffe0001f, 0xd4200000},                           // brk
		{0xffffffff, 0xd69f03e0}, {0xfffffbff, 0xd69f0bff}, // eret
		{0xfff8f01f, 0xd500401f}, {0xfff00000, 0xd5100000}, // msr
		{0xffffffe0, 0xd53b4220}, // mrs of DAIF; the kernel steps those of all other registers
	}
	arm64Hint = pattern{0xfffff01f, 0xd503201f}
	// Loads from places that are told relative to the instruction (kernels before 6.12 simulated some of these, wrongly);
	// exclusive loads and stores; moves of memory in three instructions.
	arm64Unsteppable = []pattern{
		{0xbf000000, 0x18000000}, {0xff000000, 0x98000000}, {0xff000000, 0xd8000000}, // ldr, ldrsw, prfm
		{0x3f800000, 0x08000000}, {0x3b200c00, 0x19000400},
	}
)

// arm64StepHints are the hints that may be stepped, by their bits 5 to 11: nop, xpaclri, those of pointer
// authentication, bti.
var arm64StepHints = []uint32{0, 7, 8, 10, 24, 25, 26, 27, 32, 34, 36, 38}

func classifyArm64(code []byte, kernel Version) (Class, error) {
	if len(code) < 4 {
		return "", errShort
	}
	insn := binary.LittleEndian.Uint32(code)
	if insn == arm64Nop && kernel.Since(6, 13) || isAny(insn, arm64Simulated) {
		return Emulated, nil
	}
	if class := insn >> 25 & 0xf; class == 10 || class == 11 { // branches, system instructions
		if isAny(insn, arm64Refused) {
			return Refused, nil
		}
		if arm64Hint.is(insn) {
			for _, h := range arm64StepHints {
				if insn>>5&0x7f == h {
					return Stepped, nil
				}
			}
			return Refused, nil
		}
		return Stepped, nil
	}
	if isAny(insn, arm64Unsteppable) {
		return Refused, nil
	}
	return Stepped, nil
}
