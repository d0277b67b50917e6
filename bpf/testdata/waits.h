// SPDX-License-Identifier: Apache-2.0
// The story "waits": a thread sleeps n times in each of many system calls, and another lets it go on as soon as it
// sleeps. Printed for each call: what it sleeps at.
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

static int wait_word, pi_word;
static int pipe_fds[2], full_pipe[2], sockets[2], listener, event_fd, epoll_fd, timer_fd, poll_pipe[2], lock_fds[2];
static struct sockaddr_in listen_address;

static void give(int fd)
{
	if (write(fd, "x", 1) != 1)
		die("write");
}

static void take(int fd)
{
	char c;
	if (read(fd, &c, 1) != 1)
		die("read");
}

/* How each call is prepared by who will release it, slept in, and released. */

static void futex_sleep(void)
{
	syscall(SYS_futex, &wait_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	wait_word = 0;
}

static void futex_release(void)
{
	__atomic_store_n(&wait_word, 1, __ATOMIC_SEQ_CST);
	if (syscall(SYS_futex, &wait_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) != 1)
		die("FUTEX_WAKE");
}

static void pi_prepare(void) { __atomic_store_n(&pi_word, tid(), __ATOMIC_SEQ_CST); }

static void pi_sleep(void)
{
	if (syscall(SYS_futex, &pi_word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0))
		die("FUTEX_LOCK_PI");
	__atomic_store_n(&pi_word, 0, __ATOMIC_SEQ_CST);
}

static void pi_release(void)
{
	if (syscall(SYS_futex, &pi_word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0))
		die("FUTEX_UNLOCK_PI");
}

static void read_sleep(void) { take(pipe_fds[0]); }
static void read_release(void) { give(pipe_fds[1]); }

static void write_sleep(void)
{
	char page[4096] = { 0 };
	if (write(full_pipe[1], page, sizeof page) != sizeof page)
		die("write");
}

static void write_release(void)
{
	char page[4096];
	if (read(full_pipe[0], page, sizeof page) != sizeof page)
		die("read");
}

static void recv_sleep(void)
{
	char c;
	if (recv(sockets[0], &c, 1, 0) != 1)
		die("recv");
}

static void recv_release(void) { give(sockets[1]); }

static void accept_sleep(void)
{
	int fd = accept(listener, NULL, NULL);
	if (fd < 0)
		die("accept");
	close(fd);
}

static void accept_release(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (void *)&listen_address, sizeof listen_address))
		die("connect");
	close(fd);
}

static void event_sleep(void)
{
	uint64_t n;
	if (read(event_fd, &n, 8) != 8)
		die("read eventfd");
}

static void event_release(void)
{
	uint64_t n = 1;
	if (write(event_fd, &n, 8) != 8)
		die("write eventfd");
}

static void epoll_sleep(void)
{
	struct epoll_event e;
	if (epoll_wait(epoll_fd, &e, 1, -1) != 1)
		die("epoll_wait");
	take(poll_pipe[0]);
}

static void poll_sleep(void)
{
	struct pollfd p = { .fd = poll_pipe[0], .events = POLLIN };
	if (poll(&p, 1, -1) != 1)
		die("poll");
	take(poll_pipe[0]);
}

static void select_sleep(void)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(poll_pipe[0], &set);
	if (select(poll_pipe[0] + 1, &set, NULL, NULL, NULL) != 1)
		die("select");
	take(poll_pipe[0]);
}

static void poll_release(void) { give(poll_pipe[1]); }

static void lock_prepare(void)
{
	if (flock(lock_fds[1], LOCK_EX))
		die("flock");
}

static void lock_sleep(void)
{
	if (flock(lock_fds[0], LOCK_EX) || flock(lock_fds[0], LOCK_UN))
		die("flock");
}

static void lock_release(void)
{
	if (flock(lock_fds[1], LOCK_UN))
		die("flock");
}

static long own_sleeps(void)
{
	struct rusage u;
	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

/* Who is preempted on the way into a short sleep may find it over, and tries again. */

static void nap_sleep(void)
{
	long before = own_sleeps();
	do
		nap();
	while (own_sleeps() == before);
}

static void timer_sleep(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 3000000 };
	long before = own_sleeps();
	uint64_t n;
	do {
		if (timerfd_settime(timer_fd, 0, &soon, NULL) || read(timer_fd, &n, 8) != 8)
			die("timerfd");
	} while (own_sleeps() == before);
}

static void signal_sleep(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigwaitinfo(&set, NULL) != SIGUSR1)
		die("sigwaitinfo");
}

static void signal_release(void)
{
	if (kill(getpid(), SIGUSR1))
		die("kill");
}

