/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace points for programs that are compiled with -finstrument-functions, in the order that stubs use: the counter is
 * read before the pair {cursor, mask} is taken exclusively, and the pair is only moved if it is still what was seen.
 */
	.macro point name, method
	.globl	\name
	.hidden	\name
	.type	\name, %function
\name:	hint	#34				/* bti c */
	adrp	x9, :gottprel:__braid_tls
	ldr	x9, [x9, :gottprel_lo12:__braid_tls]
	mrs	x10, tpidr_el0
1:	ldr	x11, [x10, x9]
	ldr	x12, [x11]
	tst	x12, #7
	b.eq	4f
	tbz	x12, #2, 3f
	mrs	x13, cntvct_el0
	ldxp	x14, x15, [x11]
	cmp	x14, x12
	b.ne	2f
	add	x14, x14, #8
	and	x14, x14, x15
	stxp	w16, x14, x15, [x11]
	cbnz	w16, 1b
	lsl	x13, x13, #32
	.if	\method
	orr	x13, x13, x0
	.endif
	stur	x13, [x12, #-4]
	str	x12, [x11, #16]
	ret
2:	clrex
	b	1b
3:	str	x30, [sp, #-16]!
	bl	__braid_slow
	ldr	x30, [sp], #16
	b	1b
4:	ret
	.size	\name, .-\name
	.endm

	.text
	.p2align 2
enter:	mov	w0, w0				/* a narrow record has the method's low half */
	b	enter_narrow
	.globl	__cyg_profile_func_enter
	.hidden	__cyg_profile_func_enter
	.type	__cyg_profile_func_enter, %function
	.set	__cyg_profile_func_enter, enter
	point	enter_narrow, 1
	point	__cyg_profile_func_exit, 0
	.section .note.GNU-stack,"",%progbits
