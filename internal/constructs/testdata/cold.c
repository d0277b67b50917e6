// Parts that compilers move away from a function: returns, calls and tail calls within them, and jumps back.
//
// flags [gcc]: -freorder-blocks-and-partition
// symbol [gcc-O2 gcc-O3]: back.cold
// symbol [gcc-O2 gcc-O3]: leaves.cold
// tree: main{back back{rare{leaf} leaf} back{rare{leaf} rare{leaf} leaf} leaves leaves{rare{leaf} leaf} jumps jumps{leaf rare{leaf}} jumps{leaf}}
// tree [gcc-O2 gcc-O3 gcc-Os clang-O1 clang-O2 clang-O3 clang-Os]:
//   main{back back{rare{leaf} leaf} back{rare{leaf} rare{leaf} leaf} leaves leaves{rare{leaf} leaf} jumps jumps{leaf} rare{leaf} jumps leaf}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
F __attribute__((cold)) int rare(int x) { int y = leaf(x); KEEP; return y * 2; }

// Comes back into its hot part.
F int back(int x) {
	KEEP;
	if (__builtin_expect(x > 1, 0)) {
		x += rare(x);
		KEEP;
		if (x > 100) x -= rare(x);
		x += leaf(x);
		KEEP;
	}
	return x * 3;
}

// Returns from its cold part.
F int leaves(int x) {
	KEEP;
	if (__builtin_expect(x > 1, 0)) {
		int y = rare(x);
		KEEP;
		int z = leaf(y);
		KEEP;
		return y + z;
	}
	return x;
}

// Leaves its parts with tail calls.
F int jumps(int x) {
	KEEP;
	if (__builtin_expect(x > 1, 0)) {
		int y = leaf(x);
		KEEP;
		return rare(y);
	}
	if (x == 1) return leaf(x);
	return 5;
}

int main(void) {
	IS(back(1) == 3);
	IS(back(2) == 51);
	IS(back(60) == 3 * (182 - 366 + -183));
	IS(leaves(1) == 1);
	IS(leaves(2) == 13);
	IS(jumps(0) == 5);
	IS(jumps(2) == 8);
	IS(jumps(1) == 2);
	return 0;
}
