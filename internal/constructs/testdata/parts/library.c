// A shared library's functions, which call back.
#include "../construct.h"

int counter;
F int inner(int x) { KEEP; return counter += x; }
F int library(int (*f)(int), int x) { int r = f(x); KEEP; r += inner(x); KEEP; return r; }
