// What gdb steps through: entries, returns, tail calls, a second return, a landing pad.
//
// tree: main{leaf outer{middle{leaf}} catcher{jumps!} handler{thrower!} done}
#include "../construct.h"
#include <setjmp.h>

extern "C" {
F int leaf(int x) { KEEP; return x + 1; }
F int middle(int x) { int r = leaf(x); KEEP; return r; }
F int outer(int x) { volatile int v[20]; v[x] = middle(x); KEEP; return v[x]; }
static jmp_buf env;
F void jumps(int x) { KEEP; if (x) longjmp(env, x); }
F int catcher(int x) { volatile long v[10] = {0}; int r = setjmp(env); if (r) return r; jumps(x); KEEP; return v[2]; }
F void thrower(int x) { KEEP; if (x) throw x; }
F int handler(int x) { try { thrower(x); return 0; } catch (int i) { KEEP; return i; } }
}

extern "C" F void done() { KEEP; }

int main() {
	leaf(1);
	IS(outer(3) == 4);
	IS(catcher(5) == 5);
	IS(handler(6) == 6);
	done();
	return 0;
}
