/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's way into its control block and ring, and its end. R1 to R4: runtime.c. */
#include "runtime.h"

static struct braid_block *registered(struct braid_header *h, braid_u32 tid, braid_u64 thread)
{
	braid_u32 n = __atomic_load_n(&h->block_used, __ATOMIC_ACQUIRE);
	for (braid_u32 k = 0; k < n && k < BRAID_BLOCK_MAX; k++) {
		struct braid_block *b = &blocks(h)[k];
		if (b->tid == tid && b->thread == thread && __atomic_load_n(&b->state, __ATOMIC_ACQUIRE) == BRAID_READY)
			return b;
	}
	return 0;
}

/* Finds room for the calling thread's ring: a multiple of its size, with the bit above it clear. In a 32-bit program a
 * ring takes at most a 16th of the room that is left, so that there is some for every thread. */
static int make_ring(struct braid_header *h, struct braid_block *b)
{
	braid_u64 s = h->ring_bytes;
	if (s < 4096 || s & (s - 1))
		return 0;
	if (NARROW)
		for (braid_u64 room = h->bytes - h->ring_next; s > 64 << 10 && s > room / 16;)
			s /= 2;
	if (b->ring_addr && b->ring_bytes == s)
		return 1;
	braid_u64 next = __atomic_load_n(&h->ring_next, __ATOMIC_RELAXED), off;
	do {
		off = ((h->base + next + 2 * s - 1) & ~(2 * s - 1)) - h->base;
		if (off + s > h->bytes || off + s < off) {
			__atomic_fetch_add(&h->lost_rings, 1, __ATOMIC_RELAXED);
			return 0;
		}
	} while (!__atomic_compare_exchange_n(&h->ring_next, &next, off + s, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	b->ring_off = off;
	b->ring_bytes = s;
	__atomic_store_n(&b->ring_addr, h->base + off, __ATOMIC_RELEASE);
	return 1;
}

/* Starts the calling thread, whose block is off or attends. */
HIDDEN void __braid_start(struct braid_header *h, struct braid_block *b)
{
	if (!b->want || !make_ring(h, b)) {
		__atomic_store_n(&b->cursor, BRAID_OFF, __ATOMIC_RELEASE);
		return;
	}
	b->start = braid_counter();
	b->done = 0;
	__atomic_store_n(&b->mask, ~b->ring_bytes, __ATOMIC_RELEASE);
	__atomic_store_n(&b->cursor, b->ring_addr | BRAID_ON, __ATOMIC_RELEASE);
}

HIDDEN void __braid_fill(struct braid_header *h, struct braid_block *b, braid_u32 tid)
{
	b->tid = tid;
	b->thread = braid_thread_pointer();
	b->exit = 0;
	b->uses++;
	b->rounds = 0;
	sys(SYS_prctl, GET_NAME, b->comm, 0);
	b->want = h->policy == BRAID_POLICY_ALL || (h->policy == BRAID_POLICY_MAIN && tid == h->pid);
	b->cursor = BRAID_OFF;
}

static struct braid_block *claim(struct braid_header *h, braid_u32 tid)
{
	for (braid_u32 k = 0; k < BRAID_BLOCK_MAX; k++) {
		struct braid_block *b = &blocks(h)[k];
		braid_u32 state = BRAID_FREE;
		if (!__atomic_compare_exchange_n(&b->state, &state, BRAID_CLAIMING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		braid_u32 used = __atomic_load_n(&h->block_used, __ATOMIC_RELAXED);
		while (used <= k &&
		       !__atomic_compare_exchange_n(&h->block_used, &used, k + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			;
		__braid_fill(h, b, tid);
		__braid_start(h, b);
		__atomic_store_n(&b->state, BRAID_READY, __ATOMIC_RELEASE); /* R3 */
		if (__braid_exit_key_ok)
			pthread_setspecific(__braid_exit_key, b); /* R2 */
		return b;
	}
	__atomic_fetch_add(&h->lost_threads, 1, __ATOMIC_RELAXED);
	return &h->parked;
}

/* Called by __braid_slow (slow_ARCH.S) at a trace point that saw BRAID_ATTEND, or, with BRAID_WORD, a null pointer in the
 * thread's word at mine. The trace point then begins again; the word is not null then. */
HIDDEN void __braid_attend(struct braid_block **mine)
{
#ifndef BRAID_WORD
	mine = &__braid_tls;
#endif
	struct braid_header *h = __braid_area;
	if (!h) { /* before begin(), without a system call: what the slow path has to keep is not known yet. Or never again */
		*mine = __braid_first_dummy.cursor == BRAID_OFF ? &__braid_first_dummy : &__braid_parked;
		return;
	}
	braid_u64 all = ~0ull, old = 0;
	sys6(SYS_sigprocmask, 2, (long)&all, (long)&old, 8, 0, 0); /* R1 */
	struct braid_block *t = *mine;
	if (!t || t == &__braid_first_dummy || t == &h->dummy) {
		braid_u32 tid = sys(SYS_gettid, 0, 0, 0);
		struct braid_block *b = registered(h, tid, braid_thread_pointer());
		if (!b)
			b = __atomic_load_n(&h->armed, __ATOMIC_ACQUIRE) ? claim(h, tid) : &h->dummy;
		*mine = b;
	} else if ((t->cursor & 7) == BRAID_ATTEND) {
		__braid_start(h, t);
	}
	sys6(SYS_sigprocmask, 2, (long)&old, 0, 8, 0, 0);
}

/* libc runs this when a thread ends, up to four times as long as the value is set again. It waits for the last round,
 * so that other exit hooks are still recorded. */
HIDDEN void __braid_thread_exit(void *p)
{
	struct braid_block *b = p;
	if (b->rounds++ < 3 && pthread_setspecific(__braid_exit_key, b) == 0)
		return;
	sys(SYS_prctl, GET_NAME, b->comm, 0); /* it may have been renamed since it registered */
	b->exit = braid_counter();
	if (b->ring_addr && b->start) {
		__atomic_store_n(&b->state, BRAID_EXITING, __ATOMIC_RELEASE);
		return;
	}
#ifdef BRAID_WORD /* the word may be gone, or still be used by this thread: the recorder frees the block */
	__atomic_store_n(&b->state, BRAID_EXITING, __ATOMIC_RELEASE);
#else
	__braid_tls = &__braid_parked;
	__atomic_store_n(&b->state, BRAID_FREE, __ATOMIC_RELEASE);
#endif
}
