/* SPDX-License-Identifier: Apache-2.0 */
/* How a thread takes a ring, starts in it, and goes on in another. R1 to R4: runtime.c. */
#include "runtime.h"

/* Finds room for the calling thread's ring: a multiple of its size, with the bit above it clear. In a 32-bit program a
 * ring takes at most a 16th of the room that is left, so that there is some for every thread. A block that has a ring keeps
 * it, whatever size is asked for now: a stub that a signal handler has interrupted may be about to find the second slot of
 * its record by a mask that it loads again. */
static int make_ring(struct braid_header *h, struct braid_block *b)
{
	if (b->ring_addr)
		return 1;
	braid_u64 s = h->ring_bytes;
	if (s < 4096 || s & (s - 1))
		return 0;
	if (NARROW)
		for (braid_u64 room = h->bytes - h->ring_next; s > 64 << 10 && s > room / 16;)
			s /= 2;
	braid_u64 next = __atomic_load_n(&h->ring_next, __ATOMIC_RELAXED), off;
	do {
		off = ((h->base + next + 2 * s - 1) & ~(2 * s - 1)) - h->base;
		/* Opened before it is taken, so that a failure costs no room. If another takes it, it is opened for that one. */
		if (off + s > h->bytes || off + s < off || !__braid_open_memory(h->base + off, s)) {
			__atomic_fetch_add(&h->lost_rings, 1, __ATOMIC_RELAXED);
			return 0;
		}
	} while (!__atomic_compare_exchange_n(&h->ring_next, &next, off + s, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	b->ring_off = off;
	b->ring_bytes = s;
	__atomic_store_n(&b->ring_addr, h->base + off, __ATOMIC_RELEASE);
	return 1;
}

/* Forgets which ring is to be next. The block keeps it. */
HIDDEN void __braid_put_next_away(struct braid_block *b)
{
	if (b->next_addr && (!b->prev_addr || b->prev_addr == b->ring_addr)) {
		b->prev_bytes = b->next_bytes;
		b->prev_off = b->next_off;
		b->prev_addr = b->next_addr;
	}
	__atomic_store_n(&b->next_addr, 0, __ATOMIC_RELEASE);
}

static int exchange(braid_u64 *word, braid_u64 from, braid_u64 to)
{
	return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Starts the calling thread, whose cursor and mask were seen as they are given here: it is off, or attends without an
 * address (with one if it is to give up: api.c). If the recorder changes its mind meanwhile, what it says stays (R4). */
HIDDEN void __braid_start(struct braid_header *h, struct braid_block *b, braid_u64 cursor, braid_u64 mask)
{
	BRAID_POINT(10);
	braid_u32 want = __atomic_load_n(&b->want, __ATOMIC_ACQUIRE); /* once, or it could go on without having made a ring */
	braid_u64 off = cursor & ~BRAID_TAG;
	if (want && (b->api == BRAID_API_OFF || !make_ring(h, b))) {
		exchange(&b->cursor, cursor, off);
		return;
	}
	if (!want || !(mask & 1) || !exchange(&b->mask, mask, ~b->ring_bytes)) {
		BRAID_POINT(11);
		/* If it was stopped and started again since want was read, that is not the request that this answers. want alone may
		   be its own (api.c). */
		if (exchange(&b->cursor, cursor, off) && (cursor & BRAID_TAG) == BRAID_ATTEND &&
		    __atomic_load_n(&b->mask, __ATOMIC_ACQUIRE) & 1 && __atomic_load_n(&b->want, __ATOMIC_ACQUIRE))
			exchange(&b->cursor, off, BRAID_ATTEND);
		return;
	}
	BRAID_POINT(12);
	__braid_put_next_away(b);
	braid_u64 start = b->start = braid_counter();
	b->done = 0;
	BRAID_POINT(13);
	if (exchange(&b->cursor, cursor, b->ring_addr | BRAID_ON)) {
		BRAID_POINT(14);
		b->start = start; /* if it was stopped, released and started again just before, it is 0 */
	}
}

/* Turns the calling thread off, where it stands. */
HIDDEN void __braid_leave(struct braid_block *b)
{
	braid_u64 c = __atomic_load_n(&b->cursor, __ATOMIC_ACQUIRE);
	while ((c & BRAID_TAG) != BRAID_OFF && !exchange(&b->cursor, c, c & ~BRAID_TAG))
		c = __atomic_load_n(&b->cursor, __ATOMIC_ACQUIRE);
}

/* Answers a request to go on in the next ring: the cursor is where this one ends, and attends. A stop may overtake it, by
 * clearing the rest of the mask's low bits or by turning the cursor off. Then this ring stays the thread's. */
HIDDEN void __braid_swap(struct braid_header *h, struct braid_block *b, braid_u64 cursor)
{
	braid_u64 mask = __atomic_load_n(&b->mask, __ATOMIC_ACQUIRE), end = cursor & ~BRAID_TAG;
	braid_u64 addr = __atomic_load_n(&b->next_addr, __ATOMIC_ACQUIRE), bytes = b->next_bytes, off = b->next_off;
	BRAID_POINT(20);
	if (!(mask & 1) || !exchange(&b->mask, mask, ~b->ring_bytes)) {
		BRAID_POINT(21);
		exchange(&b->cursor, cursor, end | BRAID_OFF);
		return;
	}
	BRAID_POINT(22);
	int there = addr && bytes == b->ring_bytes;
	if (there && addr != b->opened && !__braid_open_memory(addr, bytes)) { /* the recorder has made it */
		__atomic_fetch_add(&h->lost_rings, 1, __ATOMIC_RELAXED);
		there = 0;
	}
	if (!there) { /* no such ring: on in this one */
		exchange(&b->cursor, cursor, end | BRAID_ON);
		return;
	}
	b->opened = b->ring_addr; /* the next swap is to go back to it */
	b->prev_bytes = b->ring_bytes;
	b->prev_off = b->ring_off;
	b->prev_cursor = end;
	b->prev_done = b->done;
	b->prev_start = b->start;
	b->prev_end = braid_counter();
	BRAID_POINT(23);
	__atomic_store_n(&b->prev_addr, b->ring_addr, __ATOMIC_RELEASE);
	BRAID_POINT(24);
	if (!exchange(&b->cursor, cursor, addr | BRAID_ON)) /* all of prev_* is there by then */
		return;
	BRAID_POINT(25);
	b->start = b->prev_end;
	BRAID_POINT(26);
	b->done = 0;
	b->ring_off = off;
	b->ring_bytes = bytes;
	BRAID_POINT(27);
	__atomic_store_n(&b->ring_addr, addr, __ATOMIC_RELEASE);
	BRAID_POINT(28);
	exchange(&b->next_addr, addr, 0); /* the recorder has seen where the cursor is, and may have named another by now */
	BRAID_POINT(29);
	__atomic_store_n(&b->swaps, b->swaps + 1, __ATOMIC_RELEASE);
}
