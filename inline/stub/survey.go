package stub

import (
	"strconv"
	"strings"
)

// lineKind says what a line of assembly is.
type lineKind uint8

const (
	lineOther     lineKind = iota // blank, a comment, or within inline assembly
	lineApp                       // inline assembly begins
	lineNoApp                     // inline assembly ends
	lineDirective                 // text begins with a dot
	lineLabel
	lineInstruction
)

// line is one line of the compiler's output.
type line struct {
	kind  lineKind
	instr int32  // index in the part's body
	part  *part  // the part that begins here (a label), or that an instruction belongs to
	text  string // without spaces at its ends
	pad   string // lineDirective: the label that stands here instead of padOf
	padOf string
}

// part is a stretch of one function in one section: the function itself, or the .cold piece that it jumps to.
type part struct {
	name    string // as the assembler sees it, quotes included
	base    string // of the function that it is a part of, without quotes
	section string
	cold    bool
	skip    bool
	entered bool    // the entry stub is in place, or there is to be none
	landing bool    // the landing pad instruction has been seen
	label   string  // local label at the function's address
	slow    []chunk // out-of-line code, to be placed at the part's end
	nested  bool    // may be given a static chain
	uses    uses
	body    []instr
	labels  map[string]int    // of code, and the index of the instruction that follows
	pads    map[string]string // labels that control comes back to, and their pads
	thumb   bool              // T32 (arm)
	tight   bool              // its code must not grow between labels (arm64)
	span    reach             // how far its end is (arm64)
	// takesLabel: the address of a label is taken, as clang says.
	takesLabel bool
	twice      bool // calls what can return twice, perhaps through a register
}

// uses are facts about a part's text, inline assembly included, that decide what a stub must keep.
type uses struct {
	r10, r11 bool // amd64
	ip       bool // arm
}

// chunk is a stretch of out-of-line code. frame says how the caller's frame is found there; nil: as at a function's entry.
type chunk struct {
	frame *cfiState
	lines []string
}

// survey reads the whole text once: what each line is, the parts, and the places where control comes back to.
func (in *inserter) survey(src string) {
	in.lines = make([]line, 0, strings.Count(src, "\n")+1)
	types, parts := map[string]bool{}, map[string]*part{}
	section, app := ".text", false
	var cur *part
	var fresh []string // labels of cur since its last instruction
	for len(src) > 0 {
		text, rest, _ := strings.Cut(src, "\n")
		src = rest
		text = strings.TrimSpace(text)
		l := line{text: text}
		switch {
		case text == "":
		case in.isApp(text):
			l.kind, app = lineApp, true
			if cur != nil {
				cur.body = append(cur.body, instr{op: "#APP", kind: kindOpaque})
			}
		case in.isNoApp(text):
			l.kind, app = lineNoApp, false
		case app:
			if cur != nil {
				cur.note(text)
			}
		case in.isComment(text):
			in.noteLabel(cur, text)
		case text[0] == '.' && !isLabel(text):
			l.kind = lineDirective
			word, rest := cutDirective(text)
			switch word {
			case ".type":
				if name, kind, ok := strings.Cut(rest, ","); ok && strings.Contains(kind, "function") {
					types[strings.TrimSpace(name)] = true
				}
			case ".size":
				name, _, _ := strings.Cut(rest, ",")
				if p := parts[strings.TrimSpace(name)]; p != nil {
					delete(parts, p.name)
					l.part = p
					if cur == p {
						cur, fresh = nil, fresh[:0]
					}
				}
			case ".thumb", ".arm", ".code":
				in.thumb = word == ".thumb" || strings.HasPrefix(rest, "16")
			case ".intel_syntax":
				in.intel = true
			case ".att_syntax":
				in.intel = false
			default:
				section = sectionAfter(section, word, rest)
				in.nops = in.nops || section == patchable
				if isData(word) {
					for _, name := range fresh {
						delete(cur.labels, name) // a constant's
					}
					fresh = fresh[:0]
				}
			}
		case isLabel(text):
			l.kind = lineLabel
			name := labelName(text)
			switch {
			case types[name] && !strings.HasPrefix(name, ".L"):
				cur, fresh = in.newPart(name, section), fresh[:0]
				parts[name] = cur
				l.part = cur
			case cur != nil && section == cur.section:
				in.noteLabel(cur, text)
				cur.labels[name] = len(cur.body)
				fresh = append(fresh, name)
			}
		default:
			l.kind, fresh = lineInstruction, fresh[:0]
			if cur != nil {
				l.part, l.instr = cur, int32(len(cur.body))
				i := in.proc.parse(text)
				if in.intel {
					i.op = "#" + i.op // operands are in another order: nothing is concluded from them
				}
				i.index = l.instr
				cur.note(i.args)
				cur.body = append(cur.body, i)
			}
		}
		in.lines = append(in.lines, l)
	}
	in.intel = false
	in.returns()
	in.resolversCalls()
	for _, p := range in.parts {
		in.judge(p)
	}
	for _, p := range in.parts {
		p.skip = p.skip || in.skipped[p.base]
	}
	in.landings()
}

// patchable is the section that lists functions with nops (-fpatchable-function-entry).
const patchable = "__patchable_function_entries"

