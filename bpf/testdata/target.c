// SPDX-License-Identifier: Apache-2.0
// A traced program with known numbers of events. Every story waits for a byte on stdin ("ready" is printed before),
// prints what it did as key=value lines, and ends when stdin ends. Times are CLOCK_BOOTTIME ns.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "target: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say(const char *format, ...)
{
	char line[256];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (write(1, line, n) != n)
		die("write");
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int tid(void) { return syscall(SYS_gettid); }

static void wait_stdin(void)
{
	char c;
	while (read(0, &c, 1) < 0 && errno == EINTR)
		;
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("sched_setaffinity");
}

struct span {
	uint64_t time;
	struct rusage usage;
};

/* The time and the thread's counts at that time: again, if it lost the CPU between reading the one and the other. */
static struct span mark(void)
{
	struct span s;
	struct rusage after;
	do {
		getrusage(RUSAGE_THREAD, &s.usage);
		s.time = now();
		getrusage(RUSAGE_THREAD, &after);
	} while (after.ru_nvcsw != s.usage.ru_nvcsw || after.ru_nivcsw != s.usage.ru_nivcsw);
	return s;
}

static void end(struct span s)
{
	struct span e = mark();
	say("span tid=%d start=%llu end=%llu voluntary=%ld involuntary=%ld major=%ld\n", tid(), (unsigned long long)s.time,
	    (unsigned long long)e.time, e.usage.ru_nvcsw - s.usage.ru_nvcsw, e.usage.ru_nivcsw - s.usage.ru_nivcsw,
	    e.usage.ru_majflt - s.usage.ru_majflt);
}

static void nap(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	nanosleep(&ms, NULL);
}

static void story_sleep(int n)
{
	struct span s = mark();
	for (int i = 0; i < n; i++)
		nap();
	end(s);
}

/* Two threads hand a turn to each other n times, both on CPU 0. */
static int turn, rounds;

static void *player(void *arg)
{
	int me = (long)arg;
	pin(0);
	prctl(PR_SET_NAME, me ? "pong" : "ping");
	struct span s = mark();
	for (int i = 0; i < rounds; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) != me)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !me, NULL, NULL, 0);
		__atomic_store_n(&turn, !me, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	end(s);
	return NULL;
}

static void story_futex(int n)
{
	pthread_t t[2];
	rounds = n;
	for (long i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, player, (void *)i))
			die("pthread_create");
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

static void *napper(void *arg)
{
	nap();
	return arg;
}

static void threads(int n)
{
	for (int i = 0; i < n; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, napper, NULL))
			die("pthread_create");
		pthread_join(t, NULL);
	}
}

/* children processes, one after the other; each executes this program again, which starts n threads. */
static void story_spawn(const char *self, int children, const char *n)
{
	for (int i = 0; i < children; i++) {
		pid_t p = fork();
		if (p < 0)
			die("fork");
		if (p == 0) {
			execl(self, self, "threads", n, (char *)NULL);
			_exit(127);
		}
		int status;
		if (waitpid(p, &status, 0) != p || status != 0)
			die("child");
	}
}

/* children processes that take a name, as a launcher's children do, and end. */
static void story_rename(int children, const char *name)
{
	for (int i = 0; i < children; i++) {
		pid_t p = fork();
		if (p < 0)
			die("fork");
		if (p == 0) {
			prctl(PR_SET_NAME, name);
			_exit(0);
		}
		int status;
		if (waitpid(p, &status, 0) != p || status != 0)
			die("child");
	}
}

/* Threads that nap until the process ends. */
static void *napping(void *arg)
{
	for (;;)
		nap();
	return arg;
}

static void story_nap(int threads)
{
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, napping, NULL))
			die("pthread_create");
	}
	say("napping\n");
}

