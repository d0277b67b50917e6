package bpf

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Reading amd64 code only as far as is needed to find where a method ends: how long each instruction is, and which are
// returns and jumps. Source: Intel's manual, volume 2, chapter 2 and the opcode maps of appendix A.

var errCode = errors.New("the code cannot be read")

// What follows an opcode.
const (
	xNone  = 0
	xModRM = 1 << iota // the byte that names operands, and what it asks for
	xImm8
	xImm16
	xImm32 // 2 bytes under the prefix 66
	xRel32
	xBad // no instruction, or none of a program's
)

// x86One and x86Two are the opcodes of one byte, and those of two, of which the first is 0f.
var x86One, x86Two = x86Maps()

func x86Maps() (one, two [256]uint16) {
	set := func(m *[256]uint16, from, to int, what uint16) {
		for i := from; i <= to; i++ {
			m[i] = what
		}
	}
	for op := 0; op < 0x40; op += 8 {
		set(&one, op, op+3, xModRM)
		one[op+4], one[op+5] = xImm8, xImm32
		set(&one, op+6, op+7, xBad)
	}
	for _, op := range []int{0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea} {
		one[op] = xBad
	}
	one[0x63] = xModRM
	one[0x68], one[0x69], one[0x6a], one[0x6b] = xImm32, xModRM|xImm32, xImm8, xModRM|xImm8
	set(&one, 0x70, 0x7f, xImm8)
	one[0x80], one[0x81], one[0x83] = xModRM|xImm8, xModRM|xImm32, xModRM|xImm8
	set(&one, 0x84, 0x8f, xModRM)
	one[0xa8], one[0xa9] = xImm8, xImm32
	set(&one, 0xb0, 0xb7, xImm8)
	set(&one, 0xb8, 0xbf, xImm32)
	one[0xc0], one[0xc1], one[0xc2] = xModRM|xImm8, xModRM|xImm8, xImm16
	one[0xc6], one[0xc7], one[0xc8] = xModRM|xImm8, xModRM|xImm32, xImm16|xImm8
	one[0xca], one[0xcd] = xImm16, xImm8
	set(&one, 0xd0, 0xd3, xModRM)
	set(&one, 0xd8, 0xdf, xModRM)
	set(&one, 0xe0, 0xe7, xImm8)
	one[0xe8], one[0xe9], one[0xeb] = xRel32, xRel32, xImm8
	for _, op := range []int{0xf6, 0xf7, 0xfe, 0xff} {
		one[op] = xModRM
	}

	set(&two, 0x00, 0xff, xModRM)
	set(&two, 0x05, 0x0b, xNone)
	for _, op := range []int{0x04, 0x0a, 0x0c, 0x24, 0x25, 0x26, 0x27, 0x36, 0x39, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f, 0x7a, 0x7b, 0xa6, 0xa7} {
		two[op] = xBad
	}
	two[0x0e], two[0x0f] = xNone, xModRM|xImm8
	set(&two, 0x30, 0x35, xNone)
	two[0x37], two[0x77] = xNone, xNone
	set(&two, 0x80, 0x8f, xRel32)
	for _, op := range []int{0xa0, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa} {
		two[op] = xNone
	}
	set(&two, 0xc8, 0xcf, xNone)
	for _, op := range []int{0x70, 0x71, 0x72, 0x73, 0xa4, 0xac, 0xba, 0xc2, 0xc4, 0xc5, 0xc6} {
		two[op] = xModRM | xImm8
	}
	return one, two
}

