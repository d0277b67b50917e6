package stub

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unsafe"
)

// Marker is the comment that instrumented output begins with, so that it is not instrumented again.
const Marker = "# braid: instrumented"

// Options says what to instrument. The zero value instruments every function.
type Options struct {
	// Trace decides by a function's symbol (as the assembler sees it, so mangled) whether it gets stubs. Nil: all do.
	Trace func(symbol string) bool
	// Arch is the processor, in Go's names: "amd64", "arm64" or "arm". Empty: amd64.
	Arch string
	// Block says where a stub finds the address of its thread's control block. Empty or "tls": in a thread-local variable.
	// "slot:N": in the word N behind the thread pointer. "reg:NAME+OFF": in the word OFF bytes behind what a register
	// holds that the program is compiled to leave alone. The decimal +OFF may be left out.
	Block string
	// ClockOnly inserts a bare read of the counter where the stubs would be: the floor that a stub is measured against.
	ClockOnly bool
	// NoClock leaves the counter's read out of the stubs, to measure what the rest of them costs. Records then hold no time.
	NoClock bool
}

// Result counts what Insert did.
type Result struct {
	Entries int // functions with a stub at their entry
	Exits   int // returns and tail calls with a stub
	Resumes int // calls that can return twice with a stub behind them
	// Skipped holds "symbol: reason" for each function that got none although Options.Trace did not exclude it.
	Skipped []string
}

// ErrNotCompilerOutput is returned for assembly that neither gcc (with -dp) nor clang wrote. Hand-written assembly must
// be left alone: nothing says which of its jumps leave a function.
var ErrNotCompilerOutput = errors.New("not the output of gcc -dp or of clang")

// NoTraceSection is the prefix of sections whose functions never get stubs.
const NoTraceSection = ".text.braid_notrace"

// IsMarked reports whether src has been through Insert.
func IsMarked(src []byte) bool {
	return bytes.HasPrefix(src, []byte(Marker)) || bytes.Contains(src, []byte("\n"+Marker))
}

// Insert writes src, assembly from gcc -dp or clang, to dst with stubs. Assembly for amd64 may be in Intel syntax. The annotations
// of -dp are taken out again. Nothing is written when it returns ErrNotCompilerOutput.
func Insert(dst io.Writer, src []byte, o Options) (Result, error) {
	d := detect(src)
	if d == dialectUnknown {
		return Result{}, ErrNotCompilerOutput
	}
	in := &inserter{o: o, gcc: d == dialectGCC, out: make([]byte, 0, len(src)+len(src)/2), resolvers: resolvers(src)}
	var err error
	switch o.Arch {
	case "", "amd64":
		in.proc = &amd64{inserter: in}
		in.door, err = parseDoor(o.Block, 8, 4088, amd64Reserved)
	case "arm64":
		in.proc = &arm64{inserter: in}
		in.door, err = parseDoor(o.Block, 8, 4088, arm64Reserved)
	case "arm":
		in.proc = &arm{in}
		in.door, err = parseDoor(o.Block, 4, 0, func(string) bool { return false })
	default:
		err = fmt.Errorf("no stubs for %s: they exist for amd64, arm64 and arm", o.Arch)
	}
	if err != nil {
		return Result{}, err
	}
	in.line(Marker)
	in.run(src)
	if in.declared {
		in.proc.fallback()
	}
	if _, err := dst.Write(in.out); err != nil {
		return in.res, fmt.Errorf("writing instrumented assembly: %w", err)
	}
	return in.res, nil
}

type dialect int

// The symbols that a stub refers to, both hidden. The runtime defines them; in what is linked without it (by another
// tool, or with -nostdlib), each object brings a weak thread pointer to an idle control block, so that its stubs are off.
const (
	symTLS  = "__braid_tls"
	symSlow = "__braid_slow"
	symIdle = "__braid_idle"
	// The slow path of stubs that find their control block in another word (Options.Block).
	symSlowWord = "__braid_slow_word"
)

// declare declares them, before their first use.
func (in *inserter) declare() {
	if in.declared {
		return
	}
	in.declared = true
	in.line("\t.weak\t" + in.slowSymbol())
	in.line("\t.hidden\t" + in.slowSymbol())
}

const (
	dialectUnknown dialect = iota
	dialectGCC
	dialectClang
)

func detect(src []byte) dialect {
	switch {
	case IsMarked(src):
		return dialectUnknown
	case bytes.Contains(src, []byte("[c=")) && bytes.Contains(src, []byte(" l=")):
		return dialectGCC
	case bytes.Contains(src, []byte(".ident\t\"GCC")):
		return dialectUnknown // without -dp a computed goto and an indirect tail call look the same
	case bytes.Contains(src, []byte("-- Begin function")), bytes.Contains(src, []byte("clang version")),
		bytes.Contains(src, []byte(".addrsig")):
		return dialectClang
	}
	return dialectUnknown
}

