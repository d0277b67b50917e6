/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For programs that are compiled with braid cc. C and C++; needs no other file and no library, and does no harm without braid:
 * where its runtime is not linked, and where nobody records, the functions do nothing. docs/api.md has more.
 */

#ifndef BRAID_H
#define BRAID_H

/*
 * BRAID_NOTRACE, before a function's definition, keeps trace points out of it:
 *
 *	BRAID_NOTRACE static int hot(int x) { return x * 2; }
 *
 * It works by the section that the function is placed in. Inlined into another function, it is part of that one.
 */
#define BRAID_NOTRACE __attribute__((section(".text.braid_notrace")))

/* The runtime that is linked into this executable or shared object. Not to be used directly. */
#ifdef __cplusplus
extern "C" {
#endif
extern __attribute__((weak, visibility("hidden"))) int __braid_api_thread(int on);
extern __attribute__((weak, visibility("hidden"))) int __braid_api_trigger(const char *why);
#ifdef __cplusplus
}
#endif
#define BRAID_INLINE static __inline__ __attribute__((always_inline, unused))

/*
 * Records the calling thread from here on, whatever the recorder's rule for threads is: it begins with an empty ring. If it is
 * on, or if the recorder has stopped it, nothing changes. Without a recorder the wish is kept for the next one.
 */
BRAID_INLINE void braid_thread_on(void)
{
	if (__braid_api_thread)
		__braid_api_thread(1);
}

/*
 * Ends that, until braid_thread_on is called: no recorder turns the thread on meanwhile. What has been recorded stays.
 */
BRAID_INLINE void braid_thread_off(void)
{
	if (__braid_api_thread)
		__braid_api_thread(0);
}

/*
 * Tells the recorder that now is the moment to keep what it has. why, up to 63 bytes of it, goes into the trace; it may be
 * null. Returns 1 if a recorder is there, otherwise 0. Of calls by several threads at the same instant one counts, and the
 * others are counted as lost.
 *
 * All three may be called anywhere, also in a signal handler. They take two or three system calls, no lock and no memory, and
 * leave errno alone.
 */
BRAID_INLINE int braid_trigger(const char *why)
{
	return __braid_api_trigger ? __braid_api_trigger(why) : 0;
}

#undef BRAID_INLINE
#endif
