package stub

import (
	"strings"
)

// instr is one instruction of a part, with what is needed of it to follow control flow.
type instr struct {
	op   string // mnemonic, prefixes taken off
	args string // operands as text
	tail bool   // a jump that leaves the function (a sibling call)
}

// splitComment takes the comment off an instruction line and returns the name of gcc's pattern if -dp left one.
func splitComment(s string) (code, pattern, comment string) {
	i := strings.IndexByte(s, '#')
	if i < 0 {
		return s, "", ""
	}
	code, comment = s[:i], s[i:]
	if j := strings.Index(comment, "[c="); j >= 0 {
		if k := strings.IndexByte(comment[j:], ']'); k >= 0 {
			pattern = strings.TrimSpace(comment[j+k+1:])
			if k := strings.IndexAny(pattern, " \t"); k >= 0 {
				pattern = pattern[:k]
			}
		}
	}
	return code, pattern, comment
}

// parse reads one instruction line. gcc's own annotation decides what is a sibling call; clang writes a comment.
func parse(text string) instr {
	code, pattern, comment := splitComment(text)
	code = strings.TrimSpace(code)
	var in instr
	for {
		op, args, _ := strings.Cut(strings.ReplaceAll(code, "\t", " "), " ")
		op = strings.TrimSuffix(strings.TrimSpace(op), ";")
		switch op {
		case "rep", "repz", "repne", "repnz", "lock", "notrack", "bnd", "data16", "rex64", "cs", "ds", "xacquire", "xrelease":
			if args = strings.TrimLeft(args, " ;"); args != "" {
				if strings.HasPrefix(op, "rep") && !strings.HasPrefix(args, "ret") {
					in.op, in.args = op+" "+args, "" // a string instruction: taken as unknown
					return in
				}
				code = args
				continue
			}
		}
		in.op, in.args = op, strings.TrimSpace(args)
		break
	}
	in.tail = strings.HasPrefix(in.op, "j") &&
		(strings.Contains(pattern, "sibcall") || strings.Contains(comment, "TAILCALL"))
	return in
}

func (i instr) isReturn() bool {
	switch i.op {
	case "ret", "retq":
		return true
	case "jmp", "jmpq":
		return strings.HasSuffix(i.args, "__x86_return_thunk")
	}
	return false
}

func (i instr) isJump() bool { return strings.HasPrefix(i.op, "j") }

func (i instr) isCall() bool { return i.op == "call" || i.op == "callq" }

// returnsTwice reports whether an instruction calls a function that can come back a second time, after a jump out of
// methods that will then never see their exit.
func (i instr) returnsTwice() bool {
	if !i.isCall() {
		return false
	}
	t, _, _ := strings.Cut(strings.TrimLeft(i.args, "*"), "@")
	switch t {
	case "setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "savectx", "vfork", "getcontext":
		return true
	}
	return false
}

// scan reads the part's instructions up to its end, for the questions that need more than one line.
func (p *part) scan(lines [][]byte, intel bool) {
	p.labels = map[string]int{}
	app := false
	for _, l := range lines {
		t := strings.TrimSpace(string(l))
		switch {
		case t == "":
		case t == "#APP":
			app = true
			p.body = append(p.body, instr{op: "#APP"})
		case t == "#NO_APP":
			app = false
		case t[0] == '#' || app:
			if strings.Contains(t, "r10") {
				p.usesR10 = true
			}
		case isLabel(t):
			p.labels[labelName(t)] = len(p.body)
		case t[0] == '.':
			if strings.HasPrefix(t, ".cfi_endproc") || isSizeOf(t, p.name) {
				return
			}
		default:
			in := parse(t)
			if intel {
				in.op = "#" + in.op // operands are in another order: nothing is concluded from them
			}
			if strings.Contains(in.args, "r10") {
				p.usesR10 = true
			}
			p.body = append(p.body, in)
		}
	}
}

func isSizeOf(t, name string) bool {
	r, ok := strings.CutPrefix(t, ".size")
	if !ok {
		return false
	}
	n, _, _ := strings.Cut(strings.TrimSpace(r), ",")
	return strings.TrimSpace(n) == name
}

// unfit says why a part can't carry stubs, or "".
func (p *part) unfit() string {
	own := 0
	for _, i := range p.body {
		switch strings.TrimPrefix(i.op, "#") {
		case "iretq", "iret", "uiret":
			return "an interrupt handler, which must keep every register"
		case "APP", "ud2", "nop", "nopw", "nopl", "endbr64":
		default:
			own++
		}
	}
	if own == 0 && len(p.body) > 0 {
		return "naked: all of its instructions are inline assembly"
	}
	return ""
}
