package unwind

import (
	"errors"
	"fmt"
)

// How a register of the caller is found. The zero value is a register of which the tables say nothing: it still holds
// what it held, if the ABI has it preserved.
type ruleKind uint8

const (
	ruleSame      ruleKind = iota
	ruleUndefined          // it is lost; of the return address: there is no caller
	ruleOffset             // in memory, at the frame's address + value
	ruleValue              // the frame's address + value
	ruleRegister           // in register value
	ruleExpr               // in memory, where the expression says
	ruleExprValue          // the expression's value
)

type rule struct {
	kind  ruleKind
	value int64
	expr  []byte
}

// row says how to leave one address. The frame's address (CFA) is a register's value + offset, or an expression's.
type row struct {
	cfaReg  int
	cfaOff  int64
	cfaExpr []byte
	regs    [maxRegs]rule
	ra      int
	signal  bool
}

var errCFA = errors.New("an instruction that makes no sense")

// row returns how to leave a link-time address, or nil if the tables do not say or make no sense.
func (t *Table) row(addr uint64) *row {
	if r, ok := t.rows[addr]; ok {
		return r
	}
	var found *row
	if e := t.find(addr); e != nil {
		if r, err := t.run(e, addr); err == nil {
			found = r
		}
	}
	if len(t.rows) >= maxRows {
		clear(t.rows)
	}
	t.rows[addr] = found
	return found
}

// interpreter executes call frame instructions up to an address.
type interpreter struct {
	arch    *Arch
	cie     *cie
	row     row
	initial row // after the common entry's instructions
	stack   []row
	loc     uint64
	target  uint64
}

func (t *Table) run(e *entry, addr uint64) (*row, error) {
	p := &t.cies[e.cie]
	m := interpreter{arch: t.arch, cie: p, loc: e.start, target: addr}
	m.row.cfaReg, m.row.ra, m.row.signal = -1, p.ra, p.signal
	if err := m.execute(p.program); err != nil {
		return nil, err
	}
	m.initial, m.loc = m.row, e.start
	if err := m.execute(e.program); err != nil {
		return nil, err
	}
	if m.row.cfaReg < 0 && m.row.cfaExpr == nil {
		return nil, errCFA
	}
	return &m.row, nil
}

// Instructions (DWARF 5, 7.24). The first three hold an operand in their low 6 bits.
const (
	cfaAdvance           = 0x40
	cfaOffset            = 0x80
	cfaRestore           = 0xc0
	cfaNop               = 0x00
	cfaSetLoc            = 0x01
	cfaAdvance1          = 0x02
	cfaAdvance2          = 0x03
	cfaAdvance4          = 0x04
	cfaOffsetExtended    = 0x05
	cfaRestoreExtended   = 0x06
	cfaUndefined         = 0x07
	cfaSameValue         = 0x08
	cfaRegister          = 0x09
	cfaRememberState     = 0x0a
	cfaRestoreState      = 0x0b
	cfaDefCFA            = 0x0c
	cfaDefCFARegister    = 0x0d
	cfaDefCFAOffset      = 0x0e
	cfaDefCFAExpr        = 0x0f
	cfaExpr              = 0x10
	cfaOffsetExtendedSF  = 0x11
	cfaDefCFASF          = 0x12
	cfaDefCFAOffsetSF    = 0x13
	cfaValOffset         = 0x14
	cfaValOffsetSF       = 0x15
	cfaValExpr           = 0x16
	cfaNegateRAState     = 0x2d // arm64: return addresses are signed from here on; all are stripped. Elsewhere SPARC's alone.
	cfaArgsSize          = 0x2e
	cfaNegativeOffsetExt = 0x2f
)

// maxStates bounds what a program may remember.
const maxStates = 64

