/* Spends its CPU time in known chains: sort_all, qsort, compare, strcmp; read_all, read, the kernel; and deep in itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 200
#define LENGTH 16384

static char texts[COUNT][LENGTH], *order[COUNT], buffer[1 << 16];
static volatile unsigned sink;

/* Texts differ in their last bytes only: most of the time is in strcmp. */
__attribute__((noinline)) static int compare(const void *a, const void *b) {
	int order = strcmp(*(char *const *)a, *(char *const *)b);
	sink++;
	return order;
}

__attribute__((noinline)) static void sort_all(void) {
	for (unsigned i = 0; i < COUNT; i++)
		order[i] = texts[i * 77 % COUNT];
	qsort(order, COUNT, sizeof order[0], compare);
	sink += order[0][0];
}

/* Most of the time is in the kernel, which clears the buffer. */
__attribute__((noinline)) static void read_all(int fd) {
	for (int i = 0; i < 100; i++)
		if (read(fd, buffer, sizeof buffer) != sizeof buffer)
			abort();
	sink++;
}

__attribute__((noinline)) static unsigned deep(unsigned n) {
	unsigned sum = n;
	if (n == 0)
		for (unsigned i = 0; i < 1000000; i++)
			sink = sum += i * sum;
	else
		sum += deep(n - 1) + 1;
	sink = sum;
	return sum * 3;
}

static void *worker(void *rounds) {
	pthread_setname_np(pthread_self(), "deep");
	for (int i = 0; i < *(int *)rounds; i++)
		sink += deep(8);
	return NULL;
}

/* The argument is how many times everything is done: 1 ms each in one thread, half of that in another, on a fast processor. */
int main(int argc, char **argv) {
	int rounds = argc > 1 ? atoi(argv[1]) : 100, fd = open("/dev/zero", O_RDONLY);
	pthread_t t;
	for (int i = 0; i < COUNT; i++)
		snprintf(texts[i], LENGTH, "%0*d", LENGTH - 1, i);
	if (fd < 0 || pthread_create(&t, NULL, worker, &rounds))
		return 1;
	for (int i = 0; i < rounds; i++) {
		sort_all();
		read_all(fd);
	}
	return pthread_join(t, NULL);
}
