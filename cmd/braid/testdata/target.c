// The program of the robustness tests: its first argument chooses a story. leaf is what is counted.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define METHOD __attribute__((noipa)) // and so not cloned either

static volatile uint32_t sum;
static volatile int stop;

METHOD static void leaf(void) { sum = sum * 1664525 + 1013904223; }

METHOD static void leaves(int n)
{
	for (int i = 0; i < n; i++)
		leaf();
}

static int die(const char *what)
{
	perror(what);
	return 99;
}

static int number(char **argv, int i) { return argv[i] ? atoi(argv[i]) : 0; }

static void sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	while (nanosleep(&t, &t))
		;
}

static void say(const char *what, long n)
{
	printf("%s %ld\n", what, n);
	fflush(stdout);
}

// Waits for the end of stdin.
static void wait_for_eof(void)
{
	char c;
	while (read(0, &c, 1) > 0)
		;
}

METHOD static void stuck(void)
{
	say("stuck", getpid());
	for (;;)
		pause();
}

METHOD static void die_here(int sig)
{
	kill(getpid(), sig);
	for (;;)
		pause();
}

static volatile int *volatile nowhere;

METHOD static void crash_here(void) { *nowhere = 1; }

// Recursion as deep as asked for, to see depths.
METHOD static void deep(int n)
{
	if (n > 0)
		deep(n - 1);
	sum++;
}

METHOD static void child(int i)
{
	char name[32];
	snprintf(name, sizeof name, "child-%d", i);
	prctl(PR_SET_NAME, name);
	leaves(100 + i);
}

static int story_fork(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return die("fork");
		if (pid == 0) {
			child(i);
			exit(0);
		}
		say("child", pid);
	}
	for (int i = 0; i < n; i++) {
		int status;
		if (wait(&status) < 0 || status != 0)
			return die("wait");
	}
	leaves(7);
	return 0;
}

METHOD static void *worker(void *arg)
{
	char name[32];
	snprintf(name, sizeof name, "worker-%d", (int)(intptr_t)arg);
	prctl(PR_SET_NAME, name);
	leaves(1000 + (int)(intptr_t)arg);
	return 0;
}

static int story_threads(int n)
{
	pthread_t *t = calloc(n, sizeof *t);
	for (int i = 0; i < n; i++)
		if ((errno = pthread_create(&t[i], 0, worker, (void *)(intptr_t)i)))
			return die("pthread_create");
	for (int i = 0; i < n; i++)
		pthread_join(t[i], 0);
	leaves(11);
	return 0;
}

static int story_dlopen(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);
	if (!lib)
		return fprintf(stderr, "%s\n", dlerror()), 99;
	int (*enter)(int) = (int (*)(int))dlsym(lib, "plugin_enter");
	int got = enter(503);
	if (dlclose(lib))
		return 99;
	leaves(13);
	return got == 503 ? 0 : 99;
}

// A server: it works in small pieces until stdin ends, and says how much.
METHOD static void serve_one(void)
{
	leaves(3);
	sleep_ms(1);
}

METHOD static void *serve(void *arg)
{
	char name[32];
	snprintf(name, sizeof name, "serve-%d", (int)(intptr_t)arg);
	prctl(PR_SET_NAME, name);
	say(name, syscall(SYS_gettid));
	while (!stop)
		serve_one();
	return 0;
}

static int story_serve(int n)
{
	pthread_t t[8];
	for (int i = 0; i < n; i++)
		pthread_create(&t[i], 0, serve, (void *)(intptr_t)i);
	pthread_t eof;
	pthread_create(&eof, 0, (void *(*)(void *))wait_for_eof, 0);
	say("main", getpid());
	long done = 0;
	while (pthread_tryjoin_np(eof, 0) == EBUSY) {
		serve_one();
		if (++done == 20)
			say("warm", done);
	}
	stop = 1;
	for (int i = 0; i < n; i++)
		pthread_join(t[i], 0);
	say("done", done);
	return 0;
}

// Copies stdin to stdout, and the bytes turned round to stderr.
static int story_copy(void)
{
	unsigned char b[4096];
	ssize_t n;
	while ((n = read(0, b, sizeof b)) > 0) {
		leaf();
		if (write(1, b, n) != n)
			return 99;
		for (ssize_t i = 0; i < n; i++)
			b[i] = ~b[i];
		if (write(2, b, n) != n)
			return 99;
	}
	return n < 0 ? 99 : 0;
}

static void on_int(int sig)
{
	(void)sig;
	stop = 1;
}

static int story_interrupted(void)
{
	struct sigaction a = {.sa_handler = on_int};
	sigaction(SIGINT, &a, 0);
	say("main", getpid());
	while (!stop)
		sleep_ms(1);
	leaves(17);
	return 5;
}

// A mix whose order depends on nothing but its argument.
METHOD static void even(uint32_t x) { deep(x % 5); }
METHOD static void odd(uint32_t x) { leaves(x % 3); }

METHOD static void mix(int n)
{
	uint32_t x = 12345;
	for (int i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		if (x >> 31)
			odd(x >> 8);
		else
			even(x >> 8);
	}
}

int main(int argc, char **argv)
{
	const char *story = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? number(argv, 2) : 0;
#define IS(s) (!strcmp(story, s))
	if (IS("count")) {
		leaves(n);
		return number(argv, argc > 3 ? 3 : argc);
	}
	if (IS("stuck")) {
		leaves(n);
		stuck();
	}
	if (IS("kill")) {
		leaves(n);
		die_here(SIGKILL);
	}
	if (IS("crash")) {
		leaves(n);
		crash_here();
	}
	if (IS("fork"))
		return story_fork(n);
	if (IS("exec")) {
		leaves(19);
		execv(argv[2], argv + 2);
		return die(argv[2]);
	}
	if (IS("threads"))
		return story_threads(n);
	if (IS("dlopen"))
		return story_dlopen(argv[2]);
	if (IS("serve"))
		return story_serve(n);
	if (IS("copy"))
		return story_copy();
	if (IS("interrupted"))
		return story_interrupted();
	if (IS("mix")) {
		mix(n);
		return 0;
	}
	fprintf(stderr, "no story %s\n", story);
	return 98;
}
