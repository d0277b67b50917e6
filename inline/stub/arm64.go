package stub

import "strings"

// arm64 knows A64 and the AAPCS64.
//
// Code between labels may grow only where nothing depends on its length: gcc's and clang's jump tables hold bytes and half
// words, and a branch on a bit reaches 32 KiB. In a part where that matters (part.tight) a return becomes a branch to its
// stub, which stands at the function's end and returns there.
//
// There is no red zone. x16 and x17 are free at each of the places, unless a tail call goes through one of them. x9 to x13
// are free in code from gcc; clang's preserve_most and preserve_none use them, so in code from clang the recording half
// keeps them on the stack. x18 is never touched.
type arm64 struct {
	*inserter
	tables  map[string]bool // code labels that tables of bytes and half words refer to
	variant map[string]bool // functions with a calling convention of their own (.variant_pcs)
	foreign map[*part]int   // how long a part's inline assembly is at most, in bytes
}

func (a *arm64) comment() string { return "//" }

func (a *arm64) entryState() cfiState { return cfiState{cfaReg: "sp", cfaOff: "0"} }

func (a *arm64) fallback() {
	for _, l := range []string{
		"\t.section\t.bss." + symIdle + ",\"awG\",%nobits," + symIdle + ",comdat",
		"\t.p2align 6", "\t.weak\t" + symIdle, "\t.hidden\t" + symIdle, "\t.type\t" + symIdle + ", %object", "\t.size\t" + symIdle + ", 64",
		symIdle + ":", "\t.zero\t64",
	} {
		a.line(l)
	}
	lines := []string{
		"\t.section\t.tdata." + symTLS + ",\"awTG\",%progbits," + symTLS + ",comdat",
		"\t.p2align 3", "\t.weak\t" + symTLS, "\t.hidden\t" + symTLS, "\t.type\t" + symTLS + ", %tls_object", "\t.size\t" + symTLS + ", 8",
		symTLS + ":", "\t.xword\t" + symIdle, "\t.text",
	}
	if a.door.word() { // the thread's word is null: it gets the idle block's address
		lines = []string{
			"\t.section\t.text." + symSlowWord + ",\"axG\",%progbits," + symSlowWord + ",comdat",
			"\t.p2align 2", "\t.type\t" + symSlowWord + ", %function", symSlowWord + ":",
			"\tldr\tx16, [sp]", "\tadrp\tx17, " + symIdle, "\tadd\tx17, x17, :lo12:" + symIdle, "\tstr\tx17, [x16]", "\tret",
			"\t.size\t" + symSlowWord + ", .-" + symSlowWord, "\t.text",
		}
	}
	for _, l := range lines {
		a.line(l)
	}
}

func (a *arm64) entry(p *part) {
	if a.o.ClockOnly {
		a.clock()
		return
	}
	word := wordMethod
	if a.framed[p.base] {
		word = wordEntryFramed
	}
	frame := a.here()
	if !a.cfi { // the stub stands before the unwind information begins
		*frame = a.entryState()
	}
	a.point(p, arm64Place{word: word, frame: frame, keep: a.keeps(p), lr: true})
}

// clock writes a bare read of the counter.
func (a *arm64) clock() { a.line("\tmrs\tx16, cntvct_el0") }

// keeps reports whether x9 to x15 may hold values at a part's entry or returns.
func (a *arm64) keeps(p *part) bool { return !a.gcc || p.nested || a.variant[p.base] }

