/* SPDX-License-Identifier: Apache-2.0 */
/* Trace points for programs that are compiled with -finstrument-functions; see point_arm64.S. In Thumb state, so that the
 * way into the runtime, which is in ARM state, is by the linker's blx. */
	.syntax	unified
	.arch	armv7-a
	.thumb
	.macro point name, method
	.globl	\name
	.hidden	\name
	.type	\name, %function
	.thumb_func
\name:	push	{r4-r8, lr}
	ldr	r2, 6f
5:	add	r2, pc
	ldr	r2, [r2]
	mrc	p15, 0, r3, c13, c0, 3
1:	ldr	ip, [r3, r2]
	ldr	r1, [ip]
	tst	r1, #7
	beq	4f
	tst	r1, #4
	beq	3f
	mrrc	p15, 1, r4, r5, c14
	ldrex	r5, [ip]
	cmp	r5, r1
	bne	2f
	ldr	r6, [ip, #8]
	add	r5, r5, #8
	and	r5, r5, r6
	strex	r7, r5, [ip]
	cmp	r7, #0
	bne	1b
	.if	\method == 0
	movs	r0, #0
	.endif
	str	r0, [r1, #-4]
	str	r4, [r1]
	str	r1, [ip, #16]
	pop	{r4-r8, pc}
2:	clrex
	b	1b
3:	push	{ip, lr}
	bl	__braid_slow
	pop	{ip, lr}
	b	1b
4:	pop	{r4-r8, pc}
	.p2align 2
6:	.word	__braid_tls(gottpoff) + (. - 5b - 4)
	.size	\name, .-\name
	.endm

	.text
	.p2align 2
	point	__cyg_profile_func_enter, 1
	point	__cyg_profile_func_exit, 0
	.section .note.GNU-stack,"",%progbits
