// SPDX-License-Identifier: Apache-2.0
// Processes that talk through binder, by its ioctls alone, and say themselves what took how long. Times are
// CLOCK_BOOTTIME ns.
//
//   binder server THREADS     the context manager: serves until its stdin ends
//   binder helper             gives the server an object of its own to call (code NEST), and serves it likewise
//   binder client             reads lines from stdin, "CODE MS ONEWAY", and makes one call for each
//
// Each prints "ready" first, as testdata/target.c does, and a line for each call: what it was, and its time as the caller
// or as the server saw it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/android/binder.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLEEP = 2, COMPUTE = 3, NEST = 4, GIVE = 5 };

#define OBJECT 0x1234 /* the helper's */

static int binder;
static uint32_t helper; /* the server's handle of the helper's object; 0: none yet */

static void die(const char *what)
{
	fprintf(stderr, "binder: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int tid(void) { return syscall(SYS_gettid); }

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void open_binder(void)
{
	uint32_t none = 0;
	binder = open("/dev/binder", O_RDWR | O_CLOEXEC);
	if (binder < 0 || mmap(NULL, 1 << 17, PROT_READ, MAP_PRIVATE, binder, 0) == MAP_FAILED)
		die("/dev/binder");
	if (ioctl(binder, BINDER_SET_MAX_THREADS, &none))
		die("BINDER_SET_MAX_THREADS");
}

/* What a thread will write with its next call of the driver, and what it has read and not looked at yet. */
struct stream {
	uint8_t out[512], in[512];
	size_t out_len, in_len, in_at;
};

static void put(struct stream *s, uint32_t command, const void *data, size_t size)
{
	memcpy(s->out + s->out_len, &command, 4);
	if (size)
		memcpy(s->out + s->out_len + 4, data, size);
	s->out_len += 4 + size;
}

/* Writes what there is, and reads if asked to and there is nothing left. */
static void talk(struct stream *s, int reads)
{
	struct binder_write_read b = { .write_size = s->out_len, .write_buffer = (uintptr_t)s->out };
	if (reads && s->in_at == s->in_len) {
		b.read_size = sizeof s->in;
		b.read_buffer = (uintptr_t)s->in;
	}
	while (ioctl(binder, BINDER_WRITE_READ, &b))
		if (errno != EINTR)
			die("BINDER_WRITE_READ");
	s->out_len = 0;
	if (b.read_size) {
		s->in_len = b.read_consumed;
		s->in_at = 0;
	}
}

/* The next thing that the driver says, which may have data of up to size bytes. */
static uint32_t next(struct stream *s, void *data, size_t size)
{
	uint32_t command;
	while (s->in_at == s->in_len)
		talk(s, 1);
	memcpy(&command, s->in + s->in_at, 4);
	s->in_at += 4;
	size_t len = _IOC_SIZE(command);
	memcpy(data, s->in + s->in_at, len < size ? len : size);
	s->in_at += len;
	return command;
}

static void free_buffer(struct stream *s, const struct binder_transaction_data *t)
{
	binder_uintptr_t buffer = t->data.ptr.buffer;
	put(s, BC_FREE_BUFFER, &buffer, sizeof buffer);
}

/* References that others take of the own object: every one is granted. */
static void grant(struct stream *s, uint32_t command, const void *object)
{
	if (command == BR_INCREFS)
		put(s, BC_INCREFS_DONE, object, sizeof(struct binder_ptr_cookie));
	if (command == BR_ACQUIRE)
		put(s, BC_ACQUIRE_DONE, object, sizeof(struct binder_ptr_cookie));
}

/* Makes a call and waits for its end: the answer or, if it is one-way, that it was sent. */
static void call(struct stream *s, const struct binder_transaction_data *t)
{
	union {
		struct binder_transaction_data t;
		struct binder_ptr_cookie object;
	} u;
	put(s, BC_TRANSACTION, t, sizeof *t);
	for (;;) {
		uint32_t command = next(s, &u, sizeof u);
		switch (command) {
		case BR_TRANSACTION_COMPLETE:
			if (t->flags & TF_ONE_WAY)
				return;
			break;
		case BR_REPLY:
			free_buffer(s, &u.t);
			talk(s, 0);
			return;
		case BR_DEAD_REPLY:
		case BR_FAILED_REPLY:
			errno = EIO;
			die("the call failed");
			break;
		default:
			grant(s, command, &u.object);
		}
	}
}

static void pass_time(uint32_t code, uint32_t ms)
{
	if (code == SLEEP) {
		struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
		nanosleep(&t, NULL);
	} else if (code == COMPUTE) {
		uint64_t end = now() + ms * 1000000ull;
		while (now() < end)
			;
	}
}

static void take_object(struct stream *s, const struct binder_transaction_data *t)
{
	const binder_size_t *offsets = (void *)(uintptr_t)t->data.ptr.offsets;
	const struct flat_binder_object *o = (void *)(uintptr_t)(t->data.ptr.buffer + offsets[0]);
	uint32_t handle = o->handle;
	put(s, BC_ACQUIRE, &handle, sizeof handle);
	talk(s, 0);
	__atomic_store_n(&helper, handle, __ATOMIC_SEQ_CST);
}

static void serve(struct stream *s, const struct binder_transaction_data *t)
{
	uint64_t start = now();
	uint32_t ms = 0;
	if (t->code == GIVE)
		take_object(s, t);
	else
		ms = *(const uint32_t *)(uintptr_t)t->data.ptr.buffer;
	if (t->code == NEST) {
		uint32_t data = ms;
		struct binder_transaction_data inner = { .target.handle = helper, .code = SLEEP, .data_size = sizeof data };
		inner.data.ptr.buffer = (uintptr_t)&data;
		call(s, &inner);
	}
	pass_time(t->code, ms);
	/* Said before the answer, since what follows it is no part of the call. */
	printf("served code=%u tid=%d start=%llu end=%llu oneway=%d\n", t->code, tid(), (unsigned long long)start,
	       (unsigned long long)now(), !!(t->flags & TF_ONE_WAY));
	fflush(stdout);
	free_buffer(s, t);
	if (!(t->flags & TF_ONE_WAY)) {
		struct binder_transaction_data reply = { 0 };
		put(s, BC_REPLY, &reply, sizeof reply);
	}
}

static void *loop(void *arg)
{
	struct stream s = { .out_len = 0 };
	char name[16];
	snprintf(name, sizeof name, "Binder:%d_%ld", getpid(), (long)arg);
	prctl(PR_SET_NAME, name);
	put(&s, BC_ENTER_LOOPER, NULL, 0);
	for (;;) {
		union {
			struct binder_transaction_data t;
			struct binder_ptr_cookie object;
		} u;
		uint32_t command = next(&s, &u, sizeof u);
		if (command == BR_TRANSACTION)
			serve(&s, &u.t);
		else
			grant(&s, command, &u.object);
	}
	return NULL;
}

static void serve_until_end(int threads)
{
	pthread_t t;
	char c;
	for (long i = 1; i <= threads; i++)
		if (pthread_create(&t, NULL, loop, (void *)i))
			die("pthread_create");
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	_exit(0); /* its threads wait in the driver */
}

static void give_object(void)
{
	struct stream s = { .out_len = 0 };
	struct flat_binder_object object = { .hdr.type = BINDER_TYPE_BINDER, .binder = OBJECT };
	binder_size_t offset = 0;
	struct binder_transaction_data t = { .code = GIVE, .data_size = sizeof object, .offsets_size = sizeof offset };
	t.data.ptr.buffer = (uintptr_t)&object;
	t.data.ptr.offsets = (uintptr_t)&offset;
	call(&s, &t);
	if (s.out_len)
		talk(&s, 0);
}

static void client(void)
{
	struct stream s = { .out_len = 0 };
	unsigned code, ms, oneway;
	printf("ready\n");
	fflush(stdout);
	while (scanf("%u %u %u", &code, &ms, &oneway) == 3) {
		uint32_t data = ms;
		struct binder_transaction_data t = { .code = code, .flags = oneway ? TF_ONE_WAY : 0, .data_size = sizeof data };
		t.data.ptr.buffer = (uintptr_t)&data;
		uint64_t start = now();
		call(&s, &t);
		uint64_t end = now();
		printf("called code=%u tid=%d start=%llu end=%llu oneway=%u\n", code, tid(), (unsigned long long)start,
		       (unsigned long long)end, oneway);
		fflush(stdout);
	}
	printf("done\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "";
	open_binder();
	if (!strcmp(role, "server")) {
		if (ioctl(binder, BINDER_SET_CONTEXT_MGR, 0))
			die("BINDER_SET_CONTEXT_MGR");
		serve_until_end(atoi(argv[2]));
	} else if (!strcmp(role, "helper")) {
		give_object();
		serve_until_end(1);
	} else if (!strcmp(role, "client")) {
		client();
	}
	return 0;
}
