/* The traced functions, one for each workload. Compiled once for each variant and alignment: VARIANT and ALIGN name the
 * functions and move their starts by so many bytes from the start of a cache line.
 *
 * TRACED_ENTER(function) and TRACED_LEAVE(function) stand at each entry and before each return, for tracers that are called
 * from the source. Calls are real ones: compile with -fno-optimize-sibling-calls. */
#include "traced.h"

#ifndef TRACED_ENTER
#define TRACED_ENTER(function)
#endif
#ifndef TRACED_LEAVE
#define TRACED_LEAVE(function)
#endif

#define LISTING NAME(listing, VARIANT, ALIGN)
#define MATRIX NAME(matrix, VARIANT, ALIGN)
#define SCHEDULE NAME(schedule, VARIANT, ALIGN)
#define IO NAME(io, VARIANT, ALIGN)

/* Each function has a section, so that what the assembler is told here comes before it in any compiler. */
#undef PLACED
#define PLACED(function) PLACED_(function, ALIGN)
#define PLACED_(function, align) PLACED__(function, align)
#define PLACED__(function, align)                                                                                            \
	__asm__(".pushsection .text.traced." #function ",\"ax\",%progbits\n\t.p2align 6\n\t.skip 64 + " #align "\n\t.popsection"); \
	__attribute__((section(".text.traced." #function), noinline, ALONE))

/* Hubble (OSDI '22), Listing 1. */
PLACED(LISTING) int64_t LISTING(int32_t depth, int32_t work, int64_t sum)
{
	TRACED_ENTER(LISTING);
	for (int32_t i = 0; i < work; i++) {
		sum *= i - 1;
		sum /= i + 2;
	}
	if (depth > 1)
		sum = LISTING(depth - 1, work, sum);
	TRACED_LEAVE(LISTING);
	return sum;
}

/* One step of a multiplication of matrices. The call of itself is never made: it stands there because the paper's does. */
PLACED(MATRIX) uint32_t MATRIX(uint32_t a, uint32_t b, uint32_t sum, int32_t depth)
{
	TRACED_ENTER(MATRIX);
	sum += a * b;
	if (depth > 1)
		sum = MATRIX(a, b, sum, depth - 1);
	TRACED_LEAVE(MATRIX);
	return sum;
}

/* Gives the turn to the other thread, and waits until it comes back. */
PLACED(SCHEDULE) void SCHEDULE(int32_t *turn, int32_t mine, int32_t other)
{
	TRACED_ENTER(SCHEDULE);
	__atomic_store_n(turn, other, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	while (__atomic_load_n(turn, __ATOMIC_SEQ_CST) != mine)
		syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, other, 0, 0, 0);
	TRACED_LEAVE(SCHEDULE);
}

/* Writes a block, and waits until it is on the disk. */
PLACED(IO) int IO(int file, const void *block, size_t size, off_t where)
{
	int failed;

	TRACED_ENTER(IO);
	failed = pwrite(file, block, size, where) != (ssize_t)size || fdatasync(file) != 0;
	TRACED_LEAVE(IO);
	return failed;
}

#undef LISTING
#undef MATRIX
#undef SCHEDULE
#undef IO
