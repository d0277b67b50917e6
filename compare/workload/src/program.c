/* Runs of a whole program. */
#include "driver.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

#define COUNT_FD 3
#define COUNT "WORKLOAD_COUNT=3"

/* The environment with some variables more, and the one that asks handlers for their count. */
static char **with(char **more)
{
	static char **all;
	size_t n = 2;

	if (all)
		return all;
	for (char **e = environ; *e; e++)
		n++;
	for (char **e = more; *e; e++)
		n++;
	if (!(all = malloc(n * sizeof *all)))
		abort();
	n = 0;
	for (char **e = more; *e; e++) /* the first of a name counts */
		all[n++] = *e;
	all[n++] = COUNT;
	for (char **e = environ; *e; e++)
		all[n++] = *e;
	all[n] = 0;
	return all;
}

static long long microseconds(struct timeval t) { return t.tv_sec * 1000000LL + t.tv_usec; }

static int one(struct reply *a, char **command, char **environment, int null, const int *count)
{
	static volatile int error;
	struct rusage use;
	long long start = nanoseconds(CLOCK_MONOTONIC);
	uint64_t kept;
	int status;
	pid_t child;

	error = 0;
	child = vfork();
	if (child == 0) {
		signal(SIGPIPE, SIG_DFL);
		if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(count[1], COUNT_FD) < 0) {
			error = errno;
			_exit(127);
		}
		execvpe(command[0], command, environment);
		error = errno;
		_exit(127);
	}
	if (child < 0)
		return failed("no process can be made");
	while (wait4(child, &status, 0, &use) < 0)
		if (errno != EINTR)
			return failed("nobody to wait for");
	a->wall += nanoseconds(CLOCK_MONOTONIC) - start;
	a->cpu += 1000 * (microseconds(use.ru_utime) + microseconds(use.ru_stime));
	while (read(count[0], &kept, sizeof kept) == sizeof kept)
		a->kept += (long long)kept;
	if (error) {
		printf("workload: error %s: %s\n", command[0], strerror(error));
		return -1;
	}
	if (WIFSIGNALED(status)) {
		printf("workload: error %s was killed by signal %d\n", command[0], WTERMSIG(status));
		return -1;
	}
	if (WEXITSTATUS(status) != 0) {
		printf("workload: error %s ended with status %d\n", command[0], WEXITSTATUS(status));
		return -1;
	}
	a->calls++;
	return 0;
}

/* Calls is how many runs there are, one after the other. */
int run_program(const struct request *r, struct reply *a, char **command, char **environment)
{
	static int null = -1, count[2];

	if (null < 0) {
		/* Above COUNT_FD, so that dup2 makes a copy that stays open. */
		int n = open("/dev/null", O_RDWR | O_CLOEXEC), p[2];

		if (n < 0 || pipe2(p, O_CLOEXEC | O_NONBLOCK) != 0)
			return failed("no pipe");
		count[0] = fcntl(p[0], F_DUPFD_CLOEXEC, 10);
		count[1] = fcntl(p[1], F_DUPFD_CLOEXEC, 10);
		null = fcntl(n, F_DUPFD_CLOEXEC, 10);
		close(n);
		close(p[0]);
		close(p[1]);
		/* The same addresses in each run, so that what depends on them takes the same course. */
		personality(ADDR_NO_RANDOMIZE);
	}
	for (long long i = 0; i < r->calls; i++)
		if (one(a, command, with(environment), null, count) != 0)
			return -1;
	return 0;
}
