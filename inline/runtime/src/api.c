/* SPDX-License-Identifier: Apache-2.0 */
/* What include/braid.h offers to the program. May be called anywhere, also in a signal handler. */
#include "runtime.h"

static int armed(struct braid_header *h) { return __atomic_load_n(&h->armed, __ATOMIC_ACQUIRE) != 0; }

/* Empties the ring of a thread that is off and is to start by itself. The recorder tells by its last slot whether it has
 * wrapped, so that is 0 also where the kernel does not give memory back. */
static void clear_ring(struct braid_block *b)
{
	if (!b->ring_addr)
		return;
	sys(SYS_madvise, (word)b->ring_addr, (size_t)b->ring_bytes, MADV_REMOVE);
	volatile braid_u64 *last = (volatile braid_u64 *)(word)(b->ring_addr + b->ring_bytes - 8);
	if (*last)
		*last = 0;
}

/* Turns a thread that is off on. The cursor attends from the first step on, as if a recorder had asked: so one that stops it
 * meanwhile either sees that it attends, or has cleared bits of the mask before the mask is looked at here. It keeps its
 * address until the mask was seen: the recorder may be about to copy what was recorded before. */
static void start_itself(struct braid_header *h, struct braid_block *b)
{
	braid_u64 c = __atomic_load_n(&b->cursor, __ATOMIC_ACQUIRE);
	if ((c & BRAID_TAG) != BRAID_OFF || !(__atomic_load_n(&b->mask, __ATOMIC_ACQUIRE) & 1) || !armed(h))
		return; /* not while the recorder wants it off */
	BRAID_POINT(30);
	__atomic_store_n(&b->want, 1, __ATOMIC_RELEASE);
	if (!__atomic_compare_exchange_n(&b->cursor, &c, c | BRAID_ATTEND, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return; /* the recorder has started it */
	BRAID_POINT(31);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	c |= BRAID_ATTEND;
	braid_u64 mask = __atomic_load_n(&b->mask, __ATOMIC_ACQUIRE);
	if (mask & 1) {
		if (!__atomic_compare_exchange_n(&b->cursor, &c, BRAID_ATTEND, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return; /* the recorder has stopped it */
		c = BRAID_ATTEND;
		clear_ring(b);
	}
	BRAID_POINT(32);
	__braid_start(h, b, c, mask);
}

HIDDEN int __braid_api_thread(int on)
{
	struct braid_header *h = __braid_area;
	if (!h)
		return 0;
	braid_u64 old = block_signals(); /* R1 */
	braid_u32 tid = sys(SYS_gettid, 0, 0, 0), api = on ? BRAID_API_ON : BRAID_API_OFF;
	struct braid_block *b = __braid_registered(h, tid, braid_thread_pointer());
	if (!b) {
		b = __braid_claim(h, tid, api); /* also if nobody is there to record: who comes later sees what was asked */
	} else {
		__atomic_store_n(&b->api, api, __ATOMIC_RELEASE);
		if (!on) {
			__braid_leave(b);
		} else {
			start_itself(h, b);
		}
	}
#ifndef BRAID_WORD /* elsewhere the thread finds it at its next trace point */
	if (__braid_tls == &__braid_first_dummy || __braid_tls == &h->dummy)
		__braid_tls = b;
#endif
	unblock_signals(old);
	return armed(h);
}

HIDDEN int __braid_api_trigger(const char *why)
{
	struct braid_header *h = __braid_area;
	if (!h || !armed(h))
		return 0;
	braid_u64 old = block_signals(); /* a handler would find it locked, and its reason would be lost */
	if (__atomic_exchange_n(&h->trigger_lock, 1, __ATOMIC_ACQUIRE)) {
		__atomic_fetch_add(&h->trigger_lost, 1, __ATOMIC_RELAXED);
	} else {
		size_t n = 0, room = sizeof h->trigger_why;
		for (; why && why[n] && n < room - 1; n++)
			((volatile char *)h->trigger_why)[n] = why[n];
		for (; n < room; n++)
			((volatile char *)h->trigger_why)[n] = 0;
		h->trigger_tid = sys(SYS_gettid, 0, 0, 0);
		h->trigger_at = braid_counter();
		__atomic_fetch_add(&h->trigger_seq, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&h->trigger_lock, 0, __ATOMIC_RELEASE);
	}
	unblock_signals(old);
	return 1;
}
