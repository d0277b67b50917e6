package stub

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Marker is the comment that instrumented output begins with, so that it is not instrumented again.
const Marker = "# braid: instrumented"

// Options says what to instrument. The zero value instruments every function.
type Options struct {
	// Trace decides by a function's symbol (as the assembler sees it, so mangled) whether it gets stubs. Nil: all do.
	Trace func(symbol string) bool
	// ClockOnly inserts a bare read of the counter where the stubs would be: the floor that a stub is measured against.
	ClockOnly bool
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

// Insert writes src, AT&T or Intel syntax assembly for amd64 from gcc -dp or clang, to dst with stubs. The annotations
// of -dp are taken out again. Nothing is written when it returns ErrNotCompilerOutput.
func Insert(dst io.Writer, src []byte, o Options) (Result, error) {
	d := detect(src)
	if d == dialectUnknown {
		return Result{}, ErrNotCompilerOutput
	}
	in := &inserter{o: o, gcc: d == dialectGCC, out: make([]byte, 0, len(src)+len(src)/2), resolvers: resolvers(src)}
	in.line(Marker)
	in.run(src)
	in.fallback()
	if _, err := dst.Write(in.out); err != nil {
		return in.res, fmt.Errorf("writing instrumented assembly: %w", err)
	}
	return in.res, nil
}

type dialect int

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

// resolvers finds the functions that choose an ifunc's implementation. In a static program they run before thread-local
// storage exists, so they must not hold a trace point.
func resolvers(src []byte) map[string]bool {
	if !bytes.Contains(src, []byte("gnu_indirect_function")) {
		return nil
	}
	ifuncs, set := map[string]bool{}, map[string]string{}
	for l := range bytes.Lines(src) {
		s := strings.TrimSpace(string(l))
		if a, ok := strings.CutPrefix(s, ".type"); ok && strings.Contains(a, "gnu_indirect_function") {
			name, _, _ := strings.Cut(a, ",")
			ifuncs[strings.TrimSpace(name)] = true
		} else if a, ok := strings.CutPrefix(s, ".set"); ok {
			if name, target, ok := strings.Cut(a, ","); ok {
				set[strings.TrimSpace(name)] = strings.TrimSpace(target)
			}
		}
	}
	out := map[string]bool{}
	for name := range ifuncs {
		out[name] = true
		if t := set[name]; t != "" {
			out[t] = true
		}
	}
	return out
}

// part is a stretch of one function in one section: the function itself, or the .cold piece that it jumps to.
type part struct {
	name    string
	cold    bool
	skip    bool
	entered bool     // the entry stub is in place, or there is to be none
	endbr   bool     // the landing pad instruction has been seen
	label   string   // local label at the function's address
	slow    []string // out-of-line code, to be placed at the part's end
	nested  bool     // r10 may carry a static chain
	usesR10 bool
	body    []instr
	labels  map[string]int
}

type inserter struct {
	o         Options
	gcc       bool
	intel     bool
	app       bool // within inline assembly
	cfi       bool // between .cfi_startproc and .cfi_endproc
	section   string
	types     map[string]bool // symbols that .type declared functions
	resolvers map[string]bool
	cur       *part
	parts     map[string]*part
	n         int
	out       []byte
	declared  bool // the weak symbols are declared
	res       Result
}

func (in *inserter) line(s string) {
	in.out = append(in.out, s...)
	in.out = append(in.out, '\n')
}

func (in *inserter) run(src []byte) {
	in.types, in.parts, in.section = map[string]bool{}, map[string]*part{}, ".text"
	lines := bytes.SplitAfter(src, []byte("\n"))
	for i := range lines {
		in.one(lines, i)
	}
}

// one handles line i. Everything that is not understood is copied as it is.
func (in *inserter) one(lines [][]byte, i int) {
	raw := lines[i]
	text := strings.TrimRight(string(raw), "\n")
	trim := strings.TrimSpace(text)
	switch {
	case trim == "#APP":
		in.app = true
	case trim == "#NO_APP":
		in.app = false
	case in.app || trim == "" || trim[0] == '#':
	case trim[0] == '.' && !isLabel(trim):
		in.directive(trim)
		switch {
		case strings.HasPrefix(trim, ".cfi_startproc"):
			in.cfi = true
		case strings.HasPrefix(trim, ".cfi_endproc"):
			in.flush(in.cur)
			in.cfi = false
		}
		if strings.HasPrefix(trim, ".size") {
			in.size(trim)
		} else if in.cur != nil && !in.cur.entered && startsCode(trim) {
			in.enter() // alignment before a loop head: the stub must not be within the loop
		}
	case isLabel(trim):
		name := labelName(trim)
		if in.types[name] && !strings.HasPrefix(name, ".L") {
			in.out = append(in.out, raw...)
			in.begin(name, lines, i)
			return
		}
		if in.cur != nil && !in.cur.entered && !debugLabel(name) {
			in.enter()
		}
		if endLabel(name) {
			in.flush(in.cur)
		}
	case in.cur != nil && !in.cur.skip:
		in.instruction(raw, text)
		return
	default:
		in.copy(raw, text)
		return
	}
	in.out = append(in.out, raw...)
}

// startsCode reports whether a directive at a function's head belongs to what follows rather than to the function.
func startsCode(d string) bool {
	return strings.HasPrefix(d, ".p2align") || strings.HasPrefix(d, ".align")
}

// debugLabel reports whether a label at a function's head marks a place for tables only and is never jumped to.
func debugLabel(name string) bool {
	for _, p := range []string{".LFB", ".LFSB", ".LVL", ".LBI", ".Lfunc_begin", ".LHOTB", ".LCOLDB", ".Ltmp", ".LPFE", ".LEHB"} {
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

func (in *inserter) directive(s string) {
	word, rest, _ := strings.Cut(s, "\t")
	if w, r, ok := strings.Cut(s, " "); ok && len(w) < len(word) {
		word, rest = w, r
	}
	switch word {
	case ".type":
		name, kind, ok := strings.Cut(rest, ",")
		if ok && strings.Contains(kind, "function") {
			in.types[strings.TrimSpace(name)] = true
		}
	case ".section", ".pushsection":
		name, _, _ := strings.Cut(rest, ",")
		in.section = strings.Trim(strings.TrimSpace(name), `"`)
	case ".text":
		in.section = ".text"
	case ".intel_syntax":
		in.intel = true
	case ".att_syntax":
		in.intel = false
	}
}

// isCold recognises the pieces that gcc and clang split off a function; they are jumped to, never called.
func isCold(name string) bool {
	name = strings.Trim(name, `"`)
	return strings.HasSuffix(name, ".cold") || strings.Contains(name, ".cold.") || strings.Contains(name, ".__part.")
}

// isNested recognises gcc's local functions, which get a static chain in r10: "inner.0".
func isNested(name string) bool {
	name = strings.Trim(name, `"`)
	i := strings.LastIndexByte(name, '.')
	if i <= 0 || i == len(name)-1 {
		return false
	}
	for _, c := range name[i+1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func (in *inserter) begin(name string, lines [][]byte, i int) {
	p := &part{name: name, cold: isCold(name)}
	in.parts[name] = p
	in.cur = p
	base, _, _ := strings.Cut(strings.Trim(name, `"`), ".cold")
	switch {
	case in.o.Trace != nil && !in.o.Trace(strings.Trim(base, `"`)), strings.HasPrefix(in.section, NoTraceSection):
		p.skip = true
	case in.resolvers[base]:
		p.skip = true
		in.res.Skipped = append(in.res.Skipped, name+": resolves an ifunc, which may run before thread-local storage exists")
	}
	if p.skip {
		p.entered = true
		return
	}
	p.scan(lines[i+1:], in.intel)
	if reason := p.unfit(); reason != "" {
		p.skip, p.entered = true, true
		in.res.Skipped = append(in.res.Skipped, name+": "+reason)
		return
	}
	p.nested = isNested(name)
	if p.cold {
		p.entered = true
		return
	}
	in.n++
	p.label = fmt.Sprintf(".Lbraid_f%d", in.n)
	in.line(p.label + ":")
}

// enter places the entry stub.
func (in *inserter) enter() {
	p := in.cur
	p.entered = true
	in.res.Entries++
	in.emitEntry(p)
}

// size ends a function part.
func (in *inserter) size(s string) {
	name, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(s, ".size")), ",")
	p := in.parts[strings.TrimSpace(name)]
	if p == nil {
		return
	}
	in.flush(p)
	delete(in.parts, p.name)
	if in.cur == p {
		in.cur = nil
	}
}

// endLabel reports whether a label marks the end of a function's code, for its size or its line table.
func endLabel(name string) bool {
	return strings.HasPrefix(name, ".LFE") || strings.HasPrefix(name, ".LFSE") || strings.HasPrefix(name, ".Lfunc_end")
}

// flush places a part's out-of-line code at its end, where no code falls into it. It is within the function's size and
// unwind table, so that debuggers and profilers know whose it is. Wherever a stub stands, but behind a second return,
// the frame has been given back or not yet made.
func (in *inserter) flush(p *part) {
	if p == nil || len(p.slow) == 0 {
		return
	}
	if in.cfi {
		in.line("\t.cfi_def_cfa %rsp, 8")
		for _, r := range []string{"rbx", "rbp", "r12", "r13", "r14", "r15"} {
			in.line("\t.cfi_restore %" + r)
		}
	}
	in.att(func() {
		for _, l := range p.slow {
			in.line(l)
		}
	})
	p.slow = p.slow[:0]
}

func (in *inserter) att(f func()) {
	if in.intel {
		in.line("\t.att_syntax prefix")
		defer in.line("\t.intel_syntax noprefix")
	}
	f()
}
