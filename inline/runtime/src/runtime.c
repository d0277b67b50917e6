/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime of traced programs: linked into every executable and shared object that carries stubs.
 *
 * It does nothing until asked: no thread, no socket, no file descriptor below 230, no signal handler. At start it makes
 * or finds the process's area (arena.h). From then on all is done from outside, through the shared memory.
 *
 * Several copies can live in one process (an executable and its libraries). They share one area, found through an ELF
 * note that every copy carries, and one control block a thread; each has its own thread pointer to it, so a thread comes
 * through the slow path once in each copy. Compiled with BRAID_WORD, the runtime has no thread-local variable: the thread
 * pointer is a word elsewhere, which the stub names (docs/protocol.md, "Doors"), and which copies may share. Nothing depends on which copy the dynamic linker would prefer.
 *
 * Invariants:
 *  R1  The slow path runs with all signals blocked, otherwise a trace point in a handler could register a thread twice.
 *  R2  It calls libc only for pthread_setspecific, and that only with a key whose value libc keeps in the thread's own
 *      descriptor; otherwise a trace point within malloc could enter malloc.
 *  R3  A block is claimed with one compare-and-swap and published (state READY) after all of it is written, otherwise
 *      the recorder could read half of it.
 *  R4  While on, cursor is stored by its own thread alone. Otherwise the slow path moves it with a compare-and-swap from what it
 *      has seen, and mask as well, and leaves if that fails; or a stop that comes meanwhile would be lost (docs/protocol.md).
 *  R5  A forked child never writes into its parent's area, otherwise both would append to one ring: the child's first
 *      fork handler puts a new area at the same address, so that every pointer in every copy stays valid.
 */
#include "runtime.h"

/* An unregistered thread's control block. It attends once the area exists. */
HIDDEN struct braid_block __braid_first_dummy __attribute__((aligned(64)));
/* For a thread that can't be registered: off for good. */
HIDDEN struct braid_block __braid_parked __attribute__((aligned(64)));

#ifndef BRAID_WORD
HIDDEN __thread struct braid_block *__braid_tls __attribute__((tls_model("initial-exec"))) = &__braid_first_dummy;
#endif

/* This process's area. Named by the note, so that another copy finds it. */
HIDDEN struct braid_header *__braid_area;
HIDDEN braid_u64 __braid_bytes; /* how much of it is mapped */

HIDDEN braid_u32 __braid_exit_key;
HIDDEN int __braid_exit_key_ok;
HIDDEN unsigned long __braid_hwcap;
HIDDEN struct braid_module *__braid_self;
HIDDEN char __braid_session_path[64];

__asm__(".pushsection .note.braid,\"a\",%note\n"
	"	.p2align 2\n"
	"	.long 6, 4, 1\n"
	"	.asciz \"braid\"\n"
	"	.p2align 2\n"
	"	.long __braid_area - .\n"
	"	.popsection\n");

static void find_session(void)
{
	static const char key[] = "BRAID_SESSION=";
	if (getauxval(AT_SECURE)) /* a set-uid program opens no file that its caller names */
		return;
	for (char **e = environ; e && *e; e++) {
		size_t k = 0;
		while (key[k] && (*e)[k] == key[k])
			k++;
		if (!key[k] && length(*e + k) < sizeof __braid_session_path)
			copy(__braid_session_path, *e + k, length(*e + k) + 1);
	}
}

#if defined(__arm__)
/* Tests define it, with a handler for SIGILL that reads another clock: user emulation has no counter. */
extern HIDDEN __attribute__((weak)) const char __braid_emulated_counter[];

/* Whether stubs may read CNTVCT. */
static int counter_usable(void) { return __braid_hwcap & HWCAP_EVTSTRM || __braid_emulated_counter; }
#else
static int counter_usable(void) { return 1; }
#endif

static void begin(void)
{
	__braid_hwcap = getauxval(AT_HWCAP);
	if (!counter_usable())
		return; /* nothing is ever turned on */
	struct module_scan m;
	volatile char *z = (volatile char *)&m;
	for (size_t k = 0; k < sizeof m; k++)
		z[k] = 0;
	m.inside = (word)&__braid_first_dummy;
	dl_iterate_phdr(__braid_scan, &m);
	find_session();
	__braid_exit_key_ok = pthread_key_create(&__braid_exit_key, __braid_thread_exit) == 0;
	if (__braid_exit_key_ok && __braid_exit_key >= 32) { /* R2 */
		pthread_key_delete(__braid_exit_key);
		__braid_exit_key_ok = 0;
	}
	struct braid_header *h = m.peer;
	int fresh = !h;
	if (fresh && !(h = __braid_make_area()))
		return; /* untraced, unharmed */
	__braid_register_module(h, &m.found);
	if (fresh)
		__braid_open_area(h);
	__braid_area = h;
	__braid_bytes = h->bytes;
	pthread_atfork(0, 0, __braid_forked);
	__atomic_store_n(&__braid_first_dummy.cursor, BRAID_ATTEND, __ATOMIC_RELEASE);
}

static void end(void)
{
	if (__braid_area && __braid_self)
		__braid_self->unloaded = braid_counter();
	if (__braid_exit_key_ok)
		pthread_key_delete(__braid_exit_key);
	__braid_exit_key_ok = 0;
}

__attribute__((section(".init_array.00001"), used)) static void (*const at_begin)(void) = begin;
__attribute__((section(".fini_array.00001"), used)) static void (*const at_end)(void) = end;
