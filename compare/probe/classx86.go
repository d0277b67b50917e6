package probe

import (
	"bytes"
	"errors"
	"slices"
)

// The kernel's rules for amd64. Source: arch/x86/kernel/uprobes.c of Linux 6.18 (can_optimize, uprobe_init_insn,
// branch_setup_xol_ops, push_setup_xol_ops), and what was before: pushes are emulated since 5.1, long nops and calls in
// place of nops of 5 bytes came with 6.18.

var errShort = errors.New("too few bytes for an instruction")

const pageSize = 4096

// x86Good has a bit for each opcode that the kernel steps or emulates: good_insns_64, a row for each 16 opcodes, the lowest
// bit first. Of opcodes after 0f it takes all, because it takes 0f: its table for them is never asked. Of VEX and EVEX
// instructions it looks at the opcode as if it stood alone.
var x86Good = [16]uint16{
	0xbf3f, 0x3f3f, 0x7f7f, 0x7f7f, 0xffff, 0xffff, 0x0ff8, 0xffff,
	0xfffb, 0xfbff, 0xffff, 0xffff, 0x1fff, 0xff8f, 0x0b0f, 0xf3ed,
}

// x86Nops are the nops that the kernel itself uses, include/asm/nops.h, and acts for since 6.18.
var x86Nops = [][]byte{
	{0x90},
	{0x66, 0x90},
	{0x0f, 0x1f, 0x00},
	{0x0f, 0x1f, 0x40, 0x00},
	{0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
	{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
}

// x86Insn is as much of an instruction as the rules ask for.
type x86Insn struct {
	prefixes []byte // of the old kind
	rex      byte   // 0 if there is none
	vector   bool   // VEX or EVEX
	two      bool   // op follows 0f
	op       byte   // of a vector instruction, the one after its prefix
	modrm    byte   // 0 if there is none
	length   int    // only of nops and pushes, else 0
}

// classifyX86 follows arch_uprobe_analyze_insn.
func classifyX86(code []byte, address uint64, kernel Version) (Class, error) {
	in, err := readX86(code)
	if err != nil {
		return "", err
	}
	nop := !in.two && in.op == 0x90 || in.two && in.op == 0x1f && in.modrm>>3&7 == 0
	if nop && !in.vector && in.length == 5 && address%pageSize <= pageSize-5 && kernel.Since(6, 18) {
		return Call, nil
	}
	if slices.ContainsFunc(in.prefixes, func(p byte) bool { return bytes.IndexByte([]byte{0x26, 0x2e, 0x36, 0x3e, 0xf0}, p) >= 0 }) {
		return Refused, nil
	}
	if code[0] == 0xcc { // prepare_uprobe in kernel/events/uprobes.c: somebody's breakpoint
		return Refused, nil
	}
	if !in.two && x86Good[in.op>>4]&(1<<(in.op&15)) == 0 {
		return Refused, nil
	}
	if kernel.Since(6, 18) && slices.ContainsFunc(x86Nops, func(n []byte) bool { return bytes.HasPrefix(code, n) }) {
		return Emulated, nil
	}
	if !in.two && in.op == 0x90 { // also with prefixes, as xchg %r8,%rax and pause have them
		return Emulated, nil
	}
	if x86Branch(in) {
		if bytes.IndexByte(in.prefixes, 0x66) >= 0 {
			return Refused, nil
		}
		return Emulated, nil
	}
	if !in.two && in.op >= 0x50 && in.op <= 0x57 && kernel.Since(5, 1) {
		if in.length == 1 || in.length == 2 && in.rex == 0x41 {
			return Emulated, nil
		}
	}
	return Stepped, nil
}

// x86Branch says whether it is a jump or call to a place that the instruction itself names, and that the kernel does itself.
func x86Branch(in x86Insn) bool {
	op := in.op
	if in.two {
		op -= 0x10 // near jumps by condition: as the short ones
	} else if op == 0xe8 || op == 0xe9 || op == 0xeb {
		return true
	}
	return op >= 0x70 && op <= 0x7f
}

func readX86(code []byte) (in x86Insn, err error) {
	n := 0
	for ; n < len(code) && bytes.IndexByte([]byte{0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0xf0}, code[n]) >= 0; n++ {
		in.prefixes = append(in.prefixes, code[n])
	}
	if n < len(code) && code[n]&0xf0 == 0x40 {
		in.rex = code[n]
		n++
	}
	if n >= len(code) || n > 14 {
		return in, errShort
	}
	in.op = code[n]
	n++
	switch payload := map[byte]int{0xc5: 1, 0xc4: 2, 0x62: 3}[in.op]; {
	case payload > 0:
		if n+payload >= len(code) {
			return in, errShort
		}
		in.vector, in.op = true, code[n+payload]
		return in, nil
	case in.op == 0x0f:
		if n >= len(code) {
			return in, errShort
		}
		in.two, in.op = true, code[n]
		n++
	}
	switch {
	case !in.two && (in.op == 0x90 || in.op >= 0x50 && in.op <= 0x57):
		in.length = n
	case in.two && in.op == 0x1f:
		if n >= len(code) {
			return in, errShort
		}
		in.modrm = code[n]
		in.length = n + x86OperandBytes(code[n:])
	}
	return in, nil
}

// x86OperandBytes returns how many bytes the ModRM byte takes with what belongs to it.
func x86OperandBytes(b []byte) int {
	mod, base, n := b[0]>>6, b[0]&7, 1
	if mod != 3 && base == 4 && len(b) > 1 {
		base = b[1] & 7
		n++
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && base == 5:
		n += 4
	}
	return n
}
