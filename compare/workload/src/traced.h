/* What the traced functions and the program that calls them share. May be included several times. */
#ifndef TRACED_H
#define TRACED_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129

#define NAME(workload, variant, align) NAME_(workload, variant, align)
#define NAME_(workload, variant, align) workload##_##variant##_##align

/* A function whose callers know nothing of its body. */
#ifdef __clang__
#define ALONE noinline
#else
#define ALONE noipa
#endif

typedef int64_t listing_fn(int32_t depth, int32_t work, int64_t sum);
typedef uint32_t matrix_fn(uint32_t a, uint32_t b, uint32_t sum, int32_t depth);
typedef void schedule_fn(int32_t *turn, int32_t mine, int32_t other);
typedef int io_fn(int file, const void *block, size_t size, off_t where);

/* The traced functions of a variant at an alignment. */
struct traced {
	const char *variant;
	int align;
	listing_fn *listing;
	matrix_fn *matrix;
	schedule_fn *schedule;
	io_fn *io;
};
extern const struct traced traced[];
extern const int traced_count;

/* How many entries and returns handlers have kept; a program without handlers has none. */
extern uint64_t handler_kept(void) __attribute__((weak));
/* Makes the calling thread's ring, so that its first record takes no longer than others. */
extern void handler_begin(void) __attribute__((weak));

#define TRACED_DECLARE(variant, align)             \
	listing_fn NAME(listing, variant, align);  \
	matrix_fn NAME(matrix, variant, align);    \
	schedule_fn NAME(schedule, variant, align); \
	io_fn NAME(io, variant, align);
#define TRACED_ENTRY(variant, align)                                            \
	{ #variant, align, NAME(listing, variant, align), NAME(matrix, variant, align), \
	  NAME(schedule, variant, align), NAME(io, variant, align) },
#define TRACED_ALIGNS(X, variant) X(variant, 0) X(variant, 16) X(variant, 32) X(variant, 48)
#endif
