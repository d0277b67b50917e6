// An inline function that two files have, one of them compiled without stubs. The linker keeps the first, here that one.
//
// tree: main{here*2}
#include "merged.h"

F int here(int x) { int r = shared(x); KEEP; return r; }

int main() {
	IS(here(1) == 2);
	IS(there(1) == 3);
	IS(here(2) == 3);
	return 0;
}
