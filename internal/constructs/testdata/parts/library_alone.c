// A program without stubs of a library that has them.
//
// tree: library{inner} library{inner}
#include "../construct.h"

int library(int (*f)(int), int x);
F int callback(int x) { KEEP; return x * 2; }

int main(void) {
	IS(library(callback, 2) == 6);
	IS(library(callback, 2) == 8);
	IS(callback(1) == 2);
	return 0;
}
