package stub

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What llvm-mca makes of arm64's stubs, and of other ways to write them, in docs/stub.md. What mca reads of ours is what
// Insert writes.

var mcaProcessors = []string{"cortex-a55", "cortex-a510", "cortex-a76", "cortex-x1"}

// mcaVariant is straight-line code; nothing that it branches to is executed.
type mcaVariant struct {
	name, code, exact string
}

// The linker turns the load from the global offset table into two moves where it can: in everything but shared objects.
var relaxed = strings.NewReplacer("adrp\tx17, :gottprel:__braid_tls", "movz\tx17, #0, lsl #16",
	"ldr\tx17, [x17, :gottprel_lo12:__braid_tls]", "movk\tx17, #16")

func halves(t *testing.T, block, body string) (inLine, recording string) {
	t.Helper()
	var b bytes.Buffer
	if _, err := Insert(&b, []byte(arm64GCC(body)), Options{Arch: "arm64", Block: block}); err != nil {
		t.Fatal(err)
	}
	between := func(text, from, to string) string {
		_, text, ok := strings.Cut(text, from)
		text, _, ok2 := strings.Cut(text, to)
		if !ok || !ok2 {
			t.Fatalf("no %q, %q in\n%s", from, to, b.Bytes())
		}
		_, text, _ = strings.Cut(text, ":\n")
		return strings.TrimSpace(text)
	}
	return between(b.String(), ".Lbraid_r", ".Lbraid_d"), between(b.String(), "\n.Lbraid_n", ".Lbraid_s")
}

func mcaVariants(t *testing.T) (tests, recordings []mcaVariant) {
	inLine, entry := halves(t, "", arm64Stop)
	_, framed := halves(t, "", "\tbl\tsetjmp\t// 1\t[c=4 l=4]  x\n"+arm64Stop)
	slot, _ := halves(t, "slot:2", arm64Stop)
	reg, _ := halves(t, "reg:x19+192", arm64Stop)
	exit := strings.NewReplacer("adr\tx12, .Lbraid_f1\n\tbfi\tx12, x9, #32, #32", "lsl\tx9, x9, #32", "stur\tx12", "stur\tx9").Replace(entry)
	one := func(code string) string { return strings.ReplaceAll(code, ";", "\n\t") }
	tests = []mcaVariant{
		{"**chosen**, in an executable: the linker makes moves of the load", relaxed.Replace(inLine), ""},
		{"**chosen**, in a shared object", inLine, ""},
		{"the thread pointer read first", one("mrs x16, tpidr_el0;movz x17, #0, lsl #16;movk x17, #16;ldr x16, [x16, x17];ldr x17, [x16];tbnz w17, #2, on;tbnz w17, #0, slow"), ""},
		{"one test of three bits, one branch", one("movz x17, #0, lsl #16;movk x17, #16;mrs x16, tpidr_el0;ldr x16, [x16, x17];ldr x17, [x16];tst x17, #7;b.ne on"), ""},
		{"local-exec, which shared objects can't have", one("mrs x16, tpidr_el0;add x16, x16, #0, lsl #12;ldr x16, [x16, #16];ldr x17, [x16];tbnz w17, #2, on;tbnz w17, #0, slow"), ""},
		{"`slot:2`", slot, ""},
		{"`reg:x19+192`", reg, ""},
	}
	before, after := "mrs x9, cntvct_el0;", "cbnz w12, again;adr x10, f;bfi x10, x9, #32, #32;stur x10, [x17, #-7];str x17, [x16, #16];b off"
	recordings = []mcaVariant{
		{"**chosen**, entry", entry, "yes"},
		{"**chosen**, return", exit, "yes"},
		{"**chosen**, framed entry", framed, "yes"},
		{"`ldxp`, the next slot from what it loaded", one(before + "ldxp x10, x11, [x16];cmp x10, x17;b.ne again;add x10, x10, #8;and x10, x10, x11;stxp w12, x10, x11, [x16];" + after), "yes"},
		{"`ldxr`, the mask loaded before it", one(before + "ldr x10, [x16, #8];add x11, x17, #8;and x10, x10, x11;ldxr x11, [x16];cmp x11, x17;b.ne again;stxr w12, x10, [x16];" + after), "but for a mask of before a restart"},
		{"`ldxr`, the mask loaded behind it", one(before + "add x12, x17, #8;ldxr x10, [x16];ldr x11, [x16, #8];cmp x10, x17;and x11, x11, x12;b.ne again;stxr w12, x11, [x16];" + after), "yes, but the loop may never end"},
		{"no reservation", one(before + "ldr x10, [x16, #8];add x11, x17, #8;and x10, x10, x11;adr x11, f;bfi x11, x9, #32, #32;stur x11, [x17, #-7];str x10, [x16];b off"), "no: a signal handler's records are lost"},
	}
	return tests, recordings
}

var totalCycles = regexp.MustCompile(`Total Cycles: +(\d+)`)

// mca returns cycles for each of a hundred times that code runs one behind the other.
func mca(t *testing.T, processor, code string) string {
	t.Helper()
	c := exec.Command("llvm-mca-19", "-mtriple=aarch64-linux-gnu", "-mcpu="+processor, "-iterations=100", "-instruction-info=0", "-resource-pressure=0")
	c.Stdin = strings.NewReader("\t" + code + "\n")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	m := totalCycles.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v\n%s\n%s", err, errs.Bytes(), code)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%.1f", float64(n)/100)
}

func TestMCA(t *testing.T) {
	tests, recordings := mcaVariants(t)
	var b strings.Builder
	write := func(title, last string, variants []mcaVariant) {
		fmt.Fprintf(&b, "| %s | instructions | A55 | A510 | A76 | X1 |%s\n|---|---|---|---|---|---|", title, last)
		if last != "" {
			b.WriteString("---|")
		}
		b.WriteString("\n")
		for _, v := range variants {
			fmt.Fprintf(&b, "| %s | %d |", v.name, 1+strings.Count(v.code, "\n"))
			for _, p := range mcaProcessors {
				fmt.Fprintf(&b, " %s |", mca(t, p, v.code))
			}
			if last != "" {
				b.WriteString(" " + v.exact + " |")
			}
			b.WriteString("\n")
		}
	}
	write("in line, all that is executed while off", "", tests)
	b.WriteString("\n")
	write("the recording half", " exact under signals |", recordings)
	const begin, end = "<!-- mca: begin -->\n\n", "\n<!-- mca: end -->"
	text, err := os.ReadFile("../../docs/stub.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/stub.md has no place for mca's figures")
	}
	compare(t, "../../docs/stub.md", before+begin, b.String(), end+after)
}
