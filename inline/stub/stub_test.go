package stub

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func insert(t *testing.T, asm string) (string, Result) {
	t.Helper()
	var b bytes.Buffer
	r, err := Insert(&b, []byte(asm), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), r
}

// compile returns a compiler's assembly, from gcc as the launcher calls it, or clang.
func compile(t *testing.T, cc, src string, flags ...string) string {
	t.Helper()
	args := []string{"-w", "-S", "-x", "c", "-o", "-", "-"}
	if strings.HasPrefix(cc, "gcc") {
		args = append(args, "-dp", "-fno-ipa-ra")
	} else {
		args = append(args, "-fno-integrated-as")
	}
	c := exec.Command(cc, append(args, flags...)...)
	c.Stdin = strings.NewReader(src)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", cc, flags, err, errs.Bytes())
	}
	return string(out)
}

func link(t *testing.T, cc, asm string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	s, bin := filepath.Join(dir, "a.s"), filepath.Join(dir, "a")
	if err := os.WriteFile(s, []byte(asm), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, append([]string{"-o", bin, s}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	return bin
}

// constructs is a program whose every function is called; it returns 0 if all of them computed what they should.
const constructs = `
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N __attribute__((noinline))
N int leaf(int x) { __asm__ volatile(""); return x + 1; }
N int tail(int x) { return leaf(x + 1); }
static int (*volatile fp)(int) = leaf;
N int itail(int x) { return fp(x + 1); }
N int goto_(int n) { static void *t[] = {&&a, &&b, &&c}; int s = 0, i = 0;
  goto *t[n % 3]; a: s += 1; if (++i > 50) return s; goto *t[(s * 7) % 3]; b: s += 2; if (++i > 50) return s; goto *t[(s + n) % 3];
  c: s += leaf(s) & 3; if (++i > 50) return s; goto *t[s % 3]; }
N int switch_(int x) { switch (x) { case 0: return leaf(1); case 1: leaf(3); return 5; case 2: return leaf(2) + 7;
  case 3: leaf(9); leaf(8); return 1; case 4: return fp(x); case 5: leaf(11); return 12; case 6: return 99; } return x; }
N double va(int n, ...) { va_list l; va_start(l, n); double s = 0; for (int i = 0; i < n; i++) s += va_arg(l, double); va_end(l); return s; }
N int vprint(char *b, const char *f, ...) { va_list l; va_start(l, f); int n = vsnprintf(b, 64, f, l); va_end(l); return n; }
struct big { long a, b, c, d; }; struct pair { long a, b; }; struct mixed { double a; long b; };
N struct big rbig(long x) { struct big s = {x, x + 1, x + 2, x + 3}; return s; }
N struct pair rpair(long x) { struct pair s = {x, x + 1}; return s; }
N struct mixed rmixed(long x) { struct mixed s = {x, x + 1}; return s; }
N long double rld(long double x) { return x * 3; }
N __int128 r128(__int128 x) { return x * x; }
N _Complex double rc(double x) { return x + 2.0 * x * __extension__ 1.0i; }
N long six(long a, long b, long c, long d, long e, long f, long g, long h) { return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h; }
N long sixtail(long a, long b, long c, long d, long e, long f) { return six(f, e, d, c, b, a, 1, 2); }
typedef int v4 __attribute__((vector_size(16)));
N v4 vec(v4 a, v4 b) { return a * b; }
static jmp_buf env;
N void thrower(int d) { if (d == 0) longjmp(env, 7); thrower(d - 1); leaf(d); }
N int catcher(void) { volatile int n = 0; if (setjmp(env) == 7) return n; n = 5; thrower(4); return -1; }
N int alloca_(int n) { char *p = __builtin_alloca(n); memset(p, 1, n); return p[n - 1] + p[0]; }
N int loop_at_head(int n) { do n -= 3; while (n > 0); return n; }
N void nothing(void) {}
__attribute__((cold, noinline)) void rare(void) { abort(); }
N int unlikely(int x) { if (__builtin_expect(x == 12345, 0)) { rare(); leaf(1); } return x * 3; }
#ifdef NESTED
N int nested(int x) { int inner(int y) { return x + y; } int chain(int y) { return inner(y + 1); }
  int (*volatile p)(int) = inner; return p(3) + chain(4); }
#else
N int nested(int x) { return 2 * x + 8; }
#endif
int fails;
#define IS(...) do { if (!(__VA_ARGS__)) { printf("wrong: %s\n", #__VA_ARGS__); fails++; } } while (0)
int main(void) {
  IS(tail(1) == 3); IS(itail(2) == 4); IS(goto_(4) > 50); for (int i = 0; i < 8; i++) IS(switch_(i) == (int[]){2, 5, 10, 1, 5, 12, 99, 7}[i]);
  IS(va(3, 1.5, 2.5, 3.0) == 7.0); char b[64]; IS(vprint(b, "%d %.1f %s", 7, 2.5, "x") == 7 && !strcmp(b, "7 2.5 x"));
  IS(rbig(5).d == 8); IS(rpair(5).b == 6); IS(rmixed(5).b == 6 && rmixed(5).a == 5.0); IS(rld(2.0L) == 6.0L);
#ifndef NARROW
  IS(r128(((__int128)1) << 62) == ((__int128)1) << 124);
#endif
  IS(__imag__ rc(3) == 6.0 && __real__ rc(3) == 3.0);
  IS(sixtail(1, 2, 3, 4, 5, 6) == 6 + 10 + 12 + 12 + 10 + 6 + 7 + 16);
  v4 v = vec((v4){1, 2, 3, 4}, (v4){5, 6, 7, 8}); IS(v[3] == 32 && v[0] == 5);
  IS(catcher() == 5); IS(alloca_(100) == 2); IS(loop_at_head(10) == -2); nothing(); IS(unlikely(4) == 12); IS(nested(10) == 28);
  return fails != 0;
}
`

var levels = []string{"-O0", "-O1", "-O2", "-O3", "-Os"}

// TestConstructsWithoutRuntime links stubs with no runtime at all: the weak thread pointer leads to an idle control block.
func TestConstructsWithoutRuntime(t *testing.T) {
	for _, cc := range []string{"gcc", "clang"} {
		for _, level := range levels {
			for _, mode := range [][]string{{"-fPIE", "-pie"}, {"-fno-pic", "-no-pie"}, {"-static"}, {"-fcf-protection=full"}} {
				flags := append([]string{level}, mode...)
				if cc == "gcc" {
					flags = append(flags, "-DNESTED")
				}
				asm, r := insert(t, compile(t, cc, constructs, flags...))
				if len(r.Skipped) > 0 || r.Entries < 25 || r.Exits < r.Entries-3 || r.Resumes != 1 {
					t.Errorf("%s %v: %+v", cc, flags, r)
				}
				bin := link(t, cc, asm, append(mode, "-lm")...)
				if out, err := exec.Command(bin).CombinedOutput(); err != nil {
					t.Errorf("%s %v: %v\n%s", cc, flags, err, out)
				}
			}
		}
	}
}

func TestAnnotationsAreTakenOut(t *testing.T) {
	plain := exec.Command("gcc", "-O2", "-w", "-fno-ipa-ra", "-S", "-x", "c", "-o", "-", "-")
	plain.Stdin = strings.NewReader(constructs)
	want, err := plain.Output()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := Insert(&b, []byte(compile(t, "gcc", constructs, "-O2")), Options{Trace: func(string) bool { return false }}); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimPrefix(b.String(), Marker+"\n"); got != string(want) {
		t.Errorf("with nothing to trace, the output differs from plain gcc's")
	}
}

func TestForeignAssemblyIsRefused(t *testing.T) {
	for name, asm := range map[string]string{
		"hand-written": "\t.text\n\t.globl f\n\t.type f,@function\nf:\n\tret\n\t.size f,.-f\n",
		"gcc's without -dp": "\t.file\t\"a.c\"\n\t.text\n\t.type\tf, @function\nf:\n\tjmp\t*%rax\n\t.size\tf, .-f\n" +
			"\t.ident\t\"GCC: (Debian 12.2.0-14) 12.2.0\"\n",
		"instrumented": Marker + "\n\t.type\tf, @function\nf:\n\tret\t# 3\t[c=0 l=1]  simple_return_internal\n",
	} {
		var b bytes.Buffer
		if _, err := Insert(&b, []byte(asm), Options{}); !errors.Is(err, ErrNotCompilerOutput) || b.Len() > 0 {
			t.Errorf("%s: error %v, %d bytes written", name, err, b.Len())
		}
	}
}

const ret = "\tret\t# 9\t[c=0 l=1]  simple_return_internal\n"

func TestLeftAlone(t *testing.T) {
	for name, c := range map[string]struct{ asm, reason string }{
		"ifunc resolver": {"\t.type\tpick, @function\npick:\n\tmovl\t$1, %eax\t# 1\t[c=4 l=5]  *movsi\n" + ret +
			"\t.size\tpick, .-pick\n\t.type\tf, @gnu_indirect_function\n\t.set\tf,pick\n", "ifunc"},
		"interrupt handler": {"\t.type\tirq, @function\nirq:\n\tpushq\t%rax\t# 1\t[c=4 l=5]  x\n\tiretq\t# 2\t[c=4 l=5]  x\n\t.size\tirq, .-irq\n", "interrupt"},
		"naked":             {"\t.type\tn, @function\nn:\n#APP\n\tret\n#NO_APP\n\tud2\t# 3\t[c=0 l=2]  ud2\n\t.size\tn, .-n\n", "naked"},
	} {
		out, r := insert(t, c.asm)
		if strings.Contains(out, "rdtsc") || len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0], c.reason) {
			t.Errorf("%s: %+v\n%s", name, r, out)
		}
	}
	out, _ := insert(t, "\t.section\t.text.braid_notrace,\"ax\",@progbits\n\t.type\tq, @function\nq:\n"+ret+"\t.size\tq, .-q\n")
	if strings.Contains(out, "rdtsc") {
		t.Error("a function of .text.braid_notrace got a stub")
	}
}