func (m *interpreter) execute(program []byte) error {
	c := cursor{b: program}
	for !c.done() {
		op := c.u8()
		operand := uint64(op & 0x3f)
		var err error
		switch op & 0xc0 {
		case cfaAdvance:
			if m.advance(operand) {
				return nil
			}
			continue
		case cfaOffset:
			m.set(operand, ruleOffset, int64(c.uleb())*m.cie.dataAlign, nil)
			continue
		case cfaRestore:
			m.restore(operand)
			continue
		}
		switch op {
		case cfaNop, cfaNegateRAState:
		case cfaArgsSize:
			c.uleb()
		case cfaSetLoc, cfaAdvance1, cfaAdvance2, cfaAdvance4:
			if m.advanceBy(op, &c) {
				return c.err
			}
		case cfaRememberState:
			if len(m.stack) == maxStates {
				return errCFA
			}
			m.stack = append(m.stack, m.row)
		case cfaRestoreState:
			if len(m.stack) == 0 {
				return errCFA
			}
			m.row = m.stack[len(m.stack)-1]
			m.stack = m.stack[:len(m.stack)-1]
		case cfaDefCFA, cfaDefCFARegister, cfaDefCFAOffset, cfaDefCFAExpr, cfaDefCFASF, cfaDefCFAOffsetSF:
			err = m.defCFA(op, &c)
		default:
			err = m.setRegister(op, &c)
		}
		if err != nil {
			return err
		}
	}
	return c.err
}

// advance moves on by delta instructions, and reports whether that is beyond the target.
func (m *interpreter) advance(delta uint64) bool {
	m.loc += delta * m.cie.codeAlign
	return m.loc > m.target
}

func (m *interpreter) advanceBy(op uint8, c *cursor) bool {
	switch op {
	case cfaAdvance1:
		return m.advance(uint64(c.u8()))
	case cfaAdvance2:
		return m.advance(uint64(c.u16()))
	case cfaAdvance4:
		return m.advance(uint64(c.u32()))
	}
	c.err = errCFA // cfaSetLoc: no compiler writes it
	return true
}

func (m *interpreter) set(reg uint64, kind ruleKind, value int64, expr []byte) {
	if reg < maxRegs { // others, such as vectors, are not followed
		m.row.regs[reg] = rule{kind, value, expr}
	}
}

func (m *interpreter) restore(reg uint64) {
	if reg < maxRegs {
		m.row.regs[reg] = m.initial.regs[reg]
	}
}

func (m *interpreter) defCFA(op uint8, c *cursor) error {
	r := &m.row
	switch op {
	case cfaDefCFA:
		r.cfaReg, r.cfaOff, r.cfaExpr = int(c.uleb()), int64(c.uleb()), nil
	case cfaDefCFASF:
		r.cfaReg, r.cfaOff, r.cfaExpr = int(c.uleb()), c.sleb()*m.cie.dataAlign, nil
	case cfaDefCFARegister:
		r.cfaReg = int(c.uleb())
		r.cfaExpr = nil
	case cfaDefCFAOffset:
		r.cfaOff = int64(c.uleb())
	case cfaDefCFAOffsetSF:
		r.cfaOff = c.sleb() * m.cie.dataAlign
	case cfaDefCFAExpr:
		r.cfaExpr = c.block()
	}
	if r.cfaExpr == nil && (r.cfaReg < 0 || r.cfaReg >= m.arch.regs) {
		return errCFA
	}
	return c.err
}

func (m *interpreter) setRegister(op uint8, c *cursor) error {
	reg := c.uleb()
	switch op {
	case cfaOffsetExtended:
		m.set(reg, ruleOffset, int64(c.uleb())*m.cie.dataAlign, nil)
	case cfaOffsetExtendedSF:
		m.set(reg, ruleOffset, c.sleb()*m.cie.dataAlign, nil)
	case cfaNegativeOffsetExt:
		m.set(reg, ruleOffset, -int64(c.uleb())*m.cie.dataAlign, nil)
	case cfaRestoreExtended:
		m.restore(reg)
	case cfaUndefined:
		m.set(reg, ruleUndefined, 0, nil)
	case cfaSameValue:
		m.set(reg, ruleSame, 0, nil)
	case cfaRegister:
		m.set(reg, ruleRegister, int64(c.uleb()), nil)
	case cfaExpr:
		m.set(reg, ruleExpr, 0, c.block())
	case cfaValOffset:
		m.set(reg, ruleValue, int64(c.uleb())*m.cie.dataAlign, nil)
	case cfaValOffsetSF:
		m.set(reg, ruleValue, c.sleb()*m.cie.dataAlign, nil)
	case cfaValExpr:
		m.set(reg, ruleExprValue, 0, c.block())
	default:
		return fmt.Errorf("%w: %#x", errCFA, op)
	}
	return c.err
}
