// Constructors and destructors, by priority, and what they call.
//
// variants: -static; -static-pie -fPIE; -no-pie -fno-pic
// tree: early{leaf} late plain main{leaf} handler{leaf} end{leaf} last
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
static int order;
F void handler(void) { leaf(0); KEEP; }
__attribute__((constructor(101))) F void early(void) { IS(order++ == 0); leaf(1); KEEP; }
__attribute__((constructor(2000))) F void late(void) { IS(order++ == 1); atexit(handler); KEEP; }
__attribute__((constructor)) F void plain(void) { IS(order++ == 2); KEEP; }
__attribute__((destructor)) F void end(void) { leaf(2); KEEP; }
__attribute__((destructor(101))) F void last(void) { IS(order == 3); KEEP; }

int main(void) { leaf(3); return 0; }