type inserter struct {
	o         Options
	proc      processor
	gcc       bool
	intel     bool
	thumb     bool // T32 (arm)
	wide      bool // the jump table that follows gets wider elements (arm)
	cfi       bool // between .cfi_startproc and .cfi_endproc
	tracker   cfiTracker
	resolvers map[string]bool
	door      door
	section   string // of the line at hand

	// What the survey finds.
	lines   []line
	parts   []*part
	names   map[string]int  // numbers of functions, for their labels
	skipped map[string]bool // functions of which a part gets no stubs
	nops    bool            // functions begin with nops to be patched at run time, which must stay there
	framed  map[string]bool // functions that control can come back to
	inData  map[string]bool // labels that data refers to; nil until asked for

	cur       *part
	padState  map[string]cfiState // how a frame is found at a label with a pad
	padLabels []string            // labels with pads whose first instruction is still to come
	following string              // the text of the line behind the one at hand
	n         int
	out       []byte
	declared  bool // the weak symbols are declared
	res       Result
}

func (in *inserter) line(s string) {
	in.out = append(in.out, s...)
	in.out = append(in.out, '\n')
}

func (in *inserter) prepare() {
	in.names, in.skipped, in.framed, in.padState = map[string]int{}, map[string]bool{}, map[string]bool{}, map[string]cfiState{}
}

func (in *inserter) run(src []byte) {
	in.prepare()
	text := unsafe.String(unsafe.SliceData(src), len(src)) // src is not changed while its text is in use
	in.survey(text)
	in.section = ".text"
	for k := range in.lines {
		in.following = ""
		if k+1 < len(in.lines) {
			in.following = in.lines[k+1].text
		}
		n := bytes.IndexByte(src, '\n') + 1
		if n == 0 {
			n = len(src)
		}
		in.one(&in.lines[k], src[:n])
		src = src[n:]
	}
}

// one handles a line. Everything that is not understood is copied as it is.
func (in *inserter) one(l *line, raw []byte) {
	p := in.cur
	switch l.kind {
	case lineApp:
		if p != nil && !p.entered {
			in.enter() // inline assembly is the first thing that the function does
		}
	case lineDirective:
		in.directive(l, raw)
		return
	case lineLabel:
		if l.part != nil {
			in.out = append(in.out, raw...)
			in.begin(l.part)
			return
		}
		name := labelName(l.text)
		if p != nil && !p.entered && !debugLabel(name) {
			in.enter()
		}
		if p != nil && p.pads[name] != "" && in.cfi {
			in.padLabels = append(in.padLabels, name)
		}
		if endLabel(name) {
			in.flush(p)
		}
	case lineInstruction:
		in.wide = false
		for _, name := range in.padLabels { // not at the label: directives behind it still say what holds there
			in.padState[name] = in.tracker.now.clone()
		}
		in.padLabels = in.padLabels[:0]
		text := strings.TrimRight(string(raw), "\n")
		if p == nil || p.skip || l.part != p {
			in.copy(raw, text)
			return
		}
		i := &p.body[l.instr]
		if l.padOf != "" {
			text = strings.Replace(text, l.padOf, l.pad, 1)
			raw = []byte(text + "\n")
		}
		if !p.entered {
			if i.kind.is(kindLanding) && !p.landing {
				p.landing = true
				in.copy(raw, text)
				if !signs(in.following) {
					in.enter()
				}
				return
			}
			if in.nops && i.kind.is(kindPadding) {
				in.copy(raw, text)
				return
			}
			in.enter()
		}
		in.proc.instruction(p, i, raw, text)
		return
	}
	in.out = append(in.out, raw...)
}

func (in *inserter) directive(l *line, raw []byte) {
	p := in.cur
	word, rest := cutDirective(l.text)
	switch {
	case strings.HasPrefix(word, ".cfi_"):
		switch word {
		case ".cfi_startproc":
			in.cfi = true
			in.tracker.start(in.proc.entryState())
		case ".cfi_endproc":
			in.flush(p)
			in.cfi = false
		default:
			in.tracker.directive(word, rest)
		}
	case word == ".fnend", word == ".handlerdata", word == ".personality", word == ".personalityindex", word == ".cantunwind":
		in.flush(p)
	case word == ".size":
		if l.part != nil {
			in.flush(l.part)
			if in.cur == l.part {
				in.cur = nil
			}
		}
	case word == ".intel_syntax":
		in.intel = true
	case word == ".att_syntax":
		in.intel = false
	case p != nil && !p.entered && in.section == p.section && (word == ".p2align" || word == ".align" || word == ".balign"):
		in.enter() // alignment before a loop head: the stub must not be within the loop
	default:
		in.section = sectionAfter(in.section, word, rest)
	}
	if in.wide && word == ".byte" {
		raw = bytes.Replace(raw, []byte(".byte"), []byte(".2byte"), 1)
	}
	if l.padOf != "" {
		raw = bytes.Replace(raw, []byte(l.padOf), []byte(l.pad), 1)
	}
	in.out = append(in.out, raw...)
	if p != nil && !p.entered && p.landing && signs(l.text) {
		in.enter()
	}
}

