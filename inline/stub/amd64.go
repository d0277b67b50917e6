package stub

import (
	"fmt"
	"strings"
)

// The symbols that a stub refers to, both hidden. The runtime defines them; in what is linked without it (by another
// tool, or with -nostdlib), each object brings a weak thread pointer to an idle control block, so that its stubs are off.
const (
	symTLS  = "__braid_tls"
	symSlow = "__braid_slow"
	symIdle = "__braid_idle"
)

// head is every stub's beginning: find the control block, read the cursor, leave if off. It ends with the cursor in
// c and the control block's address in t. pre spills what t and c hold; restore brings it back before the slow path, whose
// own stack use overwrites the red zone. The caller restores behind the label that head returns.
func (in *inserter) head(p *part, t, c string, pre, restore []string) (done string) {
	in.n++
	again, slow := fmt.Sprintf(".Lbraid_r%d", in.n), fmt.Sprintf(".Lbraid_s%d", in.n)
	done = fmt.Sprintf(".Lbraid_d%d", in.n)
	in.declare()
	in.line(again + ":")
	for _, l := range pre {
		in.line("\t" + l)
	}
	in.line("\tmovq\t" + symTLS + "@gottpoff(%rip), %" + t)
	in.line("\tmovq\t%fs:(%" + t + "), %" + t)
	in.line("\tmovq\t(%" + t + "), %" + c)
	in.line("\ttestb\t$3, %" + c + low(c))
	in.line("\tjz\t" + done)
	in.line("\tjp\t" + slow)
	p.slow = append(p.slow, slow+":")
	for _, l := range restore {
		p.slow = append(p.slow, "\t"+l)
	}
	p.slow = append(p.slow, "\tcall\t"+symSlow, "\tjmp\t"+again)
	return done
}

func low(r string) string {
	if r[1] >= '0' && r[1] <= '9' {
		return "b"
	}
	return ""
}

func (in *inserter) declare() {
	if in.declared {
		return
	}
	in.declared = true
	in.line("\t.weak\t" + symSlow)
	in.line("\t.hidden\t" + symSlow)
}

// fallback defines the weak thread pointer, once in a linked module.
func (in *inserter) fallback() {
	if !in.declared {
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
		in.line(l)
	}
}

// emitEntry writes the stub of a function's entry.
func (in *inserter) emitEntry(p *part) {
	saveRAX, saveRDX := p.liveAtEntry(famRAX), p.liveAtEntry(famRDX)
	chain := p.nested || p.usesR10 && p.liveAtEntry(famR10)
	if in.o.ClockOnly {
		in.att(func() { in.clock(saveRAX, saveRDX) })
		return
	}
	in.att(func() {
		var pre, restore []string
		if chain {
			pre, restore = []string{"movq\t%r10, -24(%rsp)"}, []string{"movq\t-24(%rsp), %r10"}
		}
		done := in.head(p, "r11", "r10", pre, restore)
		if saveRAX {
			in.line("\tmovq\t%rax, -16(%rsp)")
		}
		if saveRDX {
			in.line("\tmovq\t%rdx, -8(%rsp)")
		}
		in.line("\trdtsc")
		in.line("\tleal\t" + p.label + "(%rip), %edx")
		in.line("\tmovl\t%edx, -1(%r10)")
		in.line("\tmovl\t%eax, 3(%r10)")
		if saveRDX {
			in.line("\tmovq\t-8(%rsp), %rdx")
		}
		if saveRAX {
			in.line("\tmovq\t-16(%rsp), %rax")
		}
		in.publish("r11", "r10")
		in.line(done + ":")
		for _, l := range restore {
			in.line("\t" + l)
		}
	})
}

// clock writes a bare read of the counter.
func (in *inserter) clock(saveRAX, saveRDX bool) {
	if saveRAX {
		in.line("\tmovq\t%rax, %r10")
	}
	if saveRDX {
		in.line("\tmovq\t%rdx, %r11")
	}
	in.line("\trdtsc")
	if saveRDX {
		in.line("\tmovq\t%r11, %rdx")
	}
	if saveRAX {
		in.line("\tmovq\t%r10, %rax")
	}
}

func (in *inserter) publish(t, c string) {
	in.line("\taddq\t$8, %" + c)
	in.line("\tandq\t8(%" + t + "), %" + c)
	in.line("\tmovq\t%" + c + ", (%" + t + ")")
}

