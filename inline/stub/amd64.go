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
		var around, inside [][2]string
		if chain {
			around = append(around, [2]string{"%r10", "-24(%rsp)"})
		}
		if saveRAX {
			inside = append(inside, [2]string{"%rax", "-16(%rsp)"})
		}
		if saveRDX {
			inside = append(inside, [2]string{"%rdx", "-8(%rsp)"})
		}
		in.point(p, around, inside, oneSlot, "movl\t%eax, %edx",
			"leal\t"+p.label+"(%rip), %r10d",
			"movl\t%r10d, -4(%rax)",
			"movl\t%edx, (%rax)",
			written)
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

// emitReturn writes the stub before a return.
func (in *inserter) emitReturn(p *part) {
	in.res.Exits++
	if in.o.ClockOnly {
		in.att(func() { in.clock(true, true) })
		return
	}
	in.att(func() {
		in.point(p, nil, [][2]string{{"%rax", "%r8"}, {"%rdx", "%r9"}}, oneSlot,
			"shlq\t$32, %rax\n\tmovq\t%rax, %rdx",
			"movq\t%rdx, -4(%rax)",
			written)
	})
}

// emitTail writes the stub before a tail call, when all argument registers are live.
func (in *inserter) emitTail(p *part, target string) {
	in.res.Exits++
	if in.o.ClockOnly {
		return // a workload for measuring makes no tail calls
	}
	var around [][2]string
	if strings.Contains(target, "r11") {
		around = append(around, [2]string{"%r11", "-88(%rsp)"})
	}
	if p.nested || p.usesR10 || strings.Contains(target, "r10") || isNested(strings.TrimSuffix(target, "@PLT")) {
		around = append(around, [2]string{"%r10", "-96(%rsp)"})
	}
	in.att(func() {
		in.point(p, around, [][2]string{{"%rax", "-104(%rsp)"}, {"%rdx", "-112(%rsp)"}}, oneSlot,
			"shlq\t$32, %rax\n\tmovq\t%rax, %rdx",
			"movq\t%rdx, -4(%rax)",
			written)
	})
}

// emitResume writes the stub behind a call that can return twice: a record of two slots that names the method which
// has control again.
func (in *inserter) emitResume(p *part) {
	if p.label == "" || in.o.ClockOnly {
		return
	}
	in.res.Resumes++
	in.att(func() {
		in.point(p, nil, [][2]string{{"%rax", "%r8"}, {"%rdx", "%r9"}}, twoSlots, "movl\t%eax, %edx",
			"leaq\t"+p.label+"(%rip), %r10",
			"movq\t%r10, -4(%rax)",
			"movl\t$2, -4(%rcx)",
			"movl\t%edx, (%rcx)",
			"movq\t%rcx, 16(%r11)")
	})
}

// How a record's slots are reserved: from the cursor in r10, the next cursor in r10. A record of two slots leaves the
// second one's address in rcx; the tag is put back in it in case a stop clears it.
const (
	oneSlot  = "addq\t$8, %r10\n\tandq\t8(%r11), %r10"
	twoSlots = oneSlot + "\n\torq\t$4, %r10\n\tmovq\t%r10, %rcx\n\t" + oneSlot
)

// written tells the recorder that the slot at rax is.
const written = "movq\t%rax, 16(%r11)"

// point writes one trace point. around is kept from before it to behind it, also when tracing is off: what the stub's
// own two registers hold. inside is kept while the counter is read. stash moves the counter, in eax, to edx.
// write writes the record to the slot at rax, and may use r10 and edx.
//
// The order is: read the counter, reserve the slot, write the record. cmpxchg without a lock prefix is one instruction to
// signals, if not to other processors, and no other processor writes a cursor that is on. So a signal handler with trace
// points of its own finds the cursor before the reservation, and this point begins again behind the handler's records,
// or after it, and the handler's records stand behind this one's slot. Nothing is lost or out of order.
//
// Only the test stands in line, and falls through when tracing is off. The rest stands at the function's end: that costs
// nothing while the counter is being read, and off it is 0.1 ns a point in place of 0.3.
func (in *inserter) point(p *part, around, inside [][2]string, reserve, stash string, write ...string) {
	in.n++
	label := func(kind string) string { return fmt.Sprintf(".Lbraid_%s%d", kind, in.n) }
	again, on, slow, off, clock, lost, put := label("r"), label("n"), label("s"), label("d"), label("c"), label("l"), label("p")
	in.declare()
	in.line(again + ":")
	for _, k := range around {
		in.line("\tmovq\t" + k[0] + ", " + k[1])
	}
	in.line("\tmovq\t" + symTLS + "@gottpoff(%rip), %r11")
	in.line("\tmovq\t%fs:(%r11), %r11")
	in.line("\tmovq\t(%r11), %r10")
	in.line("\ttestb\t$7, %r10b")
	in.line("\tjnz\t" + on)
	in.line(off + ":")
	restore := func(emit func(string), kept [][2]string) {
		for _, k := range kept {
			emit("\tmovq\t" + k[1] + ", " + k[0])
		}
	}
	restore(in.line, around)
	out := func(s string) { p.slow = append(p.slow, s) }
	out(on + ":")
	out("\tjp\t" + slow)
	for _, k := range inside {
		out("\tmovq\t" + k[0] + ", " + k[1])
	}
	out(clock + ":")
	out("\trdtsc")
	out("\t" + stash)
	out("\tmovq\t%r10, %rax")
	out("\t" + reserve)
	out("\tcmpxchgq\t%r10, (%r11)")
	out("\tjne\t" + lost)
	for _, l := range write {
		out("\t" + l)
	}
	out(put + ":")
	restore(out, inside)
	out("\tjmp\t" + off)
	out(slow + ":")
	restore(out, around) // the slow path's own stack use overwrites the red zone
	out("\tcall\t" + symSlow)
	out("\tjmp\t" + again)
	// The cursor moved: a signal handler recorded something. rax is where it is now.
	for _, l := range []string{lost + ":", "\tmovq\t%rax, %r10", "\ttestb\t$7, %al", "\tjz\t" + put, "\tjnp\t" + clock, "\tjmp\t" + put} {
		out(l)
	}
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
