#include "merged.h"
F int there(int x) { int r = shared(x); KEEP; return r + 1; }
