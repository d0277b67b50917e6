/* SPDX-License-Identifier: Apache-2.0 */
/* keep_round(const void *in, void *out, long scalable, word *mine): loads every register from in, goes through the slow path as a
 * stub does, and stores every register to out. See keep.c. */
	.text
	.p2align 4
	.globl	keep_round
	.hidden	keep_round
	.type	keep_round, @function
keep_round:
	endbr64
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	movq	%rdi, %rbx
	movq	%rsi, %rbp
	movq	%rcx, %r12
	movdqu	80(%rbx), %xmm0
	movdqu	96(%rbx), %xmm1
	movdqu	112(%rbx), %xmm2
	movdqu	128(%rbx), %xmm3
	movdqu	144(%rbx), %xmm4
	movdqu	160(%rbx), %xmm5
	movdqu	176(%rbx), %xmm6
	movdqu	192(%rbx), %xmm7
	movdqu	208(%rbx), %xmm8
	movdqu	224(%rbx), %xmm9
	movdqu	240(%rbx), %xmm10
	movdqu	256(%rbx), %xmm11
	movdqu	272(%rbx), %xmm12
	movdqu	288(%rbx), %xmm13
	movdqu	304(%rbx), %xmm14
	movdqu	320(%rbx), %xmm15
	movq	0(%rbx), %rax
	movq	8(%rbx), %rcx
	movq	16(%rbx), %rdx
	movq	24(%rbx), %rsi
	movq	32(%rbx), %r8
	movq	40(%rbx), %r9
	movq	48(%rbx), %r10
	movq	56(%rbx), %r11
	movq	64(%rbx), %rdi
#ifdef BRAID_WORD
	pushq	%r12
	call	__braid_slow_word
	popq	%r12
#else
	call	__braid_slow
#endif
	movq	%rax, 0(%rbp)
	movq	%rcx, 8(%rbp)
	movq	%rdx, 16(%rbp)
	movq	%rsi, 24(%rbp)
	movq	%r8, 32(%rbp)
	movq	%r9, 40(%rbp)
	movq	%r10, 48(%rbp)
	movq	%r11, 56(%rbp)
	movq	%rdi, 64(%rbp)
	movdqu	%xmm0, 80(%rbp)
	movdqu	%xmm1, 96(%rbp)
	movdqu	%xmm2, 112(%rbp)
	movdqu	%xmm3, 128(%rbp)
	movdqu	%xmm4, 144(%rbp)
	movdqu	%xmm5, 160(%rbp)
	movdqu	%xmm6, 176(%rbp)
	movdqu	%xmm7, 192(%rbp)
	movdqu	%xmm8, 208(%rbp)
	movdqu	%xmm9, 224(%rbp)
	movdqu	%xmm10, 240(%rbp)
	movdqu	%xmm11, 256(%rbp)
	movdqu	%xmm12, 272(%rbp)
	movdqu	%xmm13, 288(%rbp)
	movdqu	%xmm14, 304(%rbp)
	movdqu	%xmm15, 320(%rbp)
	movq	$0, 72(%rbp)
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret
	.size	keep_round, .-keep_round
	.section .note.GNU-stack,"",@progbits

	.section .note.gnu.property,"a",@note
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
