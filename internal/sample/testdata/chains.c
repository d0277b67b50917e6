/* Known call chains, each run for a while: see chains_test.go. Built with and without frame pointers. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static volatile uint64_t sink;

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

APART void burn(int n)
{
	for (int i = 0; i < n; i++)
		sink += i * 7;
}

/* Each function does something after its call, so that none of the calls is a jump. */
APART void deep3(void) { burn(100000); sink++; }
APART void deep2(void) { deep3(); sink++; }
APART void deep1(void) { deep2(); sink++; }

APART void recurse(int n)
{
	if (n == 0)
		burn(100000);
	else
		recurse(n - 1);
	sink++;
}

APART int compare(const void *a, const void *b)
{
	burn(300);
	return *(const int *)a - *(const int *)b;
}

APART void sort(void)
{
	static int v[256];
	for (int i = 0; i < 256; i++)
		v[i] = i * 7919 % 256;
	qsort(v, 256, sizeof(v[0]), compare);
	sink++;
}

APART void system_calls(void)
{
	char b[4096];
	FILE *f = fopen("/dev/zero", "r");
	for (int i = 0; i < 300; i++)
		sink += read(fileno(f), b, sizeof(b));
	fclose(f);
	sink++;
}

APART void on_signal(int sig) { burn(100000); sink += sig; }
APART void signals(void) { raise(SIGUSR1); sink++; }

APART void variable(int n)
{
	volatile char *a = __builtin_alloca(n);
	a[0] = n;
	burn(100000);
	sink += a[n / 2];
}
APART void frames(void) { variable(500 + (int)(sink & 255)); sink++; }

APART void large(void)
{
	volatile char a[40000];
	memset((char *)a, 1, sizeof(a));
	burn(100000);
	sink += a[77];
}

static void (*const work[])(void) = { deep1, sort, system_calls, signals, frames, large };

APART void turns(double seconds)
{
	for (double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds; now(CLOCK_THREAD_CPUTIME_ID) < end;) {
		for (unsigned i = 0; i < sizeof(work) / sizeof(work[0]); i++) {
			double part = now(CLOCK_THREAD_CPUTIME_ID) + 0.005;
			while (now(CLOCK_THREAD_CPUTIME_ID) < part)
				work[i]();
		}
		for (int i = 0; i < 30; i++)
			recurse(20);
	}
}

APART void *thread(void *seconds)
{
	turns(*(double *)seconds);
	return NULL;
}

/* chains SECONDS: that much CPU time in each of two threads and a child. */
int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.3;
	signal(SIGUSR1, on_signal);
	pthread_t t;
	pthread_create(&t, NULL, thread, &seconds);
	pid_t child = fork();
	turns(seconds);
	if (child == 0)
		_exit(0);
	pthread_join(t, NULL);
	waitpid(child, NULL, 0);
	return 0;
}
