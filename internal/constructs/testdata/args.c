// Arguments and results of every class, in registers, on the stack and through hidden pointers.
//
// tree: main{doubles ints mixed forward{list} format small small_mixed big big_args
//   extended extended_args wide wide_args vectors complex_f complex_d complex_l nine floats{nine} packed bool_ ptr{wide_args}
//   none last eight_doubles}
#include "construct.h"
#include <complex.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

F double doubles(int n, ...) { va_list l; va_start(l, n); double s = 0; for (int i = 0; i < n; i++) s += va_arg(l, double); va_end(l); KEEP; return s; }
F long ints(int n, ...) { va_list l; va_start(l, n); long s = 0; for (int i = 0; i < n; i++) s = s * 3 + va_arg(l, long); va_end(l); KEEP; return s; }
F double mixed(const char *f, ...) {
	va_list l, m;
	va_start(l, f);
	va_copy(m, l);
	double s = 0;
	for (; *f; f++) s += *f == 'd' ? va_arg(l, double) : *f == 'l' ? va_arg(l, long) : *f == 'i' ? va_arg(l, int) : (double)va_arg(l, long double);
	s += va_arg(m, int);
	va_end(l);
	va_end(m);
	KEEP;
	return s;
}
F double list(int n, va_list l) { double s = 0; while (n--) s = s * 2 + va_arg(l, double); KEEP; return s; }
F double forward(int n, ...) { va_list l; va_start(l, n); double s = list(n, l); va_end(l); KEEP; return s; }
F int format(char *to, const char *f, ...) { va_list l; va_start(l, f); int n = vsprintf(to, f, l); va_end(l); KEEP; return n; }

struct small { long a, b; };
struct small_mixed { double a; long b; };
struct big { long v[5]; double d; };
F struct small small(long x) { KEEP; return (struct small){x, x + 1}; }
F struct small_mixed small_mixed(long x) { KEEP; return (struct small_mixed){x, x + 1}; }
F struct big big(long x, double d) { KEEP; return (struct big){{x, x + 1, x + 2, x + 3, x + 4}, d}; }
F double big_args(struct big b, struct small s, struct small_mixed m, int x) { KEEP; return b.v[4] + b.d + s.a + s.b + m.a + m.b + x; }
F long double extended(long double x) { KEEP; return x * 3; }
F long double extended_args(int a, long double x, int b, long double y) { KEEP; return a * x + b * y; }
F __int128 wide(long x) { KEEP; return ((__int128)x << 64) + x + 1; }
F __int128 wide_args(int a, __int128 x, __int128 y, long b, __int128 z) { KEEP; return a * x + y * b + z; }
typedef int v4 __attribute__((vector_size(16)));
F v4 vectors(v4 a, v4 b, int n) { KEEP; return a * b + n; }
F float _Complex complex_f(float _Complex x) { KEEP; return x * x; }
F double _Complex complex_d(double _Complex x, double _Complex y) { KEEP; return x * y; }
F long double _Complex complex_l(long double _Complex x) { KEEP; return x * 2; }
F long nine(long a, long b, long c, long d, long e, long f, long g, long h, long i) { KEEP; return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h + 9*i; }
F double floats(double a, float b, double c, float d, double e, double f, double g, double h, double i, double j, long k) { long n = nine(a, b, c, d, e, f, g, h, i); KEEP; return n + j + k; }
struct packed { char c; int i; short s; } __attribute__((packed));
F struct packed packed(struct packed p) { p.i++; KEEP; return p; }
F bool bool_(bool a, char b, short c) { KEEP; return a && b == c; }
F __int128 ptr(__int128 (*f)(int, __int128, __int128, long, __int128), __int128 x) { x = f(1, x, x, 2, x); KEEP; return x; }
F void none(void) { KEEP; }
struct nothing {};
F struct nothing last(struct nothing n) { KEEP; return n; }
F double eight_doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i) { KEEP; return a - b + c - d + e - f + g - h + i; }

int main(void) {
	IS(doubles(3, 1.5, 2.5, 3.0) == 7.0);
	IS(ints(7, 1L, 2L, 3L, 4L, 5L, 6L, 7L) == 1636);
	IS(mixed("idlL", 1, 2.5, 3L, 4.0L) == 11.5);
	IS(forward(3, 1.0, 2.0, 3.0) == 11.0);
	char b[64];
	IS(format(b, "%d %.1f %s %.1Lf", 7, 2.5, "x", 1.0L) == 11 && !strcmp(b, "7 2.5 x 1.0"));
	IS(small(5).b == 6);
	IS(small_mixed(5).a == 5.0);
	struct big g = big(1, 2.5);
	IS(g.v[4] == 5 && g.d == 2.5);
	IS(big_args(g, (struct small){1, 2}, (struct small_mixed){3, 4}, 5) == 22.5);
	IS(extended(2) == 6);
	IS(extended_args(2, 3, 4, 5) == 26);
	IS(wide(7) == ((__int128)7 << 64) + 8);
	IS(wide_args(2, (__int128)1 << 70, 3, 4, 5) == ((__int128)1 << 71) + 17);
	v4 v = vectors((v4){1, 2, 3, 4}, (v4){5, 6, 7, 8}, 1);
	IS(v[0] == 6 && v[3] == 33);
	IS(complex_f(1.0f + 2.0f * I) == -3.0f + 4.0f * I);
	IS(complex_d(1.0 + 2.0 * I, 3.0) == 3.0 + 6.0 * I);
	IS(complex_l(1.0L + 2.0L * I) == 2.0L + 4.0L * I);
	IS(nine(1, 2, 3, 4, 5, 6, 7, 8, 9) == 285);
	IS(floats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) == 306);
	IS(packed((struct packed){1, 2, 3}).i == 3);
	IS(bool_(true, 3, 3));
	IS(ptr(wide_args, 3) == 12);
	none();
	last((struct nothing){});
	IS(eight_doubles(9, 8, 7, 6, 5, 4, 3, 2, 1) == 5);
	return 0;
}
