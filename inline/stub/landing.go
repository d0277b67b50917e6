package stub

import (
	"fmt"
	"strings"
)

// Where control comes back to without a call or a return: an exception's landing pads, which the tables of
// .gcc_except_table name, and the receivers of __builtin_longjmp and of gotos out of nested functions, whose address the
// code itself takes. A stub in line could be reached by falling into it, with registers in use. So it stands out of
// line, as a pad that jumps on to the place, and the table or the instruction names the pad instead.

// landings gives each such place of a part with stubs its pad, and marks the lines that name it.
func (in *inserter) landings() {
	owner := map[string]*part{}
	for _, p := range in.parts {
		if p.skip {
			continue
		}
		for l := range p.labels {
			owner[l] = p
		}
	}
	in.exceptionTables(func(at int, label string) {
		if p := owner[label]; p != nil {
			in.redirect(at, p, label)
		}
	})
	var at []int
	var cur *part
	for k := range in.lines {
		switch l := &in.lines[k]; {
		case l.kind == lineLabel && l.part != nil:
			cur = l.part
		case l.kind == lineInstruction && l.part == cur && cur != nil:
			if strings.Contains(l.text, ".L") && !cur.body[l.instr].kind.is(kindJump|kindCall) {
				at = append(at, k)
			}
		}
	}
	in.receivers(at, owner)
}

// receivers finds the instructions, among those that name a label and are no jumps, that take a receiver's address.
func (in *inserter) receivers(at []int, owner map[string]*part) {
	jumps, setup := map[string]bool{}, map[string]bool{}
	for _, p := range in.parts {
		for _, i := range p.body {
			if i.kind.is(kindJump) && !i.kind.is(kindTail) && strings.Contains(i.pattern, "indirect_jump") {
				jumps[p.base] = true // a computed goto: its targets have registers in use
			}
		}
	}
	if !in.gcc {
		for k := range in.lines {
			if _, l, ok := strings.Cut(in.lines[k].text, "EH_SjLj_Setup"); ok {
				setup[strings.TrimSpace(l)] = true
			}
		}
	}
	for _, k := range at {
		l := &in.lines[k]
		p := l.part
		code := l.text
		if i := strings.Index(code, in.proc.comment()); i >= 0 {
			code = code[:i]
		}
		for rest := code; ; {
			i := strings.Index(rest, ".L")
			if i < 0 {
				break
			}
			rest = rest[i:]
			n := symbolLength(rest)
			label := rest[:n]
			rest = rest[n:]
			to := owner[label]
			switch {
			case to == nil:
			case to.base != p.base:
				if in.gcc { // a nested function's goto into the one around it, and the jump to it was inlined, too
					in.redirect(k, to, label)
				}
			case p.skip:
			case in.gcc && !jumps[p.base] && !in.labelInData(label) || setup[label]:
				in.redirect(k, to, label)
			}
		}
	}
}

// redirect has line at name label's pad instead of the label.
func (in *inserter) redirect(at int, p *part, label string) {
	pad := p.pads[label]
	if pad == "" {
		in.n++
		pad = fmt.Sprintf(".Lbraid_q%d", in.n)
		if p.pads == nil {
			p.pads = map[string]string{}
		}
		p.pads[label] = pad
		in.framed[p.base] = true
	}
	in.lines[at].padOf, in.lines[at].pad = label, pad
}

// exceptionTables finds the landing pads in the call-site tables, and gives each one's line and label to found. A table
// is a list of four values: a region's start, its length, the landing pad, what to do (Itanium C++ ABI, exception
// handling tables; gcc/except.cc of GCC 12, EHStreamer.cpp of LLVM 19).
func (in *inserter) exceptionTables(found func(at int, label string)) {
	end, field := "", 0
	for k := range in.lines {
		l := &in.lines[k]
		switch {
		case l.kind == lineLabel:
			name := labelName(l.text)
			switch {
			case name == end:
				end = ""
			case strings.HasPrefix(name, ".LLSDACSB"):
				end, field = ".LLSDACSE"+name[len(".LLSDACSB"):], 0
			case strings.HasPrefix(name, ".Lcst_begin"):
				end, field = ".Lcst_end"+name[len(".Lcst_begin"):], 0
			}
		case end != "" && l.kind == lineDirective:
			word, rest := cutDirective(l.text)
			switch word {
			case ".uleb128", ".byte", ".4byte", ".long", ".word", ".2byte":
			default:
				continue
			}
			if field%4 == 2 && rest[0] == '.' {
				found(k, rest[:symbolLength(rest)])
			}
			field++
		}
	}
}

// symbolLength is how long the symbol is that s begins with.
func symbolLength(s string) int {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c == '_' || c == '.' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return i
		}
	}
	return len(s)
}

// labelInData reports whether data refers to a label of code: it is then the target of a computed goto.
func (in *inserter) labelInData(label string) bool {
	if in.inData != nil {
		return in.inData[label]
	}
	in.inData = map[string]bool{}
	section := ".text"
	for k := range in.lines {
		l := &in.lines[k]
		if l.kind != lineDirective {
			continue
		}
		word, rest := cutDirective(l.text)
		section = sectionAfter(section, word, rest)
		switch word {
		case ".quad", ".long", ".8byte", ".4byte", ".word", ".xword", ".byte", ".2byte", ".hword", ".short":
		default:
			continue
		}
		if strings.HasPrefix(section, ".debug") {
			continue
		}
		for i := strings.Index(rest, ".L"); i >= 0; i = strings.Index(rest, ".L") {
			rest = rest[i:]
			n := symbolLength(rest)
			in.inData[rest[:n]] = true
			rest = rest[n:]
		}
	}
	return in.inData[label]
}