static void story_write(const char *path, int mib)
{
	static char block[1 << 20];
	memset(block, 0x5a, sizeof block);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (fd < 0)
		die(path);
	struct span s = mark();
	for (int i = 0; i < mib; i++)
		if (write(fd, block, sizeof block) != sizeof block)
			die("write");
	if (fsync(fd))
		die("fsync");
	end(s);
	if (fdatasync(-1) == 0 || errno != EBADF)
		die("fdatasync(-1)");
	close(fd);
}

static void story_read(const char *path, int n, int size)
{
	void *block;
	int fd = open(path, O_RDONLY | O_DIRECT);
	if (fd < 0 || posix_memalign(&block, 4096, size))
		die(path);
	struct span s = mark();
	for (int i = 0; i < n; i++)
		if (pread(fd, block, size, (off_t)i * size) != size)
			die("pread");
	end(s);
	close(fd);
}

/* Touches n pages of a file that is not in the page cache, each 64 KiB from the last. */
static void story_fault(const char *path, int n)
{
	size_t size = (size_t)n << 16;
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		die(path);
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die("drop cache");
	volatile char *m = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED || madvise((void *)m, size, MADV_RANDOM))
		die("mmap");
	unsigned char *in = malloc(size >> 12);
	if (mincore((void *)m, size, in))
		die("mincore");
	for (size_t i = 0; i < size >> 12; i++)
		if (in[i] & 1) {
			errno = EBUSY;
			die("page still cached");
		}
	say("map address=%llu\n", (unsigned long long)(uintptr_t)m);
	struct span s = mark();
	for (int i = 0; i < n; i++)
		(void)m[(size_t)i << 16];
	end(s);
}

/* Keeps a CPU busy for a time, which begins with a switch to it: it may have been there before. */
static void story_run(int cpu, int ms)
{
	pin(cpu);
	nap();
	struct span s = mark();
	while (now() - s.time < ms * 1000000ull)
		;
	end(s);
}
#include "waits.h"

int main(int argc, char **argv)
{
	const char *story = argc > 1 ? argv[1] : "";
	if (!strcmp(story, "threads")) { /* of story_spawn */
		threads(atoi(argv[2]));
		return 0;
	}
	say("ready\n");
	wait_stdin();
	if (!strcmp(story, "exec")) { /* what a launcher's child does; the rest is the command */
		execv(argv[2], argv + 2);
		die(argv[2]);
	} else if (!strcmp(story, "sleep")) {
		story_sleep(atoi(argv[2]));
	} else if (!strcmp(story, "futex")) {
		story_futex(atoi(argv[2]));
	} else if (!strcmp(story, "spawn")) {
		story_spawn(argv[0], atoi(argv[2]), argv[3]);
	} else if (!strcmp(story, "waits")) {
		story_waits(atoi(argv[2]), argv[0]);
	} else if (!strcmp(story, "rename")) {
		story_rename(atoi(argv[2]), argv[3]);
	} else if (!strcmp(story, "nap")) {
		story_nap(atoi(argv[2]));
	} else if (!strcmp(story, "write")) {
		story_write(argv[2], atoi(argv[3]));
	} else if (!strcmp(story, "read")) {
		story_read(argv[2], atoi(argv[3]), atoi(argv[4]));
	} else if (!strcmp(story, "fault")) {
		story_fault(argv[2], atoi(argv[3]));
	} else if (!strcmp(story, "run")) {
		story_run(atoi(argv[2]), atoi(argv[3]));
	} else if (!strcmp(story, "doze")) { /* sleeps and wakes up on a CPU, all the time */
		pin(atoi(argv[2]));
		say("dozing\n");
		for (;;)
			nap();
	} else if (!strcmp(story, "spin")) { /* keeps a CPU from idling, at the lowest priority there is */
		struct sched_param none = { 0 };
		pin(atoi(argv[2]));
		if (sched_setscheduler(0, SCHED_IDLE, &none))
			die("sched_setscheduler");
		say("spinning\n");
		for (;;)
			;
	} else {
		errno = EINVAL;
		die("story");
	}
	say("done\n");
	wait_stdin();
	return 0;
}
