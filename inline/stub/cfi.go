package stub

import (
	"maps"
	"slices"
	"strings"
)

// cfiState is what the .cfi directives so far say of how a caller's frame is found, so that out-of-line code can say the
// same of the place that it belongs to.
type cfiState struct {
	cfaReg, cfaOff string            // the canonical frame address; off is "" with an expression
	cfaRaw         string            // the directive that gives it as an expression
	regs           map[string]string // where each register is kept: the directive
	signed         bool              // the return address is signed (arm64)
}

func (s cfiState) clone() cfiState {
	s.regs = maps.Clone(s.regs)
	return s
}

// cfiTracker follows the directives of one function part.
type cfiTracker struct {
	now   cfiState
	saved []cfiState // by .cfi_remember_state
}

func (t *cfiTracker) start(s cfiState) {
	t.now = s.clone()
	if t.now.regs == nil {
		t.now.regs = map[string]string{}
	}
	t.saved = t.saved[:0]
}

// directive follows one. What is not understood is left to the assembler: out-of-line code is then described less well.
func (t *cfiTracker) directive(word, rest string) {
	reg, off, _ := strings.Cut(rest, ",")
	reg, off = strings.TrimSpace(reg), strings.TrimSpace(off)
	switch word {
	case ".cfi_def_cfa":
		t.now.cfaReg, t.now.cfaOff, t.now.cfaRaw = reg, off, ""
	case ".cfi_def_cfa_register":
		t.now.cfaReg = reg
	case ".cfi_def_cfa_offset":
		t.now.cfaOff = reg
	case ".cfi_adjust_cfa_offset":
		t.now.cfaOff += "+(" + reg + ")"
	case ".cfi_offset", ".cfi_rel_offset", ".cfi_register", ".cfi_undefined", ".cfi_same_value", ".cfi_val_offset":
		t.now.regs[reg] = word + " " + rest
	case ".cfi_restore":
		delete(t.now.regs, reg)
	case ".cfi_remember_state":
		t.saved = append(t.saved, t.now.clone())
	case ".cfi_restore_state":
		if n := len(t.saved); n > 0 {
			t.now = t.saved[n-1]
			t.saved = t.saved[:n-1]
		}
	case ".cfi_negate_ra_state", ".cfi_window_save":
		t.now.signed = !t.now.signed
	case ".cfi_escape":
		switch bytes := strings.Split(strings.ReplaceAll(rest, " ", ""), ","); bytes[0] {
		case "0xf", "0x0f", "15": // DW_CFA_def_cfa_expression
			t.now.cfaRaw = word + " " + rest
		case "0x10", "16": // DW_CFA_expression, of the register that follows
			if len(bytes) > 1 {
				t.now.regs["#"+bytes[1]] = word + " " + rest
			}
		}
	}
}

// to returns the directives that lead from the present state to s, which is then the present one.
func (t *cfiTracker) to(s cfiState) []string {
	var out []string
	switch {
	case s.cfaRaw != "":
		out = append(out, "\t"+s.cfaRaw)
	case s.cfaReg != "": // else the place has no unwind information
		out = append(out, "\t.cfi_def_cfa "+s.cfaReg+", "+s.cfaOff)
	}
	for _, reg := range slices.Sorted(maps.Keys(t.now.regs)) {
		if s.regs[reg] == "" {
			out = append(out, "\t.cfi_restore "+strings.TrimPrefix(reg, "#"))
		}
	}
	for _, reg := range slices.Sorted(maps.Keys(s.regs)) {
		if t.now.regs[reg] != s.regs[reg] {
			out = append(out, "\t"+s.regs[reg])
		}
	}
	if t.now.signed != s.signed {
		out = append(out, "\t.cfi_negate_ra_state")
	}
	t.now = s.clone()
	if t.now.regs == nil {
		t.now.regs = map[string]string{}
	}
	return out
}
