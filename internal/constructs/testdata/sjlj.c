// setjmp and longjmp: the methods above the one that control comes back to have ended without an exit, whichever of its
// calls that is.
//
// variants: -fcf-protection=full; -static; -fno-plt; -fPIC -mcmodel=large
// tree: main{catcher{thrower!{leaf thrower!{leaf thrower!}}}
//   again{leaf thrower! leaf thrower! leaf thrower! leaf}
//   recursive{recursive{recursive!{recursive!{recursive!}}}} leaf
//   tail_thrower{twice{thrower!} leaf} nested{inner{thrower!} thrower!} self signals{leaf} none{leaf}}
#include "construct.h"
#include <setjmp.h>
#include <signal.h>

static jmp_buf env, outer, levels[5];
F int leaf(int x) { KEEP; return x + 1; }
F void thrower(jmp_buf to, int n) {
	if (n == 0) longjmp(to, 7);
	leaf(n);
	thrower(to, n - 1);
	KEEP;
}
F int catcher(void) {
	volatile int n = 0;
	if (setjmp(env) == 7) return n;
	n = 5;
	thrower(env, 2);
	KEEP;
	return -1;
}
// Comes back many times to one place.
F int again(void) {
	volatile int n = 0;
	setjmp(env);
	leaf(n);
	if (n++ < 3) thrower(env, 0);
	KEEP;
	return n;
}
// The second call catches what the fifth throws.
F int recursive(int depth) {
	KEEP;
	if (setjmp(levels[depth])) return 100 + depth;
	if (depth == 4) longjmp(levels[1], 1);
	int r = recursive(depth + 1);
	KEEP;
	return r;
}
F int twice(void) { if (!setjmp(env)) thrower(env, 0); KEEP; return 1; }
F int tail_thrower(void) { int r = twice(); r += leaf(r); KEEP; return r; }
F int inner(void) { if (!_setjmp(env)) thrower(env, 0); KEEP; return 1; }
F int nested(void) {
	volatile int n = 0;
	if (!setjmp(outer)) {
		n += inner();
		thrower(outer, 0);
	}
	KEEP;
	return n;
}
F int self(void) {
	volatile int n = 0;
	int k = setjmp(env);
	if (k < 5) {
		n++;
		longjmp(env, k + 1);
	}
	KEEP;
	return n;
}
F int signals(void) {
	sigjmp_buf b;
	volatile int n = 0;
	if (sigsetjmp(b, 1) == 0) {
		n = leaf(1);
		siglongjmp(b, 3);
	}
	KEEP;
	return n;
}
F int none(void) { jmp_buf b; if (setjmp(b)) return 9; int r = leaf(1); KEEP; return r; }

int main(void) {
	IS(catcher() == 5);
	IS(again() == 4);
	IS(recursive(0) == 101);
	IS(leaf(1) == 2);
	IS(tail_thrower() == 3);
	IS(nested() == 1);
	IS(self() == 5);
	IS(signals() == 2);
	IS(none() == 2);
	return 0;
}
