// Frames of every kind: none, the red zone, alloca, variable arrays, realigned stacks, pages of locals, prologues that
// only some paths run.
//
// variants: -fomit-frame-pointer; -fno-omit-frame-pointer; -mno-red-zone; -fstack-protector-all; -fstack-clash-protection;
//   -mstackrealign; -fcf-protection=full -fPIC; -momit-leaf-frame-pointer
// tree: main{red alloca_{leaf} array{leaf} aligned{leaf} both{leaf} realigned{leaf} huge{leaf} larger{huge{leaf}} wrapped wrapped{leaf} saved{leaf*7} loop{alloca_*3{leaf}} deep{deep{deep{deep{leaf}}}}}
#include "construct.h"
#include <stdint.h>
#include <string.h>

F int leaf(int x) { KEEP; return x + 1; }
// Locals below the stack pointer.
F int red(int x) {
	volatile int v[16];
	for (int i = 0; i < 16; i++) v[i] = x + i;
	int s = 0;
	for (int i = 0; i < 16; i++) s += v[i];
	return s;
}
F int alloca_(int n) { char *p = __builtin_alloca(n); memset(p, 1, n); int r = leaf(p[n - 1]); KEEP; return r + p[0]; }
F int array(int n) { int v[n]; for (int i = 0; i < n; i++) v[i] = i; KEEP; int r = leaf(v[n - 1]); KEEP; return r + v[0]; }
F int aligned(int x) { _Alignas(64) volatile char b[100]; b[7] = x; KEEP; int r = leaf(b[7]); KEEP; return r + ((uintptr_t)b % 64 != 0); }
F int both(int n) { _Alignas(128) volatile char b[10]; volatile char v[n]; b[0] = v[n - 1] = n; KEEP; int r = leaf(v[n - 1]); KEEP; return r + b[0] + ((uintptr_t)b % 128 != 0); }
F __attribute__((force_align_arg_pointer)) int realigned(int a, int b, int c, int d, int e, int f, int g) { _Alignas(32) volatile int v[8]; v[3] = g; KEEP; int r = leaf(a + b + c + d + e + f); KEEP; return r + v[3]; }
F int huge(int x) { volatile char b[2 << 20]; b[0] = x; b[sizeof b - 1] = x; KEEP; int r = leaf(b[0]); KEEP; return r + b[sizeof b - 1]; }
F int larger(int x) { volatile char b[100000]; b[5000] = x; KEEP; int r = huge(b[5000]); KEEP; return r + b[5000]; }
// The prologue is needed on one path alone.
F int wrapped(int *p, int x) {
	if (!p) return 3;
	int a = p[0], b = p[1], c = p[2];
	KEEP;
	x = leaf(x);
	KEEP;
	return a + b * x + c;
}
F long saved(long a, long b, long c) {
	long d = leaf(a), e = leaf(b), f = leaf(c), g = leaf(a + b), h = leaf(b + c), i = leaf(a + c), j = leaf(d);
	KEEP;
	return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j;
}
F int loop(int n) { int s = 0; for (int i = 1; i <= n; i++) s += alloca_(i * 100); KEEP; return s; }
F int deep(int n) { volatile int v[50]; v[n] = n; KEEP; int r = n ? deep(n - 1) : leaf(0); KEEP; return r + v[n]; }

int main(void) {
	IS(red(1) == 136);
	IS(alloca_(1000) == 3);
	IS(array(10) == 10);
	IS(aligned(5) == 6);
	IS(both(5) == 11);
	IS(realigned(1, 2, 3, 4, 5, 6, 7) == 29);
	IS(huge(5) == 11);
	IS(larger(5) == 16);
	int v[3] = {1, 2, 3};
	IS(wrapped(0, 1) == 3);
	IS(wrapped(v, 1) == 8);
	IS(saved(1, 2, 3) == 1 + 4 + 9 + 8 + 15 + 24 + 28 + 48 + 45 + 3);
	IS(loop(3) == 9);
	IS(deep(3) == 7);
	return 0;
}
