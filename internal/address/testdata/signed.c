/* Prints a signed return address, as it lies in memory; and a heap pointer with a memory tag, where there is such memory.
 * Built for arm64 with -mbranch-protection=standard -march=armv8.5-a+memtag. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define PROT_MTE 0x20 /* asm/mman.h */

/* The frame record at the frame pointer: the caller's frame pointer, the return address. */
__attribute__((noinline)) static void leaf(void)
{
	uint64_t *frame = __builtin_frame_address(0);
	printf("signed %#llx\n", (unsigned long long)frame[1]);
	fflush(stdout); /* not a leaf for the compiler: so that it signs */
}

__attribute__((noinline)) void the_caller(void)
{
	leaf();
	__asm__ volatile("");
}

int main(void)
{
	the_caller();
	prctl(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE | 1 << 1 /* PR_MTE_TCF_SYNC */ | 0xfffe << 3, 0, 0, 0);
	char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_MTE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *tagged;
	if (p == MAP_FAILED)
		return 1;
	__asm__ volatile("irg %0, %1\n\tstg %0, [%0]" : "=r"(tagged) : "r"(p) : "memory");
	tagged[0] = 1; /* with another tag this would be a fault */
	printf("plain %p\ntagged %p\n", (void *)p, (void *)tagged);
	printf("ignored %p\n", (void *)((uintptr_t)p | 0xb4ull << 56));
	return 0;
}
