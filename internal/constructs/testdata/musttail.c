// Calls that the program demands to be tail calls, at every level: an interpreter's dispatch.
//
// compilers: clang
// tree: main{start add add mul stop start stop ping pong ping pong ping pong}
#include "construct.h"
#define TAIL __attribute__((musttail)) return

typedef long op(const char *pc, long acc);
static op *ops(char c);
F long stop(const char *pc, long acc) { KEEP; return acc; }
F long add(const char *pc, long acc) { KEEP; TAIL ops(pc[1])(pc + 1, acc + 1); }
F long mul(const char *pc, long acc) { KEEP; TAIL ops(pc[1])(pc + 1, acc * 3); }
F long start(const char *pc, long acc) { KEEP; TAIL ops(*pc)(pc, acc); }
__attribute__((always_inline)) static op *ops(char c) { return c == '+' ? add : c == '*' ? mul : stop; }

F long pong(long a, long b, long c, long d, long e, long f, long g);
F long ping(long a, long b, long c, long d, long e, long f, long g) { KEEP; TAIL pong(b, c, d, e, f, g, a - 1); }
F long pong(long a, long b, long c, long d, long e, long f, long g) {
	KEEP;
	if (a < 4) TAIL ping(a + 1, b, c, d, e, f, g);
	return a * 1000 + g;
}

int main(void) {
	IS(start("++*.", 1) == 9);
	IS(start(".", 1) == 1);
	IS(ping(1, 2, 3, 4, 5, 6, 7) == 4003);
	return 0;
}
