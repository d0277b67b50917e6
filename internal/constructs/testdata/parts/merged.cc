// An inline function that two files have, one of them compiled without stubs. The linker keeps the first.
//
// tree: main{here{shared<int>} shared<int> here{shared<int>}}
#include "merged.h"

F int here(int x) { int r = shared(x); KEEP; return r; }

int main() {
	IS(here(1) == 2);
	IS(there(1) == 3);
	IS(here(2) == 3);
	return 0;
}
