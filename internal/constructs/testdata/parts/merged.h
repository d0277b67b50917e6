#include "../construct.h"
template <class T> F T shared(T x) { KEEP; return x + 1; }
int there(int x);
