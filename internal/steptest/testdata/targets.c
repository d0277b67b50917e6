/* What is called step by step: a function for each kind of trace point, and for what must be kept there. */
#include <setjmp.h>
#include <stdarg.h>

#include "targets.h"

/* An entry and a return with little to keep. */
TARGET long plain(long a, long b)
{
	return a * 1000 + b;
}

/* All argument registers are live at the entry. */
TARGET long many(long a, long b, long c, long d, long e, long f, double x, double y, double z)
{
	return a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f + (long)(x * 17 + y * 19 + z * 23);
}

/* rax holds the number of vector registers. */
TARGET long variadic(long n, ...)
{
	va_list l;
	va_start(l, n);
	long sum = n;
	for (int i = 0; i < 5; i++)
		sum = sum * 3 + va_arg(l, long);
	for (int i = 0; i < 8; i++)
		sum = sum * 3 + (long)va_arg(l, double);
	va_end(l);
	return sum;
}

struct two { long a, b; };

/* Two registers hold the result. */
TARGET struct two pair(long a, long b, long c)
{
	return (struct two){a + b, b * c};
}

TARGET double real(double x, double y)
{
	return x * 100 + y;
}

/* The x87 stack holds the result. */
TARGET long double wide(double x, double y)
{
	return (long double)x / (long double)y;
}

TARGET struct two tail_many(long a, long b, long c)
{
	return pair(b, c, a);
}

/* A tail call with all arguments, through a register. */
TARGET long tail_indirect(long a, long b, long c, long d, long e, long f, double x, double y, double z)
{
	static long (*volatile to)(long, long, long, long, long, long, double, double, double) = many;
	return to(f, e, d, c, b, a, z, y, x);
}

TARGET long tail_maybe(long a, long b)
{
	if (a != b)
		return plain(a, b);
	return 1;
}

static jmp_buf back;

TARGET void leap(void)
{
	longjmp(back, 3);
}

TARGET long twice(long a, long b)
{
	long volatile keep = b;
	int n = _setjmp(back);
	if (n == 0 && a == 11)
		leap();
	return keep * 10 + n;
}

TARGET long fib(long n)
{
	if (n < 2)
		return n;
	long volatile a = fib(n - 1), b = fib(n - 2); /* not to be turned into a loop */
	return a + b;
}

TARGET long recursive(void)
{
	return fib(3);
}

#ifndef __clang__
/* r10 is the static chain. */
TARGET long nesting(long a, long b, long c)
{
	long volatile count = 0;
	__attribute__((noipa)) long nested(long x, long y, long z)
	{
		count++;
		return x + 10 * y + 100 * z + 1000 * a + count;
	}
	return nested(a, b, c) + nested(c, b, a);
}
#endif

/* rsi and rdi belong to the caller. */
TARGET __attribute__((ms_abi)) long microsoft(long a, long b, long c, long d)
{
	return a + 3 * b + 5 * c + 7 * d;
}

/* A frame with variable arrays, and the stack realigned. */
TARGET long frames(long a, long b)
{
	long volatile v[a] __attribute__((aligned(64)));
	for (long i = 0; i < a; i++)
		v[i] = i * b;
	return v[a - 1] + v[0];
}