// leaving writes a return or a tail call with the stub before it.
func (a *arm64) leaving(p *part, i *instr, raw []byte, text string) {
	a.res.Exits++
	if a.o.ClockOnly {
		a.clock()
		a.copy(raw, text)
		return
	}
	frame := a.entryState()
	frame.signed = strings.HasPrefix(i.op, "reta")
	pl := arm64Place{word: wordExit, frame: &frame, keep: a.keeps(p), lr: true}
	if i.kind.is(kindTail) && strings.HasPrefix(i.op, "br") {
		pl.target, _, _ = strings.Cut(i.args, ",")
	}
	if i.kind.is(kindTail) && isNested(symbolIn(i.args)) {
		pl.keep = true
	}
	last := int(i.index) == len(p.body)-1 // whatever stands there moves nothing apart
	barrier := a.barrier(p, i)
	pl.leave = append([]string{"\t" + i.op + "\t" + i.args}, barrier...)
	inPlace := pl.target == "" || !pl.keep || !strings.HasPrefix(pl.target, "x16") && !strings.HasPrefix(pl.target, "x17")
	if inPlace && (!p.tight || last) {
		if barrier != nil {
			pl.leave = nil
		}
		a.point(p, pl)
		a.copy(raw, text)
		return
	}
	pl.begin = a.fresh("x")
	a.line("\tb\t" + pl.begin)
	a.point(p, pl)
}

// barrier returns what keeps processors from speculating beyond a return or jump (-mharden-sls), if it stands behind i.
func (a *arm64) barrier(p *part, i *instr) []string {
	var out []string
	for k := int(i.index) + 1; k < len(p.body); k++ {
		switch q := &p.body[k]; q.op {
		case "dsb", "isb", "sb":
			out = append(out, "\t"+q.op+"\t"+q.args)
			continue
		}
		break
	}
	return out
}

// resume is a stub behind a call that can return twice. The call has clobbered x9 to x17 and x30.
func (a *arm64) resume(p *part) {
	if a.o.ClockOnly {
		return
	}
	a.res.Resumes++
	a.point(p, arm64Place{word: wordResumedFramed, frame: a.here()})
}

// call writes a call that can return twice where code must not grow: it is made at the function's end.
func (a *arm64) call(p *part, i *instr) {
	a.res.Resumes++
	begin, back := a.fresh("x"), a.fresh("b")
	a.line("\tb\t" + begin)
	a.line(back + ":")
	lines := []string{begin + ":", "\t" + i.op + "\t" + i.args}
	if q := a.landing(p, int(i.index)+1); q != "" {
		lines = append(lines, q)
	}
	p.slow = append(p.slow, chunk{frame: a.here(), lines: lines})
	a.point(p, arm64Place{begin: a.fresh("x"), word: wordResumedFramed, frame: a.here(), leave: []string{"\tb\t" + back}})
}

// landing returns the landing pad instruction at an index, or "".
func (a *arm64) landing(p *part, k int) string {
	if k < 0 || k >= len(p.body) || !p.body[k].kind.is(kindLanding) {
		return ""
	}
	return "\t" + p.body[k].op + "\t" + p.body[k].args
}

func (a *arm64) pad(p *part, pad, target string) {
	a.res.Resumes++
	lines := []string{pad + ":"}
	if k, ok := p.labels[target]; ok {
		if l := a.landing(p, k); l != "" {
			lines = append(lines, l)
		}
	}
	p.slow = append(p.slow, chunk{lines: lines})
	a.point(p, arm64Place{begin: a.fresh("x"), word: wordResumedFramed, leave: []string{"\tb\t" + target}})
}

func (a *arm64) instruction(p *part, i *instr, raw []byte, text string) {
	twice := func(i *instr) bool { return i.kind.is(kindTwice) && i.kind.is(kindCall) }
	switch {
	case i.kind.is(kindReturn | kindTail):
		a.leaving(p, i, raw, text)
		return
	case twice(i) && p.tight && !a.o.ClockOnly:
		a.call(p, i)
		return
	}
	a.copy(raw, text)
	switch {
	case p.tight:
	case twice(i) && a.landing(p, int(i.index)+1) == "":
		a.resume(p)
	case i.kind.is(kindLanding) && i.index > 0 && twice(&p.body[i.index-1]): // the call comes back to the landing pad
		a.resume(p)
	}
}
