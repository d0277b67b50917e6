// Tail calls: the function that is jumped to is called by its caller's caller.
//
// tree: main{tail leaf chain tail leaf even odd even odd even stacked many indirect leaf
//   table leaf table tail leaf conditional leaf conditional afar conditional
//   variadic{inner} passed{big}}
// tree [clang-O1 clang-O2 clang-O3 clang-Os]: main{tail leaf chain tail leaf even odd even odd even stacked{many}
//   indirect leaf table leaf table tail leaf conditional leaf conditional afar conditional
//   variadic{inner} passed{big}}
// tree [-O0 gcc-O1]: main{tail{leaf} chain{tail{leaf}} even{odd{even{odd{even}}}} stacked{many} indirect{leaf}
//   table{leaf} table{tail{leaf}} conditional{leaf} conditional{afar} conditional
//   variadic{inner} passed{big}}
#include "construct.h"
#include <stdarg.h>

F int leaf(int x) { KEEP; return x + 1; }
F int tail(int x) { KEEP; return leaf(x + 1); }
F int chain(int x) { KEEP; return tail(x + 1); }
F int odd(int x);
F int even(int x) { KEEP; if (x == 0) return 7; return odd(x - 1); }
F int odd(int x) { KEEP; if (x == 0) return 8; return even(x - 1); }
F long many(long a, long b, long c, long d, long e, long f, long g, long h) { KEEP; return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h; }
F long stacked(long a, long b, long c, long d, long e, long f, long g, long h) { KEEP; return many(h, g, f, e, d, c, b, a); }
static int (*volatile pointer)(int) = leaf;
F int indirect(int x) { KEEP; return pointer(x + 2); }
static int (*const functions[])(int) = {leaf, tail};
F int table(int i, int x) { KEEP; return functions[i](x); }
F int afar(int x) { KEEP; return -x; }
F int conditional(int x) { KEEP; if (x == 1) return leaf(x); if (x > 1) return afar(x); return 0; }
F double inner(int n, double a, double b) { KEEP; return n + a * b; }
F double variadic(int n, ...) {
	va_list l;
	va_start(l, n);
	double a = va_arg(l, double), b = va_arg(l, double);
	va_end(l);
	return inner(n, a, b);
}
struct big { long v[6]; };
F struct big big(int x) { KEEP; struct big b = {{x, x + 1, x + 2, x + 3, x + 4, x + 5}}; return b; }
F struct big passed(int x) { KEEP; return big(x + 1); }

int main(void) {
	IS(tail(1) == 3);
	IS(chain(1) == 4);
	IS(even(4) == 7);
	IS(stacked(1, 2, 3, 4, 5, 6, 7, 8) == 8 + 14 + 18 + 20 + 20 + 18 + 14 + 8);
	IS(indirect(1) == 4);
	IS(table(0, 1) == 2);
	IS(table(1, 1) == 3);
	IS(conditional(1) == 2);
	IS(conditional(5) == -5);
	IS(conditional(0) == 0);
	IS(variadic(1, 2.0, 3.0) == 7.0);
	IS(passed(1).v[5] == 7);
	return 0;
}
