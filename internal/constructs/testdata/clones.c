// Several versions of a function, of which the loader takes one.
//
// compilers: gcc
// variants: -static
// splice: *.arch_* *.avx* *.default *.sse*
// tree: main{leaf*2}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
__attribute__((target_clones("default", "avx2", "arch=haswell"), noinline)) int versions(int *v, int n) {
	int s = 0;
	for (int i = 0; i < n; i++) s += v[i] * 3;
	s = leaf(s);
	KEEP;
	return s;
}

int main(void) {
	int v[37];
	for (int i = 0; i < 37; i++) v[i] = i;
	IS(versions(v, 37) == 1999);
	IS(versions(v, 3) == 10);
	return 0;
}
