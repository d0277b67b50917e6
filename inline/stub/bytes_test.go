package stub

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the tests compare with")

// The stubs as binutils sees them: each is assembled, disassembled, and compared with docs/stub-listing.md. What it
// changes is worked out from the disassembly, not from the code that writes it, and compared with what is said here.

// binutils are a processor's assembler and disassembler, and how to read the latter's output.
type binutils struct {
	as, objdump, nm []string
	// effects returns the registers that an instruction writes, and how a register is put away and taken back.
	effects func(op, args string) (writes []string)
	saves   func(op, args string) []string
	loads   func(op, args string) []string
}

// stubPlace is a function that has, last of all, one stub of the kind in question.
type stubPlace struct {
	arch, name string
	source     string
	changes    string // the registers that may have another value behind the stub, on or off
	off        string // those while tracing is off
}

var stubPlaces = slices.Concat(amd64Places, arm64Places, armPlaces)

const (
	amd64Head = "\t.text\n\t.type\tf, @function\nf:\n\t.cfi_startproc\n"
	amd64Foot = "\t.cfi_endproc\n\t.size\tf, .-f\n"
	amd64Ret  = "\tret\t# 9\t[c=0 l=1]  simple_return_internal\n"
	amd64Stop = "\tud2\t# 9\t[c=0 l=2]  ud2\n"
)

var amd64Places = []stubPlace{
	{"amd64", "entry", amd64Head + "\txorl\t%edx, %edx\t# 1\t[c=4 l=2]  x\n\txorl\t%eax, %eax\n\tcall\tg\n" + amd64Stop + amd64Foot,
		"rax rdx r10 r11", "r11"},
	{"amd64", "entry, third argument and vector count in use", amd64Head + "\tmovq\t%rdx, (%rdi)\t# 1\t[c=4 l=2]  x\n\tmovb\t%al, (%rdi)\n\tcall\tg\n" +
		amd64Stop + amd64Foot, "r10 r11", "r11"},
	{"amd64", "entry, static chain in use", amd64Head + "\tmovq\t(%r10), %rcx\t# 1\t[c=4 l=2]  x\n\txorl\t%edx, %edx\n\txorl\t%eax, %eax\n" +
		amd64Stop + amd64Foot, "rax rdx r11", "r11"},
	{"amd64", "entry of a function that calls nothing and uses none", amd64Head + "\tmovl\t%edi, (%rsi)\t# 1\t[c=4 l=2]  x\n" + amd64Stop + amd64Foot,
		"r11", "r11"},
	{"amd64", "entry of a function that control can come back to", amd64Head + "\tcall\tsetjmp\t# 1\t[c=4 l=5]  x\n" + amd64Stop + amd64Foot,
		"rax r10 r11", "r11"},
	{"amd64", "return", amd64Head + amd64Ret + amd64Foot, "r11", "r11"},
	{"amd64", "tail call", amd64Head + "\tjmp\tg\t# 9\t[c=0 l=5]  *sibcall/1\n" + amd64Foot, "r11", "r11"},
	{"amd64", "tail call through r11", amd64Head + "\tjmp\t*%r11\t# 9\t[c=0 l=5]  *sibcall/0\n" + amd64Foot, "", ""},
	{"amd64", "second return", amd64Head + "\tcall\tsetjmp\t# 1\t[c=4 l=5]  x\n" + amd64Stop + amd64Foot, "r8 r9 r10 r11", "r11"},
	{"amd64", "landing pad", amd64Head + "\tcall\tg\t# 1\t[c=4 l=5]  x\n\tud2\n.L2:\n" + amd64Stop + amd64Foot + "\t.section\t.gcc_except_table,\"a\"\n.LLSDACSB0:\n" +
		"\t.uleb128 0\n\t.uleb128 1\n\t.uleb128 .L2-f\n\t.uleb128 0\n.LLSDACSE0:\n", "r8 r9 r10 r11", "r11"},
}

func armFunction(thumb bool, body string) string {
	mode := "\t.arm\n"
	if thumb {
		mode = "\t.thumb\n\t.thumb_func\n"
	}
	return "\t.arch armv7-a\n\t.syntax unified\n\t.text\n" + mode + "\t.type\tf, %function\nf:\n" + body + "\t.size\tf, .-f\n"
}

