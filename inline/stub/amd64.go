package stub

import (
	"fmt"
	"strings"
)

// amd64 knows the x86-64 instruction set and the System V calling convention.
type amd64 struct {
	*inserter
	last, before instr           // the two that parse read last
	r11          map[string]bool // see takesR11; nil until asked for
}

func (a *amd64) comment() string { return "#" }

func (a *amd64) entryState() cfiState { return cfiState{cfaReg: "%rsp", cfaOff: "8"} }

func (a *amd64) fallback() {
	if a.door.word() {
		a.fallbackWord()
		return
	}
	for _, l := range []string{
		".section\t.tdata." + symTLS + ",\"awTG\",@progbits," + symTLS + ",comdat",
		".p2align 3", ".weak\t" + symTLS, ".hidden\t" + symTLS, ".type\t" + symTLS + ", @tls_object", ".size\t" + symTLS + ", 8",
		symTLS + ":", ".quad\t" + symIdle,
		".section\t.bss." + symIdle + ",\"awG\",@nobits," + symIdle + ",comdat",
		".p2align 6", ".weak\t" + symIdle, ".hidden\t" + symIdle, ".type\t" + symIdle + ", @object", ".size\t" + symIdle + ", 64",
		symIdle + ":", ".zero\t64", ".text",
	} {
		if !strings.HasSuffix(l, ":") {
			l = "\t" + l
		}
		a.line(l)
	}
}

// kept is a register that a stub uses although something may be in it, and where it is kept meanwhile.
type kept struct{ reg, at string }

// entry writes the stub of a function's entry.
func (a *amd64) entry(p *part) {
	var inside []kept
	if a.o.ClockOnly {
		a.att(func() { a.clock(p.liveAtEntry(famRAX), p.liveAtEntry(famRDX)) })
		return
	}
	if p.keeps(famRAX) {
		inside = append(inside, kept{"%rax", "-16(%rsp)"})
	}
	if p.keeps(famRDX) {
		inside = append(inside, kept{"%rdx", "-8(%rsp)"})
	}
	if p.nested || p.keeps(famR10) {
		inside = append(inside, kept{"%r10", "-24(%rsp)"})
	}
	var around []kept
	if a.takesR11(p) {
		around = append(around, kept{"%r11", "-32(%rsp)"})
	}
	a.att(func() {
		if a.framed[p.base] {
			a.point(p, nil, around, inside, true, a.framedRecord(p, wordEntryFramed)...)
			return
		}
		a.point(p, nil, around, inside, false, counterAbove, "leal\t"+p.label+"(%rip), %r10d", "orq\t%r10, %rdx",
			"movq\t%rdx, -7(%rax)", written)
	})
}

// clock writes a bare read of the counter.
func (a *amd64) clock(saveRAX, saveRDX bool) {
	if saveRAX {
		a.line("\tmovq\t%rax, %r10")
	}
	if saveRDX {
		a.line("\tmovq\t%rdx, %r11")
	}
	a.line("\trdtsc")
	if saveRDX {
		a.line("\tmovq\t%r11, %rdx")
	}
	if saveRAX {
		a.line("\tmovq\t%r10, %rax")
	}
}

// ret writes the stub before a return. Results can be in more registers than the psABI knows (regcall, swiftcall), and a
// preserve_most function keeps all but r11, so nothing but r11 is given up.
func (a *amd64) ret(p *part) {
	a.res.Exits++
	a.att(func() {
		if a.o.ClockOnly {
			a.clock(true, true)
			return
		}
		a.point(p, nil, nil, deep, false, exitRecord...)
	})
}

// deep is what is kept where the frame is gone: deep in the red zone, where it does not meet what the function has kept
// there for a tail call, nor the saved registers just below rsp, in which the unwind table may still find them.
var deep = []kept{{"%rax", "-104(%rsp)"}, {"%rdx", "-112(%rsp)"}, {"%r10", "-120(%rsp)"}}

// tail writes the stub before a tail call, when all argument registers are live. What is kept lies deep in the red zone,
// where it does not meet the function's own, which the jump may go through.
func (a *amd64) tail(p *part, target string) {
	a.res.Exits++
	if a.o.ClockOnly {
		return // a workload for measuring makes no tail calls
	}
	var around []kept
	if p.uses.r11 || a.takesR11(p) || strings.Contains(target, "r11") { // an argument, or where the jump goes
		around = append(around, kept{"%r11", "-128(%rsp)"})
	}
	a.att(func() {
		a.point(p, nil, around, deep, false, exitRecord...)
	})
}

// resume writes the stub behind a call that can return twice.
func (a *amd64) resume(p *part) {
	if a.o.ClockOnly {
		return
	}
	a.res.Resumes++
	a.att(func() {
		a.point(p, a.here(), nil, resumeKept, true, a.framedRecord(p, wordResumedFramed)...)
	})
}

