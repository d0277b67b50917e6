// Conventions under which a function keeps nearly every register.
//
// compilers: clang
// tree: main{most{leaf} all{leaf} loop{most*3{leaf} all*3{leaf}} returns{early{leaf} early} calls{__regcall3__regcall{leaf}}}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
static long got; // clang 14 gives no results back from such functions
F __attribute__((preserve_most)) void most(long a, long b, long c) { long r = leaf(a); KEEP; got = r + b * c; }
F __attribute__((preserve_all)) void all(long a, long b, long c) { long r = leaf(a); KEEP; got = r - b * c; }
F __attribute__((preserve_most)) void early(long a) { KEEP; if (a > 3) return; long r = leaf(a); KEEP; got = r; }
F __attribute__((regcall)) long regcall(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
	long r = leaf(a);
	KEEP;
	return r + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h + 9*i + 10*j;
}

// The caller keeps values in all the registers that its callees promise to leave alone.
F long loop(long n, long a, long b, long c, long d) {
	long e = a * 3, f = b * 5, g = c * 7, h = d * 11, s = 0;
	__asm__ volatile("" : "+r"(e), "+r"(f), "+r"(g), "+r"(h));
	for (long i = 0; i < n; i++) {
		most(i, 2, 3);
		s += got;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
	}
	for (long i = 0; i < n; i++) {
		all(i, 2, 3);
		s += got;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
	}
	KEEP;
	return s * 1000000 + a + b + c + d + e + f + g + h;
}
F long returns(void) { early(1); KEEP; early(9); KEEP; return got; }
F long calls(void) { long r = regcall(1, 2, 3, 4, 5, 6, 7, 8, 9, 10); KEEP; return r; }

int main(void) {
	most(1, 2, 3);
	IS(got == 8);
	all(1, 2, 3);
	IS(got == -4);
	IS(loop(3, 1, 2, 3, 4) == 12000000 + 10 + 3 + 10 + 21 + 44);
	IS(returns() == 2);
	IS(calls() == 386);
	return 0;
}
