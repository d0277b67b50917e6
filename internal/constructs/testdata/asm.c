// Inline assembly: labels, jumps to C labels, use of the stack, of flags and of the registers that stubs use, returns
// and calls that are only data.
//
// tree: main{labels goto_{leaf} goto_ flags pushes{leaf} clobbers{leaf} calls{leaf} local{leaf} text{leaf} red explicit{leaf} many sections{leaf}}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
F int labels(int n) {
	int s = 0;
	__asm__ volatile("1:\taddl %1, %0\n\tdecl %1\n\tjnz 1b\n\tjmp 2f\n\tret\n2:\n.Lmine%=:\n" : "+r"(s), "+r"(n) : : "cc");
	return s;
}
F int goto_(int x) {
	__asm__ goto("testl %0, %0\n\tjz %l1" : : "r"(x) : "cc" : zero);
	x = leaf(x);
	KEEP;
	return x;
zero:
	return 100;
}
// Inline assembly's pushes would overwrite locals in the red zone: it has to step over it.
F long flags(void) {
	volatile long v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	unsigned long f;
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tpopq %0\n\tleaq 128(%%rsp), %%rsp" : "=r"(f) : : "memory");
	return v[0] + v[7] + ((f & 2) != 0);
}
F int pushes(int x) { __asm__ volatile("pushq %%rax\n\tpushq %%rbx\n\tpopq %%rbx\n\tpopq %%rax" : : : "memory"); x = leaf(x); KEEP; return x; }
F int clobbers(int x) { __asm__ volatile("xorl %%r10d, %%r10d\n\txorl %%r11d, %%r11d\n\tmovq $-1, %%rdx\n\tmovq $-1, %%rax" : : : "rax", "rdx", "r10", "r11", "cc"); x = leaf(x); KEEP; return x; }
// A call that the compiler does not know of. The stack pointer is even here at every level.
F int calls(int x) {
	int r;
	__asm__ volatile("movq %%rsp, %%rbx\n\tsubq $128, %%rsp\n\tandq $-16, %%rsp\n\tcall leaf\n\tmovq %%rbx, %%rsp" : "=a"(r), "+D"(x)
		: : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return r;
}
__attribute__((used)) static int kept(int x) __asm__("kept");
F int local(int x) { register int y __asm__("r11") = x; __asm__ volatile("" : "+r"(y)); register int z __asm__("r10") = y; __asm__ volatile("" : "+r"(z)); z = leaf(z); KEEP; return z; }
static int kept(int x) { return x; }
F int text(int x) { __asm__ volatile("jmp 1f\n\t.byte 0xc3, 0xc3\n\t.asciz \"\\tret\\n\"\n1:"); x = leaf(x); KEEP; return x; }
F int red(int x) { volatile int v[20]; v[19] = x; v[0] = 2; __asm__ volatile("nop\n\tnop # ret\n\t/* ret */"); return v[19] + v[0]; }
F int explicit(int x) { int a = x, d = x + 1; __asm__ volatile("rdtsc" : "=a"(a), "=d"(d)); a = leaf(x); KEEP; return a; }
F int many(int a, int b, int c) { __asm__ volatile("addl %2, %0; addl %1, %0;" : "+r"(a) : "r"(b), "r"(c)); return a; }
F int sections(int x) {
	const char *s;
	__asm__ volatile(".pushsection .rodata\n9:\t.asciz \"\\tret\"\n\t.popsection\n\tleaq 9b(%%rip), %0" : "=r"(s));
	x = leaf(x);
	KEEP;
	return x + s[1];
}

int main(void) {
	IS(labels(4) == 10);
	IS(goto_(1) == 2);
	IS(goto_(0) == 100);
	IS(flags() == 10);
	IS(pushes(1) == 2);
	IS(clobbers(1) == 2);
	IS(calls(1) == 2);
	IS(local(1) == 2);
	IS(text(1) == 2);
	IS(red(1) == 3);
	IS(explicit(1) == 2);
	IS(many(1, 2, 3) == 6);
	IS(sections(1) == 2 + 'r');
	return 0;
}
