// A bit of everything, for options that change how all functions are made.
//
// splice: tail _sub_* asan.* __llvm_* sancov.* *.cold
// tree: begin main{leaf leaf many list frames{leaf} choose{leaf} choose choose{leaf} through{leaf} catcher{thrower!{leaf}} rare{leaf}
//   recursive{recursive{recursive}} split split{rare{leaf}} wide extended big vectors} end
#include "../construct.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#define UNTRACED __attribute__((no_instrument_function, section(".text.braid_notrace")))
static volatile long entered, left;
UNTRACED void __cyg_profile_func_enter(void *f, void *c) { entered++; }
UNTRACED void __cyg_profile_func_exit(void *f, void *c) { left++; }

F int leaf(int x) { KEEP; return x + 1; }
F int tail(int x) { KEEP; return leaf(x + 1); }
F long many(long a, long b, long c, long d, long e, long f, long g, long h) { KEEP; return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h; }
F double list(int n, ...) { va_list l; va_start(l, n); double s = 0; while (n--) s = s * 2 + va_arg(l, double); va_end(l); KEEP; return s; }
F int frames(int n) { char *p = (char *)__builtin_alloca(n), q[200]; memset(p, 1, n); memset(q, 2, sizeof q); KEEP; int r = leaf(p[n - 1] + q[n]); KEEP; return r; }
F int choose(int x) {
	KEEP;
	switch (x) {
	case 0: x = leaf(x); break;
	case 1: return 7;
	case 2: x = 9; break;
	case 3: x ^= 77; break;
	case 4: x = leaf(1) * 5; break;
	case 5: return 3;
	}
	KEEP;
	return x;
}
static int (*volatile pointer)(int) = leaf;
F int through(int x) { int r = pointer(x); KEEP; return r; }
static jmp_buf env;
F void thrower(int x) { leaf(x); longjmp(env, x); }
F int catcher(void) { volatile int n = 5; int r = setjmp(env); if (r) return r + n; thrower(3); KEEP; return 0; }
F __attribute__((cold)) int rare(int x) { int r = leaf(x); KEEP; return r; }
F int split(int x) { KEEP; if (__builtin_expect(x > 3, 0)) { int r = rare(x); KEEP; return r; } return x; }
F int recursive(int x) { KEEP; int r = x ? recursive(x - 1) : 0; KEEP; return r + 1; }
F __int128 wide(long x) { KEEP; return (__int128)x << 64; }
F long double extended(long double x) { KEEP; return x * 2; }
struct big { long v[9]; };
F struct big big(int x) { struct big b = {{0}}; b.v[8] = x; KEEP; return b; }
typedef int v4 __attribute__((vector_size(16)));
F v4 vectors(v4 a) { KEEP; return a + a; }
__attribute__((constructor)) F void begin(void) { KEEP; }
__attribute__((destructor)) F void end(void) { KEEP; }

int main(void) {
	IS(leaf(1) == 2);
	IS(tail(1) == 3);
	IS(many(1, 2, 3, 4, 5, 6, 7, 8) == 204);
	IS(list(3, 1.0, 2.0, 3.0) == 11.0);
	IS(frames(10) == 4);
	IS(choose(4) == 10);
	IS(choose(3) == 78);
	IS(choose(0) == 1);
	IS(through(1) == 2);
	IS(catcher() == 8);
	IS(rare(1) == 2);
	IS(recursive(2) == 3);
	IS(split(1) == 1);
	IS(split(4) == 5);
	IS(wide(3) >> 64 == 3);
	IS(extended(2) == 4);
	IS(big(4).v[8] == 4);
	IS(vectors((v4){1, 2, 3, 4})[3] == 8);
	return 0;
}
