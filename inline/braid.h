/* SPDX-License-Identifier: Apache-2.0 */

/* For programs that are compiled with braid cc. Needs no other file, and does no harm without braid. */

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

#endif
