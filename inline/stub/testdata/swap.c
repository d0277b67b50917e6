/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A traced program that is its own recorder: it asks its threads to go on in another ring, stops them in between, and uses
 * braid.h. Then a thread is interrupted all the time by a handler with trace points of its own while rings are changed, and
 * every record of both is looked for. Linked with the runtime; only leaf, middle, handler and inside are traced.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "arena.h"
#include "braid.h"

#define TRACED __attribute__((noinline))
#ifndef SWAPS
#define SWAPS 160
#endif
enum { RING = (sizeof(void *) == 8 ? 32 : 4) << 20, ROOM = RING / 8 / 2 };

static volatile struct braid_header *h;
static volatile struct braid_block *b; /* the traced functions change it behind the compiler's back */
static void (*volatile between)(void);
static volatile unsigned long handled;

TRACED int leaf(int x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
TRACED int middle(int x) { if (between) between(); __asm__ volatile("" : "+r"(x)); return x; }
TRACED void inside(int x) { __asm__ volatile("" : : "r"(x)); }
static void hook(void);
TRACED void handler(int sig) { inside(sig); handled++; hook(); }

#define CHECK(what) do { if (!(what)) { printf("line %d: %s; cursor %#llx mask %#llx ring %#llx next %#llx prev %#llx\n", __LINE__, #what, \
	b ? b->cursor : 0, b ? b->mask : 0, b ? b->ring_addr : 0, b ? b->next_addr : 0, b ? b->prev_addr : 0); exit(1); } } while (0)

BRAID_NOTRACE static void find_area(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long low = 0;
	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "memfd:braid") && sscanf(line, "%lx", &low) == 1)
			break;
	if (f)
		fclose(f);
	h = (struct braid_header *)low;
}

BRAID_NOTRACE static struct braid_block *mine(void)
{
	struct braid_block *all = (struct braid_block *)((char *)h + BRAID_BLOCKS_OFF);
	for (unsigned k = 0; k < h->block_used; k++)
		if (all[k].tid == (unsigned)syscall(SYS_gettid) && all[k].state == BRAID_READY)
			return &all[k];
	return 0;
}

BRAID_NOTRACE static unsigned long slots(void) { return ((b->cursor & ~BRAID_TAG) - b->ring_addr) / 8; }
BRAID_NOTRACE static unsigned tag(void) { return b->cursor & BRAID_TAG; }