// Where control comes back to, rax and rdx carry results or an exception; a call, an unwinder or longjmp has clobbered
// the rest. The frame exists, and has its own use for the red zone.
var resumeKept = []kept{{"%rax", "%r8"}, {"%rdx", "%r9"}}

func (a *amd64) pad(p *part, pad, target string) {
	a.res.Resumes++
	lines := []string{pad + ":"}
	if k := p.labels[target]; k < len(p.body) && p.body[k].kind.is(kindLanding) {
		lines = append(lines, "\tendbr64")
	}
	p.slow = append(p.slow, chunk{lines: lines})
	head := len(a.out)
	a.point(p, nil, nil, resumeKept, true, a.framedRecord(p, wordResumedFramed)...)
	// point has written its first half in line: it belongs between the two out-of-line pieces.
	inLine := strings.TrimSuffix(string(a.out[head:]), "\n")
	a.out = a.out[:head]
	n := len(p.slow)
	p.slow[n-2].lines = append(p.slow[n-2].lines, inLine, "\tjmp\t"+target)
}

// The records of two slots (docs/format.md).
const (
	wordEntryFramed   = 3
	wordResumedFramed = 4
)

// counterAbove leaves the counter's low half in the upper half of rdx, with 0 below. Each slot is written by one store, so
// that a stub which a signal handler leaves for good (siglongjmp) leaves it whole or zero.
const counterAbove = "shlq\t$32, %rax\n\tmovq\t%rax, %rdx"

// exitRecord has the counter's low half above, 0 below.
var exitRecord = []string{counterAbove, "movq\t%rdx, -7(%rax)", written}

// framedRecord names the method and its stack pointer in the first slot, the word and the time in the second, which is
// written first: a record that was left in between is seen by the method that is missing. The tag
// is put back into the second slot's address in case a stop or a swap has changed it.
func (a *amd64) framedRecord(p *part, word int) []string {
	return []string{
		counterAbove,
		"leaq\t8(%rax), %r10\n\tandq\t8(%r11), %r10\n\torq\t$7, %r10",
		fmt.Sprintf("orq\t$%d, %%rdx", word),
		"movq\t%rdx, -7(%r10)",
		"movl\t%esp, -3(%rax)",
		"leal\t" + p.label + "(%rip), %edx",
		"movl\t%edx, -7(%rax)",
		"movq\t%r10, 16(%r11)",
	}
}

// written tells the recorder that the slot at rax is.
const written = "movq\t%rax, 16(%r11)"

// point writes one trace point. around is kept from before it to behind it, also when tracing is off: what is in the one
// register that the test in line uses. inside is kept while recording. write[0] moves the counter, in rax, to edx; the
// rest of write writes the record to the slot at rax, and may use r10 and edx. frame is how a caller is found here, nil
// if as at a function's entry.
//
// The order is: load the cursor, read the counter, reserve the slot, write the record. cmpxchg without a lock prefix is one instruction to
// signals, if not to other processors, and no other processor writes a cursor that is on. So a signal handler with trace
// points of its own runs before the reservation, which then fails, and this point begins again behind the handler's records,
// or after it, and the handler's records stand behind this one's slot. Nothing is lost or out of order. If the handler has
// turned the cursor off, or to attend, this point begins again with its test.
//
// Only the test stands in line, and falls through when tracing is off. The rest stands at the function's end: that costs
// nothing while the counter is being read.
func (a *amd64) point(p *part, frame *cfiState, around, inside []kept, two bool, write ...string) {
	a.n++
	label := func(kind string) string { return fmt.Sprintf(".Lbraid_%s%d", kind, a.n) }
	again, on, slow, off, clock, undo := label("r"), label("n"), label("s"), label("d"), label("c"), label("u")
	a.declare()
	a.line(again + ":")
	for _, k := range around {
		a.line("\tmovq\t" + k.reg + ", " + k.at)
	}
	for _, l := range a.load(slow) {
		a.line(l)
	}
	a.line("\ttestb\t$7, (%r11)")
	a.line("\tjnz\t" + on)
	a.line(off + ":")
	for _, k := range around {
		a.line("\tmovq\t" + k.at + ", " + k.reg)
	}
	var out []string
	add := func(lines ...string) { out = append(out, lines...) }
	add(on+":", "\tjp\t"+slow)
	for _, k := range inside {
		add("\tmovq\t" + k.reg + ", " + k.at)
	}
	read := "rdtsc"
	if a.o.NoClock {
		read = "movl\t$1, %eax"
	}
	// The cursor is loaded before the counter is read: if a handler records in between, the reservation fails.
	add(clock+":", "\tmovq\t(%r11), %r10", "\t"+read, "\t"+write[0], "\ttestb\t$4, %r10b", "\tjz\t"+undo, "\tmovq\t%r10, %rax",
		"\taddq\t$8, %r10", "\tandq\t8(%r11), %r10")
	if two {
		add("\torq\t$7, %r10", "\taddq\t$8, %r10", "\tandq\t8(%r11), %r10")
	}
	add("\tcmpxchgq\t%r10, (%r11)", "\tjne\t"+clock)
	for _, l := range write[1:] {
		add("\t" + l)
	}
	restore := func(kept []kept) {
		for _, k := range kept {
			add("\tmovq\t" + k.at + ", " + k.reg)
		}
	}
	restore(inside)
	add("\tjmp\t"+off, slow+":")
	restore(around) // the slow path's own stack use overwrites the red zone
	add(a.slowCall(frame, len(around) > 0)...)
	add("\tjmp\t"+again, undo+":")
	restore(inside)
	restore(around)
	add("\tjmp\t" + again)
	p.slow = append(p.slow, chunk{frame: frame, lines: out})
}

