package stub

import "strings"

// arm64Conditional reports whether a mnemonic is a branch on a condition: "b.eq", gcc's "beq", "cbz", "tbnz".
func arm64Conditional(op string) bool {
	switch op {
	case "cbz", "cbnz", "tbz", "tbnz":
		return true
	}
	if strings.HasPrefix(op, "b.") || strings.HasPrefix(op, "bc.") {
		return true
	}
	c, ok := strings.CutPrefix(op, "b")
	if !ok {
		return false
	}
	switch c {
	case "eq", "ne", "cs", "hs", "cc", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "nv",
		"any", "none", "first", "last", "nfrst", "nlast", "pmore", "plast", "tcont", "tstop":
		return true
	}
	return false
}

// arm64Twice reports whether operands name a function that can return twice.
func arm64Twice(args string) bool {
	for i := 0; i < len(args); {
		n := symbolLength(args[i:])
		if n > 0 && returnsTwice(args[i:i+n]) {
			return true
		}
		i += n + 1
	}
	return false
}

// parse reads one instruction line. gcc's annotation tells sibling calls from computed gotos; clang's are told apart in unfit,
// when the whole part is known.
func (a *arm64) parse(text string) instr {
	code, pattern, _ := splitComment(text, "//")
	op, args, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(code, "\t", " ")), " ")
	in := instr{op: op, args: strings.TrimSpace(args), pattern: pattern}
	switch op {
	case "ret", "retaa", "retab", "retaasppc", "retabsppc":
		in.kind = kindReturn | kindAlways
	case "bl":
		in.kind = kindCall
		if returnsTwice(in.args) {
			in.kind |= kindTwice
		}
	case "blr", "blraa", "blraaz", "blrab", "blrabz":
		in.kind = kindCall
	case "b", "br", "braa", "braaz", "brab", "brabz":
		in.kind = kindJump | kindAlways
		if strings.Contains(pattern, "sibcall") {
			in.kind |= kindTail
		} else if op == "br" && in.args == "x30" {
			in.kind = kindReturn | kindAlways
		}
	case "brk", "udf":
		in.kind = kindStop
	case "nop":
		in.kind = kindPadding
	case "bti", "paciasp", "pacibsp":
		in.kind = kindLanding
	case "hint":
		switch strings.TrimPrefix(in.args, "#") {
		case "25", "27", "32", "34", "36", "38": // paciasp, pacibsp, bti, bti c, bti j, bti jc
			in.kind = kindLanding
		case "0":
			in.kind = kindPadding
		}
	default:
		switch {
		case arm64Conditional(op):
			in.kind = kindJump
		case arm64Twice(in.args):
			in.kind = kindTwice // its address is taken, for a call through a register
		}
	}
	return in
}

// unfit finishes what is known of a part, and knows those that can't carry stubs.
func (a *arm64) unfit(p *part) string {
	a.lookup()
	for _, i := range p.body {
		if strings.HasPrefix(i.op, "eret") {
			return "an exception handler, which must keep every register"
		}
	}
	if !a.gcc {
		if why := a.tails(p); why != "" {
			return why
		}
	}
	a.measure(p)
	return ""
}

// lookup finds, once, what the text's directives say of labels and functions.
func (a *arm64) lookup() {
	if a.tables != nil {
		return
	}
	a.tables, a.variant, a.foreign = map[string]bool{}, map[string]bool{}, map[*part]int{}
	var cur *part
	app := false
	for k := range a.lines {
		l := &a.lines[k]
		switch {
		case l.kind == lineLabel && l.part != nil:
			cur = l.part
		case l.kind == lineApp, l.kind == lineNoApp:
			app = l.kind == lineApp
		case app:
			a.foreign[cur] += 4 * (1 + strings.Count(l.text, ";"))
			if strings.HasPrefix(l.text, ".") || strings.Contains(l.text, ".rept") { // may stand for any length
				a.foreign[cur] += arm64Assembly
			}
		}
		if l.kind != lineDirective {
			continue
		}
		switch word, rest := cutDirective(l.text); word {
		case ".byte", ".hword", ".2byte", ".short":
			for i := strings.Index(rest, ".L"); i >= 0; i = strings.Index(rest, ".L") {
				rest = rest[i:]
				n := symbolLength(rest)
				a.tables[rest[:n]] = true
				rest = rest[n:]
			}
		case ".variant_pcs":
			a.variant[strings.Trim(rest, `"`)] = true
		}
	}
}

