package stub

import (
	"fmt"
	"strings"
)

// arm knows A32 and T32, in unified syntax, and the AAPCS.
//
// Code must not grow between labels: a compare-and-branch of T32 reaches 126 bytes, its jump tables hold bytes, and constants
// are loaded from pools that lie within 4 KiB. So a return becomes a branch to its stub, which stands at the function's end
// and returns there; only T32's two-byte returns grow, by two, and reach takes care of that.
//
// There is no red zone. Of the registers ip is free at each of the places, unless it holds a static chain or a tail call's
// target; r3 is kept on the stack, and the others that recording needs as well.
type arm struct{ *inserter }

func (a *arm) comment() string { return "@" }

func (a *arm) entryState() cfiState { return cfiState{cfaReg: "sp", cfaOff: "0"} }

func (a *arm) fallback() {
	for _, l := range []string{
		"\t.section\t.tdata." + symTLS + ",\"awTG\",%progbits," + symTLS + ",comdat",
		"\t.p2align 3", "\t.weak\t" + symTLS, "\t.hidden\t" + symTLS, "\t.type\t" + symTLS + ", %tls_object", "\t.size\t" + symTLS + ", 4",
		symTLS + ":", "\t.long\t" + symIdle,
		"\t.section\t.bss." + symIdle + ",\"awG\",%nobits," + symIdle + ",comdat",
		"\t.p2align 6", "\t.weak\t" + symIdle, "\t.hidden\t" + symIdle, "\t.type\t" + symIdle + ", %object", "\t.size\t" + symIdle + ", 64",
		symIdle + ":", "\t.zero\t64", "\t.text",
	} {
		a.line(l)
	}
}

// armPlace is one place for a stub.
type armPlace struct {
	begin string    // the label of its code
	keep  string    // registers that the test must put back, for push and pop
	saved int       // how many
	word  int       // the low half of the record; -1: the method
	frame *cfiState // nil: as at a function's entry
	leave []string  // what ends it
}

func (a *arm) names(kinds ...string) []string {
	a.n++
	for k := range kinds {
		kinds[k] = fmt.Sprintf(".Lbraid_%s%d", kinds[k], a.n)
	}
	return kinds
}

func (a *arm) entry(p *part) {
	n := a.names("r", "b")
	a.line("\tb\t" + n[0])
	a.line(n[1] + ":")
	place := armPlace{begin: n[0], keep: "r3", saved: 1, word: -1, leave: []string{"\tb\t" + n[1]}}
	if a.framed[p.base] {
		place.word = wordEntryFramed
	}
	if p.nested || p.uses.ip {
		place.keep, place.saved = "r3, ip", 2
	}
	a.point(p, place)
}

// resume writes the stub behind a call that can return twice.
func (a *arm) resume(p *part) {
	a.res.Resumes++
	n := a.names("r", "b")
	a.line("\tb\t" + n[0])
	a.line(n[1] + ":")
	a.point(p, armPlace{begin: n[0], keep: "r3", saved: 1, word: wordResumedFramed, frame: a.here(), leave: []string{"\tb\t" + n[1]}})
}

func (a *arm) pad(p *part, pad, target string) {
	a.res.Resumes++
	a.point(p, armPlace{begin: pad, keep: "r3", saved: 1, word: wordResumedFramed, leave: []string{"\tb\t" + target}})
}

// leaving replaces a return or a tail call by a branch, with the same condition, to a stub that does what it did.
func (a *arm) leaving(p *part, i *instr) {
	a.res.Exits++
	base, cond := cutCondition(i.op)
	n := a.names("r")
	a.line("\tb" + cond + "\t" + n[0])
	keep, saved := "r3", 1
	if strings.Contains(i.args, "ip") || strings.Contains(i.args, "r12") || i.kind.is(kindTail) && (p.nested || isNested(symbolIn(i.args))) {
		keep, saved = "r3, ip", 2
	}
	a.point(p, armPlace{begin: n[0], keep: keep, saved: saved, frame: a.here(), leave: []string{"\t" + base + "\t" + i.args}})
}

