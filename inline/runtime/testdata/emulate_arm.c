/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into programs for arm that tests run under user emulation (qemu-arm), which raises SIGILL where a program reads
 * CNTVCT: the read gives CLOCK_MONOTONIC in ns, as the runtime's own does there. Programs that handle SIGILL or block it
 * can't be run this way.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

__attribute__((visibility("hidden"))) const char __braid_emulated_counter[1] = {1};

enum { PSR_T = 1 << 5, PSR_IT = 0x0600fc00 };

__attribute__((no_instrument_function, section(".text.braid_notrace"))) static void emulate(int sig, siginfo_t *info, void *context)
{
	struct sigcontext *c = (struct sigcontext *)&((ucontext_t *)context)->uc_mcontext;
	uint32_t insn;
	uint16_t half[2];
	memcpy(&insn, (void *)c->arm_pc, 4);
	memcpy(half, (void *)c->arm_pc, 4);
	if (c->arm_cpsr & PSR_T)
		insn = (uint32_t)half[0] << 16 | half[1];
	(void)info;
	if ((insn & 0x0ff00fff) != 0x0c500f1e || (c->arm_cpsr & PSR_T && c->arm_cpsr & PSR_IT)) { /* mrrc p15, 1, Rt, Rt2, c14 */
		signal(sig, SIG_DFL);
		return;
	}
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	uint64_t now = t.tv_sec * 1000000000ull + t.tv_nsec;
	unsigned long *r = &c->arm_r0; /* r0 to pc follow one another */
	r[insn >> 12 & 15] = (uint32_t)now;
	r[insn >> 16 & 15] = now >> 32;
	c->arm_pc += 4;
}

__attribute__((no_instrument_function, section(".text.braid_notrace"))) static void install(void)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_sigaction = emulate;
	a.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
	sigaction(SIGILL, &a, 0);
}

/* Before the runtime's constructor. */
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = install;
