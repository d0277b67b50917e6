package unwind

import "errors"

var errExpr = errors.New("an expression that makes no sense")

// Limits of one expression.
const (
	maxExprSteps = 1000
	maxExprStack = 64
)

// machine evaluates DWARF expressions (DWARF 5, 2.5) for one frame.
type machine struct {
	regs  *Regs
	arch  *Arch
	mem   Memory
	stack []uint64
}

// Memory is what is known of a process's memory.
type Memory interface {
	// Word returns the 8 bytes at an address, or false if they are not known.
	Word(addr uint64) (uint64, bool)
}

func (m *machine) push(v uint64) { m.stack = append(m.stack, v) }

func (m *machine) pop() uint64 {
	if len(m.stack) == 0 {
		return 0
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v
}

// reg is a register's value in the frame, the program counter where the return address would be.
func (m *machine) reg(n uint64) uint64 {
	switch {
	case n == uint64(m.arch.ra) && !m.arch.linked:
		return m.regs.PC
	case n < maxRegs:
		return m.regs.R[n]
	}
	return 0
}

// eval runs an expression with the given values on the stack, and returns the topmost one.
func (m *machine) eval(program []byte, initial ...uint64) (uint64, error) {
	m.stack = append(m.stack[:0], initial...)
	c := cursor{b: program}
	for steps := 0; !c.done(); steps++ {
		if steps == maxExprSteps || len(m.stack) > maxExprStack {
			return 0, errExpr
		}
		if err := m.step(c.u8(), &c); err != nil {
			return 0, err
		}
	}
	if c.err != nil || len(m.stack) == 0 {
		return 0, errExpr
	}
	return m.pop(), nil
}

// Operations (DWARF 5, 7.7.1).
const (
	opAddr       = 0x03
	opDeref      = 0x06
	opConst1u    = 0x08
	opConst1s    = 0x09
	opConst2u    = 0x0a
	opConst2s    = 0x0b
	opConst4u    = 0x0c
	opConst4s    = 0x0d
	opConst8u    = 0x0e
	opConst8s    = 0x0f
	opConstu     = 0x10
	opConsts     = 0x11
	opDup        = 0x12
	opDrop       = 0x13
	opOver       = 0x14
	opPick       = 0x15
	opSwap       = 0x16
	opAnd        = 0x1a
	opMinus      = 0x1c
	opMul        = 0x1e
	opNeg        = 0x1f
	opNot        = 0x20
	opOr         = 0x21
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opShr        = 0x25
	opShra       = 0x26
	opXor        = 0x27
	opBra        = 0x28
	opEq         = 0x29
	opGe         = 0x2a
	opGt         = 0x2b
	opLe         = 0x2c
	opLt         = 0x2d
	opNe         = 0x2e
	opSkip       = 0x2f
	opLit0       = 0x30
	opReg0       = 0x50
	opBreg0      = 0x70
	opBregx      = 0x92
	opDerefSize  = 0x94
	opNop        = 0x96
)

func (m *machine) step(op uint8, c *cursor) error {
	switch {
	case op >= opLit0 && op < opReg0:
		m.push(uint64(op - opLit0))
		return nil
	case op >= opBreg0 && op < opBreg0+32:
		m.push(m.reg(uint64(op-opBreg0)) + uint64(c.sleb()))
		return nil
	case op >= opAnd && op <= opNe && op != opBra:
		return m.arithmetic(op, c)
	}
	switch op {
	case opNop:
	case opBregx:
		reg := c.uleb()
		m.push(m.reg(reg) + uint64(c.sleb()))
	case opDeref:
		return m.deref(8)
	case opDerefSize:
		return m.deref(c.u8())
	case opDup:
		return m.pick(0)
	case opOver:
		return m.pick(1)
	case opPick:
		return m.pick(int(c.u8()))
	case opDrop:
		m.pop()
	case opSwap:
		a, b := m.pop(), m.pop()
		m.push(a)
		m.push(b)
	case opBra, opSkip:
		delta := int(int16(c.u16()))
		if op == opBra && m.pop() == 0 {
			return nil
		}
		if c.off += delta; c.off < 0 || c.off > len(c.b) {
			return errExpr
		}
	default:
		return m.constant(op, c)
	}
	return nil
}

func (m *machine) pick(n int) error {
	if n >= len(m.stack) {
		return errExpr
	}
	m.push(m.stack[len(m.stack)-1-n])
	return nil
}

func (m *machine) deref(size uint8) error {
	v, ok := m.mem.Word(m.pop())
	if !ok || size == 0 || size > 8 {
		return errExpr
	}
	if size < 8 {
		v &= 1<<(8*size) - 1
	}
	m.push(v)
	return nil
}

func (m *machine) constant(op uint8, c *cursor) error {
	switch op {
	case opAddr, opConst8u, opConst8s:
		m.push(c.u64())
	case opConst1u:
		m.push(uint64(c.u8()))
	case opConst1s:
		m.push(uint64(int8(c.u8())))
	case opConst2u:
		m.push(uint64(c.u16()))
	case opConst2s:
		m.push(uint64(int16(c.u16())))
	case opConst4u:
		m.push(uint64(c.u32()))
	case opConst4s:
		m.push(uint64(int32(c.u32())))
	case opConstu:
		m.push(c.uleb())
	case opConsts:
		m.push(uint64(c.sleb()))
	default:
		return errExpr
	}
	return nil
}

func (m *machine) arithmetic(op uint8, c *cursor) error {
	switch op {
	case opNeg:
		m.push(-m.pop())
		return nil
	case opNot:
		m.push(^m.pop())
		return nil
	case opPlusUconst:
		m.push(m.pop() + c.uleb())
		return nil
	}
	b, a := m.pop(), m.pop()
	truth := func(t bool) {
		if t {
			m.push(1)
		} else {
			m.push(0)
		}
	}
	switch op {
	case opAnd:
		m.push(a & b)
	case opMinus:
		m.push(a - b)
	case opMul:
		m.push(a * b)
	case opOr:
		m.push(a | b)
	case opPlus:
		m.push(a + b)
	case opShl:
		m.push(a << b)
	case opShr:
		m.push(a >> b)
	case opShra:
		m.push(uint64(int64(a) >> b))
	case opXor:
		m.push(a ^ b)
	case opEq:
		truth(a == b)
	case opGe:
		truth(int64(a) >= int64(b))
	case opGt:
		truth(int64(a) > int64(b))
	case opLe:
		truth(int64(a) <= int64(b))
	case opLt:
		truth(int64(a) < int64(b))
	case opNe:
		truth(a != b)
	default:
		return errExpr
	}
	return nil
}
