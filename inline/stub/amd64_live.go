package stub

import "strings"

// Whether a register holds something at a function's entry is read off its code: a value that the caller passed is
// used only if some path reads the register before writing it. What is not understood counts as a read.

type family [4]string // the register's names from 64 down to 8 bits

var (
	famRAX = family{"rax", "eax", "ax", "al"}
	famRDX = family{"rdx", "edx", "dx", "dl"}
	famR10 = family{"r10", "r10d", "r10w", "r10b"}
	famR11 = family{"r11", "r11d", "r11w", "r11b"}
)

// mentions reports whether s names the register at any width.
func (f family) mentions(s string) bool {
	for i := strings.IndexByte(s, '%'); i >= 0; {
		j := i + 1
		for j < len(s) && (s[j] >= 'a' && s[j] <= 'z' || s[j] >= '0' && s[j] <= '9') {
			j++
		}
		r := s[i+1 : j]
		if r == f[0] || r == f[1] || r == f[2] || r == f[3] || (f == famRAX && r == "ah") || (f == famRDX && r == "dh") {
			return true
		}
		k := strings.IndexByte(s[j:], '%')
		if k < 0 {
			return false
		}
		i = j + k
	}
	return false
}

type effect int

const (
	effNone effect = iota
	effRead
	effWrite // the whole register is overwritten without having been read
)

func (f family) effectOf(i instr) effect {
	if strings.HasPrefix(i.op, "#") {
		return effRead
	}
	if f != famR10 && f != famR11 {
		switch base := strings.TrimRight(i.op, "bwlq"); {
		case base == "mu" || base == "mul" || base == "div" || base == "idiv" || base == "di" || base == "idi":
			return effRead
		case i.op == "cltq" || i.op == "cwtl" || i.op == "cqto" || i.op == "cltd" || i.op == "cwtd" || i.op == "cdq" || i.op == "cqo":
			return effRead
		case base == "imul" || base == "imu":
			if !strings.Contains(i.args, ",") {
				return effRead
			}
		case strings.HasPrefix(i.op, "cmpxchg"), strings.HasPrefix(i.op, "rep"), strings.HasPrefix(i.op, "mulx"),
			strings.HasPrefix(i.op, "x"+"get"), i.op == "syscall", i.op == "cpuid", strings.HasPrefix(i.op, "rd"),
			strings.HasPrefix(i.op, "wr"), strings.HasPrefix(i.op, "xsave"), strings.HasPrefix(i.op, "xrstor"),
			strings.HasPrefix(i.op, "stos"), strings.HasPrefix(i.op, "lods"), strings.HasPrefix(i.op, "scas"),
			i.op == "xlat", i.op == "lahf", i.op == "sahf", strings.HasPrefix(i.op, "in"), strings.HasPrefix(i.op, "out"),
			i.op == "monitor", i.op == "mwait":
			if !strings.HasPrefix(i.op, "inc") && !strings.HasPrefix(i.op, "ins") {
				return effRead
			}
		}
	}
	if !f.mentions(i.args) {
		return effNone
	}
	src, dst := splitLast(i.args)
	whole := dst == "%"+f[0] || dst == "%"+f[1]
	if !whole {
		return effRead
	}
	switch {
	case strings.HasPrefix(i.op, "pop") && !strings.HasPrefix(i.op, "popcnt"):
		return effWrite
	case i.op == "xorl" || i.op == "xorq" || i.op == "subl" || i.op == "subq":
		if src == dst {
			return effWrite
		}
	case strings.HasPrefix(i.op, "mov"), strings.HasPrefix(i.op, "lea"), strings.HasPrefix(i.op, "cvt"):
		if !f.mentions(src) {
			return effWrite
		}
	}
	return effRead
}

// splitLast separates the last operand, which is the destination in AT&T syntax.
func splitLast(args string) (rest, last string) {
	depth := 0
	for i := len(args) - 1; i >= 0; i-- {
		switch args[i] {
		case ')':
			depth++
		case '(':
			depth--
		case ',':
			if depth == 0 {
				return strings.TrimSpace(args[:i]), strings.TrimSpace(args[i+1:])
			}
		}
	}
	return "", strings.TrimSpace(args)
}

// keeps reports whether a stub at the part's entry has to keep a register: one that carries a value into the function, or
// that the caller may count on to carry its own past it. The psABI has no such register among those that stubs use, but
// functions that keep more (preserve_most, no_caller_saved_registers) look like all others: either they save it at first,
// or they call nothing and leave it alone. r11 is not asked about for the latter's sake.
func (p *part) keeps(f family) bool {
	if p.liveAtEntry(f) {
		return true
	}
	for _, i := range p.body {
		if i.kind.is(kindCall|kindTail) || f.mentions(i.args) {
			return false
		}
	}
	return true
}

// takesR11 reports whether a function of this file may be given an argument in r11, as preserve_none functions are: it
// reads it, or leaves it alone and jumps on to one that does.
func (a *amd64) takesR11(p *part) bool {
	if a.r11 == nil {
		a.r11 = map[string]bool{}
		for more := true; more; {
			more = false
			for _, p := range a.parts {
				if !a.r11[p.base] && !p.cold && (p.uses.r11 && p.liveAtEntry(famR11) || !p.uses.r11 && p.jumpsTo(a.r11)) {
					a.r11[p.base], more = true, true
				}
			}
		}
	}
	return a.r11[p.base]
}

// jumpsTo reports whether a part ends with a tail call to one of the functions.
func (p *part) jumpsTo(functions map[string]bool) bool {
	for _, i := range p.body {
		if i.kind.is(kindTail) && functions[symbolIn(i.args)] {
			return true
		}
	}
	return false
}

// liveAtEntry reports whether the register may carry a value into the part's first instruction.
func (p *part) liveAtEntry(f family) bool {
	const limit = 20000
	seen := make([]bool, len(p.body))
	work := []int{0}
	for steps := 0; len(work) > 0; {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for ; i < len(p.body) && !seen[i]; i++ {
			if steps++; steps > limit {
				return true
			}
			seen[i] = true
			in := p.body[i]
			switch f.effectOf(in) {
			case effRead:
				return true
			case effWrite:
				i = len(p.body)
				continue
			}
			switch {
			case in.kind.is(kindReturn | kindStop):
				i = len(p.body)
			case in.kind.is(kindCall):
				switch f {
				case famRDX:
					return true // it may be passed on as the third argument
				case famRAX, famR11:
					i = len(p.body) // clobbered; a variadic callee gets its own count
				case famR10:
					if p.nested {
						return true
					}
					i = len(p.body)
				}
			case in.kind.is(kindJump):
				target, ok := p.labels[in.args]
				if !ok { // leaves the part, or jumps through a table
					return true
				}
				work = append(work, target)
				if in.kind.is(kindAlways) {
					i = len(p.body)
				}
			}
		}
	}
	return false
}