// isApp and isNoApp recognise the marks around inline assembly. Around what stands outside of functions, clang has others
// (AsmPrinter::emitInlineAsm and AsmPrinter::doInitialization, LLVM 19).
func (in *inserter) isApp(text string) bool {
	if in.gcc && strings.HasPrefix(text, "@ ") && len(text) > 3 { // gcc for arm marks each statement: @ 12 "file.c" 1
		number, rest, _ := strings.Cut(text[2:], " ")
		return allDigits(number) && strings.HasPrefix(rest, `"`) && !in.isNoApp(text)
	}
	return text == "#APP" || text == in.proc.comment()+"APP" || strings.HasSuffix(text, "Start of file scope inline assembly")
}

func (in *inserter) isNoApp(text string) bool {
	return text == "#NO_APP" || text == in.proc.comment()+"NO_APP" || text == `@ 0 "" 2` ||
		strings.HasSuffix(text, "End of file scope inline assembly")
}

func (in *inserter) isComment(text string) bool {
	return text[0] == '#' || strings.HasPrefix(text, in.proc.comment())
}

func (p *part) note(text string) {
	if strings.Contains(text, "r10") {
		p.uses.r10 = true
	}
	if strings.Contains(text, "r11") {
		p.uses.r11 = true
	}
	if strings.Contains(text, "ip") {
		p.uses.ip = true
	}
}

// noteLabel notices clang's comment on a label whose address is taken.
func (in *inserter) noteLabel(p *part, text string) {
	if p != nil && !in.gcc && strings.Contains(text, "lock address taken") {
		p.takesLabel = true
	}
}

// cutDirective separates a directive from its arguments.
func cutDirective(s string) (word, rest string) {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], strings.TrimSpace(s[i+1:])
	}
	return s, ""
}

// isData reports whether a directive makes data.
func isData(word string) bool {
	switch word {
	case ".byte", ".2byte", ".4byte", ".8byte", ".short", ".hword", ".word", ".long", ".xword", ".quad", ".octa", ".zero",
		".space", ".skip", ".ascii", ".asciz", ".string", ".float", ".double", ".single":
		return true
	}
	return false
}

func sectionAfter(section, word, rest string) string {
	switch word {
	case ".section", ".pushsection":
		name, _, _ := strings.Cut(rest, ",")
		return strings.Trim(strings.TrimSpace(name), `"`)
	case ".text", ".data", ".bss":
		return word
	}
	return section
}

func (in *inserter) newPart(name, section string) *part {
	bare := strings.Trim(name, `"`)
	p := &part{name: name, base: bare, section: section, labels: map[string]int{}, nested: isNested(bare), thumb: in.thumb}
	if i := in.coldSuffix(bare); i > 0 {
		p.cold, p.base = true, bare[:i]
	}
	in.parts = append(in.parts, p)
	return p
}

// coldSuffix returns where in the name of a piece that was split off a function the function's own name ends, or 0. Such
// pieces are jumped to, never called. What clang's outliner names "f.cold.1" is called, and is a function.
func (in *inserter) coldSuffix(name string) int {
	for _, s := range []string{".cold", ".__part."} {
		i := strings.LastIndex(name, s)
		if i <= 0 {
			continue
		}
		rest := name[i+len(s):]
		if rest == "" || s == ".__part." || in.gcc && allDigits(strings.TrimPrefix(rest, ".")) {
			return i
		}
	}
	return 0
}

func allDigits(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// isNested recognises gcc's local functions, which get a static chain: "inner.0".
func isNested(name string) bool {
	name = strings.Trim(name, `"`)
	i := strings.LastIndexByte(name, '.')
	return i > 0 && allDigits(name[i+1:])
}

// judge decides whether a part gets stubs.
func (in *inserter) judge(p *part) {
	reason := ""
	switch {
	case in.o.Trace != nil && !in.o.Trace(p.base), strings.HasPrefix(p.section, NoTraceSection), isThunk(p.base):
		p.skip = true
	case in.resolvers[p.base]:
		reason = "resolves an ifunc, or is called by what does, and may run before thread-local storage exists"
	default:
		reason = p.naked()
		if reason == "" {
			reason = in.proc.unfit(p)
		}
	}
	if reason != "" {
		p.skip = true
		in.res.Skipped = append(in.res.Skipped, p.name+": "+reason)
	}
	if p.skip {
		in.skipped[p.base] = true // all of it, or there would be exits without an entry
	}
}

// naked says that a part has no code of the compiler's.
func (p *part) naked() string {
	own, app := 0, false
	for _, i := range p.body {
		switch {
		case i.kind.is(kindOpaque):
			app = true
		case !i.kind.is(kindPadding | kindLanding | kindStop):
			own++
		}
	}
	if own == 0 && app {
		return "naked: all of its instructions are inline assembly"
	}
	return ""
}

// returns finds the calls that can come back twice.
func (in *inserter) returns() {
	for _, p := range in.parts {
		taken := false // the address of such a function
		for k := range p.body {
			if i := &p.body[k]; i.kind.is(kindTwice) {
				p.twice = true
				taken = taken || !i.kind.is(kindCall)
				in.framed[p.base] = true
			}
		}
		if !p.twice {
			continue
		}
		for k := range p.body { // its address may be in a register
			i := &p.body[k]
			if i.kind.is(kindCall) && (strings.HasPrefix(i.args, "*") || taken && strings.HasPrefix(i.op, "blr")) {
				i.kind |= kindTwice
			}
		}
	}
}
