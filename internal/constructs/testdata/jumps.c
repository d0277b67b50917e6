// Jumps that stay within a function, several returns, calls through pointers.
//
// tree: main{threaded{leaf*3} choose{leaf} choose{leaf*2} choose choose{leaf} choose choose{other} choose*2
//   sum*2 early early{leaf} early{leaf other} through{leaf} through{other} through{other}
//   loop{leaf*7} empty void{empty}}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
F int other(int x) { KEEP; return x * 2; }

// Computed gotos.
F int threaded(const char *pc) {
	static void *const labels[] = {&&push, &&add, &&call, &&done};
	int stack[8], *sp = stack;
	KEEP;
	goto *labels[(int)*pc++];
push:
	*sp++ = *pc++;
	goto *labels[(int)*pc++];
add:
	sp--;
	sp[-1] += *sp;
	goto *labels[(int)*pc++];
call:
	sp[-1] = leaf(sp[-1]);
	goto *labels[(int)*pc++];
done:
	return sp[-1];
}

// A jump table.
F int choose(int x, int y) {
	KEEP;
	switch (x) {
	case 0: y = leaf(y) + 1; break;
	case 1: leaf(y); y = leaf(y) - 1; break;
	case 2: return 100;
	case 3: y = leaf(y) * 3; KEEP; return y;
	case 4: return y - 1;
	case 5: y = other(y) ^ 5; break;
	case 6: y ^= 0x55; break;
	case 7: __builtin_abort();
	default: return -1;
	}
	KEEP;
	return y;
}

// A loop at the function's very beginning.
F long sum(const char *s) { long n = 0; do { KEEP; n += *s; } while (*s++); return n; }

F int early(int x) {
	KEEP;
	if (x < 0) return 0;
	int y = leaf(x);
	KEEP;
	if (y > 10) return y;
	y = other(y);
	KEEP;
	return y + 1;
}

F int through(int (*f)(int), int x) { int y = f(x); KEEP; return y + 1; }
F int loop(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); KEEP; return s; }
F void empty(void) { KEEP; }
F void void_(void) __asm__("void");
F void void_(void) { empty(); KEEP; }

int main(void) {
	IS(threaded("\0\5\2\2\0\3\1\2\3") == 11);
	IS(choose(0, 1) == 3);
	IS(choose(1, 1) == 1);
	IS(choose(2, 1) == 100);
	IS(choose(3, 1) == 6);
	IS(choose(4, 1) == 0);
	IS(choose(5, 1) == 7);
	IS(choose(6, 1) == 0x54);
	IS(choose(99, 1) == -1);
	IS(sum("") == 0);
	IS(sum("ab") == 195);
	IS(early(-1) == 0);
	IS(early(20) == 21);
	IS(early(1) == 5);
	int (*volatile f)(int) = leaf;
	IS(through(f, 1) == 3);
	f = other;
	IS(through(f, 1) == 3);
	IS(through(other, 2) == 5);
	IS(loop(7) == 28);
	empty();
	void_();
	return 0;
}
