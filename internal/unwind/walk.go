package unwind

// End says why a walk ended.
type End uint8

// The ends.
const (
	Complete End = iota // the outermost frame was reached
	Cut                 // memory beyond what is known is needed
	Depth               // more frames than asked for
	NoTable             // no tables for the outermost address
	NoModule            // no file there
	Bad                 // tables or stack make no sense
	Chain               // the chain of frame pointers ended with 0, as it does in the outermost frame
)

// Code is what lies at a run-time address.
type Code struct {
	Known bool   // a file, or the vdso
	Table *Table // nil: without tables
	Bias  uint64 // run-time minus link-time address
	// Trampoline says that there is a signal trampoline of the kernel's vdso, of which the tables say nothing (arm64).
	Trampoline bool
}

// Walker walks stacks of one architecture. The zero value of its options is strict. It may be used by one goroutine at a
// time.
type Walker struct {
	Arch *Arch
	// Limit is the largest number of frames.
	Limit int
	// FramePointers allows to follow frame pointers where no tables are.
	FramePointers bool
	// Find says what is at an address.
	Find func(addr uint64) Code

	machine machine
}

// Walk appends the addresses of a thread's frames to frames, innermost first: the program counter and, of callers, the
// return address less 1, so that each lies within the instruction that is being executed. chained says that frame
// pointers were needed, and tables that tables were. It changes regs.
func (w *Walker) Walk(frames []uint64, regs *Regs, mem Memory) (all []uint64, end End, tables, chained bool) {
	regs.PC = w.Arch.Strip(regs.PC)
	exact := true // PC is the instruction itself, not the one after a call
	for n := 0; ; n++ {
		if n == w.Limit {
			return frames, Depth, tables, chained
		}
		pc := regs.PC
		if !exact {
			pc--
		}
		code := w.Find(pc)
		frames = append(frames, pc)
		before, beforeSP, leaf := regs.PC, regs.R[w.Arch.sp], exact
		exact = false
		var r *row
		if code.Table != nil {
			r = code.Table.row(pc - code.Bias)
		}
		var ok bool
		switch {
		case r != nil:
			tables, exact = true, r.signal
			end, ok = w.step(regs, mem, r)
		case w.Arch.linked && w.trampoline(before, code):
			exact = true
			end, ok = w.sigreturn(regs, mem)
		case code.Table != nil && code.Table.Covers(pc-code.Bias):
			return frames, Bad, tables, chained
		case w.FramePointers:
			chained = true
			if ok = leaf && w.leaf(regs, mem, code); ok {
				break
			}
			if end, ok = w.chain(regs, mem, n == 0); !ok && end == Complete {
				if end = Chain; n == 0 {
					end = noCode(code)
				}
			}
		default:
			return frames, noCode(code), tables, chained
		}
		if exact {
			frames[len(frames)-1] = before // a trampoline is returned to at its first instruction
		}
		if !ok {
			return frames, end, tables, chained
		}
		if regs.PC == 0 {
			return frames, Complete, tables, chained
		}
		// A stack grows down, so each caller's frame lies above; signal handlers may have a stack of their own, and an
		// innermost function that pushed nothing has its caller's.
		if sp := regs.R[w.Arch.sp]; !exact && (sp < beforeSP || sp == beforeSP && (!leaf || regs.PC == before)) {
			return frames, Bad, tables, chained
		}
	}
}

func noCode(c Code) End {
	if c.Known {
		return NoTable
	}
	return NoModule
}

// step makes regs those of the caller. If it can't, it says why; Complete: there is no caller.
func (w *Walker) step(regs *Regs, mem Memory, r *row) (End, bool) {
	m := &w.machine
	m.regs, m.arch, m.mem = regs, w.Arch, mem
	var cfa uint64
	if r.cfaExpr != nil {
		v, err := m.eval(r.cfaExpr)
		if err != nil {
			return Bad, false
		}
		cfa = v
	} else {
		cfa = regs.R[r.cfaReg] + uint64(r.cfaOff)
	}
	if r.regs[r.ra].kind == ruleUndefined {
		return Complete, false
	}
	next := *regs
	next.R[w.Arch.sp] = cfa
	for i := range w.Arch.regs {
		rule := &r.regs[i]
		if rule.kind == ruleSame || rule.kind == ruleUndefined {
			continue
		}
		v, end, ok := w.value(rule, cfa, regs, mem)
		if !ok && i == r.ra {
			return end, false
		}
		if ok {
			next.R[i] = v
		}
	}
	next.PC = w.Arch.Strip(next.R[r.ra])
	if !w.Arch.linked && r.regs[r.ra].kind == ruleSame {
		return Bad, false // there is no such register
	}
	*regs = next
	return Complete, true
}

func (w *Walker) value(r *rule, cfa uint64, regs *Regs, mem Memory) (v uint64, end End, ok bool) {
	addr := cfa + uint64(r.value)
	switch r.kind {
	case ruleValue:
		return addr, Complete, true
	case ruleRegister:
		if r.value < 0 || r.value >= int64(w.Arch.regs) {
			return 0, Bad, false
		}
		return regs.R[r.value], Complete, true
	case ruleExpr, ruleExprValue:
		e, err := w.machine.eval(r.expr, cfa)
		if err != nil {
			return 0, Bad, false
		}
		if r.kind == ruleExprValue {
			return e, Complete, true
		}
		addr = e
	}
	if v, ok = mem.Word(addr); !ok {
		return 0, Cut, false
	}
	return v, Complete, true
}

// leaf makes regs those of the caller of an innermost function that called nothing and made no frame, such as most of
// arm64's vdso, if it is one: its return address is still in its register. If that leads into the same file, it may be what a call left
// there; if it is also where the frame pointer leads to, there is a frame.
func (w *Walker) leaf(regs *Regs, mem Memory, code Code) bool {
	if !w.Arch.linked {
		return false
	}
	ra := w.Arch.Strip(regs.R[w.Arch.ra])
	caller := w.Find(ra - 1)
	saved, ok := mem.Word(regs.R[w.Arch.fp] + 8)
	if caller.Table == nil || caller.Table == code.Table || caller.Bias == code.Bias || ok && w.Arch.Strip(saved) == ra {
		return false
	}
	regs.PC = ra
	return true
}

// chain follows the frame pointer, to which both ABIs agree: it points at the caller's frame pointer, with the return
// address above it. Complete and false say that there is no chain.
func (w *Walker) chain(regs *Regs, mem Memory, innermost bool) (End, bool) {
	fp := regs.R[w.Arch.fp]
	if fp == 0 {
		return Complete, false
	}
	if fp%8 != 0 || fp < regs.R[w.Arch.sp] && !innermost {
		return Bad, false
	}
	caller, ok := mem.Word(fp)
	ra, raOK := mem.Word(fp + 8)
	if !ok || !raOK {
		return Cut, false
	}
	regs.R[w.Arch.fp], regs.R[w.Arch.sp], regs.PC = caller, fp+16, w.Arch.Strip(ra)
	return Complete, true
}

// Outermost reports whether the tables say that the function at a link-time address has no caller.
func (t *Table) Outermost(addr uint64) bool {
	r := t.row(addr)
	return r != nil && r.regs[r.ra].kind == ruleUndefined
}
