package stub

import "strings"

var armConditions = map[string]string{
	"eq": "ne", "ne": "eq", "cs": "cc", "hs": "lo", "cc": "cs", "lo": "hs", "mi": "pl", "pl": "mi", "vs": "vc", "vc": "vs",
	"hi": "ls", "ls": "hi", "ge": "lt", "lt": "ge", "gt": "le", "le": "gt",
}

// armMnemonics are those that change the flow of control, or can, longer ones before those that they begin with.
var armMnemonics = []string{"blx", "bxj", "bx", "bl", "b", "pop", "ldmia", "ldmfd", "ldmib", "ldmed", "ldmdb", "ldmea", "ldmda",
	"ldmfa", "ldm", "ldr", "movs", "mov", "subs", "cbz", "cbnz", "tbb", "tbh", "udf", "nop", "it"}

// cutCondition separates a mnemonic in unified syntax from its condition and width. For other instructions than those
// above it is of no interest.
func cutCondition(op string) (base, cond string) {
	op, _, _ = strings.Cut(op, ".")
	for _, m := range armMnemonics {
		rest, ok := strings.CutPrefix(op, m)
		if !ok {
			continue
		}
		if rest == "" || rest == "al" {
			return m, ""
		}
		if armConditions[rest] != "" {
			return m, rest
		}
	}
	return op, ""
}

// armLoadsPC reports whether a load's operands name the program counter as a destination.
func armLoadsPC(base, args string) bool {
	if base == "ldr" || base == "mov" || base == "movs" || base == "subs" {
		return strings.HasPrefix(args, "pc,")
	}
	open := strings.IndexByte(args, '{')
	return open >= 0 && strings.Contains(args[open:], "pc")
}

// parse reads one instruction line. gcc's annotation tells sibling calls from computed gotos. clang says neither: a branch
// to a global symbol is a tail call, and a branch through a register as well, unless the function takes the address of a
// label (unfit).
func (a *arm) parse(text string) instr {
	code, pattern, _ := splitComment(text, "@")
	op, args, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(code, "\t", " ")), " ")
	in := instr{op: op, args: strings.TrimSpace(args), pattern: pattern}
	base, cond := cutCondition(op)
	always := kindAlways
	if cond != "" {
		always = 0
	}
	sibling := strings.Contains(pattern, "sibcall")
	switch base {
	case "bl", "blx":
		in.kind = kindCall
		if returnsTwice(symbolIn(strings.TrimPrefix(in.args, "#"))) {
			in.kind |= kindTwice
		}
	case "b":
		in.kind = kindJump | always
		if sibling || pattern == "" && !strings.HasPrefix(in.args, ".L") && !allDigits(strings.TrimRight(in.args, "bf")) {
			in.kind |= kindTail
		}
	case "bx":
		switch {
		case in.args == "lr" && !sibling:
			in.kind = kindReturn | always
		case sibling || !a.gcc:
			in.kind = kindJump | kindTail | always
		default:
			in.kind = kindJump | always
		}
	case "pop", "ldm", "ldmia", "ldmfd", "ldmib", "ldmed", "ldmdb", "ldmea", "ldmda", "ldmfa":
		if armLoadsPC(base, in.args) {
			in.kind = kindReturn | always
		}
	case "ldr":
		if armLoadsPC(base, in.args) {
			in.kind = kindJump | always
			if strings.HasPrefix(strings.ReplaceAll(in.args, " ", ""), "pc,[sp],") {
				in.kind = kindReturn | always
			}
		}
	case "mov", "movs", "subs":
		if armLoadsPC(base, in.args) {
			in.kind = kindJump | always
			if strings.HasSuffix(in.args, "lr") {
				in.kind = kindReturn | always
			}
		}
	case "cbz", "cbnz":
		in.kind = kindJump
	case "tbb", "tbh":
		in.kind = kindJump | kindAlways
	case "udf":
		in.kind = kindStop
	case "nop":
		in.kind = kindPadding
	}
	if op == "add" && strings.HasPrefix(in.args, "pc,") || strings.HasPrefix(op, "addls") && strings.HasPrefix(in.args, "pc,") {
		in.kind = kindJump // a table of branches follows
	}
	return in
}

// unfit knows the functions whose stubs could not be right.
func (a *arm) unfit(p *part) string {
	through := false
	for _, i := range p.body {
		base, _ := cutCondition(i.op)
		switch {
		case (base == "subs" || base == "movs") && armLoadsPC(base, i.args), strings.Contains(i.args, "}^"), strings.HasPrefix(i.op, "rfe"):
			return "an exception handler, which must keep every register"
		case base == "bx" && i.kind.is(kindTail):
			through = true
		}
	}
	if through && !a.gcc && p.takesLabel {
		return "clang does not say which of its indirect branches are tail calls"
	}
	return ""
}