func TestEntryStubStandsBeforeALoopHead(t *testing.T) {
	out, _ := insert(t, "\t.type\tf, @function\nf:\n.LFB0:\n\t.cfi_startproc\n\t.p2align 4,,10\n\t.p2align 3\n.L2:\n"+
		"\tsubl\t$1, %edi\t# 1\t[c=4 l=3]  x\n\tjne\t.L2\t# 2\t[c=4 l=2]  *jcc\n"+ret+"\t.cfi_endproc\n\t.size\tf, .-f\n")
	if i, j := strings.Index(out, "gottpoff"), strings.Index(out, ".L2:"); i < 0 || i > j {
		t.Errorf("the entry stub is within the loop:\n%s", out)
	}
}

func TestConditionalTailCall(t *testing.T) {
	out, r := insert(t, "# -- Begin function f\n\t.type\tf,@function\nf:\n\ttestl\t%edi, %edi\n\tjne\tg                               # TAILCALL\n"+
		"\tretq\n\t.size\tf, .-f\n")
	if r.Exits != 2 || !strings.Contains(out, "\tje\t.Lbraid_o") || !strings.Contains(out, "\tjmp\tg\n") {
		t.Errorf("%+v\n%s", r, out)
	}
}

func TestLiveness(t *testing.T) {
	part := func(code string) *part {
		in := &inserter{}
		in.proc = &amd64{inserter: in}
		in.prepare()
		in.survey("\t.type\tf, @function\nf:\n" + code + "\t.size\tf, .-f\n")
		return in.parts[0]
	}
	for _, c := range []struct {
		code     string
		rax, rdx bool
	}{
		{"\tmovl\t%edi, %eax\n\tret\n", false, false},
		{"\ttestb\t%al, %al\n\tje\t.L2\n.L2:\n\tret\n", true, false},
		{"\tmovq\t%rdx, %rax\n\tret\n", false, true},
		{"\txorl\t%eax, %eax\n\tcall\tg\n\tret\n", false, true},
		{"\tsubq\t$8, %rdi\n\tjmp\tg\n", true, true},
		{"\ttestl\t%edi, %edi\n\tje\t.L3\n\txorl\t%edx, %edx\n\tret\n.L3:\n\tmovl\t%edx, %eax\n\tret\n", false, true},
		{"\tleaq\t(%rdi,%rsi), %rdx\n\tmovl\t$0, %eax\n\tret\n", false, false},
		{"\tmovl\t$5, (%rdx)\n\tret\n", false, true},
		{"\tcqto\n\tret\n", true, true},
		{"\tmovb\t$1, %al\n\tret\n", true, false}, // only a part of it is written
		{"\tjmp\t*%rcx\n", true, true},
		{"\tsall\t%cl, %edi\n\tincl\t%edi\n\tret\n", false, false},
	} {
		p := part(c.code)
		if a, d := p.liveAtEntry(famRAX), p.liveAtEntry(famRDX); a != c.rax || d != c.rdx {
			t.Errorf("%q: rax %v, rdx %v; want %v, %v", c.code, a, d, c.rax, c.rdx)
		}
	}
}

func BenchmarkInsert(b *testing.B) {
	c := exec.Command("gcc", "-O2", "-w", "-dp", "-fno-ipa-ra", "-S", "-x", "c", "-o", "-", "-")
	c.Stdin = strings.NewReader(constructs)
	asm, err := c.Output()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(asm)))
	for b.Loop() {
		if _, err := Insert(new(bytes.Buffer), asm, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
