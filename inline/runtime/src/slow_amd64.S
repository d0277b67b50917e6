/* SPDX-License-Identifier: Apache-2.0 */
/*
 * __braid_slow: called by a stub that saw BRAID_ATTEND, at a place where every register can be live. It keeps them all
 * (flags are dead at every stub). The C behind it is compiled without vector registers; the one libc call that it makes
 * gets the x87 and SSE state saved. With BRAID_WORD it is __braid_slow_word, and the address of the thread's word is on top of
 * the stack when it is called.
 */
#ifdef BRAID_WORD
#define SLOW __braid_slow_word
#else
#define SLOW __braid_slow
#endif
	.text
	.p2align 4
	.globl	SLOW
	.hidden	SLOW
	.type	SLOW, @function
SLOW:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	subq	$512, %rsp
	andq	$-16, %rsp
	fxsave64 (%rsp)
#ifdef BRAID_WORD
	movq	16(%rbp), %rdi
#endif
	cld
	call	__braid_attend
	fxrstor64 (%rsp)
	leaq	-72(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	SLOW, .-SLOW
	.section .note.GNU-stack,"",@progbits

	/* GNU_PROPERTY_X86_FEATURE_1_AND: IBT, SHSTK (System V ABI, x86-64 supplement, "Program Property") */
	.section .note.gnu.property,"a",@note
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