// x86Next reads the instruction that b begins with: what it does to the flow of control, and how long it is. A jump's
// target is relative to its own first byte.
func x86Next(b []byte) (flow, int, error) {
	n, small, wide, notrack := 0, false, false, false
	for ; n < len(b) && slices.Contains([]byte{0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0xf0}, b[n]); n++ {
		small = small || b[n] == 0x66
		notrack = notrack || b[n] == 0x3e
	}
	if n < len(b) && b[n]&0xf0 == 0x40 {
		wide = b[n]&8 != 0
		n++
	}
	if n+4 > len(b)+3 || n >= 14 {
		return flow{}, 0, errCode
	}
	op, what, vector := b[n], x86One[b[n]], false
	n++
	table := byte(1) // the opcode's map: 0 for one byte, 1 for 0f, 2 for 0f 38, 3 for 0f 3a
	switch payload := map[byte]int{0xc5: 1, 0xc4: 2, 0x62: 3}[op]; {
	case payload > 0: // VEX and EVEX
		if n+payload >= len(b) {
			return flow{}, 0, errCode
		}
		if payload > 1 {
			table = b[n] & 7
		}
		op, vector = b[n+payload], true
		n += payload + 1
	case op == 0x0f && n < len(b):
		op = b[n]
		n++
		if op == 0x38 || op == 0x3a {
			table = 2 + (op>>1)&1
			if n >= len(b) {
				return flow{}, 0, errCode
			}
			op = b[n]
			n++
		}
	case op == 0x0f:
		return flow{}, 0, errCode
	default:
		table = 0
	}
	switch {
	case vector && table == 0:
		return flow{}, 0, errCode
	case table == 1:
		what = x86Two[op]
		if vector && what&xRel32 != 0 || vector && op == 0x77 {
			what = map[bool]uint16{true: xNone, false: xModRM}[op == 0x77]
		} else if vector && what&xImm8 == 0 {
			what = xModRM
		}
	case table == 3:
		what = xModRM | xImm8
	case table != 0:
		what = xModRM
	}
	if what&xBad != 0 {
		return flow{}, 0, errCode
	}

	var modrm byte
	if what&xModRM != 0 {
		var size int
		if modrm, size = x86Operands(b[n:]); size == 0 {
			return flow{}, 0, errCode
		}
		n += size
	}
	reg := modrm >> 3 & 7
	imm := 0
	switch {
	case table == 0 && op >= 0xa0 && op <= 0xa3, table == 0 && op >= 0xb8 && op <= 0xbf && wide:
		imm = 8
	case table == 0 && op == 0xf6 && reg < 2:
		imm = 1
	case what&xImm32 != 0, table == 0 && op == 0xf7 && reg < 2:
		imm = 4
		if small && !wide {
			imm = 2
		}
	case what&xRel32 != 0:
		imm = 4
	}
	if what&xImm16 != 0 {
		imm += 2
	}
	if what&xImm8 != 0 {
		imm++
	}
	if n+imm > len(b) || n+imm > 15 {
		return flow{}, 0, errCode
	}
	return x86Flow(table, op, modrm, b[:n+imm], imm, notrack), n + imm, nil
}

// x86Operands returns the ModRM byte and how many bytes it takes with what belongs to it, 0 if they are not there.
func x86Operands(b []byte) (modrm byte, size int) {
	if len(b) == 0 {
		return 0, 0
	}
	modrm, size = b[0], 1
	mod, base := modrm>>6, modrm&7
	if mod != 3 && base == 4 {
		if len(b) < 2 {
			return 0, 0
		}
		base = b[1] & 7
		size++
	}
	switch {
	case mod == 1:
		size++
	case mod == 2, mod == 0 && base == 5:
		size += 4
	}
	if size > len(b) {
		return 0, 0
	}
	return modrm, size
}

// x86Flow says what an instruction, whose last bytes are its constant, does to the flow of control.
func x86Flow(table, op, modrm byte, b []byte, imm int, notrack bool) flow {
	target := func() int64 {
		if imm == 1 {
			return int64(len(b)) + int64(int8(b[len(b)-1]))
		}
		return int64(len(b)) + int64(int32(binary.LittleEndian.Uint32(b[len(b)-4:])))
	}
	switch {
	case table == 1 && op >= 0x80 && op <= 0x8f && imm == 4, table == 0 && (op >= 0x70 && op <= 0x7f || op >= 0xe0 && op <= 0xe3):
		return flow{kind: flowBranch, target: target()}
	case table != 0:
	case op == 0xc2, op == 0xc3:
		return flow{kind: flowReturn}
	case op == 0xe9, op == 0xeb:
		return flow{kind: flowJump, target: target()}
	// A jump table's, from compilers that guard other indirect jumps, or that address it by an index.
	case op == 0xff && modrm>>3&7 == 4 && !notrack && (modrm>>6 == 3 || modrm&7 != 4):
		return flow{kind: flowIndirect}
	}
	return flow{}
}