/* A second ring, as a recorder finds room for it. */
BRAID_NOTRACE static braid_u64 room(void)
{
	braid_u64 next = __atomic_load_n(&h->ring_next, __ATOMIC_RELAXED), off;
	do
		off = ((h->base + next + 2 * RING - 1) & ~(2ull * RING - 1)) - h->base;
	while (!__atomic_compare_exchange_n(&h->ring_next, &next, off + RING, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return off;
}

BRAID_NOTRACE static void ask(braid_u64 addr)
{
	b->next_off = addr - h->base;
	b->next_bytes = b->ring_bytes;
	__atomic_store_n(&b->next_addr, addr, __ATOMIC_SEQ_CST);
	__atomic_and_fetch(&b->mask, ~4ull, __ATOMIC_SEQ_CST);
}

/* Asks at the handler's end, so that the last trace point in it answers, and the interrupted stub finds the tag changed. */
static volatile braid_u64 from_handler;
BRAID_NOTRACE __attribute__((noinline)) static void hook(void)
{
	braid_u64 addr = __atomic_exchange_n(&from_handler, 0, __ATOMIC_SEQ_CST);
	if (addr)
		ask(addr);
}

BRAID_NOTRACE static void stop(void) { __atomic_and_fetch(&b->mask, ~7ull, __ATOMIC_SEQ_CST); }

BRAID_NOTRACE static void restart(void)
{
	CHECK(tag() == BRAID_OFF);
	b->want = 1;
	__atomic_or_fetch(&b->mask, 7ull, __ATOMIC_SEQ_CST); /* it has answered the stop */
	__atomic_store_n(&b->cursor, BRAID_ATTEND, __ATOMIC_SEQ_CST);
}

static braid_u64 old_ring, spare;

BRAID_NOTRACE static void is_complete(void) /* the swap is answered, the next trace point is not reached */
{
	CHECK(tag() == BRAID_ATTEND && b->ring_addr == old_ring && slots() == 3 && b->swaps == 0);
}

BRAID_NOTRACE static void turn_off(void)
{
	braid_u64 c = b->cursor;
	CHECK((c & BRAID_TAG) == BRAID_ATTEND && c & ~BRAID_TAG);
	__atomic_compare_exchange_n(&b->cursor, &c, c & ~BRAID_TAG, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

BRAID_NOTRACE static void in_handler(int sig) { (void)sig; braid_trigger("from a handler"); }

BRAID_NOTRACE static void step_by_step(void)
{
	braid_thread_on(); /* nobody is there */
	leaf(0);
	CHECK((b = mine()) && b->api == BRAID_API_ON && tag() == BRAID_OFF && !b->ring_addr && braid_trigger("nobody") == 0);
	braid_thread_off();
	h->ring_bytes = RING;
	h->armed = 1;
	__atomic_store_n(&h->dummy.cursor, BRAID_ATTEND, __ATOMIC_SEQ_CST);
	leaf(0);
	CHECK(tag() == BRAID_OFF && b == mine() && b->api == BRAID_API_OFF);
	restart();
	leaf(0);
	CHECK(tag() == BRAID_OFF); /* it is for the thread to say */
	braid_thread_on();
	CHECK(tag() == BRAID_ON && b->api == BRAID_API_ON && b->ring_addr % (2 * RING) == 0 && b->ring_bytes == RING);
	leaf(0);
	CHECK(slots() == 2 && tag() == BRAID_ON);

	old_ring = b->ring_addr;
	spare = h->base + room();
	ask(spare);
	between = is_complete;
	middle(0);
	between = 0;
	CHECK(b->swaps == 1 && b->ring_addr == spare && tag() == BRAID_ON && slots() == 1 && !b->next_addr && b->mask == ~(braid_u64)RING);
	CHECK(b->prev_addr == old_ring && b->prev_cursor == old_ring + 24 && b->prev_bytes == RING && b->prev_off == old_ring - h->base);
	CHECK((b->prev_done & ~BRAID_TAG) == old_ring + 16 && b->prev_start && b->start == b->prev_end && b->start > b->prev_start);
	CHECK((b->done & ~BRAID_TAG) == spare && b->ring_off == spare - h->base);

	ask(old_ring); /* a stop overtakes it */
	stop();
	middle(0);
	CHECK(tag() == BRAID_OFF && slots() == 2 && b->swaps == 1);
	braid_thread_on();
	CHECK(tag() == BRAID_OFF); /* the recorder wants it off */
	restart();
	leaf(0);
	CHECK(tag() == BRAID_ON && b->ring_addr == spare && slots() == 2 && !b->next_addr && b->prev_addr == old_ring);

	ask(old_ring); /* and here when it was answered: by the mask */
	between = stop;
	middle(0);
	CHECK(tag() == BRAID_OFF && slots() == 3 && b->ring_addr == spare && b->swaps == 1);
	restart();
	leaf(0);
	ask(old_ring); /* by the cursor */
	between = turn_off;
	middle(0);
	between = 0;
	CHECK(tag() == BRAID_OFF && slots() == 3 && b->ring_addr == spare && b->swaps == 1);
	restart();
	leaf(0);
	__atomic_and_fetch(&b->mask, ~4ull, __ATOMIC_SEQ_CST); /* with no ring to go to */
	leaf(0);
	CHECK(tag() == BRAID_ON && slots() == 4 && b->ring_addr == spare && b->swaps == 1 && b->mask == ~(braid_u64)RING);

	braid_thread_off();
	leaf(0);
	CHECK(tag() == BRAID_OFF && slots() == 4 && b->api == BRAID_API_OFF);
	braid_thread_on();
	braid_thread_on();
	leaf(0);
	CHECK(tag() == BRAID_ON && slots() == 2);

	CHECK(braid_trigger("a reason that is much longer than the sixty-three bytes that there is room for") == 1);
	CHECK(h->trigger_seq == 1 && strlen((char *)h->trigger_why) == 63 && h->trigger_tid == (unsigned)getpid() && h->trigger_at);
	h->trigger_lock = 1;
	CHECK(braid_trigger("lost") == 1 && h->trigger_lost == 1 && h->trigger_seq == 1);
	h->trigger_lock = 0;
	signal(SIGUSR2, in_handler);
	raise(SIGUSR2);
	CHECK(h->trigger_seq == 2 && !strcmp((char *)h->trigger_why, "from a handler") && braid_trigger(0) && !h->trigger_why[0]);
}

static pthread_t worker;
static volatile int ready, over;
static unsigned long calls;

BRAID_NOTRACE static void *work(void *arg)
{
	braid_thread_on();
	b = mine();
	__atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
	for (; !over; sched_yield())
		for (int k = 0; k < 1000 && !over && slots() < ROOM; k++) {
			leaf(k);
			calls++;
		}
	braid_thread_off();
	return arg;
}

/* Adds up what a ring holds and empties it. A slot may be written late, by a stub that a handler has interrupted. */
BRAID_NOTRACE static void take(braid_u64 addr, braid_u64 end, unsigned long *entries, unsigned long *exits, long *depth)
{
	volatile uint64_t *s = (uint64_t *)(uintptr_t)addr, *e = (uint64_t *)(uintptr_t)end;
	for (; s < e; s++) {
		for (long tries = 0; !*s; tries++) {
			CHECK(tries < 20000);
			usleep(tries ? 1000 : 0);
		}
		if ((uint32_t)*s) {
			++*entries;
			++*depth;
		} else {
			++*exits;
			CHECK(--*depth >= 0);
		}
		*s = 0;
	}
	CHECK(*s == 0);
}

BRAID_NOTRACE static void storm(void)
{
	unsigned long entries = 0, exits = 0;
	long depth = 0;
	b = 0;
	signal(SIGUSR1, handler);
	CHECK(pthread_create(&worker, 0, work, 0) == 0);
	while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST))
		sched_yield();
	braid_u64 next = h->base + room();
	for (unsigned n = 0; n < SWAPS; n++) {
		__atomic_store_n(&from_handler, next, __ATOMIC_SEQ_CST);
		for (unsigned k = 0; __atomic_load_n(&b->swaps, __ATOMIC_SEQ_CST) == n; k++) {
			if (k % 4 == 0) /* also when the worker has filled its room: nothing else makes it answer */
				pthread_kill(worker, SIGUSR1);
			else
				sched_yield();
			if (k % 16 == 15 && (n % 4 == 0 || slots() >= ROOM) && (next = __atomic_exchange_n(&from_handler, 0, __ATOMIC_SEQ_CST)))
				ask(next);
		}
		CHECK(b->swaps == n + 1);
		next = b->prev_addr;
		take(next, b->prev_cursor, &entries, &exits, &depth);
		if (depth > 6)
			CHECK(!"nesting");
	}
	over = 1;
	pthread_join(worker, 0);
	CHECK(tag() == BRAID_OFF);
	take(b->ring_addr, b->cursor & ~BRAID_TAG, &entries, &exits, &depth);
	if (entries != calls + 2 * handled || exits != entries || depth || handled < SWAPS / 20)
		printf("%lu entries, %lu exits of %lu calls and %lu handlers, depth %ld\n", entries, exits, calls, handled, depth);
	else
		puts("all there");
}

BRAID_NOTRACE int main(void)
{
	find_area();
	CHECK(h);
	step_by_step();
	storm();
	return 0;
}
