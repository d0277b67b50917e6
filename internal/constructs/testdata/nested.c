// gcc's nested functions: the static chain in r10, trampolines on the stack, jumps out of them.
//
// compilers: gcc
// variants: -fcf-protection=full; -fPIC
// tree: main{direct{inner*3} deep{one{two{three}}} pointer{apply{visit*3}} chained{link{leaf}} out{walk!{leaf jump!}} out{walk{leaf jump}} many{six}}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
F int direct(int x) {
	F int inner(int y) { KEEP; return x += y; }
	int s = inner(1) + inner(2) + inner(3);
	KEEP;
	return s;
}
F int deep(int x) {
	F int one(int a) {
		F int two(int b) {
			F int three(int c) { KEEP; return x + 10 * a + 100 * b + 1000 * c; }
			int r = three(b + 1);
			KEEP;
			return r;
		}
		int r = two(a + 1);
		KEEP;
		return r;
	}
	int r = one(x + 1);
	KEEP;
	return r;
}
F void apply(void (*f)(int), int n) { for (int i = 0; i < n; i++) f(i); KEEP; }
F int pointer(int x) {
	F void visit(int i) { KEEP; x += i; }
	apply(visit, 3);
	KEEP;
	return x;
}
F int chained(int x) {
	F int link(int y) { int r = leaf(x + y); KEEP; return r; }
	int r = link(5);
	KEEP;
	return r;
}
// A goto out of a nested function ends it and all between without an exit.
F int out(int x) {
	__label__ found;
	F void jump(int y) { KEEP; if (y > 5) goto found; }
	F void walk(int y) { y = leaf(y); jump(y); KEEP; }
	walk(x);
	KEEP;
	return 0;
found:
	KEEP;
	return 1;
}
// The static chain beside every argument register.
F long many(long x) {
	F long six(long a, long b, long c, long d, long e, long f, long g) { KEEP; return x + a - b + c * d - e * f + g; }
	long r = six(1, 2, 3, 4, 5, 6, 7);
	KEEP;
	return r;
}

int main(void) {
	IS(direct(1) == 2 + 4 + 7);
	IS(deep(1) == 1 + 20 + 300 + 4000);
	IS(pointer(1) == 4);
	IS(chained(1) == 7);
	IS(out(9) == 1);
	IS(out(2) == 0);
	IS(many(10) == 10 + 1 - 2 + 12 - 30 + 7);
	return 0;
}
