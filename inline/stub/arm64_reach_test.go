package stub

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reaching is a program in which stubs in line would move code out of reach: of the bytes of a jump table, and of a branch
// on a bit.
func reaching() string {
	var b strings.Builder
	b.WriteString("#define N __attribute__((noinline))\nint printf(const char *, ...);\nN int g(int x) { __asm__ volatile(\"\"); return x * 3 + 1; }\n")
	b.WriteString("N int table(int x, int y, int z) { switch (x) {\n")
	for k := range 40 {
		fmt.Fprintf(&b, "case %d: __asm__ volatile(\"\" : \"+r\"(y)); return y * %d + z;\n", k, k+3)
	}
	b.WriteString("} return g(x); }\n")
	b.WriteString("N int bit(int x) { __asm__ volatile(\"\"); if (x & 4) return g(x); if (x & 8) { g(x); return 2; }\n")
	// gcc and clang take the lines for instructions, and find that the branch just reaches over them.
	fmt.Fprintf(&b, "if (x & 1) { __asm__ volatile(\"%s\"); if (x & 16) return 5; if (x & 32) return g(6); }\n", strings.Repeat("nop\\n", 8100))
	b.WriteString("return g(x + 1) + 7; }\n")
	b.WriteString("int main(void) { unsigned s = 0; for (int k = 0; k < 45; k++) s = s * 31 + table(k, k + 5, 2 * k);\n" +
		"for (int k = 0; k < 64; k++) s = s * 31 + bit(k); printf(\"%u\\n\", s); return 0; }\n")
	return b.String()
}

func TestArm64Reach(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "reach.c")
	if err := os.WriteFile(src, []byte(reaching()), 0o600); err != nil {
		t.Fatal(err)
	}
	want := uint32(0)
	g := func(x int) int { return x*3 + 1 }
	bit := func(x int) int {
		switch {
		case x&4 != 0:
			return g(x)
		case x&8 != 0:
			return 2
		case x&17 == 17:
			return 5
		case x&33 == 33:
			return g(6)
		}
		return g(x+1) + 7
	}
	for k := range 45 {
		v := g(k)
		if k < 40 {
			v = (k+5)*(k+3) + 2*k
		}
		want = want*31 + uint32(v)
	}
	for k := range 64 {
		want = want*31 + uint32(bit(k))
	}
	for _, tc := range []toolchain{arm64GCCs, arm64Clangs} {
		for _, level := range testLevels()[1:] {
			bin, r := tc.build(t, Options{}, src, []string{tc.ring(t)}, level, "-static", "-fno-pic", "-no-pie")
			out, ring := tc.recorded(t, bin)
			if strings.TrimSpace(out) != fmt.Sprint(want) || r.Entries != 4 || len(r.Skipped) > 0 {
				t.Errorf("%s %s: %+v\n%s, want %d", tc.compiler, level, r, out, want)
			}
			calls := tree(t, ring, functions(t, bin))
			if n := strings.Count(calls, "  table"); n != 45 {
				t.Errorf("%s %s: %d calls of table", tc.compiler, level, n)
			}
			if n := strings.Count(calls, "  bit"); n != 64 {
				t.Errorf("%s %s: %d calls of bit", tc.compiler, level, n)
			}
		}
	}
}

// TestArm64EntryBeforeUnwindInformation: the entry's stub may come first; its other half has unwind information all the same.
func TestArm64EntryBeforeUnwindInformation(t *testing.T) {
	var b strings.Builder
	text := arm64GCC("\t.p2align 2\n\t.cfi_startproc\n" + arm64Ret + "\t.cfi_endproc\n")
	if _, err := Insert(&b, []byte(text), Options{Arch: "arm64"}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\t.cfi_def_cfa sp, 0\n"); n != 2 {
		t.Errorf("%d of 2 halves say where the caller is found:\n%s", n, b.String())
	}
}