// signs reports whether a directive says that the instruction before it has signed the return address (arm64).
func signs(text string) bool { return text == ".cfi_negate_ra_state" || text == ".cfi_window_save" }

// debugLabel reports whether a label at a function's head marks a place for tables only and is never jumped to.
func debugLabel(name string) bool {
	for _, p := range []string{".LFB", ".LFSB", ".LVL", ".LBI", ".Lfunc_begin", ".LHOTB", ".LCOLDB", ".Ltmp", ".LPFE", ".LEHB", ".LASANPC"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return strings.HasPrefix(name, ".LBB") && !strings.Contains(name, "_") // gcc's lexical blocks, not clang's basic blocks
}

func isLabel(s string) bool {
	if s[0] == '"' {
		e := strings.IndexByte(s[1:], '"')
		return e >= 0 && strings.HasPrefix(s[e+2:], ":")
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == ':' {
			return i > 0
		}
		if !(c == '_' || c == '.' || c == '$' || c == '@' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80) {
			return false
		}
	}
	return false
}

func labelName(s string) string {
	if s[0] == '"' {
		return s[:strings.IndexByte(s[1:], '"')+2]
	}
	return s[:strings.IndexByte(s, ':')]
}

// begin starts a part, behind its label.
func (in *inserter) begin(p *part) {
	in.cur = p
	switch {
	case p.skip:
		p.entered = true
	case p.cold:
		p.entered = true
		p.label = in.labelOf(p.base)
	default:
		p.label = in.labelOf(p.base)
		in.line(p.label + ":")
	}
}

// labelOf returns the local label at a function's address.
func (in *inserter) labelOf(base string) string {
	k, ok := in.names[base]
	if !ok {
		k = len(in.names) + 1
		in.names[base] = k
	}
	return fmt.Sprintf(".Lbraid_f%d", k)
}

// enter places the entry stub.
func (in *inserter) enter() {
	p := in.cur
	p.entered = true
	in.res.Entries++
	in.proc.entry(p)
}

// endLabel reports whether a label marks the end of a function's code, for its size or its line table.
func endLabel(name string) bool {
	return strings.HasPrefix(name, ".LFE") || strings.HasPrefix(name, ".LFSE") || strings.HasPrefix(name, ".Lfunc_end")
}

// flush places a part's out-of-line code at its end, where no code falls into it. It is within the function's size and
// unwind table, so that debuggers and profilers know whose it is.
func (in *inserter) flush(p *part) {
	if p == nil {
		return
	}
	for _, label := range slices.Sorted(maps.Keys(p.pads)) {
		n := len(p.slow)
		in.proc.pad(p, p.pads[label], label)
		if state, ok := in.padState[label]; ok {
			for k := range p.slow[n:] {
				p.slow[n+k].frame = &state
			}
		}
	}
	p.pads = nil
	for _, c := range p.slow {
		if in.cfi {
			state := c.frame
			if state == nil {
				entry := in.proc.entryState()
				state = &entry
			}
			for _, d := range in.tracker.to(*state) {
				in.line(d)
			}
		}
		in.att(func() {
			for _, l := range c.lines {
				in.line(l)
			}
		})
	}
	p.slow = p.slow[:0]
}

// here is how a frame is found at this place, for the out-of-line code that belongs to it.
func (in *inserter) here() *cfiState {
	s := in.tracker.now.clone()
	return &s
}

// copy passes an instruction on, without gcc's annotation.
func (in *inserter) copy(raw []byte, text string) {
	if in.gcc {
		if i := strings.LastIndex(text[:max(0, strings.Index(text, "[c="))], in.proc.comment()); i >= 0 {
			in.line(strings.TrimRight(text[:i], " \t"))
			return
		}
	}
	in.out = append(in.out, raw...)
}

func (in *inserter) att(f func()) {
	if in.intel {
		in.line("\t.att_syntax prefix")
		defer in.line("\t.intel_syntax noprefix")
	}
	f()
}
