/*
 * Two threads that wait for each other, each in a method of its own:
 *
 *   - LOCKS times the worker holds a mutex in hold_the_lock until main sleeps in wait_for_lock;
 *   - then TURNS times main sends a byte through a pipe and waits for the answer in ask, which the worker gives through
 *     another pipe in answer, once main sleeps.
 *
 * Something is done behind each call of libc. Otherwise it is a jump, and the method has ended before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "braid.h"

#define LOCKS 5
#define TURNS 7
#define METHOD __attribute__((noinline))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int held[2], there[2], back[2];
static volatile int asks; /* main is about to take the mutex */

BRAID_NOTRACE static int get(int fd)
{
	char c;
	return read(fd, &c, 1) == 1;
}

BRAID_NOTRACE static int put(int fd) { return write(fd, "x", 1) == 1; }

/* Returns when main sleeps. */
BRAID_NOTRACE static void until_asleep(void)
{
	char path[64], b[256];
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
	for (;;) {
		int fd = open(path, O_RDONLY);
		ssize_t n = read(fd, b, sizeof b - 1);
		close(fd);
		if (n <= 0)
			return;
		b[n] = 0;
		const char *state = strrchr(b, ')');
		if (state && state[2] == 'S')
			return;
		usleep(500);
	}
}

METHOD int hold_the_lock(void)
{
	pthread_mutex_lock(&lock);
	int told = put(held[1]);
	while (!asks)
		usleep(500);
	until_asleep();
	asks = 0;
	return pthread_mutex_unlock(&lock) || !told;
}

METHOD int wait_for_lock(void)
{
	asks = 1;
	return pthread_mutex_lock(&lock) || pthread_mutex_unlock(&lock);
}

METHOD int answer(void)
{
	int asked = get(there[0]);
	until_asleep();
	return put(back[1]) && asked;
}

METHOD int ask(void) { return put(there[1]) && get(back[0]); }

static void *work(void *unused)
{
	for (int i = 0; i < LOCKS; i++) {
		hold_the_lock();
		get(there[0]);
	}
	for (int i = 0; i < TURNS; i++)
		answer();
	return unused;
}

int main(void)
{
	pthread_t worker;
	if (pipe(held) || pipe(there) || pipe(back) || pthread_create(&worker, NULL, work, NULL))
		return 1;
	for (int i = 0; i < LOCKS; i++) {
		get(held[0]);
		wait_for_lock();
		put(there[1]);
	}
	for (int i = 0; i < TURNS; i++)
		ask();
	return pthread_join(worker, NULL);
}
