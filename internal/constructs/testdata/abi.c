// Functions of other calling conventions.
//
// tree: main{windows{leaf} windows_many windows_variadic{leaf} leaf tail_windows windows{leaf} from_windows{sysv{leaf}}}
// tree [-O0 gcc-O1]: main{windows{leaf} windows_many windows_variadic{leaf} leaf tail_windows{windows{leaf}} from_windows{sysv{leaf}}}
#include "construct.h"
#define MS __attribute__((ms_abi))

F int leaf(int x) { KEEP; return x + 1; }
F MS long windows(long a, long b, long c, long d) { long r = leaf(a); KEEP; return r + 2*b + 3*c + 4*d; }
F MS double windows_many(int a, double b, int c, double d, int e, double f) { KEEP; return a + 2*b + 3*c + 4*d + 5*e + 6*f; }
F MS long windows_variadic(long a, ...) {
	__builtin_ms_va_list l;
	__builtin_ms_va_start(l, a);
	long s = a;
	for (int i = 0; i < 4; i++) s = s * 3 + __builtin_va_arg(l, long);
	__builtin_ms_va_end(l);
	int r = leaf(0);
	KEEP;
	return s + r;
}
// rsi, rdi and xmm6 to xmm15 are kept by the callee here.
F MS long tail_windows(long a, long b, long c, long d) { KEEP; return windows(a + 1, b, c, d); }
F MS long from_windows(long (*f)(long), long a) { long r = f(a); KEEP; return r * 2; }
F __attribute__((sysv_abi)) long sysv(long a) __asm__("sysv");
F __attribute__((sysv_abi)) long sysv(long a) { long r = leaf(a); KEEP; return r; }

static MS long (*volatile pointer)(long, long, long, long) = windows;

int main(void) {
	register long si __asm__("r12") = 77;
	__asm__ volatile("" : "+r"(si));
	IS(windows(1, 2, 3, 4) == 2 + 4 + 9 + 16);
	IS(windows_many(1, 2, 3, 4, 5, 6) == 91);
	IS(windows_variadic(1, 2L, 3L, 4L, 5L) == 180);
	IS(leaf(0) == 1);
	IS(tail_windows(1, 2, 3, 4) == 3 + 4 + 9 + 16);
	IS(from_windows((long (*)(long))sysv, 1) == 4);
	__asm__ volatile("" : "+r"(si));
	IS(si == 77 && pointer == windows);
	return 0;
}