// point writes one trace point out of line.
//
// The slot is reserved with an exclusive pair; coming back from a signal handler clears the monitor, so that a handler with
// trace points makes it fail, and this point begins again behind the handler's records. The counter is read before: a
// kernel that emulates the read would clear the monitor each time. What it was reserved from must then be the cursor that
// was seen before the counter, or the record would be older than the handler's.
func (a *arm) point(p *part, pl armPlace) {
	a.declare()
	n := a.names("p", "m", "k", "j", "o", "c", "u")
	tls, method, tlsWord, methodWord, off, clock, undo := n[0], n[1], n[2], n[3], n[4], n[5], n[6]
	add, load, ahead := "\tldr\tip, [pc, ip]", "\tadd\tr2, pc, r2", 8
	if p.thumb {
		add, load, ahead = "\tadd\tip, pc\n\tldr\tip, [ip]", "\tadd\tr2, pc", 4
	}
	out := []string{pl.begin + ":", "\tpush\t{" + pl.keep + "}", "\tldr\tip, " + tlsWord, tls + ":", add,
		"\tmrc\tp15, 0, r3, c13, c0, 3", "\tldr\tip, [r3, ip]", "\tldr\tr3, [ip]", "\ttst\tr3, #7", "\tbeq\t" + off,
		"\tpush\t{r0, r1, r2, r4}", clock + ":",
		"\tldr\tr0, [ip]", "\ttst\tr0, #4", "\tbeq\t" + undo,
		"\tmrrc\tp15, 1, r1, r2, c14",
		"\tldrex\tr2, [ip]", "\tldr\tr3, [ip, #8]", "\tcmp\tr2, r0", "\tbne\t" + clock,
		"\tadd\tr2, r2, #8", "\tand\tr2, r2, r3"}
	if pl.word > 0 {
		out = append(out, "\torr\tr2, r2, #7", "\tadd\tr2, r2, #8", "\tand\tr2, r2, r3")
	}
	out = append(out, "\tstrex\tr4, r2, [ip]", "\tcmp\tr4, #0", "\tbne\t"+clock)
	if pl.word != 0 {
		out = append(out, "\tldr\tr2, "+methodWord, method+":", load)
	}
	switch {
	case pl.word < 0:
		out = append(out, "\tstr\tr2, [r0, #-7]", "\tstr\tr1, [r0, #-3]")
	case pl.word == 0:
		out = append(out, "\tmov\tr2, #0", "\tstr\tr2, [r0, #-7]", "\tstr\tr1, [r0, #-3]")
	default:
		sp := 4 * (4 + pl.saved)
		if pl.word == wordResumedFramed {
			sp += 4 // a call pushes nothing: a callee was entered with this very stack pointer
		}
		out = append(out, "\tstr\tr2, [r0, #-7]", fmt.Sprintf("\tadd\tr4, sp, #%d", sp), "\tstr\tr4, [r0, #-3]",
			"\tadd\tr0, r0, #8", "\tand\tr0, r0, r3", "\torr\tr0, r0, #7",
			fmt.Sprintf("\tmov\tr2, #%d", pl.word), "\tstr\tr2, [r0, #-7]", "\tstr\tr1, [r0, #-3]")
	}
	out = append(out, "\tstr\tr0, [ip, #16]", "\tpop\t{r0, r1, r2, r4}", off+":", "\tpop\t{"+pl.keep+"}")
	out = append(out, pl.leave...)
	out = append(out, undo+":", "\ttst\tr0, #3", "\tpop\t{r0, r1, r2, r4}", "\tbeq\t"+off,
		"\tpop\t{"+pl.keep+"}", "\tpush\t{ip, lr}", "\tbl\t"+symSlow, "\tpop\t{ip, lr}", "\tb\t"+pl.begin,
		"\t.p2align\t2", tlsWord+":", fmt.Sprintf("\t.long\t%s(GOTTPOFF)+(.-%s-%d)", symTLS, tls, ahead))
	if pl.word != 0 {
		out = append(out, methodWord+":", fmt.Sprintf("\t.long\t%s-(%s+%d)", p.label, method, ahead))
	}
	p.slow = append(p.slow, chunk{frame: pl.frame, lines: out})
}

func (a *arm) instruction(p *part, i *instr, raw []byte, text string) {
	switch {
	case i.kind.is(kindReturn | kindTail):
		a.leaving(p, i)
		return
	case p.thumb && a.reach(p, i):
		return
	}
	a.copy(raw, text)
	if i.kind.is(kindTwice) && i.kind.is(kindCall) {
		a.resume(p)
	}
}

// reach rewrites T32's short branches and tables where stubs might have moved their target out of reach: 126 bytes for a
// compare-and-branch, 510 for a table of bytes. Every instruction counts as the longest there is.
func (a *arm) reach(p *part, i *instr) bool {
	base, _ := cutCondition(i.op)
	switch base {
	case "cbz", "cbnz":
		reg, label, _ := strings.Cut(i.args, ",")
		if a.near(p, i, strings.TrimSpace(label), 126) {
			return false
		}
		n := a.names("o")
		other := map[string]string{"cbz": "cbnz", "cbnz": "cbz"}[base]
		a.line("\t" + other + "\t" + reg + ", " + n[0])
		a.line("\tb.w\t" + strings.TrimSpace(label))
		a.line(n[0] + ":")
		return true
	case "tbb":
		if 6*len(p.body) <= 510 {
			return false
		}
		a.line("\ttbh\t" + strings.TrimSuffix(i.args, "]") + ", lsl #1]")
		a.wide = true
		return true
	}
	return false
}

// near reports whether label is surely less than so many bytes away from i, growth counted.
func (a *arm) near(p *part, i *instr, label string, bytes int) bool {
	to, ok := p.labels[label]
	if !ok {
		return false
	}
	size := 0
	for k := int(i.index) + 1; k < to; k++ {
		size += 4
		if q := &p.body[k]; q.kind.is(kindTwice) || strings.HasPrefix(q.op, "cb") {
			size += 4
		}
	}
	return size <= bytes
}
