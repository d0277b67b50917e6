package stub

import (
	"fmt"
	"slices"
	"strings"
)

// The low half of a record of one slot, where it is no method (docs/format.md).
const (
	wordMethod = -1
	wordExit   = 0
)

// arm64Place is one place for a stub.
type arm64Place struct {
	begin  string    // the label of a stub that stands out of line as a whole; "": its test stands in line
	word   int       // the low half of the record, or wordMethod
	frame  *cfiState // nil: not known yet; nothing is pushed then
	leave  []string  // what ends the recording half; nil: a jump back
	target string    // the register that a tail call goes through
	keep   bool      // x9 to x15 may hold values
	lr     bool      // x30 holds one
}

// reach says how far a part's end may be from its code.
type reach uint8

const (
	reachNear reach = iota // 32 KiB: a branch on a bit
	reachMid               // 1 MiB: a branch on a condition
	reachFar
)

func (a *inserter) fresh(kind string) string {
	a.n++
	return fmt.Sprintf(".Lbraid_%s%d", kind, a.n)
}

func half(reg string) string { return "w" + reg[1:] }

// scratch chooses the registers: block and cursor for the test, the others for recording.
func (pl *arm64Place) scratch() (block, cursor string, rest []string) {
	pool := slices.DeleteFunc([]string{"x16", "x17", "x9", "x10", "x11", "x12", "x13", "x14"}, func(r string) bool { return r == pl.target })
	return pool[0], pool[1], pool[2:7]
}

// load returns the instructions that put the control block's address into block, and use other.
func (a *arm64) load(block, other string) []string {
	switch {
	case a.door.reg != "":
		return []string{fmt.Sprintf("\tldr\t%s, [%s, #%d]", block, a.door.reg, a.door.offset)}
	case a.door.word():
		return []string{"\tmrs\t" + block + ", tpidr_el0", fmt.Sprintf("\tldr\t%s, [%s, #%d]", block, block, a.door.offset)}
	}
	return []string{
		"\tadrp\t" + other + ", :gottprel:" + symTLS,
		"\tldr\t" + other + ", [" + other + ", :gottprel_lo12:" + symTLS + "]",
		"\tmrs\t" + block + ", tpidr_el0",
		"\tldr\t" + block + ", [" + block + ", " + other + "]",
	}
}

// slowCall returns the call of the slow path. Where the linker puts a veneer in between, it changes x16 and x17.
func (a *arm64) slowCall(pl *arm64Place, block string, sp bool) []string {
	cfi := func(lines ...string) []string {
		if sp {
			return lines
		}
		return nil
	}
	veneer := pl.target == "x16" || pl.target == "x17"
	var out, after []string
	first := "xzr"
	switch {
	case a.door.word():
		if veneer {
			out = append([]string{"\tstr\t" + pl.target + ", [sp, #-16]!"}, cfi("\t.cfi_adjust_cfa_offset 16")...)
			after = append([]string{"\tldr\t" + pl.target + ", [sp], #16"}, cfi("\t.cfi_adjust_cfa_offset -16")...)
		}
		first = block
		base := a.door.reg
		if base == "" {
			base = block
			out = append(out, "\tmrs\t"+block+", tpidr_el0")
		}
		out = append(out, fmt.Sprintf("\tadd\t%s, %s, #%d", block, base, a.door.offset))
	case veneer:
		first = pl.target
	case !pl.lr:
		return []string{"\tbl\t" + symSlow}
	}
	out = append(out, "\tstp\t"+first+", x30, [sp, #-16]!")
	out = append(out, cfi("\t.cfi_adjust_cfa_offset 16")...)
	if pl.lr {
		out = append(out, cfi("\t.cfi_rel_offset 30, 8")...)
	}
	out = append(out, "\tbl\t"+a.slowSymbol(), "\tldp\t"+first+", x30, [sp], #16")
	out = append(out, cfi("\t.cfi_adjust_cfa_offset -16")...)
	if pl.lr {
		out = append(out, cfi("\t.cfi_restore 30")...)
	}
	return append(out, after...)
}

// aboveCallee is added to the stack pointer in a resumed record. A call pushes nothing here, so that the stack pointer at
// the callee's entry is the caller's: without it a frame that has ended would be as near as the one that control came back
// to. That one is larger than this, since it holds x29 and x30.
const aboveCallee = 8

