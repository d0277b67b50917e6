// An exception that a function promised not to let out: the handler of std::terminate ends the program.
// clang makes a landing pad for it, gcc a table for the unwinder.
//
// exit: 5
// splice: std::* __gnu* __clang* _GLOBAL__* __static_init*
// tree [gcc]: main~{leaf quiet~{thrower~{handler~{leaf}}}}
// tree [clang]: main~{leaf quiet~{thrower! handler~{leaf}}}
#include "construct.h"
#include <exception>

F int leaf(int x) { KEEP; return x + 1; }
F void thrower(int x) { KEEP; if (x) throw x; }
F void quiet(int x) noexcept { thrower(x); KEEP; }
F void handler() { leaf(1); _Exit(5); }

int main() {
	std::set_terminate(handler);
	leaf(1);
	quiet(1);
	return 0;
}
