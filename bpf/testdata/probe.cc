// SPDX-License-Identifier: Apache-2.0
// A program that times the calls of a method itself, from outside and from inside. Every story waits for a byte on stdin
// ("ready" is printed before), prints one line a call that returned, in the order of their ends, and ends with stdin.
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int naps[] = { 0, 60 };

static uint64_t now()
{
	timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void nap(int ms)
{
	timespec t = { 0, ms * 1000000 };
	if (ms)
		nanosleep(&t, nullptr);
}

enum End { RETURN, JUMP, THROW, EXIT };

static __thread jmp_buf out;

struct Call {
	uint64_t in, done, after;
};

static void call(const char *name, int depth, int ms, End end);

// The method: a nap, or its own calls, and then an end of one of several kinds.
extern "C" __attribute__((noinline)) int method(Call *c, int depth, int ms, End end)
{
	c->in = now();
	if (depth > 1) {
		call("method", depth - 1, ms, end);
		c->done = now();
		return depth;
	}
	nap(ms);
	c->done = now();
	switch (end) {
	case RETURN:
		return 1;
	case JUMP:
		longjmp(out, 1);
	case THROW:
		throw 1;
	case EXIT:
		pthread_exit(nullptr);
	}
	abort();
}

extern "C" __attribute__((noinline)) int last(Call *c)
{
	c->after = now();
	nap(naps[1]);
	return 3;
}

// Ends with a return, or with a call of another method, which compilers make a jump: that one's nap is not its own.
extern "C" __attribute__((noinline)) int tail(Call *c, int way, int ms)
{
	c->in = now();
	nap(ms);
	c->done = now();
	if (way & 1)
		return last(c);
	return 2;
}

static void call(const char *name, int depth, int ms, End end)
{
	Call c = {};
	uint64_t before = now();
	if (!strcmp(name, "tail"))
		tail(&c, depth, ms);
	else
		method(&c, depth, ms, end);
	uint64_t after = c.after ? c.after : now();
	char line[128];
	int n = snprintf(line, sizeof line, "call %ld %llu %llu\n", syscall(SYS_gettid), (unsigned long long)(c.done - c.in),
			 (unsigned long long)(after - before));
	if (write(1, line, n) != n)
		_exit(1);
}

static void calls(const char *name, int n)
{
	for (int i = 0; i < n; i++)
		call(name, !strcmp(name, "tail") ? i : 1, naps[i % 5 == 3], RETURN);
}

static void *in_thread(void *arg)
{
	calls("method", *static_cast<int *>(arg));
	return nullptr;
}

static void *ends_inside(void *)
{
	call("method", 3, 0, EXIT);
	return nullptr;
}

static void run_thread(void *(*start)(void *), void *arg)
{
	pthread_t t;
	if (pthread_create(&t, nullptr, start, arg))
		abort();
	pthread_join(t, nullptr);
}

static int story(const char *name, int n)
{
	if (!strcmp(name, "calls")) {
		calls("method", n);
	} else if (!strcmp(name, "tail")) {
		calls("tail", n);
	} else if (!strcmp(name, "recursion")) {
		call("method", n, naps[1], RETURN);
	} else if (!strcmp(name, "threads")) {
		static const int each = 11;
		pthread_t t[64];
		for (int i = 0; i < n; i++)
			if (pthread_create(&t[i], nullptr, in_thread, const_cast<int *>(&each)))
				abort();
		for (int i = 0; i < n; i++)
			pthread_join(t[i], nullptr);
	} else if (!strcmp(name, "jump")) {
		for (int i = 0; i < n; i++) {
			if (!setjmp(out))
				call("method", 3, naps[1], JUMP);
			calls("method", 5);
		}
	} else if (!strcmp(name, "throw")) {
		for (int i = 0; i < n; i++) {
			try {
				call("method", 3, naps[1], THROW);
			} catch (int) {
				calls("method", 5);
			}
		}
	} else if (!strcmp(name, "exit")) {
		for (int i = 0; i < n; i++)
			run_thread(ends_inside, nullptr);
	} else if (!strcmp(name, "fork")) {
		pid_t p = fork();
		if (p == 0) {
			Call c;
			method(&c, 1, naps[1], RETURN);
			_exit(0);
		}
		int status;
		if (waitpid(p, &status, 0) != p || status)
			return 1;
		calls("method", n);
	} else if (!strcmp(name, "stay")) {
		printf("staying\n");
		fflush(stdout);
		Call c;
		for (;;)
			method(&c, 3, 1, RETURN);
	} else {
		return 2;
	}
	return 0;
}

int main(int, char **argv)
{
	char byte;
	puts("ready");
	fflush(stdout);
	for (int again = read(0, &byte, 1); again == 1; again = read(0, &byte, 1)) {
		if (int status = story(argv[1], atoi(argv[2])))
			return status;
		puts("done");
		fflush(stdout);
	}
	return 0;
}
