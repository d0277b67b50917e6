/* Threads that share a counter under a lock, and another without if told to race; a buffer, overrun if told to. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#define WHOLE __attribute__((noinline))
#else
#define WHOLE __attribute__((noipa))
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counted, raced, racing;

WHOLE void count(void)
{
	pthread_mutex_lock(&lock);
	counted++;
	pthread_mutex_unlock(&lock);
	if (racing)
		raced++;
}

static void *worker(void *unused)
{
	for (int i = 0; i < 101; i++)
		count();
	return unused;
}

WHOLE int peek(const char *p, int i)
{
	return p[i];
}

WHOLE int add(int a, int b)
{
	return a + b;
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	pthread_t t[2];
	racing = !strcmp(fault, "race");
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], 0, worker, 0))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	char *p = calloc(1, 16);
	int all = peek(p, strcmp(fault, "overrun") ? 15 : 16) == 77;
	all += add(strcmp(fault, "overflow") ? 1 : INT_MAX, 2) == 77;
	free(p);
	printf("%d\n", counted + all);
	return 0;
}