// record returns the recording half, from the read of the counter to the store of done, with the registers r.
//
// The slot is reserved by an exclusive pair over cursor and mask. Coming back from a signal handler clears the monitor, and
// so does a store of the recorder's to the mask: then the stub begins again, at retry. The counter is read before the
// exclusives: a kernel that emulates the read, because of an erratum, would clear the monitor each time. So the cursor must
// still be the one that was loaded before the counter, or the record would be older than a handler's before it.
func (a *arm64) record(p *part, word int, block, cursor string, r []string, pushed int, retry string) []string {
	now, next, mask, tmp, more := r[0], r[1], r[2], r[3], r[4]
	read := "\tmrs\t" + now + ", cntvct_el0"
	if a.o.NoClock {
		read = "\tmov\t" + now + ", #1"
	}
	out := []string{
		read,
		"\tadd\t" + tmp + ", " + cursor + ", #8",
		"\tldxp\t" + next + ", " + mask + ", [" + block + "]",
		"\tcmp\t" + next + ", " + cursor,
		"\tand\t" + next + ", " + tmp + ", " + mask,
		"\tb.ne\t" + retry,
	}
	add := func(lines ...string) { out = append(out, lines...) }
	method := []string{"\tadr\t" + tmp + ", " + p.label}
	if p.cold || p.span == reachFar {
		method = []string{"\tadrp\t" + tmp + ", " + p.label, "\tadd\t" + tmp + ", " + tmp + ", :lo12:" + p.label}
	}
	// One store a slot; a pair of words can't be stored at an odd distance.
	put := func(low, high, slot string) {
		add("\tbfi\t"+low+", "+high+", #32, #32", "\tstur\t"+low+", ["+slot+", #-7]")
	}
	switch word {
	case wordEntryFramed, wordResumedFramed: // the second slot's tag is put back in case a stop or a swap has changed it
		add("\torr\t"+next+", "+next+", #7", "\tadd\t"+tmp+", "+next+", #8", "\tand\t"+more+", "+tmp+", "+mask,
			"\tstxp\t"+half(tmp)+", "+more+", "+mask+", ["+block+"]", "\tcbnz\t"+half(tmp)+", "+retry)
		add(method...)
		if word == wordResumedFramed {
			pushed += aboveCallee
		}
		add(fmt.Sprintf("\tadd\t%s, sp, #%d", more, pushed))
		put(tmp, more, cursor)
		add(fmt.Sprintf("\tmov\t%s, #%d", half(tmp), word))
		put(tmp, now, next)
		add("\tstr\t" + next + ", [" + block + ", #16]")
	default:
		add("\tstxp\t"+half(tmp)+", "+next+", "+mask+", ["+block+"]", "\tcbnz\t"+half(tmp)+", "+retry)
		if word == wordMethod {
			add(method...)
			put(tmp, now, cursor)
		} else {
			add("\tlsl\t"+now+", "+now+", #32", "\tstur\t"+now+", ["+cursor+", #-7]")
		}
		add("\tstr\t" + cursor + ", [" + block + ", #16]")
	}
	return out
}

// saving returns the instructions that push registers and that pop them, and how many bytes.
func saving(regs []string) (push, pop []string, bytes int) {
	bytes = (8*len(regs) + 15) &^ 15
	for k := 0; k < len(regs); k += 2 {
		what, op := regs[k], "r"
		if k+1 < len(regs) {
			what, op = regs[k]+", "+regs[k+1], "p"
		}
		switch k {
		case 0:
			push = append(push, fmt.Sprintf("\tst%s\t%s, [sp, #-%d]!", op, what, bytes))
			pop = append(pop, fmt.Sprintf("\tld%s\t%s, [sp], #%d", op, what, bytes))
		default:
			push = append(push, fmt.Sprintf("\tst%s\t%s, [sp, #%d]", op, what, 8*k))
			pop = append([]string{fmt.Sprintf("\tld%s\t%s, [sp, #%d]", op, what, 8*k)}, pop...)
		}
	}
	return push, pop, bytes
}