// emitReturn writes the stub before a return.
func (in *inserter) emitReturn(p *part) {
	in.res.Exits++
	if in.o.ClockOnly {
		in.att(func() { in.clock(true, true) })
		return
	}
	in.att(func() {
		done := in.head(p, "r11", "r10", nil, nil)
		in.line("\tmovq\t%rax, %r8")
		in.line("\tmovq\t%rdx, %r9")
		in.line("\trdtsc")
		in.line("\tshlq\t$32, %rax")
		in.line("\tmovq\t%rax, -1(%r10)")
		in.publish("r11", "r10")
		in.line("\tmovq\t%r8, %rax")
		in.line("\tmovq\t%r9, %rdx")
		in.line(done + ":")
	})
}

// emitTail writes the stub before a tail call, when all argument registers are live.
func (in *inserter) emitTail(p *part, target string) {
	in.res.Exits++
	if in.o.ClockOnly {
		return // a workload for measuring makes no tail calls
	}
	t, c := "r11", "r10"
	var pre, restore []string
	spill := func(r, slot string) {
		pre = append(pre, "movq\t%"+r+", "+slot)
		restore = append(restore, "movq\t"+slot+", %"+r)
	}
	if strings.Contains(target, "r11") {
		spill("r11", "-88(%rsp)")
	}
	if p.nested || p.usesR10 || strings.Contains(target, "r10") || isNested(strings.TrimSuffix(target, "@PLT")) {
		spill("r10", "-96(%rsp)")
	}
	in.att(func() {
		done := in.head(p, t, c, pre, restore)
		in.line("\tmovq\t%rax, -104(%rsp)")
		in.line("\tmovq\t%rdx, -112(%rsp)")
		in.line("\trdtsc")
		in.line("\tshlq\t$32, %rax")
		in.line("\tmovq\t%rax, -1(%r10)")
		in.line("\tmovq\t-104(%rsp), %rax")
		in.line("\tmovq\t-112(%rsp), %rdx")
		in.publish(t, c)
		in.line(done + ":")
		for _, l := range restore {
			in.line("\t" + l)
		}
	})
}

// emitResume writes the stub behind a call that can return twice: a record of two slots that names the method which
// has control again. Both slots are published at once; bit 0 is put back between them in case a stop clears it.
func (in *inserter) emitResume(p *part) {
	if p.label == "" || in.o.ClockOnly {
		return
	}
	in.res.Resumes++
	in.att(func() {
		done := in.head(p, "r11", "r10", nil, nil)
		in.line("\tmovq\t%rax, %r8")
		in.line("\tleaq\t" + p.label + "(%rip), %rax")
		in.line("\tmovq\t%rax, -1(%r10)")
		in.line("\taddq\t$8, %r10")
		in.line("\tandq\t8(%r11), %r10")
		in.line("\torq\t$1, %r10")
		in.line("\tmovq\t%rdx, %r9")
		in.line("\trdtsc")
		in.line("\tmovl\t$2, -1(%r10)")
		in.line("\tmovl\t%eax, 3(%r10)")
		in.publish("r11", "r10")
		in.line("\tmovq\t%r8, %rax")
		in.line("\tmovq\t%r9, %rdx")
		in.line(done + ":")
	})
}

// instruction handles one instruction line of a part that gets stubs.
func (in *inserter) instruction(raw []byte, text string) {
	p := in.cur
	i := parse(text)
	if !p.entered {
		if i.op == "endbr64" && !p.endbr {
			p.endbr = true
			in.copy(raw, text)
			in.enter()
			return
		}
		in.enter()
	}
	switch {
	case i.isReturn():
		in.emitReturn(p)
	case i.tail && (i.op == "jmp" || i.op == "jmpq"):
		in.emitTail(p, i.args)
	case i.tail: // a conditional tail call: the condition is turned round and jumps over stub and jump
		in.n++
		over := fmt.Sprintf(".Lbraid_o%d", in.n)
		in.line("\t" + inverse(i.op) + "\t" + over)
		in.emitTail(p, i.args)
		in.line("\tjmp\t" + i.args)
		in.line(over + ":")
		return
	}
	in.copy(raw, text)
	if i.returnsTwice() {
		in.emitResume(p)
	}
}

// copy passes an instruction on, without gcc's annotation.
func (in *inserter) copy(raw []byte, text string) {
	if in.gcc {
		if code, _, comment := splitComment(text); strings.Contains(comment, "[c=") {
			in.line(strings.TrimRight(code, " \t"))
			return
		}
	}
	in.out = append(in.out, raw...)
}

// inverse returns the conditional jump on the opposite condition.
func inverse(op string) string {
	if c, ok := strings.CutPrefix(op, "jn"); ok {
		return "j" + c
	}
	return "jn" + op[1:]
}
