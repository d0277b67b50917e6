// Functions that are chosen when the program is loaded, some by resolvers that call others. In a static program
// resolvers run before thread-local storage exists, and in others before it is filled: neither they nor what they call
// can hold trace points.
//
// variants: -static; -static-pie -fPIE; -fno-plt; -Wl,-z,now; -no-pie -fno-pic
// tree: main{wide leaf local_impl wide}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
F int narrow(int x) { KEEP; return x + 2; }
F int wide(int x) { KEEP; return x + 3; }
static F int deeper(int x) { KEEP; return x == 4; }
static F int asked(int x) { int y = deeper(x + 1); KEEP; return y; }
typedef int function(int);
static function *resolve(void) { return asked(3) ? wide : narrow; }
int chosen(int) __attribute__((ifunc("resolve")));

static F int local_impl(int x) { KEEP; return x - 1; }
static function *resolve_local(void) { return local_impl; }
static int local(int) __attribute__((ifunc("resolve_local")));

int main(void) {
	IS(chosen(1) == 4);
	IS(leaf(1) == 2);
	IS(local(1) == 0);
	function *volatile p = chosen;
	IS(p(2) == 5);
	return 0;
}
