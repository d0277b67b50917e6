// A program whose methods spend time in known ways, and that measures itself. For each phase it prints
//
//	phase NAME out WALL CPU RUN WAIT in WALL CPU RUN WAIT
//
// in ns: CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, and the first two numbers of /proc/thread-self/schedstat, each as the
// difference around the method (out) and as that between its first and last statement (in). What the method truly took
// lies between the two, however often the thread is preempted while it reads its clocks. It takes a scratch file.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "braid.h"

#define METHOD __attribute__((noinline))

struct reading { int64_t wall, cpu, run, wait; };

static struct reading inner[2];
static const char *scratch;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static volatile int over;
static int main_tid, schedstat;

static void die(const char *what)
{
	perror(what);
	exit(99);
}

BRAID_NOTRACE static int64_t now(clockid_t c)
{
	struct timespec t;
	clock_gettime(c, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

// The thread's CPU clock brings the scheduler's figures up to date, otherwise schedstat is a tick old.
BRAID_NOTRACE static void take(struct reading *r, int first)
{
	char b[128];
	r->wall = first ? now(CLOCK_MONOTONIC) : 0;
	r->cpu = now(CLOCK_THREAD_CPUTIME_ID);
	ssize_t n = pread(schedstat, b, sizeof b - 1, 0);
	if (n <= 0)
		die("schedstat");
	b[n] = 0;
	if (sscanf(b, "%ld %ld", &r->run, &r->wait) != 2)
		die(b);
	if (!first)
		r->wall = now(CLOCK_MONOTONIC);
}

METHOD static void nap(void)
{
	struct timespec t = {0, 50000000};
	take(&inner[0], 0);
	while (nanosleep(&t, &t))
		;
	take(&inner[1], 1);
}

BRAID_NOTRACE static void spin_ms(int ms)
{
	int64_t end = now(CLOCK_THREAD_CPUTIME_ID) + ms * INT64_C(1000000);
	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

METHOD static void spin_alone(void)
{
	take(&inner[0], 0);
	spin_ms(50);
	take(&inner[1], 1);
}

METHOD static void spin_among_rivals(void)
{
	take(&inner[0], 0);
	spin_ms(50);
	take(&inner[1], 1);
}

METHOD static void write_and_sync(void)
{
	static char block[1 << 20];
	take(&inner[0], 0);
	int fd = open(scratch, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	if (fd < 0)
		die(scratch);
	memset(block, 'k', sizeof block);
	for (int i = 0; i < 64; i++)
		if (write(fd, block, sizeof block) != sizeof block)
			die("write");
	if (fsync(fd))
		die("fsync");
	close(fd);
	take(&inner[1], 1);
}

METHOD static void wait_for_mutex(void)
{
	take(&inner[0], 0);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	take(&inner[1], 1);
}

// Holds the mutex until the main thread sleeps, and 30 ms more.
METHOD static void *holder(void *unused)
{
	char path[64], b[512];
	struct timespec t = {0, 30000000}, little = {0, 500000};
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&barrier);
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", main_tid);
	for (int stat = open(path, O_RDONLY);; nanosleep(&little, 0)) {
		ssize_t n = pread(stat, b, sizeof b - 1, 0);
		if (n <= 0)
			die(path);
		b[n] = 0;
		char *state = strrchr(b, ')');
		if (!over && state && state[2] == 'S') {
			close(stat);
			break;
		}
	}
	while (nanosleep(&t, &t))
		;
	pthread_mutex_unlock(&mutex);
	return unused;
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("sched_setaffinity");
}

METHOD static void *rival(void *unused)
{
	pin(0);
	pthread_barrier_wait(&barrier);
	while (!over)
		;
	return unused;
}

BRAID_NOTRACE static void phase(const char *name, void (*method)(void))
{
	struct reading out[2];
	take(&out[0], 1);
	method();
	take(&out[1], 0);
	printf("phase %s", name);
	for (int i = 0; i < 2; i++) {
		struct reading *r = i ? inner : out;
		printf(" %s %ld %ld %ld %ld", i ? "in" : "out", r[1].wall - r[0].wall, r[1].cpu - r[0].cpu,
		       r[1].run - r[0].run, r[1].wait - r[0].wait);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	pthread_t t[2];
	cpu_set_t all;
	scratch = argv[argc - 1];
	main_tid = getpid();
	schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
	if (schedstat < 0)
		die("schedstat");
	sched_getaffinity(0, sizeof all, &all);

	phase("nap", nap);
	phase("spin_alone", spin_alone);

	pthread_barrier_init(&barrier, 0, 3);
	pthread_create(&t[0], 0, rival, 0);
	pthread_create(&t[1], 0, rival, 0);
	pin(0);
	pthread_barrier_wait(&barrier);
	phase("spin_among_rivals", spin_among_rivals);
	over = 1;
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	sched_setaffinity(0, sizeof all, &all);

	phase("write_and_sync", write_and_sync);

	over = 0;
	pthread_barrier_init(&barrier, 0, 2);
	pthread_create(&t[0], 0, holder, 0);
	pthread_barrier_wait(&barrier);
	phase("wait_for_mutex", wait_for_mutex);
	pthread_join(t[0], 0);
	unlink(scratch);
	return 0;
}
