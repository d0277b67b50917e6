/* SPDX-License-Identifier: Apache-2.0 */
/* keep_round(const void *in, void *out, long scalable, word *mine): loads every register from in, goes through the slow path as a
 * stub does, and stores every register to out. See keep.c. */
	.arch	armv8-a+sve
	.text
	.p2align 2
	.globl	keep_round
	.hidden	keep_round
	.type	keep_round, %function
keep_round:
	hint	#34
	stp	x29, x30, [sp, #-128]!
	stp	x19, x20, [sp, #16]
	stp	x21, x22, [sp, #32]
	stp	d8, d9, [sp, #48]
	stp	d10, d11, [sp, #64]
	stp	d12, d13, [sp, #80]
	stp	d14, d15, [sp, #96]
	mov	x19, x0
	mov	x20, x1
	mov	x21, x2
	mov	x22, x3
	add	x3, x19, #144
	cbnz	x21, 1f
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	ldr	q\n, [x3], #16
	.endr
	b	2f
1:
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	ldr	p\n, [x3, #\n, mul vl]
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	ldr	z\n, [x3, #(\n + 2), mul vl]
	.endr
2:
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17
	ldr	x\n, [x19, #(8 * \n)]
	.endr
#ifdef BRAID_WORD
	stp	x22, x30, [sp, #-16]!
	bl	__braid_slow_word
	ldp	x22, x30, [sp], #16
#else
	str	x30, [sp, #-16]!
	bl	__braid_slow
	ldr	x30, [sp], #16
#endif
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17
	str	x\n, [x20, #(8 * \n)]
	.endr
	add	x3, x20, #144
	cbnz	x21, 1f
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	str	q\n, [x3], #16
	.endr
	b	2f
1:
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	str	p\n, [x3, #\n, mul vl]
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	str	z\n, [x3, #(\n + 2), mul vl]
	.endr
2:	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	d8, d9, [sp, #48]
	ldp	d10, d11, [sp, #64]
	ldp	d12, d13, [sp, #80]
	ldp	d14, d15, [sp, #96]
	ldp	x29, x30, [sp], #128
	ret
	.size	keep_round, .-keep_round
	.section .note.GNU-stack,"",%progbits

	.section .note.gnu.property,"a",%note
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000000, 4, 3, 0
