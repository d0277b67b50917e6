package stub

import "strings"

const (
	arm64Foot = "\t.size\tf, .-f\n"
	arm64Stop = "\tbrk\t#0x3e8\t// 9\t[c=0 l=4]  trap\n"
	arm64Ret  = "\tret\t// 9\t[c=0 l=4]  *do_return\n"
)

func arm64Function(comment, body string) string {
	return "\t.text\n" + comment + "\t.type\tf, %function\nf:\n" + body + arm64Foot
}

func arm64GCC(body string) string   { return arm64Function("", body) }
func arm64Clang(body string) string { return arm64Function("// -- Begin function f\n", body) }

var arm64ByteTable = "\t.section\t.rodata\n\t.byte\t(.L2 - .L1) / 4\n"

var arm64Places = []stubPlace{
	{"arm64", "entry", arm64GCC(arm64Stop), "x9 x10 x11 x12 x16 x17", "x16 x17"},
	{"arm64", "entry, in code from clang", arm64Clang("\tbrk\t#1\n"), "x16 x17", "x16 x17"},
	{"arm64", "entry of a function that control can come back to", arm64GCC("\tbl\tsetjmp\t// 1\t[c=4 l=4]  x\n" + arm64Stop),
		"x9 x10 x11 x12 x13 x16 x17", "x16 x17"},
	{"arm64", "return", arm64GCC(arm64Ret), "x9 x10 x11 x12 x16 x17", "x16 x17"},
	{"arm64", "return, in code from clang", arm64Clang("\tret\n"), "x16 x17", "x16 x17"},
	{"arm64", "return, where code must not grow", arm64GCC(".L1:\n"+arm64Ret+".L2:\n"+arm64Stop) + arm64ByteTable,
		"x9 x10 x11 x12 x16 x17", "x16 x17"},
	{"arm64", "tail call", arm64GCC("\tb\tg\t// 9\t[c=0 l=4]  *sibcall_insn/1\n"), "x9 x10 x11 x12 x16 x17", "x16 x17"},
	{"arm64", "tail call through x16", arm64GCC("\tbr\tx16\t// 9\t[c=0 l=4]  *sibcall_insn/0\n"), "x9 x10 x11 x12 x13 x17", "x9 x17"},
	{"arm64", "tail call through x16, in code from clang", arm64Clang("\tbr\tx16\n"), "x17", "x17"},
	{"arm64", "second return", arm64GCC("\tbl\tsetjmp\t// 1\t[c=4 l=4]  x\n" + arm64Stop), "x9 x10 x11 x12 x13 x16 x17", "x16 x17"},
	{"arm64", "landing pad", arm64GCC("\tbl\tg\t// 1\t[c=4 l=4]  x\n\tbrk\t#1\n.L2:\n\thint\t36 // bti j\t// 3\t[c=0 l=4]  bti_j\n"+arm64Stop) +
		"\t.section\t.gcc_except_table,\"a\"\n.LLSDACSB0:\n\t.uleb128 0\n\t.uleb128 1\n\t.uleb128 .L2-f\n\t.uleb128 0\n.LLSDACSE0:\n",
		"x9 x10 x11 x12 x13 x16 x17", "x16 x17"},
}

// arm64List finds the registers that go to the stack (st) or come from it (ld).
func arm64List(kind string) func(op, args string) []string {
	return func(op, args string) []string {
		regs, _, ok := strings.Cut(args, ", [sp")
		if !ok || !strings.HasPrefix(op, kind) {
			return nil
		}
		return strings.Split(regs, ", ")
	}
}

func arm64Effects(op, args string) []string {
	f := strings.Split(args, ", ")
	n := 0
	switch op {
	case "adrp", "adr", "ldr", "mrs", "add", "and", "orr", "mov", "stxp", "bfi", "lsl":
		n = 1
	case "ldxp", "ldp":
		n = 2
	}
	var out []string
	for _, r := range f[:n] {
		if r != "xzr" && r != "x30" {
			out = append(out, "x"+r[1:])
		}
	}
	return out
}