// Lengths of code in bytes.
const (
	arm64Stub     = 200       // more than a return's stub, both halves
	arm64Assembly = 4 << 10   // what a directive in inline assembly is taken for
	arm64Bit      = 24 << 10  // what a branch on a bit surely reaches over
	arm64Branch   = 768 << 10 // what a branch on a condition, and adr, surely reach over
)

// measure decides what a part's length allows: a branch on a bit reaches 32 KiB, one on a condition and adr 1 MiB.
func (a *arm64) measure(p *part) {
	size := 4*len(p.body) + a.foreign[p]
	for _, i := range p.body {
		if i.kind.is(kindReturn | kindTail | kindTwice) {
			size += arm64Stub
		}
	}
	switch {
	case size > arm64Branch:
		p.span, p.tight = reachFar, true
	case size > arm64Bit:
		p.span, p.tight = reachMid, true
	}
	for l := range p.labels {
		if a.tables[l] {
			p.tight = true
		}
	}
}

// tails finds the tail calls in a part from clang, which does not mark them: a branch to another function, and a branch
// through a register that is neither a jump table's nor a computed goto.
func (a *arm64) tails(p *part) string {
	for k := range p.body {
		i := &p.body[k]
		if !i.kind.is(kindJump) || !i.kind.is(kindAlways) || i.kind.is(kindReturn) {
			continue
		}
		if i.op == "b" {
			if _, here := p.labels[i.args]; !here && a.coldSuffix(i.args) == 0 {
				i.kind |= kindTail
			}
			continue
		}
		switch target, _, _ := strings.Cut(i.args, ","); {
		case a.throughTable(p, k, target):
		case !p.takesLabel:
			i.kind |= kindTail
		case !a.hasFrame(p):
			return "clang does not say which of its indirect branches are tail calls"
		case a.frameGone(p, k):
			i.kind |= kindTail
		}
	}
	return ""
}

// throughTable reports whether the branch at k goes through a jump table: its register comes from the address of a label
// within the part (AArch64AsmPrinter.cpp of LLVM 19, LowerJumpTableDest).
func (a *arm64) throughTable(p *part, k int, reg string) bool {
	for k--; k >= 0; k-- {
		i := &p.body[k]
		if i.kind.is(kindCall | kindReturn | kindAlways | kindOpaque) {
			return false
		}
		to, rest, _ := strings.Cut(i.args, ",")
		if to != reg {
			continue
		}
		from, _, _ := strings.Cut(strings.TrimSpace(rest), ",")
		switch i.op {
		case "adr":
			_, here := p.labels[from]
			return here
		case "add", "mov":
			reg = from
		default:
			return false
		}
	}
	return false
}

// hasFrame reports whether a part moves the stack pointer, as functions with calls do.
func (a *arm64) hasFrame(p *part) bool {
	for _, i := range p.body {
		if strings.HasSuffix(i.args, "]!") && strings.Contains(i.args, "[sp") || i.op == "sub" && strings.HasPrefix(i.args, "sp,") {
			return true
		}
	}
	return false
}

// frameGone reports whether the frame has been given back in the straight line of code before k.
func (a *arm64) frameGone(p *part, k int) bool {
	for k--; k >= 0; k-- {
		i := &p.body[k]
		switch {
		case i.kind.is(kindCall | kindJump | kindReturn | kindOpaque):
			return false
		case i.op == "add" && strings.HasPrefix(i.args, "sp,"), i.op == "mov" && strings.HasPrefix(i.args, "sp,"),
			strings.Contains(i.args, "[sp], #"):
			return true
		}
	}
	return false
}
