package stub

import "fmt"

// load returns the instructions that put the control block's address into r11. A thread's word is null at first.
func (a *amd64) load(slow string) []string {
	var get string
	switch {
	case a.door.reg != "":
		get = fmt.Sprintf("\tmovq\t%d(%%%s), %%r11", a.door.offset, a.door.reg)
	case a.door.word():
		get = fmt.Sprintf("\tmovq\t%%fs:%d, %%r11", a.door.offset)
	default:
		return []string{"\tmovq\t" + symTLS + "@gottpoff(%rip), %r11", "\tmovq\t%fs:(%r11), %r11"}
	}
	return []string{get, "\ttestq\t%r11, %r11", "\tjz\t" + slow}
}

// slowCall returns the call of the slow path. Where the thread's word is to be filled in, its address goes on the stack, by
// way of r11, which is kept if it holds something (live). frame is how a caller is found here.
func (a *amd64) slowCall(frame *cfiState, live bool) []string {
	if !a.door.word() {
		return []string{"\tcall\t" + symSlow}
	}
	onStack := a.cfi && (frame == nil || frame.cfaRaw == "" && frame.cfaReg == "%rsp")
	var out []string
	move := func(op string, bytes int) {
		out = append(out, "\t"+op+"\t%r11")
		if onStack {
			out = append(out, fmt.Sprintf("\t.cfi_adjust_cfa_offset %d", bytes))
		}
	}
	if live {
		move("pushq", 8)
	}
	if a.door.reg != "" {
		out = append(out, fmt.Sprintf("\tleaq\t%d(%%%s), %%r11", a.door.offset, a.door.reg))
	} else {
		out = append(out, "\tmovq\t%fs:0, %r11", fmt.Sprintf("\tleaq\t%d(%%r11), %%r11", a.door.offset))
	}
	move("pushq", 8)
	out = append(out, "\tcall\t"+symSlowWord)
	move("popq", -8)
	if live {
		move("popq", -8)
	}
	return out
}

// fallbackWord fills in the thread's word where no runtime is linked.
func (a *amd64) fallbackWord() {
	for _, l := range []string{
		"\t.section\t.bss." + symIdle + ",\"awG\",@nobits," + symIdle + ",comdat",
		"\t.p2align 6", "\t.weak\t" + symIdle, "\t.hidden\t" + symIdle, "\t.type\t" + symIdle + ", @object", "\t.size\t" + symIdle + ", 64",
		symIdle + ":", "\t.zero\t64",
		"\t.section\t.text." + symSlowWord + ",\"axG\",@progbits," + symSlowWord + ",comdat",
		"\t.type\t" + symSlowWord + ", @function", symSlowWord + ":",
		"\tpushq\t%r10", "\tpushq\t%r11", "\tmovq\t24(%rsp), %r11", "\tleaq\t" + symIdle + "(%rip), %r10", "\tmovq\t%r10, (%r11)",
		"\tpopq\t%r11", "\tpopq\t%r10", "\tret",
		"\t.size\t" + symSlowWord + ", .-" + symSlowWord, "\t.text",
	} {
		a.line(l)
	}
}
