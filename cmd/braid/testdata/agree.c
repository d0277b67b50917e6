// Threads that leave the CPU in every way, for a comparison with another tool: sleeping, by a pipe to each other, by being
// preempted and by I/O. The workers begin when the main thread has created all of them. It takes a scratch file.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define METHOD __attribute__((noinline))
enum { ROUNDS = 401 };

static int there[2], back[2];
static const char *scratch;

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

METHOD static void naps(void)
{
	struct timespec t = {0, 500000};
	for (int i = 0; i < ROUNDS; i++)
		nanosleep(&t, 0);
}

METHOD static void ping(void)
{
	char c = 0;
	for (int i = 0; i < ROUNDS; i++)
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			_exit(99);
}

METHOD static void pong(void)
{
	char c = 0;
	for (int i = 0; i < ROUNDS; i++)
		if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
			_exit(99);
}

METHOD static void spin(void)
{
	struct timespec t;
	pin(0);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_nsec < 150000000 && t.tv_sec == 0);
}

METHOD static void writes(void)
{
	static char block[1 << 18];
	int fd = open(scratch, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	for (int i = 0; i < 7; i++)
		if (write(fd, block, sizeof block) != sizeof block || fsync(fd))
			_exit(99);
	close(fd);
	unlink(scratch);
}

static void (*const jobs[])(void) = {naps, ping, pong, spin, spin, writes};
static const char *const names[] = {"naps", "ping", "pong", "spin", "spin", "writes"};

static void *run(void *job)
{
	printf("thread %ld %s\n", syscall(SYS_gettid), names[(intptr_t)job]);
	fflush(stdout);
	jobs[(intptr_t)job]();
	return 0;
}

int main(int argc, char **argv)
{
	enum { N = sizeof jobs / sizeof *jobs };
	pthread_t t[N];
	scratch = argv[argc - 1];
	if (pipe(there) || pipe(back))
		return 99;
	for (intptr_t i = 0; i < N; i++)
		pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < N; i++)
		pthread_join(t[i], 0);
	usleep(100000); // a thread that was joined still has to leave its CPU for the last time: both tools are to see it
	return 0;
}