var armPlaces = []stubPlace{
	{"arm", "entry, A32", armFunction(false, "\tudf\t#0\t@ 1\t[c=4 l=4]  x\n"), "ip", "ip"},
	{"arm", "entry, A32, static chain in use", armFunction(false, "\tldr\tr0, [ip]\t@ 1\t[c=4 l=4]  x\n\tudf\t#0\n"), "", ""},
	{"arm", "entry of a function that control can come back to, A32", armFunction(false, "\tbl\tsetjmp\t@ 1\t[c=4 l=4]  x\n\tudf\t#0\n"), "ip", "ip"},
	{"arm", "return, A32", armFunction(false, "\tpop\t{r4, pc}\t@ 1\t[c=4 l=4]  *pop_multiple_with_writeback_and_return\n"), "ip", "ip"},
	{"arm", "return on a condition, A32", armFunction(false, "\tbxne\tlr\t@ 1\t[c=4 l=4]  *cond_return\n\tudf\t#0\n"), "ip", "ip"},
	{"arm", "tail call, A32", armFunction(false, "\tb\tg\t@ 1\t[c=4 l=4]  *sibcall_insn/1\n"), "ip", "ip"},
	{"arm", "tail call through ip, A32", armFunction(false, "\tbx\tip\t@ 1\t[c=4 l=4]  *sibcall_insn/0\n"), "", ""},
	{"arm", "second return, A32", armFunction(false, "\tbl\tsetjmp\t@ 1\t[c=4 l=4]  x\n\tudf\t#0\n"), "ip", "ip"},
	{"arm", "entry, T32", armFunction(true, "\tudf\t#0\t@ 1\t[c=4 l=4]  x\n"), "ip", "ip"},
	{"arm", "return, T32", armFunction(true, "\tbx\tlr\t@ 1\t[c=4 l=2]  *thumb2_return\n"), "ip", "ip"},
	{"arm", "tail call, T32", armFunction(true, "\tb\tg\t@ 1\t[c=4 l=4]  *sibcall_insn/1\n"), "ip", "ip"},
	{"arm", "second return, T32", armFunction(true, "\tbl\tsetjmp\t@ 1\t[c=4 l=4]  x\n\tudf\t#0\n"), "ip", "ip"},
}

var tools = map[string]binutils{
	"amd64": {as: []string{"as", "-L"}, objdump: []string{"objdump"}, nm: []string{"nm"}, effects: amd64Effects, saves: amd64Saves, loads: amd64Loads},
	"arm64": {as: []string{"aarch64-linux-gnu-as", "-L"}, objdump: []string{"aarch64-linux-gnu-objdump"},
		nm: []string{"aarch64-linux-gnu-nm"}, effects: arm64Effects, saves: arm64List("st"), loads: arm64List("ld")},
	"arm": {as: []string{"arm-linux-gnueabihf-as", "-L"}, objdump: []string{"arm-linux-gnueabihf-objdump"},
		nm: []string{"arm-linux-gnueabihf-nm"}, effects: armEffects,
		saves: armList("push"), loads: armList("pop")},
}

// wide is an amd64 register's 64-bit name.
func wide(r string) string {
	r = strings.TrimPrefix(r, "%")
	switch {
	case len(r) == 3 && r[0] == 'e':
		return "r" + r[1:]
	case r == "al":
		return "rax"
	case strings.HasSuffix(r, "d") || strings.HasSuffix(r, "b"):
		return strings.TrimRight(r, "db")
	}
	return r
}

func amd64Effects(op, args string) []string {
	switch op {
	case "rdtsc":
		return []string{"rax", "rdx"}
	case "test", "testb", "jne", "je", "jp", "jmp", "ret", "call", "endbr64", "ud2", "cmpb":
		return nil
	case "cmpxchg":
		return []string{"rax"}
	}
	_, dst := splitLast(args)
	if strings.HasPrefix(dst, "%") {
		return []string{wide(dst)}
	}
	return nil
}

var redZone = regexp.MustCompile(`^-0x[0-9a-f]+\(%rsp\)$`)

func amd64Saves(op, args string) []string {
	src, dst := splitLast(args)
	if op == "mov" && (redZone.MatchString(dst) || dst == "%r8" && src == "%rax" || dst == "%r9" && src == "%rdx") {
		return []string{wide(src)}
	}
	return nil
}

func amd64Loads(op, args string) []string {
	src, dst := splitLast(args)
	if op == "mov" && (redZone.MatchString(src) || src == "%r8" && dst == "%rax" || src == "%r9" && dst == "%rdx") {
		return []string{wide(dst)}
	}
	return nil
}

func armList(op string) func(string, string) []string {
	return func(o, args string) []string {
		switch {
		case o == op && strings.HasPrefix(args, "{"):
			return strings.FieldsFunc(args, func(r rune) bool { return strings.ContainsRune("{}, ", r) })
		case op == "push" && o == "str" && strings.HasSuffix(args, "[sp, #-4]!"),
			op == "pop" && (o == "ldr" || o == "ldr.w") && strings.HasSuffix(args, "[sp], #4"):
			r, _, _ := strings.Cut(args, ",")
			return []string{r}
		}
		return nil
	}
}

