/* SPDX-License-Identifier: Apache-2.0 */
/* keep_round(const void *in, void *out, long scalable, word *mine): loads every register from in, goes through the slow path as a
 * stub does, and stores every register to out. See keep.c. */
/* In Thumb state, and with a stack pointer that is a multiple of 4 alone. */
	.syntax	unified
	.arch	armv7-a
	.fpu	neon
	.thumb
	.text
	.p2align 2
	.globl	keep_round
	.hidden	keep_round
	.type	keep_round, %function
	.thumb_func
keep_round:
	push	{r4-r8, lr}
	vpush	{d8-d15}
	sub	sp, sp, #4
	mov	r4, r0
	mov	r5, r1
	mov	r6, r3
	add	r7, r4, #24
	vldmia	r7!, {d0-d15}
	vldmia	r7, {d16-d31}
	ldr	ip, [r4, #16]
	ldmia	r4, {r0-r3}
#ifdef BRAID_WORD
	push	{r6, lr}
	bl	__braid_slow_word
	pop	{r6, lr}
#else
	push	{ip, lr}
	bl	__braid_slow
	pop	{r8, lr}
#endif
	stmia	r5, {r0-r3}
	str	ip, [r5, #16]
	movs	r7, #0
	str	r7, [r5, #20]
	add	r7, r5, #24
	vstmia	r7!, {d0-d15}
	vstmia	r7, {d16-d31}
	add	sp, sp, #4
	vpop	{d8-d15}
	pop	{r4-r8, pc}
	.size	keep_round, .-keep_round
	.section .note.GNU-stack,"",%progbits
