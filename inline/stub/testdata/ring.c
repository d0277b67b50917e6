/* Stands in for the runtime: the first thread records into one ring from the start, and the ring's slots are printed to
 * standard error when the program ends. RING_SLOTS must be a power of two. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifndef RING_SLOTS
#define RING_SLOTS (1ul << 17)
#endif
#define SIZE (RING_SLOTS * 8)

struct { unsigned long long cursor, mask, done; } block __attribute__((aligned(64)));
static unsigned long long *ring;

#ifdef RING_WORD
/* The word that the stubs look into is the program's only thread-local variable, so it is the first one behind the thread
 * pointer; the other door goes through x28. The slow path fills it in. (amd64: one of glibc's __private_tm, and r15.) */
__thread void *words[4] __attribute__((aligned(16)));
extern int program(void);
#ifdef __x86_64__
#define FILL "pushq %r10\npushq %r11\nmovq 24(%rsp), %r11\nleaq block(%rip), %r10\nmovq %r10, (%r11)\npopq %r11\npopq %r10\nret\n"
#define POINT "movq %0, %%r15"
#else
#define FILL "ldr x16, [sp]\nadrp x17, block\nadd x17, x17, :lo12:block\nstr x17, [x16]\nret\n"
#define POINT "mov x28, %0"
#endif
__asm__(".text\n.globl __braid_slow_word\n.hidden __braid_slow_word\n.type __braid_slow_word, %function\n__braid_slow_word:\n" FILL);
int main(void)
{
	__asm__ volatile(POINT : : "r"(words));
	return program();
}
#else
#ifdef RING_MAIN
extern int program(void);
int main(void) { return program(); }
#endif
__attribute__((visibility("hidden"))) __thread void *__braid_tls = &block;
__attribute__((visibility("hidden"))) void __braid_slow(void) { abort(); }
#endif

__attribute__((destructor)) static void dump(void)
{
	unsigned long end = ((unsigned long)block.cursor & ~7ul) - (unsigned long)ring;
	unsigned long done = ((unsigned long)block.done & ~7ul) - (unsigned long)ring;
	block.cursor = (unsigned long)block.cursor & ~7ul;
	fprintf(stderr, "ring %lu %lu\n", end / 8, done / 8);
	for (unsigned long k = 0; k < end / 8; k++)
		fprintf(stderr, "%016llx\n", ring[k]);
}

__attribute__((constructor(101))) static void make(void)
{
	char *p = mmap(0, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		abort();
	ring = (unsigned long long *)(((unsigned long)p + 2 * SIZE - 1) & ~(2 * SIZE - 1));
	block.mask = ~(unsigned long long)SIZE;
	block.cursor = (unsigned long)ring | 7;
}
