// A convention that passes arguments in nearly every register, r11 and rax among them: an interpreter's.
//
// compilers: clang-19
// tree [-O0]: main{begin step*3 end{leaf}}
// tree: main{begin step end{leaf}}
#include "construct.h"
#define NONE __attribute__((preserve_none))
#define TAIL __attribute__((musttail)) return
#define ARGS long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l

F int leaf(int x) { KEEP; return x + 1; }
F NONE long end(ARGS) { long r = leaf(0); KEEP; return r + a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h + 9*i + 10*j + 11*k + 12*l; }
F NONE long step(ARGS) {
	KEEP;
	if (a == 3) TAIL end(a, b, c, d, e, f, g, h, i, j, k, l);
	TAIL step(a + 1, b + 1, c + 1, d + 1, e + 1, f + 1, g + 1, h + 1, i + 1, j + 1, k + 1, l + 1);
}
F NONE long begin(ARGS) { KEEP; TAIL step(a, b, c, d, e, f, g, h, i, j, k, l); }

int main(void) {
	IS(begin(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) == 1 + 3 + 2*4 + 3*5 + 4*6 + 5*7 + 6*8 + 7*9 + 8*10 + 9*11 + 10*12 + 11*13 + 12*14);
	return 0;
}
