// A function with a jump table, one with a tail call, one that returns twice.
#include <setjmp.h>
#include "part.h"

static jmp_buf env;

__attribute__((noinline)) static int choose(int x) {
	switch (x % 8) {
	case 0: return x + 5;
	case 1: return x * 3;
	case 2: return x - 7;
	case 3: return x ^ 0x55;
	case 4: return x << 2;
	case 5: return x | 0x100;
	case 6: return ~x;
	default: return x / 3;
	}
}

__attribute__((noinline)) static void jump(int x) { longjmp(env, x); }

int part(int x) {
	volatile int kept = x;
	int got = setjmp(env);
	if (got == 0)
		jump(x);
	return choose(kept + got);
}
