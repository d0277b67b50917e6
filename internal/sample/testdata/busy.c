/* busy N: N rounds of work, eight calls deep. Prints the CPU time that they took, in ns. For bench_test.go. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

__attribute__((noinline, noclone)) void down(int n)
{
	if (n > 0)
		down(n - 1);
	else
		for (int i = 0; i < 1000; i++)
			sink += i;
	sink++;
}

int main(int argc, char **argv)
{
	int64_t begin = now();
	for (long n = argc > 1 ? atol(argv[1]) : 1000; n > 0; n--)
		down(8);
	printf("%lld\n", (long long)(now() - begin));
	return 0;
}