static const struct wait {
	const char *name;
	const int *fd; /* NULL: none */
	const int *word;
	void (*prepare)(void), (*sleep)(void), (*release)(void); /* prepare, release: NULL where time does it */
} waits[] = {
	{ "futex_wait", NULL, &wait_word, NULL, futex_sleep, futex_release },
	{ "futex_lock_pi", NULL, &pi_word, pi_prepare, pi_sleep, pi_release },
	{ "read", &pipe_fds[0], NULL, NULL, read_sleep, read_release },
	{ "write", &full_pipe[1], NULL, NULL, write_sleep, write_release },
	{ "recv", &sockets[0], NULL, NULL, recv_sleep, recv_release },
	{ "accept", &listener, NULL, NULL, accept_sleep, accept_release },
	{ "eventfd", &event_fd, NULL, NULL, event_sleep, event_release },
	{ "epoll_wait", &epoll_fd, NULL, NULL, epoll_sleep, poll_release },
	{ "poll", &poll_pipe[0], NULL, NULL, poll_sleep, poll_release },
	{ "select", NULL, NULL, NULL, select_sleep, poll_release },
	{ "file_lock", &lock_fds[0], NULL, lock_prepare, lock_sleep, lock_release },
	{ "timerfd", &timer_fd, NULL, NULL, timer_sleep, NULL },
	{ "nanosleep", NULL, NULL, NULL, nap_sleep, NULL },
	{ "signal", NULL, NULL, NULL, signal_sleep, signal_release },
};
#define WAITS (int)(sizeof waits / sizeof *waits)

static int sleeper_tid, sleeper_at, sleeper_done; /* sleeper_at: how many sleeps were begun; 0: none */

static void until(const int *value, int want)
{
	while (__atomic_load_n(value, __ATOMIC_SEQ_CST) != want)
		sched_yield();
}

static void *sleeper(void *arg)
{
	int n = *(int *)arg;
	prctl(PR_SET_NAME, "sleeper");
	__atomic_store_n(&sleeper_tid, tid(), __ATOMIC_SEQ_CST);
	for (int i = 0; i < WAITS * n; i++) {
		until(&sleeper_at, i + 1);
		waits[i / n].sleep();
		__atomic_store_n(&sleeper_done, i + 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* How often the sleeper has given up its CPU of its own accord, and whether it has now. */
static long sleeps(int *asleep)
{
	char path[64], text[4096], *state, *n;
	snprintf(path, sizeof path, "/proc/self/task/%d/status", sleeper_tid);
	int fd = open(path, O_RDONLY);
	ssize_t len = read(fd, text, sizeof text - 1);
	close(fd);
	text[len > 0 ? len : 0] = 0;
	state = strstr(text, "State:\t");
	n = strstr(text, "\nvoluntary_ctxt_switches:\t");
	if (!state || !n)
		die(path);
	*asleep = state[7] == 'S';
	return atol(strchr(n, '\t'));
}

/*
 * Waits until the sleeper sleeps in the one call in which it can. Between the looks the waker sleeps itself: who waits for
 * a lock spins as long as the owner runs.
 */
static void until_asleep(long before)
{
	int asleep;
	while (sleeps(&asleep) == before || !asleep)
		nap();
}

static uint64_t inode_of(int fd)
{
	struct stat s;
	if (fstat(fd, &s))
		die("fstat");
	return s.st_ino;
}

static uint64_t eventfd_id(int fd)
{
	char path[64], line[128];
	unsigned long long id = 0;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		sscanf(line, "eventfd-id: %llu", &id);
	if (f)
		fclose(f);
	return id;
}

static void fill(int fd, size_t size)
{
	char block[4096] = { 0 };
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, block, size) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

static void open_all(const char *lock)
{
	socklen_t len = sizeof listen_address;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	listen_address.sin_family = AF_INET;
	listen_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&listen_address, len) || listen(listener, 5) || getsockname(listener, (void *)&listen_address, &len))
		die("listen");
	if (pipe(pipe_fds) || pipe(full_pipe) || pipe(poll_pipe) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		die("pipe");
	fill(full_pipe[1], 4096);
	event_fd = eventfd(0, 0);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, 0);
	epoll_fd = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN };
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, poll_pipe[0], &e))
		die("epoll_ctl");
	for (int i = 0; i < 2; i++)
		if ((lock_fds[i] = open(lock, O_RDONLY)) < 0)
			die(lock);
}

static void story_waits(int n, const char *lock)
{
	pthread_t t;
	open_all(lock);
	if (pthread_create(&t, NULL, sleeper, &n))
		die("pthread_create");
	while (!__atomic_load_n(&sleeper_tid, __ATOMIC_SEQ_CST))
		sched_yield();
	for (int i = 0; i < WAITS * n; i++) {
		const struct wait *w = &waits[i / n];
		int asleep;
		long before = sleeps(&asleep);
		if (w->prepare)
			w->prepare();
		__atomic_store_n(&sleeper_at, i + 1, __ATOMIC_SEQ_CST);
		if (w->release) {
			until_asleep(before);
			w->release();
		}
		until(&sleeper_done, i + 1);
	}
	pthread_join(t, NULL);
	say("thread sleeper=%d waker=%d\n", sleeper_tid, tid());
	for (int i = 0; i < WAITS; i++) {
		const struct wait *w = &waits[i];
		uint64_t object = 0;
		if (w->word)
			object = (uintptr_t)w->word;
		else if (w->fd == &event_fd)
			object = eventfd_id(event_fd);
		else if (w->fd && w->fd != &epoll_fd && w->fd != &timer_fd)
			object = inode_of(*w->fd);
		say("wait %s_object=%llu %s_fd=%u\n", w->name, (unsigned long long)object, w->name, w->fd ? (unsigned)*w->fd : -1u);
	}
}
