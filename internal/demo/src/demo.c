// SPDX-License-Identifier: Apache-2.0
// The program that "braid demo" records: every way in which a method can take time, each in a method of its own, and a
// known, prime number of calls. It takes the path of a scratch file.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define STEPS 9973 // calls of step, all made by compute

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held, rivals_ready;
static volatile int compete_over;

#define METHOD __attribute__((noinline))

static int64_t now(clockid_t c)
{
	struct timespec t;
	clock_gettime(c, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	while (nanosleep(&t, &t))
		;
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

METHOD uint32_t step(uint32_t x)
{
	for (int i = 0; i < 200; i++)
		x = x * 1664525 + 1013904223;
	return x;
}

METHOD uint32_t compute(void)
{
	uint32_t x = 1;
	for (int i = 0; i < STEPS; i++)
		x = step(x);
	return x;
}

METHOD void take_a_nap(void) { sleep_ms(40); }

METHOD void *hold_the_lock(void *unused)
{
	prctl(PR_SET_NAME, "holder");
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&held);
	sleep_ms(30);
	pthread_mutex_unlock(&lock);
	return unused;
}

METHOD void wait_for_the_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

METHOD void *rival(void *name)
{
	prctl(PR_SET_NAME, name);
	pin(0);
	pthread_barrier_wait(&rivals_ready);
	while (!compete_over)
		;
	return 0;
}

METHOD void spin_among_rivals(void) // 40 ms of processor time, on a processor that two others want as well
{
	int64_t end = now(CLOCK_THREAD_CPUTIME_ID) + 40000000;
	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

METHOD int write_and_sync(const char *path)
{
	static char buf[1 << 20];
	memset(buf, 'b', sizeof buf);
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	if (fd < 0)
		return -1;
	int bad = 0;
	for (int i = 0; i < 16; i++)
		bad |= write(fd, buf, sizeof buf) != sizeof buf;
	bad |= fsync(fd);
	bad |= close(fd);
	unlink(path);
	return bad;
}

int main(int argc, char **argv)
{
	pthread_t t[3];
	uint32_t x = compute();
	take_a_nap();

	pthread_barrier_init(&held, 0, 2);
	pthread_create(&t[0], 0, hold_the_lock, 0);
	pthread_barrier_wait(&held);
	wait_for_the_lock();
	pthread_join(t[0], 0);

	cpu_set_t all;
	sched_getaffinity(0, sizeof all, &all);
	pthread_barrier_init(&rivals_ready, 0, 3);
	pthread_create(&t[1], 0, rival, "rival-1");
	pthread_create(&t[2], 0, rival, "rival-2");
	pthread_barrier_wait(&rivals_ready);
	pin(0);
	spin_among_rivals();
	compete_over = 1;
	sched_setaffinity(0, sizeof all, &all);
	pthread_join(t[1], 0);
	pthread_join(t[2], 0);

	int bad = write_and_sync(argc > 1 ? argv[1] : "braid-demo.scratch");
	if (bad)
		perror("braid demo: writing the scratch file");
	printf("the demo program says: %08x\n", x);
	return bad != 0;
}
