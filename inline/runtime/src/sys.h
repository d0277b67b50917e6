/* SPDX-License-Identifier: Apache-2.0 */
/* System calls without libc: they leave errno alone, and a trace point may be anywhere in a program, malloc included. */
#ifndef BRAID_SYS_H
#define BRAID_SYS_H

#include "arena.h"

#if defined(__x86_64__)
enum { SYS_mmap = 9, SYS_mprotect = 10, SYS_munmap = 11, SYS_sigprocmask = 14, SYS_mremap = 25, SYS_madvise = 28,
       SYS_getpid = 39, SYS_fcntl = 72, SYS_ftruncate = 77, SYS_getcwd = 79, SYS_gettid = 186, SYS_prctl = 157,
       SYS_close = 3, SYS_openat = 257, SYS_readlinkat = 267, SYS_prlimit = 302, SYS_memfd_create = 319 };

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

static inline braid_u64 braid_counter(void)
{
	braid_u32 lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (braid_u64)hi << 32 | lo;
}

static inline braid_u64 braid_counter_hz(void) { return 0; }

static inline braid_u64 braid_thread_pointer(void)
{
	braid_u64 p;
	__asm__("movq %%fs:0, %0" : "=r"(p));
	return p;
}
#elif defined(__aarch64__)
enum { SYS_mmap = 222, SYS_mprotect = 226, SYS_munmap = 215, SYS_sigprocmask = 135, SYS_mremap = 216, SYS_madvise = 233,
       SYS_getpid = 172, SYS_fcntl = 25, SYS_ftruncate = 46, SYS_getcwd = 17, SYS_gettid = 178, SYS_prctl = 167,
       SYS_close = 57, SYS_openat = 56, SYS_readlinkat = 78, SYS_prlimit = 261, SYS_memfd_create = 279 };

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}

static inline braid_u64 braid_counter(void)
{
	braid_u64 t;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
}

static inline braid_u64 braid_counter_hz(void)
{
	braid_u64 t;
	__asm__("mrs %0, cntfrq_el0" : "=r"(t));
	return t;
}

static inline braid_u64 braid_thread_pointer(void)
{
	braid_u64 p;
	__asm__("mrs %0, tpidr_el0" : "=r"(p));
	return p;
}
#elif defined(__arm__)
/* EABI. mmap2 counts 4096-byte pages (arch/arm/mm, arch/arm64/kernel/sys32.c), fcntl64 takes the same commands. */
enum { SYS_mmap = 192, SYS_mprotect = 125, SYS_munmap = 91, SYS_sigprocmask = 175, SYS_mremap = 163, SYS_madvise = 220, SYS_getpid = 20,
       SYS_fcntl = 221, SYS_ftruncate = 93, SYS_getcwd = 183, SYS_gettid = 224, SYS_prctl = 172, SYS_close = 6,
       SYS_openat = 322, SYS_readlinkat = 332, SYS_prlimit = 369, SYS_memfd_create = 385 };

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r7 __asm__("r7") = n;
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = c;
	register long r3 __asm__("r3") = d;
	register long r4 __asm__("r4") = e;
	register long r5 __asm__("r5") = f;
	__asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5) : "memory");
	return r0;
}

/* The kernel sets this bit in AT_HWCAP where it has the generic timer (drivers/clocksource/arm_arch_timer.c,
 * arch_timer_evtstrm_enable), and lets programs read its counter then (arch_counter_set_user_access). */
enum { HWCAP_EVTSTRM = 1 << 21, SYS_clock_gettime = 263, MONOTONIC = 1 };
extern __attribute__((visibility("hidden"))) unsigned long __braid_hwcap;

/* CNTVCT, or where that can't be read CLOCK_MONOTONIC in ns, which the emulated counter of tests is too. */
static inline braid_u64 braid_counter(void)
{
	braid_u32 lo, hi;
	if (!(__braid_hwcap & HWCAP_EVTSTRM)) {
		long now[2];
		sys6(SYS_clock_gettime, MONOTONIC, (long)now, 0, 0, 0, 0);
		return now[0] * 1000000000ull + now[1];
	}
	__asm__ volatile("mrrc p15, 1, %0, %1, c14" : "=r"(lo), "=r"(hi));
	return (braid_u64)hi << 32 | lo;
}

/* 0: under emulation the frequency can't be read where the counter can't. */
static inline braid_u64 braid_counter_hz(void) { return 0; }

/* TPIDRURO */
static inline braid_u64 braid_thread_pointer(void)
{
	braid_u32 p;
	__asm__("mrc p15, 0, %0, c13, c0, 3" : "=r"(p));
	return p;
}
#else
#error "no system calls for this processor"
#endif

#define sys(n, a, b, c) sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)

/* Whether this is a 32-bit program, whose areas are small and lie at the beginning of a session (arena.h). */
enum { NARROW = sizeof(void *) == 4 };

/* What mmap takes for an offset in a file. */
static inline long map_offset(braid_u64 off) { return NARROW ? off >> 12 : off; }

#if defined(__x86_64__)
enum { LARGEFILE = 0 };
#else /* arch/arm/include/uapi/asm/fcntl.h, arch/arm64/include/uapi/asm/fcntl.h: not the generic value */
enum { LARGEFILE = 0400000 };
#endif

enum { PROT_NONE = 0, PROT_RW = 3, MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 0x10, MAP_ANON = 0x20, MAP_NORESERVE = 0x4000,
       MREMAP_MAYMOVE = 1, MREMAP_FIXED = 2, MADV_REMOVE = 9, MADV_DONTDUMP = 16, AT_CWD = -100, RDWR_CLOEXEC = 02000002 | LARGEFILE,
       DUPFD_CLOEXEC = 1030, LIMIT_FSIZE = 1, LIMIT_AS = 9, GET_NAME = 16, MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2 };

#endif
