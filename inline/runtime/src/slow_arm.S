/* SPDX-License-Identifier: Apache-2.0 */
/*
 * __braid_slow: called by a stub that saw BRAID_ATTEND, at a place where every register can be live. It keeps them all but
 * lr, which the stub has on the stack, and the flags. The stack pointer need only be a multiple of 4.
 *
 * The C behind it is compiled without floating point; its one libc call gets the vector registers saved that carry
 * arguments and results, and those that are free in calls, where the processor has them (arch/arm/include/uapi/asm/hwcap.h).
 *
 * With BRAID_WORD it is __braid_slow_word, and the address of the thread's word is on top of the stack when it is called.
 */
#ifdef BRAID_WORD
#define SLOW __braid_slow_word
#else
#define SLOW __braid_slow
#endif
#define HWCAP_VFP (1 << 6)
#define HWCAP_NEON (1 << 12)
#define HWCAP_VFPD32 (1 << 19)

	.syntax	unified
	.arch	armv7-a
	.fpu	neon
	.arm
	.text
	.p2align 2
	.globl	SLOW
	.hidden	SLOW
	.type	SLOW, %function
SLOW:
	.fnstart
	.cantunwind
	push	{r0-r5, ip, lr}
	mov	r4, sp
	bic	sp, sp, #7
	ldr	r5, 4f
1:	ldr	r5, [pc, r5]
	tst	r5, #HWCAP_VFP
	beq	2f
	vpush	{d0-d7}
	tst	r5, #HWCAP_NEON
	tsteq	r5, #HWCAP_VFPD32
	beq	2f
	vpush	{d16-d31}
2:
#ifdef BRAID_WORD
	ldr	r0, [r4, #32]
#endif
	bl	__braid_attend
	tst	r5, #HWCAP_VFP
	beq	3f
	tst	r5, #HWCAP_NEON
	tsteq	r5, #HWCAP_VFPD32
	beq	5f
	vpop	{d16-d31}
5:	vpop	{d0-d7}
3:	mov	sp, r4
	pop	{r0-r5, ip, pc}
	.p2align 2
4:	.long	__braid_hwcap - (1b + 8)
	.fnend
	.size	SLOW, .-SLOW
	.section .note.GNU-stack,"",%progbits
