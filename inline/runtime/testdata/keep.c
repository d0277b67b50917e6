/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arms its own area, then goes through the slow path in several threads, with known values in all registers, and looks at
 * what has become of them and of the thread's control block. keep_ARCH.S is what a stub does.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/arena.h"

#if defined(__x86_64__)
enum { GENERAL = 80, VECTORS = 256, UNUSED = 72, UNUSED_END = 80 };
#elif defined(__aarch64__)
enum { GENERAL = 144, VECTORS = 512, UNUSED = 144, UNUSED_END = 144 };
#else
enum { GENERAL = 24, VECTORS = 256, UNUSED = 20, UNUSED_END = 24 };
#endif

extern __attribute__((visibility("hidden"))) void keep_round(const void *in, void *out, long scalable, struct braid_block **mine);
#ifdef BRAID_WORD
static __thread struct braid_block *mine;
#else
extern __attribute__((visibility("hidden"), tls_model("initial-exec"))) __thread struct braid_block *__braid_tls;
#define mine __braid_tls
#endif

static struct braid_header *area(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long low = 0;
	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "memfd:braid") && sscanf(line, "%lx", &low) == 1)
			break;
	if (f)
		fclose(f);
	return (struct braid_header *)low;
}

static int bad(const char *what)
{
	printf("wrong: %s\n", what);
	fflush(stdout); /* a child does not */
	return 1;
}

/* One time through the slow path. */
static int once(unsigned seed)
{
	static const size_t most = GENERAL + 34 * 256;
	unsigned char in[GENERAL + 34 * 256], out[sizeof in];
	size_t used = GENERAL + VECTORS;
	long scalable = 0;
#if defined(__aarch64__)
	if (getauxval(AT_HWCAP) & 1 << 22) { /* SVE */
		__asm__ volatile(".arch_extension sve\n\trdvl %0, #1" : "=r"(scalable));
		used = GENERAL + 34 * scalable;
	}
#endif
	for (size_t k = 0; k < most; k++)
		in[k] = (k * 167 + seed * 31 + 5) >> 1;
	memset(in + UNUSED, 0, UNUSED_END - UNUSED);
	memset(out, 0, sizeof out);
	keep_round(in, out, scalable, &mine);
	for (size_t k = 0; k < used; k++)
		if (in[k] != out[k]) {
			printf("byte %zu of %zu: %#x became %#x\n", k, used, in[k], out[k]);
			return bad("a register was not kept");
		}
	return 0;
}

static int thread_checked(int tracing)
{
	if (once(1) || once(2))
		return 1;
	struct braid_block *b = mine;
	if (!b)
		return bad("the thread's word is null behind the slow path");
	if (!tracing)
		return (b->cursor & 7) == BRAID_OFF ? 0 : bad("on, and nobody has asked for it");
	if ((b->cursor & 7) != BRAID_ON)
		return bad("the thread is not on");
	if (b->cursor >> 32 && sizeof(void *) == 4)
		return bad("the cursor has a high half");
	if (b->tid != (unsigned)syscall(SYS_gettid) || b->state != BRAID_READY || b->mask != ~b->ring_bytes || b->done)
		return bad("the block");
	if (b->ring_addr % (2 * b->ring_bytes) || b->cursor != (b->ring_addr | BRAID_ON))
		return bad("the ring's place");
	uint64_t *ring = (uint64_t *)(uintptr_t)b->ring_addr;
	ring[0] = ring[b->ring_bytes / 8 - 1] = 1; /* it is all there */
	b->cursor = BRAID_ATTEND; /* as a recorder starts a thread again */
	if (once(3))
		return 1;
	return (b->cursor & 7) == BRAID_ON ? 0 : bad("the thread did not start again");
}

static void *body(void *failed)
{
	*(int *)failed = thread_checked(1);
	return 0;
}

/* A thread whose records the recorder has taken, and that ends. */
static void *released(void *block)
{
	int failed = thread_checked(1);
	mine->start = 0;
	mine->cursor &= ~BRAID_TAG;
	*(struct braid_block **)block = failed ? 0 : mine;
	return 0;
}

__attribute__((visibility("default"))) int keep_main(void)
{
	struct braid_header *h = area();
	if (!h || h->magic != BRAID_ARENA_MAGIC)
		return bad("no area");
	if (thread_checked(0))
		return 1;
	h->policy = BRAID_POLICY_ALL;
	h->armed = 1;
	__atomic_store_n(&h->dummy.cursor, BRAID_ATTEND, __ATOMIC_SEQ_CST);
	if (thread_checked(1))
		return 1;
	for (int k = 0; k < 7; k++) {
		pthread_t t;
		int failed = 1;
		if (pthread_create(&t, 0, body, &failed) || pthread_join(t, 0) || failed)
			return bad("a thread");
	}
	pthread_t t;
	struct braid_block *b = 0;
	if (pthread_create(&t, 0, released, &b) || pthread_join(t, 0) || !b || b->state != BRAID_EXITING)
		return bad("a thread with a ring did not leave its block to the recorder");
	if (h->block_used < 2 || h->lost_threads || h->lost_rings)
		return bad("the area");
	pid_t child = fork();
	if (child == 0) { /* R5: another area at the same address */
		if (h->pid != (unsigned)getpid() || h->parent != (unsigned)getppid())
			_exit(bad("the child's area"));
		if (mine->tid != (unsigned)getpid() || (mine->cursor & 7) != BRAID_ON)
			_exit(bad("the child's block"));
		_exit(once(4) || thread_checked(1));
	}
	int status = 1;
	if (waitpid(child, &status, 0) != child || status) {
		printf("status %#x: ", status);
		return bad("the child");
	}
	puts("kept");
	return 0;
}

#ifndef KEEP_SHARED
int main(void) { return keep_main(); }
#endif
