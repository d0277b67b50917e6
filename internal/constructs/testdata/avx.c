// Vectors of 32 bytes in arguments and results, and the upper halves of registers across stubs.
//
// flags: -mavx2
// tree: main{add ymm{leaf add leaf} tail add sum}
// tree [-O0 gcc-O1]: main{add ymm{leaf add leaf} tail{add} sum}
#include "construct.h"

typedef double v4 __attribute__((vector_size(32)));
F int leaf(int x) { KEEP; return x + 1; }
F v4 add(v4 a, v4 b) { KEEP; return a + b; }
F v4 ymm(v4 a) { int i = leaf(1); v4 b = add(a, a); i += leaf(i); KEEP; return b * (double)i; }
F v4 tail(v4 a, v4 b) { KEEP; return add(b, a * 2.0); }
F double sum(v4 a, v4 b, v4 c, v4 d, v4 e, v4 f, v4 g, v4 h, v4 i) { KEEP; v4 s = a + b + c + d + e + f + g + h + i; return s[0] + s[3]; }

int main(void) {
	v4 a = {1, 2, 3, 4};
	IS(add(a, a)[3] == 8);
	IS(ymm(a)[2] == 30);
	IS(tail(a, a)[1] == 6);
	IS(sum(a, a, a, a, a, a, a, a, a) == 45);
	return 0;
}
