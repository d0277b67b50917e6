// Functions that never return. exit's handlers run within them.
//
// exit: 3
// tree: begin main~{leaf middle~{leaf die~{second{leaf} first end}}}
#include "construct.h"

__attribute__((constructor)) F void begin(void) { KEEP; }
__attribute__((destructor)) F void end(void) { KEEP; }
F int leaf(int x) { KEEP; return x + 1; }
F void first(void) { KEEP; }
F void second(void) { leaf(1); KEEP; }
F __attribute__((noreturn)) void die(int code) { KEEP; exit(code); }
F int middle(int x) { if (leaf(x) == 2) die(3); KEEP; return leaf(x); }

int main(void) {
	atexit(first);
	atexit(second);
	leaf(0);
	int r = middle(1);
	KEEP;
	return r;
}
