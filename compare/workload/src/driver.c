/* The program that a study measures: driver WORKLOAD VARIANT CPU [NAME=VALUE... -- COMMAND ARGS...]
 *
 * It answers lines "run PARAMETER ALIGN CALLS SKIP" with "workload: done CALLS WALL_NS CPU_NS MISSES BYTES KEPT" or with
 * "workload: error TEXT", and ends with its input. With the variables and the command, a run is a process of the command. */
#include "driver.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __arm__
#include <sys/auxv.h>
#endif
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <time.h>

#define SIDE 2048L
#define FILE_SIZE (1 << 20)
#define BLOCK_MAX 65536

static const char *workload, *variant;

int failed(const char *what)
{
	printf("workload: error %s\n", what);
	return -1;
}

static int failed_by_system(const char *what)
{
	printf("workload: error %s: %s\n", what, strerror(errno));
	return -1;
}

long long nanoseconds(int clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The kernel's cache miss counter for this thread in user mode, or -1. linux/perf_event.h is not everywhere; this is the
 * first version of its structure. */
static int cache_misses(void)
{
	struct {
		uint32_t type, size;
		uint64_t config, period, sample_type, read_format, flags;
		uint32_t wakeup, bp_type;
		uint64_t bp_addr;
	} attributes = { .type = 0, .size = sizeof attributes, .config = 3, .flags = 1 << 0 | 1 << 5 | 1 << 6 };

	return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 8UL);
}
#define MISSES_ENABLE 0x2400
#define MISSES_DISABLE 0x2401
#define MISSES_RESET 0x2403

static volatile int64_t sink;
static int depth = 10; /* of listing's calls; 1 for the workload "call" */

static void listing(const struct traced *t, const struct request *r, struct reply *a)
{
	listing_fn *f = t->listing;
	long long outer = (r->calls + depth - 1) / depth;
	int64_t sum = 1;

	for (long long i = 0; i < outer; i++)
		sum = f(depth, (int32_t)r->parameter, sum);
	sink = sum;
	a->calls = outer * depth;
}

static uint32_t *factors;

static int matrix_begin(void)
{
	size_t size = 3 * SIDE * SIDE * sizeof *factors;

	factors = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (factors == MAP_FAILED)
		return failed_by_system("no memory for the matrices");
	for (long i = 0; i < 3 * SIDE * SIDE; i++)
		factors[i] = (uint32_t)i;
	return 0;
}

/* Steps of a multiplication of two matrices of 2048 x 2048, tile by tile; a step is a call. A row of a tile is the least. */
static void matrix(const struct traced *t, const struct request *r, struct reply *a)
{
	matrix_fn *f = t->matrix;
	const uint32_t *left = factors, *right = factors + SIDE * SIDE;
	uint32_t *product = factors + 2 * SIDE * SIDE;
	long long tile = r->parameter, tiles = SIDE / tile;
	long long row = r->skip / tile, end = row + (r->calls + tile - 1) / tile;

	a->calls = (end - row) * tile;
	a->bytes = 2 * sizeof *factors * a->calls;
	for (; row < end; row++) {
		long long which = row / (tile * tile) % (tiles * tiles * tiles), within = row % (tile * tile);
		long i = (long)(which / (tiles * tiles) * tile + within / tile);
		long j = (long)(which / tiles % tiles * tile + within % tile);
		long first = (long)(which % tiles * tile);
		uint32_t sum = product[i * SIDE + j];

		for (long k = first; k < first + tile; k++)
			sum = f(left[i * SIDE + k], right[k * SIDE + j], sum, 1);
		product[i * SIDE + j] = sum;
	}
}

enum { OURS = 1, THEIRS = 2 };
struct job {
	schedule_fn *f;
	long long turns;
};
static int32_t turn = OURS;
static int jobs[2], ends[2];

static void take_turns(const struct job *j, int mine, int other)
{
	for (long long i = 0; i < j->turns; i++)
		j->f(&turn, mine, other);
}

static void give_turn(int to)
{
	__atomic_store_n(&turn, to, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* The other thread. Its last turn returns when the first thread gives it one more. */
static void *other_thread(void *unused)
{
	struct job j;

	while (read(jobs[0], &j, sizeof j) == sizeof j) {
		while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) != THEIRS)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, OURS, 0, 0, 0);
		take_turns(&j, THEIRS, OURS);
		if (write(ends[1], "", 1) != 1)
			break;
	}
	return unused;
}

static int schedule_begin(void)
{
	pthread_t thread;

	if (pipe2(jobs, O_CLOEXEC) != 0 || pipe2(ends, O_CLOEXEC) != 0)
		return failed_by_system("no pipes");
	if ((errno = pthread_create(&thread, 0, other_thread, 0)) != 0)
		return failed_by_system("no second thread");
	return 0;
}

static int schedule(const struct traced *t, const struct request *r, struct reply *a)
{
	struct job j = { t->schedule, (r->calls + 1) / 2 };
	char end;

	turn = OURS;
	if (write(jobs[1], &j, sizeof j) != sizeof j)
		return failed_by_system("the second thread");
	take_turns(&j, OURS, THEIRS);
	give_turn(THEIRS);
	if (read(ends[0], &end, 1) != 1)
		return failed_by_system("the second thread");
	a->calls = 2 * j.turns;
	return 0;
}

static int file = -1;
static char block[BLOCK_MAX];