func armEffects(op, args string) []string {
	op, _, _ = strings.Cut(op, ".")
	first, rest, _ := strings.Cut(args, ",")
	switch op {
	case "ldr", "ldrex", "add", "and", "ands", "orr", "mov", "movs", "strex":
		return []string{first}
	case "mrc":
		return []string{strings.TrimSpace(strings.Split(args, ",")[2])}
	case "mrrc":
		f := strings.Split(rest, ",")
		return []string{strings.TrimSpace(f[1]), strings.TrimSpace(f[2])}
	case "pop":
		return armList("pop")(op, args)
	}
	return nil
}

// listed is one instruction of a disassembly.
type listed struct {
	address                uint64
	label, bytes, op, args string
}

var listingLine = regexp.MustCompile(`^ *([0-9a-f]+):\t([0-9a-f ]+?) *\t(.*)$`)

// disassemble inserts stubs and returns what binutils makes of the result's code, and the addresses of its labels.
func disassemble(t *testing.T, p *stubPlace) ([]listed, map[string]uint64) {
	t.Helper()
	var b bytes.Buffer
	if _, err := Insert(&b, []byte(p.source), Options{Arch: p.arch}); err != nil {
		t.Fatal(err)
	}
	s, o := filepath.Join(t.TempDir(), "a.s"), filepath.Join(t.TempDir(), "a.o")
	if err := os.WriteFile(s, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(c []string, more ...string) string {
		out, err := exec.Command(c[0], append(c[1:len(c):len(c)], more...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", c[0], err, out, b.Bytes())
		}
		return string(out)
	}
	run(tools[p.arch].as, "-o", o, s)
	symbols, names := map[string]uint64{}, map[uint64]string{}
	for l := range strings.Lines(run(tools[p.arch].nm, o)) {
		f := strings.Fields(l)
		if len(f) == 3 && strings.HasPrefix(f[2], ".Lbraid_") && strings.EqualFold(f[1], "t") {
			at, err := strconv.ParseUint(f[0], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			symbols[f[2]], names[at] = at, f[2]
		}
	}
	var out []listed
	for l := range strings.Lines(run(tools[p.arch].objdump, "-d", "-w", "-j", ".text", o)) {
		m := listingLine.FindStringSubmatch(strings.TrimRight(l, "\n"))
		if m == nil {
			continue
		}
		at, _ := strconv.ParseUint(m[1], 16, 64)
		text := m[3]
		for _, mark := range []string{"#", "@", "//", ";"} {
			if i := strings.Index(text, mark+" "); i >= 0 {
				text = text[:i]
			}
		}
		op, args, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(text, "\t", " ")), " ")
		out = append(out, listed{at, names[at], m[2], op, strings.TrimSpace(args)})
	}
	return out, symbols
}

// ofPlace keeps the place's own stub: what is in line, then what is at the function's end. An entry's is the function's
// first stub, any other the last.
func ofPlace(p *stubPlace, all []listed, symbols map[string]uint64) (inLine, atEnd []listed) {
	number := func(name string) int {
		n, _ := strconv.Atoi(name[len(".Lbraid_x"):])
		return n
	}
	var begins []string // labels at which a stub's code begins
	for name := range symbols {
		if c := name[len(".Lbraid_")]; c == 'r' || c == 'q' {
			begins = append(begins, name)
		}
	}
	slices.SortFunc(begins, func(a, b string) int { // a pad begins where its stub does, and is what is meant
		return cmp.Or(cmp.Compare(symbols[a], symbols[b]), strings.Compare(b, a))
	})
	own := begins[len(begins)-1]
	if strings.HasPrefix(p.name, "entry") {
		own = begins[0]
	}
	within := func(from, to uint64) (out []listed) {
		for _, l := range all {
			if l.address >= from && l.address < to && l.op != ".word" && l.op != "nop" {
				out = append(out, l)
			}
		}
		return out
	}
	next := func(kinds string, at uint64) uint64 { // the next label of these kinds behind at
		to := ^uint64(0)
		for name, a := range symbols {
			if a > at && a < to && strings.Contains(kinds, name[len(".Lbraid_"):][:1]) {
				to = a
			}
		}
		return to
	}
	at := symbols[own]
	if p.arch == "arm" || own[len(".Lbraid_")] == 'q' {
		return nil, within(at, next("rq", at))
	}
	n := number(own)
	for k, l := range all {
		if l.address == symbols[fmt.Sprintf(".Lbraid_d%d", n)] {
			for len(tools[p.arch].loads(all[k].op, all[k].args)) > 0 {
				k++
			}
			inLine = within(at, all[k].address)
		}
	}
	on := symbols[fmt.Sprintf(".Lbraid_n%d", n)]
	return inLine, within(on, next("nq", on))
}

// changed returns the registers that a stub leaves different: written, and not put away before and taken back last.
func changed(b binutils, code []listed) string {
	written, kept, saved := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, l := range code {
		for _, r := range b.saves(l.op, l.args) {
			if !written[r] {
				saved[r] = true
			}
		}
		back := b.loads(l.op, l.args)
		for _, r := range b.effects(l.op, l.args) {
			written[r] = true
			delete(kept, r)
		}
		for _, r := range back {
			written[r] = true
			if saved[r] {
				kept[r] = true
			}
		}
		if l.op == "bl" || l.op == "call" { // the slow path keeps all, and the stub begins again behind it
			break
		}
	}
	for r := range kept {
		delete(written, r)
	}
	delete(written, "pc")
	return strings.Join(slices.SortedFunc(maps.Keys(written), byNumber), " ")
}

func byNumber(a, b string) int {
	if len(a) != len(b) && a[0] == 'r' && b[0] == 'r' && a[1] < 'a' && b[1] < 'a' {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func TestStubsAgainstBinutils(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("# The stubs, byte by byte\n\nWritten by `go test ./inline/stub -run Binutils -update`, and compared with each time the tests run: " +
		"every stub is\nassembled and disassembled by binutils. What each part is for is in [stub.md](stub.md). Addresses of\nother symbols are still 0.\n")
	arch := ""
	table := "| processor | place | in line: instructions, bytes | at the function's end | changes, on | off |\n|---|---|---|---|---|---|\n"
	for k := range stubPlaces {
		p := &stubPlaces[k]
		all, symbols := disassemble(t, p)
		inLine, atEnd := ofPlace(p, all, symbols)
		b := tools[p.arch]
		if got := changed(b, slices.Concat(inLine, atEnd)); !sameSet(got, p.changes) {
			t.Errorf("%s, %s: changes %q, want %q", p.arch, p.name, got, p.changes)
		}
		if len(inLine) > 0 {
			if got := changed(b, inLine); !sameSet(got, p.off) {
				t.Errorf("%s, %s, off: changes %q, want %q", p.arch, p.name, got, p.off)
			}
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", p.arch, p.name, extent(inLine), extent(atEnd), orNothing(p.changes), orNothing(p.off))
		if p.arch != arch {
			arch = p.arch
			fmt.Fprintf(&doc, "\n## %s\n", arch)
		}
		fmt.Fprintf(&doc, "\n### %s: %s\n\nChanges: %s. While off: %s.\n", p.arch, p.name, orNothing(p.changes), orNothing(p.off))
		list(&doc, "In line", inLine)
		list(&doc, "At the function's end", atEnd)
	}
	compare(t, "../../docs/stub-listing.md", "", doc.String(), "")
	const begin, end = "<!-- stubs: begin -->\n\n", "\n<!-- stubs: end -->"
	text, err := os.ReadFile("../../docs/stub.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/stub.md has no place for the table of stubs")
	}
	compare(t, "../../docs/stub.md", before+begin, table, end+after)
}

func compare(t *testing.T, file, before, text, after string) {
	t.Helper()
	text = before + text + after
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s says otherwise; see what has changed, then run with -update", file)
	}
}

func extent(code []listed) string {
	if len(code) == 0 {
		return ""
	}
	return fmt.Sprintf("%d, %d", len(code), sizeOf(code))
}

func sizeOf(code []listed) int {
	size := 0
	for _, l := range code {
		size += len(strings.ReplaceAll(l.bytes, " ", "")) / 2
	}
	return size
}

func sameSet(a, b string) bool {
	return slices.Equal(slices.Sorted(slices.Values(strings.Fields(a))), slices.Sorted(slices.Values(strings.Fields(b))))
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return "`" + strings.ReplaceAll(s, " ", "` `") + "`"
}

func list(w *strings.Builder, title string, code []listed) {
	if len(code) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s, %d instructions, %d bytes:\n\n```\n", title, len(code), sizeOf(code))
	for _, l := range code {
		if l.label != "" {
			fmt.Fprintf(w, "%s:\n", l.label)
		}
		fmt.Fprintf(w, "  %-26s %s\n", l.bytes, strings.TrimSpace(l.op+" "+l.args))
	}
	w.WriteString("```\n")
}
