/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's way into its control block, and its end. R1 to R4: runtime.c. */
#include "runtime.h"

HIDDEN struct braid_block *__braid_registered(struct braid_header *h, braid_u32 tid, braid_u64 thread)
{
	braid_u32 n = __atomic_load_n(&h->block_used, __ATOMIC_ACQUIRE);
	for (braid_u32 k = 0; k < n && k < BRAID_BLOCK_MAX; k++) {
		struct braid_block *b = &blocks(h)[k];
		if (b->tid == tid && b->thread == thread && __atomic_load_n(&b->state, __ATOMIC_ACQUIRE) == BRAID_READY)
			return b;
	}
	return 0;
}

/* Makes a claimed block the calling thread's. Its rings stay. */
HIDDEN void __braid_fill(struct braid_header *h, struct braid_block *b, braid_u32 tid)
{
	__braid_put_next_away(b);
	b->prev_cursor = b->prev_done = b->prev_start = b->prev_end = 0;
	b->swaps = 0;
	b->api = BRAID_API_NONE;
	b->mask = ~0ull; /* nobody has asked it to stop */
	b->tid = tid;
	b->thread = braid_thread_pointer();
	b->exit = 0;
	b->uses++;
	b->rounds = 0;
	sys(SYS_prctl, GET_NAME, b->comm, 0);
	b->want = h->policy == BRAID_POLICY_ALL || (h->policy == BRAID_POLICY_MAIN && tid == h->pid);
	b->cursor = BRAID_OFF;
}

HIDDEN struct braid_block *__braid_claim(struct braid_header *h, braid_u32 tid, braid_u32 api)
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
		BRAID_POINT(1);
		__braid_fill(h, b, tid);
		b->api = api;
		b->want |= api == BRAID_API_ON;
		b->want &= __atomic_load_n(&h->armed, __ATOMIC_ACQUIRE) != 0; /* the API registers threads without a recorder */
		BRAID_POINT(2);
		__braid_start(h, b, BRAID_OFF, b->mask);
		BRAID_POINT(3);
		__atomic_store_n(&b->state, BRAID_READY, __ATOMIC_RELEASE); /* R3 */
		BRAID_POINT(4);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&h->armed, __ATOMIC_ACQUIRE))
			__braid_leave(b); /* a recorder that disarmed before it looked for threads that are ready has missed this one */
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
	braid_u64 old = block_signals(); /* R1 */
	struct braid_block *t = *mine;
	if (!t || t == &__braid_first_dummy || t == &h->dummy) {
		braid_u32 tid = sys(SYS_gettid, 0, 0, 0);
		struct braid_block *b = __braid_registered(h, tid, braid_thread_pointer());
		if (!b)
			b = __atomic_load_n(&h->armed, __ATOMIC_ACQUIRE) ? __braid_claim(h, tid, BRAID_API_NONE) : &h->dummy;
		*mine = b;
	} else {
		BRAID_POINT(5);
		braid_u64 c = __atomic_load_n(&t->cursor, __ATOMIC_ACQUIRE);
		BRAID_POINT(6);
		if (c == BRAID_ATTEND)
			__braid_start(h, t, c, __atomic_load_n(&t->mask, __ATOMIC_ACQUIRE));
		else if ((c & BRAID_TAG) == BRAID_ATTEND)
			__braid_swap(h, t, c);
	}
	unblock_signals(old);
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
	BRAID_POINT(7);
	if (b->ring_addr) { /* also if nothing is in it now: the recorder may just be about to free the block */
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
