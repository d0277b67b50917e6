// A program that handles 200 requests in equal ways, but for one. slow MODE SCRATCH, with MODE one of
//
//	fsync   request 120 writes and syncs the scratch file again and again
//	lock    request 120 waits for a lock that the thread "holder" has
//	cpu     during request 120, three threads want the same CPU
//
// for at least 300 ms. It takes a real-time priority, as root may.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "braid.h"

#define METHOD __attribute__((noinline))
#define END __asm__ volatile("" ::: "memory") // no tail call: the callee's time is this method's

enum { REQUESTS = 200, ODD = 120, LONG_MS = 300 };

static const char *mode, *scratch;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static volatile int over;

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

BRAID_NOTRACE static void spin_us(int us)
{
	int64_t end = now(CLOCK_THREAD_CPUTIME_ID) + us * INT64_C(1000);
	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

METHOD static void parse(void)
{
	spin_us(200);
	END;
}

METHOD static void save(int odd)
{
	int64_t end = now(CLOCK_MONOTONIC) + LONG_MS * INT64_C(1000000);
	int f = open(scratch, O_RDWR | O_CREAT, 0600);
	char page[4096];
	if (f < 0)
		die(scratch);
	memset(page, odd, sizeof page);
	for (int i = 0; odd && now(CLOCK_MONOTONIC) < end; i++)
		if (pwrite(f, page, sizeof page, (i & 63) * 4096L) != sizeof page || fsync(f))
			die("fsync");
	close(f);
	spin_us(100);
	END;
}

METHOD static void take_turn(int odd)
{
	if (odd) { // the holder takes the lock between the two
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	}
	pthread_mutex_lock(&mutex);
	spin_us(100);
	pthread_mutex_unlock(&mutex);
	END;
}

METHOD static void compute(int odd)
{
	if (odd)
		pthread_barrier_wait(&barrier);
	spin_us(odd ? LONG_MS * 1000 : 500);
	if (odd)
		over = 1;
	END;
}

METHOD static void handle(int i)
{
	parse();
	save(i == ODD && !strcmp(mode, "fsync"));
	take_turn(i == ODD && !strcmp(mode, "lock"));
	compute(i == ODD && !strcmp(mode, "cpu"));
	END;
}

METHOD static void hold(void)
{
	struct timespec t = {0, LONG_MS * 1000000L};
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&barrier);
	while (nanosleep(&t, &t))
		;
	pthread_mutex_unlock(&mutex);
	END;
}

static void *holder(void *arg)
{
	prctl(PR_SET_NAME, "holder");
	hold();
	return arg;
}

static void *rival(void *arg)
{
	prctl(PR_SET_NAME, "rival");
	pthread_barrier_wait(&barrier);
	while (!over)
		;
	return arg;
}

BRAID_NOTRACE static void share_cpu(void)
{
	cpu_set_t all, one;
	sched_getaffinity(0, sizeof all, &all);
	CPU_ZERO(&one);
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &all)) {
			CPU_SET(c, &one);
			break;
		}
	if (sched_setaffinity(0, sizeof one, &one))
		die("sched_setaffinity");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		die("usage: slow MODE SCRATCH");
	mode = argv[1];
	scratch = argv[2];
	// Other programs do not add waits of their own. Among equals, each has the CPU for a while in turn.
	struct sched_param priority = {.sched_priority = 1};
	if (sched_setscheduler(0, SCHED_RR, &priority))
		die("sched_setscheduler");
	if (!strcmp(mode, "cpu"))
		share_cpu();
	int others = !strcmp(mode, "lock") ? 1 : !strcmp(mode, "cpu") ? 3 : 0;
	pthread_t t[3];
	pthread_barrier_init(&barrier, NULL, others + 1);
	for (int i = 0; i < others; i++)
		if (pthread_create(&t[i], NULL, others == 1 ? holder : rival, NULL))
			die("pthread_create");
	for (int i = 0; i < REQUESTS; i++)
		handle(i);
	for (int i = 0; i < others; i++)
		pthread_join(t[i], NULL);
	return 0;
}
