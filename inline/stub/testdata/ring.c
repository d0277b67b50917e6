/* Stands in for the runtime: the first thread records into one ring from the start, and the ring's slots are printed to
 * standard error when the program ends. RING_SLOTS must be a power of two. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifndef RING_SLOTS
#define RING_SLOTS (1ul << 17)
#endif
#define SIZE (RING_SLOTS * 8)

static struct { unsigned long cursor, mask, done; } block __attribute__((aligned(64)));
static unsigned long *ring;

#ifdef RING_WORD
/* The word that the stubs look into is filled by the slow path, which gets its address. */
void ring_attend(void **word) { *word = &block; }
#else
__attribute__((visibility("hidden"))) __thread void *__braid_tls = &block;
__attribute__((visibility("hidden"))) void __braid_slow(void) { abort(); }
#endif

__attribute__((destructor)) static void dump(void)
{
	unsigned long end = (block.cursor & ~7ul) - (unsigned long)ring;
	unsigned long done = (block.done & ~7ul) - (unsigned long)ring;
	block.cursor &= ~7ul;
	fprintf(stderr, "ring %lu %lu\n", end / 8, done / 8);
	for (unsigned long k = 0; k < end / 8; k++)
		fprintf(stderr, "%016lx\n", ring[k]);
}

__attribute__((constructor(101))) static void make(void)
{
	char *p = mmap(0, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		abort();
	ring = (unsigned long *)(((unsigned long)p + 2 * SIZE - 1) & ~(2 * SIZE - 1));
	block.mask = ~SIZE;
	block.cursor = (unsigned long)ring | 4;
}