// point writes one trace point. The test falls through when tracing is off; the recording half stands at the function's
// end, and so does the test if the place says so.
func (a *arm64) point(p *part, pl arm64Place) {
	a.declare()
	again := a.fresh("r")
	number := strings.TrimPrefix(again, ".Lbraid_r")
	on, slow, off, undo := ".Lbraid_n"+number, ".Lbraid_s"+number, ".Lbraid_d"+number, ".Lbraid_u"+number
	block, cursor, rest := pl.scratch()
	var saved []string
	used := rest[:4]
	if pl.word == wordEntryFramed || pl.word == wordResumedFramed {
		used = rest
	}
	early := false // the test itself needs a register that must be kept
	if pl.keep {
		saved = slices.Clone(used)
		if early = cursor != "x17"; early {
			saved = append(saved, cursor)
		}
	}
	push, pop, bytes := saving(saved)
	sp := a.cfi && pl.frame != nil && pl.frame.cfaRaw == "" && (strings.HasSuffix(pl.frame.cfaReg, "sp") || pl.frame.cfaReg == "31")
	var pushed []string // what says that bytes are on the stack
	if len(saved) > 0 && sp {
		pushed = []string{fmt.Sprintf("\t.cfi_adjust_cfa_offset %d", bytes)}
		push = append(push, pushed...)
		pop = append(pop, fmt.Sprintf("\t.cfi_adjust_cfa_offset -%d", bytes))
	}
	span := p.span
	if pl.begin != "" {
		span = reachNear // its halves stand together
	}

	head := []string{again + ":"}
	if early {
		head = append(head, push...)
	}
	head = append(head, a.load(block, cursor)...)
	if a.door.word() {
		if span == reachFar {
			over := a.fresh("v")
			head = append(head, "\tcbnz\t"+block+", "+over, "\tb\t"+slow, over+":")
		} else {
			head = append(head, "\tcbz\t"+block+", "+slow)
		}
	}
	head = append(head, "\tldr\t"+cursor+", ["+block+"]")
	switch span {
	case reachNear:
		head = append(head, "\ttbnz\t"+half(cursor)+", #2, "+on, "\ttbnz\t"+half(cursor)+", #0, "+slow)
	case reachMid:
		head = append(head, "\ttst\t"+cursor+", #7", "\tb.ne\t"+on)
	case reachFar:
		head = append(head, "\ttst\t"+cursor+", #7", "\tb.eq\t"+off, "\tb\t"+on)
	}
	if p.tight && pl.begin == "" { // whole multiples of the usual alignment, so that none of the padding that follows changes
		for n := 0; instructions(head)%4 != 0 && n < 3; n++ {
			head = append(head, "\tnop")
		}
	}
	head = append(head, off+":")

	var out []string
	add := func(lines ...string) { out = append(out, lines...) }
	if pl.begin != "" {
		add(pl.begin + ":")
		add(head...)
		if early {
			add(pop...)
		}
		add(pl.leave...)
	} else {
		for _, l := range head {
			a.line(l)
		}
	}
	add(on + ":")
	if span != reachNear {
		add("\ttbz\t" + half(cursor) + ", #2, " + slow)
	}
	retry := again
	if len(saved) > 0 || p.span == reachFar {
		retry = undo
	}
	if early {
		add(pushed...)
	} else {
		add(push...)
	}
	stack := 0
	if len(saved) > 0 {
		stack = bytes
	}
	add(a.record(p, pl.word, block, cursor, rest, stack, retry)...)
	add(pop...)
	if pl.leave != nil {
		add(pl.leave...)
	} else {
		add("\tb\t" + off)
	}
	add(slow + ":")
	if early {
		add(pushed...)
		add(pop...)
	}
	add(a.slowCall(&pl, block, sp)...)
	add("\tb\t" + again)
	if retry == undo {
		add(undo + ":")
		add(pushed...)
		add(pop...)
		add("\tb\t" + again)
	}
	p.slow = append(p.slow, chunk{frame: pl.frame, lines: out})
}

// instructions counts those among lines.
func instructions(lines []string) int {
	n := 0
	for _, l := range lines {
		if strings.HasPrefix(l, "\t") && !strings.HasPrefix(l, "\t.") {
			n++
		}
	}
	return n
}