// symbolIn returns the symbol that an operand names first: of "*setjmp@GOTPCREL(%rip)", "$setjmp, %rax" and
// "[QWORD PTR setjmp@GOTPCREL[rip]]".
func symbolIn(args string) string {
	args = strings.TrimLeft(args, "*$[")
	if i := strings.LastIndexByte(args, ' '); i >= 0 && strings.HasPrefix(args, "QWORD PTR") {
		args = args[i+1:]
	}
	return args[:symbolLength(args)]
}

func (a *amd64) instruction(p *part, i *instr, raw []byte, text string) {
	switch {
	case i.kind.is(kindReturn):
		a.ret(p)
	case i.kind.is(kindTail) && i.kind.is(kindAlways):
		a.tail(p, i.args)
	case i.kind.is(kindTail): // a conditional tail call: the condition is turned round and jumps over stub and jump
		a.n++
		over := fmt.Sprintf(".Lbraid_o%d", a.n)
		a.line("\t" + inverse(strings.TrimPrefix(i.op, "#")) + "\t" + over)
		a.tail(p, i.args)
		a.line("\tjmp\t" + i.args)
		a.line(over + ":")
		return
	}
	a.copy(raw, text)
	if i.kind.is(kindTwice) && i.kind.is(kindCall) {
		a.resume(p)
	}
}

// inverse returns the conditional jump on the opposite condition.
func inverse(op string) string {
	if c, ok := strings.CutPrefix(op, "jn"); ok {
		return "j" + c
	}
	return "jn" + op[1:]
}

// unfit knows the functions that keep more registers than the convention says.
func (a *amd64) unfit(p *part) string {
	for _, i := range p.body {
		switch strings.TrimPrefix(i.op, "#") {
		case "iretq", "iret", "uiret":
			return "an interrupt handler, which must keep every register"
		}
	}
	return ""
}

// splitComment takes the comment off an instruction line and returns the name of gcc's pattern if -dp left one.
func splitComment(s, mark string) (code, pattern, comment string) {
	i := strings.Index(s, mark)
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
func (a *amd64) parse(text string) instr {
	code, pattern, comment := splitComment(text, "#")
	code = strings.TrimSpace(code)
	in := instr{pattern: pattern}
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
	switch in.op {
	case "ret", "retq":
		in.kind = kindReturn | kindAlways
	case "call", "callq":
		in.kind = kindCall
		if returnsTwice(symbolIn(in.args)) {
			in.kind |= kindTwice
		}
	case "ud2", "hlt":
		in.kind = kindStop
	case "nop", "nopw", "nopl":
		in.kind = kindPadding
	case "endbr64":
		in.kind = kindLanding
	case "mov", "movq", "movabs", "movabsq", "movl", "leaq": // -mcmodel=large and -fno-plt call through a register
		if returnsTwice(symbolIn(in.args)) {
			in.kind = kindTwice
		}
	case "jmp", "jmpq":
		in.kind = kindJump | kindAlways
		if strings.HasSuffix(in.args, "__x86_return_thunk") {
			in.kind = kindReturn | kindAlways
		}
	default:
		if strings.HasPrefix(in.op, "j") || strings.HasPrefix(in.op, "loop") || in.op == "xbegin" {
			in.kind = kindJump
		}
	}
	// LLVM's -mlvi-hardening takes the return address off the stack (X86LoadValueInjectionRetHardening.cpp of LLVM 19).
	if in.kind.is(kindJump) && a.last.op == "lfence" && strings.HasPrefix(a.before.op, "pop") &&
		strings.TrimPrefix(in.args, "*") == a.before.args {
		in.kind = kindReturn | kindAlways
	}
	a.before, a.last = a.last, in
	if in.kind.is(kindJump) && in.op[0] == 'j' && (strings.Contains(pattern, "sibcall") || strings.Contains(comment, "TAILCALL")) {
		in.kind |= kindTail
	}
	return in
}
