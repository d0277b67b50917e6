// Exceptions through several frames, with and without cleanups, and in recursion.
#include <cstdio>
#include <stdexcept>
#define N __attribute__((noinline, noclone))
static int count;
N void touch(int x) { __asm__ volatile("" : : "r"(x) : "memory"); count += x; }
struct Guard { int v; N Guard(int x) : v(x) { touch(x); } N ~Guard() { touch(v); } };
N void raise(int x) { if (x & 1) throw x; throw std::runtime_error("even"); }
N void through(int x) { raise(x); touch(x); }
N void cleaning(int x) { Guard g(x); through(x); touch(g.v); }
N int catching(int x) { try { cleaning(x); } catch (int v) { touch(v); return v; } return 0; }
N int rethrowing(int x) { try { catching(x); } catch (...) { touch(1); throw; } return x; }
N int outer(int x) { try { return rethrowing(x); } catch (const std::exception &) { touch(2); return -1; } }
N int deep(int d) { if (d == 0) raise(3); try { return deep(d - 1) + 1; } catch (int v) { touch(d); if (d == 4) { touch(4); return v; } throw; } }
struct Thrower { Guard a; Thrower(int x) : a(x) { raise(x); } };
N int constructing(int x) { try { Thrower t(x); return 1; } catch (int v) { return v; } }
int main() {
  int r = outer(1) * 1000 + outer(2) * 100 + deep(6) * 10 + constructing(5);
  touch(r);
  return r == 1000 - 100 + 50 + 5 ? 0 : (std::printf("%d\n", r), 1);
}
