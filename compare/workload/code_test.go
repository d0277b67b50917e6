package workload

import (
	"debug/elf"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// function is a disassembled function.
type function struct {
	address uint64
	code    []string // without addresses, which differ, and without padding
}

var (
	objdumps = map[string]string{"amd64": "objdump", "arm64": "aarch64-linux-gnu-objdump", "arm": "arm-linux-gnueabihf-objdump"}
	heads    = regexp.MustCompile(`^([0-9a-f]+) <((?:listing|matrix|schedule|io)_[a-z0-9]+_[0-9]+)>:$`)
	targets  = regexp.MustCompile(`\b(0x)?[0-9a-f]+ <([^>+]+)(\+0x[0-9a-f]+)?>`)
	remarks  = regexp.MustCompile(`\s*(//|;|@|# ).*$`)
	aligned  = regexp.MustCompile(`_[0-9]+$`)
	paddings = []string{"nop", "nopl", "nopw", "data16", "cs", "udf"}
)

// disassembled returns the traced functions of the program for a processor.
func disassembled(t *testing.T, arch string) map[string]function {
	t.Helper()
	program := unpacked(t, arch).driver()
	out, err := exec.Command(objdumps[arch], "-d", "--no-show-raw-insn", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	sizes := sizes(t, program)
	all := map[string]function{}
	name := ""
	for l := range strings.Lines(string(out)) {
		l = strings.TrimSpace(l)
		if m := heads.FindStringSubmatch(l); m != nil {
			name = m[2]
			all[name] = function{address: number(t, m[1])}
			continue
		}
		if l == "" || strings.HasSuffix(l, ">:") {
			name = ""
		}
		at, code, ok := strings.Cut(l, ":\t")
		if name == "" || !ok || number(t, at) >= all[name].address+sizes[name] {
			continue
		}
		code = targets.ReplaceAllStringFunc(code, func(s string) string {
			m := targets.FindStringSubmatch(s)
			if m[2] != name {
				return aligned.ReplaceAllString(m[2], "")
			}
			if m[3] != "" {
				return "WITHIN"
			}
			return "ITSELF"
		})
		f := all[name]
		f.code = append(f.code, strings.Join(strings.Fields(remarks.ReplaceAllString(code, "")), " "))
		all[name] = f
	}
	return all
}

func number(t *testing.T, hex string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sizes returns how long each function is. What follows it may have no symbol.
func sizes(t *testing.T, program string) map[string]uint64 {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]uint64{}
	for _, s := range symbols {
		out[s.Name] = s.Size
	}
	return out
}

func word(instruction string) string {
	w, _, _ := strings.Cut(instruction, " ")
	return w
}

// effective leaves out what only moves code.
func effective(code []string) []string {
	return slices.DeleteFunc(slices.Clone(code), func(i string) bool { return slices.Contains(paddings, word(i)) || i == "xchg %ax,%ax" })
}

// TestAlignments: each function is there for each variant and alignment, begins where its name says, and has the same
// instructions at all alignments (operands hold addresses).
func TestAlignments(t *testing.T) {
	for arch := range objdumps {
		all := disassembled(t, arch)
		for _, w := range []string{Listing, Matrix, Schedule, IO} {
			for _, v := range variants {
				first := all[Function(w, v, 0)]
				for _, align := range Aligns() {
					f, ok := all[Function(w, v, align)]
					if !ok || int(f.address%64) != align {
						t.Errorf("%s: %s is at %#x", arch, Function(w, v, align), f.address)
					}
					if !slices.EqualFunc(effective(f.code), effective(first.code), func(a, b string) bool { return word(a) == word(b) }) {
						t.Errorf("%s: %s has other code than at alignment 0:\n%q\n%q", arch, Function(w, v, align), f.code, first.code)
					}
				}
			}
		}
	}
}

// TestSameCode: variants whose trace points are put into finished code differ from the plain one by these alone: all of its
// instructions are there, in their order. On arm a return is moved to the end, with its stub.
func TestSameCode(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		all := disassembled(t, arch)
		for _, w := range []string{Listing, Matrix, Schedule, IO} {
			plain := effective(all[Function(w, Plain, 0)].code)
			if len(plain) < 5 {
				t.Fatalf("%s: %s is %q", arch, w, plain)
			}
			for _, v := range []Variant{Stub, Clock, Nop5, Other} {
				rest := effective(all[Function(w, v, 0)].code)
				for _, i := range plain {
					at := slices.Index(rest, i)
					if at < 0 {
						t.Fatalf("%s: %s lacks %q of the plain code %q", arch, Function(w, v, 0), i, plain)
					}
					rest = rest[at+1:]
				}
			}
		}
	}
}

// TestCallsStayCalls: the listing and the step of the matrix call themselves, and don't jump to themselves.
func TestCallsStayCalls(t *testing.T) {
	calls := map[string][]string{"amd64": {"call"}, "arm64": {"bl"}, "arm": {"bl"}}
	for arch := range objdumps {
		for name, f := range disassembled(t, arch) {
			if !strings.HasPrefix(name, Listing) && !strings.HasPrefix(name, Matrix) {
				continue
			}
			n := 0
			for _, i := range f.code {
				if strings.HasSuffix(i, " ITSELF") && slices.Contains(calls[arch], word(i)) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s: %s calls itself at %d places: %q", arch, name, n, f.code)
			}
		}
	}
}

// TestFirstInstructions: the variants for probes begin with the instructions that they are named after.
func TestFirstInstructions(t *testing.T) {
	firsts := map[string]map[Variant]string{
		"amd64": {Nop5: "nopl 0x0(%rax,%rax,1)", Push: "push %", Other: "xor %eax,%eax"},
		"arm64": {Nop5: "nop", Push: "stp x29, x30, [sp, #-", Other: "mov x9, x0"},
		"arm":   {Nop5: "nop", Push: "push {|stmdb sp!, {", Other: "mov ip, r0"},
	}
	for arch, want := range firsts {
		all := disassembled(t, arch)
		for v, first := range want {
			for _, w := range []string{Listing, Matrix, Schedule, IO} {
				f := all[Function(w, v, 0)]
				if len(f.code) == 0 || !slices.ContainsFunc(strings.Split(first, "|"), func(s string) bool { return strings.HasPrefix(f.code[0], s) }) {
					t.Errorf("%s: %s begins otherwise than with %q: %q", arch, Function(w, v, 0), first, f.code)
				}
			}
		}
	}
}
