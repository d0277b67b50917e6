/* SPDX-License-Identifier: Apache-2.0 */
/*
 * __braid_slow: called by a stub that saw BRAID_ATTEND, at a place where every register can be live. It keeps them all but
 * x30, which the stub has on the stack, and the flags. x18 is not touched.
 *
 * The C behind it is compiled without vector registers; its one libc call may use them, and a system call may clear what
 * lies above the 128 bits of q0 to q31 in SVE's registers (Linux, Documentation/arch/arm64/sve.rst, "System call
 * behaviour"). So where there is SVE all of it is saved, but for FFR, which is dead at calls and returns. Streaming mode
 * (SME) is not provided for: a function that is in it when it comes here loses its vectors.
 *
 * With BRAID_WORD it is __braid_slow_word, and the address of the thread's word is on top of the stack when it is called.
 */
#ifdef BRAID_WORD
#define SLOW __braid_slow_word
#else
#define SLOW __braid_slow
#endif
#define FRAME 160
#define HWCAP_SVE_BIT 22 /* arch/arm64/include/uapi/asm/hwcap.h */

	.arch	armv8-a+sve
	.macro vectors op:req /* stp or ldp */
	\op	q0, q1, [sp]
	\op	q2, q3, [sp, #32]
	\op	q4, q5, [sp, #64]
	\op	q6, q7, [sp, #96]
	\op	q8, q9, [sp, #128]
	\op	q10, q11, [sp, #160]
	\op	q12, q13, [sp, #192]
	\op	q14, q15, [sp, #224]
	\op	q16, q17, [sp, #256]
	\op	q18, q19, [sp, #288]
	\op	q20, q21, [sp, #320]
	\op	q22, q23, [sp, #352]
	\op	q24, q25, [sp, #384]
	\op	q26, q27, [sp, #416]
	\op	q28, q29, [sp, #448]
	\op	q30, q31, [sp, #480]
	.endm
	/* Predicates first: 16 of an 8th of a vector each, so the vectors begin two vectors further. */
	.macro scalable op:req /* str or ldr */
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	\op	p\n, [sp, #\n, mul vl]
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	\op	z\n, [sp, #(\n + 2), mul vl]
	.endr
	.endm
	.macro general op:req /* stp or ldp */
	\op	x0, x1, [x29, #16]
	\op	x2, x3, [x29, #32]
	\op	x4, x5, [x29, #48]
	\op	x6, x7, [x29, #64]
	\op	x8, x9, [x29, #80]
	\op	x10, x11, [x29, #96]
	\op	x12, x13, [x29, #112]
	\op	x14, x15, [x29, #128]
	\op	x16, x17, [x29, #144]
	.endm

	.text
	.p2align 4
	.globl	SLOW
	.hidden	SLOW
	.type	SLOW, %function
SLOW:
	.cfi_startproc
	hint	#25			/* paciasp, which also is a landing pad (bti c) */
	.cfi_negate_ra_state
	stp	x29, x30, [sp, #-FRAME]!
	.cfi_def_cfa_offset FRAME
	.cfi_offset x29, -FRAME
	.cfi_offset x30, -FRAME + 8
	mov	x29, sp
	.cfi_def_cfa x29, FRAME
	general	stp
#ifdef BRAID_WORD
	ldr	x0, [x29, #FRAME]
#endif
	adrp	x9, __braid_hwcap
	ldr	x9, [x9, #:lo12:__braid_hwcap]
	tbnz	x9, #HWCAP_SVE_BIT, 1f
	sub	sp, sp, #512
	vectors	stp
	bl	__braid_attend
	vectors	ldp
	b	2f
1:	addvl	sp, sp, #-32
	addvl	sp, sp, #-2
	scalable str
	bl	__braid_attend
	scalable ldr
2:	mov	sp, x29
	general	ldp
	ldp	x29, x30, [sp], #FRAME
	.cfi_def_cfa sp, 0
	.cfi_restore x29
	.cfi_restore x30
	hint	#29			/* autiasp */
	.cfi_negate_ra_state
	ret
	.cfi_endproc
	.size	SLOW, .-SLOW
	.section .note.GNU-stack,"",%progbits

	/* GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI, PAC (ELF for the Arm 64-bit Architecture, "Program Property") */
	.section .note.gnu.property,"a",%note
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000000, 4, 3, 0
