// A function that promises to keep every register, as interrupt handlers' helpers do. Nothing in its code tells it from
// others, and stubs do not keep r11, nor the flags.
//
// compilers: gcc
// flags: -mgeneral-regs-only
// tree: main{user{leaf keeper} leaf}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
static volatile int seen;
F __attribute__((no_caller_saved_registers)) void keeper(int x) { KEEP; seen = x; }
F long user(long a, long b, long c, long d, long e, long f) {
	int r = leaf(1);
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	register long x __asm__("r10") = a * 2, y __asm__("r9") = b * 3, z __asm__("rdx") = c * 4;
	__asm__ volatile("" : "+r"(x), "+r"(y), "+r"(z));
	keeper(r);
	__asm__ volatile("" : "+r"(x), "+r"(y), "+r"(z));
	return x + y + z + d + e + f;
}

int main(void) {
	IS(user(1, 2, 3, 4, 5, 6) == 2 + 6 + 12 + 15);
	IS(seen == 2);
	IS(leaf(1) == 2);
	return 0;
}