static int io_begin(void)
{
	char name[] = "io-XXXXXX";

	if ((file = mkstemp(name)) < 0)
		return failed_by_system("no file to write to");
	unlink(name);
	for (int i = 0; i < FILE_SIZE; i += BLOCK_MAX)
		if (pwrite(file, block, BLOCK_MAX, i) != BLOCK_MAX)
			return failed_by_system("writing");
	return fsync(file) == 0 ? 0 : failed_by_system("writing");
}

static int io(const struct traced *t, const struct request *r, struct reply *a)
{
	size_t size = r->parameter ? (size_t)r->parameter : 512;

	for (long long i = 0; i < r->calls; i++)
		if (t->io(file, block, size, i * size % (FILE_SIZE - BLOCK_MAX)) != 0)
			return failed_by_system("writing");
	a->calls = r->calls;
	a->bytes = (long long)size * r->calls;
	return 0;
}

/* What the workload is has been checked by begin. */
static int call(const struct traced *t, const struct request *r, struct reply *a)
{
	switch (workload[0]) {
	case 'c':
	case 'l':
		if (r->parameter < 0 || r->parameter > 1000000)
			return failed("the work is 0 to 1000000");
		listing(t, r, a);
		return 0;
	case 'm':
		if (r->parameter < 1 || SIDE % r->parameter != 0 || r->skip < 0)
			return failed("the side of a tile divides 2048");
		matrix(t, r, a);
		return 0;
	case 's':
		return schedule(t, r, a);
	default:
		if (r->parameter < 0 || r->parameter > BLOCK_MAX)
			return failed("a block has at most 65536 bytes");
		return io(t, r, a);
	}
}

static int run(const struct request *r, struct reply *a)
{
	static int misses = -2;
	const struct traced *t = 0;
	uint64_t kept = handler_kept ? handler_kept() : 0;
	/* Both threads take turns, and pay for it. */
	int clock = workload[0] == 's' ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID;
	uint64_t n = 0;
	int error;

	for (int i = 0; i < traced_count; i++)
		if (strcmp(traced[i].variant, variant) == 0 && traced[i].align == r->align)
			t = &traced[i];
	if (!t)
		return failed("no such variant at this alignment");
	if (r->calls < 1)
		return failed("the number of calls is 1 or more");
	if (misses == -2)
		misses = cache_misses();
	if (misses >= 0) {
		ioctl(misses, MISSES_RESET, 0);
		ioctl(misses, MISSES_ENABLE, 0);
	}
	a->wall = nanoseconds(CLOCK_MONOTONIC);
	a->cpu = nanoseconds(clock);
	error = call(t, r, a);
	a->cpu = nanoseconds(clock) - a->cpu;
	a->wall = nanoseconds(CLOCK_MONOTONIC) - a->wall;
	if (misses >= 0) {
		ioctl(misses, MISSES_DISABLE, 0);
		if (read(misses, &n, sizeof n) == sizeof n)
			a->misses = (long long)n;
	}
	if (handler_kept)
		a->kept = (long long)(handler_kept() - kept);
	return error;
}

static int begin(char **command)
{
	static const char *const whole[] = { "startup", "command" };

	for (int i = 0; i < 2; i++)
		if (strcmp(workload, whole[i]) == 0)
			return command ? 0 : failed("no command");
	if (command)
		return failed("a command that nobody starts");
#ifdef __arm__
	/* The same test as the runtime's: EVTSTRM. */
	if (strcmp(variant, "clock") == 0 && !(getauxval(AT_HWCAP) & 1 << 21))
		return failed("programs can't read the counter here");
#endif
	if (strcmp(workload, "listing") == 0)
		return 0;
	if (strcmp(workload, "call") == 0) {
		depth = 1;
		return 0;
	}
	if (strcmp(workload, "matrix") == 0)
		return matrix_begin();
	if (strcmp(workload, "schedule") == 0)
		return schedule_begin();
	if (strcmp(workload, "io") == 0)
		return io_begin();
	return failed("no such workload");
}

int main(int count, char **arguments)
{
	char line[256], **command = 0, **environment = 0;
	struct request r;
	int cpu;

	signal(SIGPIPE, SIG_IGN); /* who reads no more is told by the write */
	setvbuf(stdout, 0, _IOLBF, 4096);
	if (count < 4) {
		fprintf(stderr, "usage: workload WORKLOAD VARIANT CPU [NAME=VALUE... -- COMMAND ARGS...]\n");
		return 2;
	}
	workload = arguments[1];
	variant = arguments[2];
	cpu = atoi(arguments[3]);
	if (count > 4) {
		environment = arguments + 4;
		for (command = environment; *command && strcmp(*command, "--") != 0; command++)
			;
		if (!*command || !command[1]) {
			failed("no command");
			return 1;
		}
		*command++ = 0;
	}
	if (cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof set, &set) != 0) {
			failed_by_system("pinning to a CPU");
			return 1;
		}
	}
	if (begin(command) != 0)
		return 1;
	if (handler_begin && strcmp(workload, "startup") != 0 && strcmp(workload, "command") != 0)
		handler_begin();
	printf("workload: ready %d\n", (int)getpid());
	while (!ferror(stdout) && fgets(line, sizeof line, stdin)) {
		struct reply a = { 0 };

		if (sscanf(line, "run %lld %lld %lld %lld", &r.parameter, &r.align, &r.calls, &r.skip) != 4)
			failed("what is asked for makes no sense");
		else if ((command ? run_program(&r, &a, command, environment) : run(&r, &a)) == 0)
			printf("workload: done %lld %lld %lld %lld %lld %lld\n", a.calls, a.wall, a.cpu, a.misses, a.bytes, a.kept);
	}
	return ferror(stdout) ? 1 : 0;
}
