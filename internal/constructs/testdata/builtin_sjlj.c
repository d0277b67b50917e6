// The compilers' own setjmp and longjmp, which save less.
//
// variants: -fPIC; -fcf-protection=full
// tree: main{catcher{middle!{thrower!}} leaf again{leaf thrower! leaf thrower! leaf} leaf}
#include "construct.h"

static void *env[5];
F int leaf(int x) { KEEP; return x + 1; }
F void thrower(int n) { KEEP; if (n) __builtin_longjmp(env, 1); }
F void middle(int n) { thrower(n); KEEP; }
F int catcher(void) {
	if (__builtin_setjmp(env)) return 8;
	middle(1);
	KEEP;
	return -1;
}
F int again(void) {
	volatile int n = 0;
	__builtin_setjmp(env);
	leaf(n);
	if (n++ < 2) thrower(1);
	KEEP;
	return n;
}

int main(void) {
	IS(catcher() == 8);
	leaf(1);
	IS(again() == 3);
	leaf(1);
	return 0;
}
