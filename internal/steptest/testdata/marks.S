/* Where the tracer takes over. Each mark is a breakpoint instruction; the symbol is its address. */

	.text
	.globl	ready, ready_mark
	.type	ready, @function
ready:				/* between two passes: the tracer says what comes next */
ready_mark:
	int3
	ret
	.size	ready, .-ready

	.globl	after, after_mark
	.type	after, @function
after:				/* behind a pass */
after_mark:
	int3
	ret
	.size	after, .-after

/*
 * invoke(f) calls f with a known value in every register that can hold an argument or must be kept: rdi, rsi, rdx, rcx,
 * r8, r9, xmm0-7, al (the number of vector registers, for variadic functions), rbx, rbp, r12-r15. From begin_mark to
 * end_mark the tracer goes step by step.
 */
	.globl	invoke, begin_mark, end_mark
	.type	invoke, @function
invoke:
	.cfi_startproc
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r15, 0
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	fninit			/* the function before may have left its result there */
	xorl	%eax, %eax
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	incl	%eax
	cvtsi2sdl	%eax, %xmm\n
	.endr
	movabsq	$0x1b1b1b1b1b1b1b01, %rbx
	movabsq	$0x1b1b1b1b1b1b1b02, %rbp
	movabsq	$0x1b1b1b1b1b1b1b03, %r12
	movabsq	$0x1b1b1b1b1b1b1b04, %r13
	movabsq	$0x1b1b1b1b1b1b1b05, %r14
	movabsq	$0x1b1b1b1b1b1b1b06, %r15
	movl	$11, %edi
	movl	$23, %esi
	movl	$37, %edx
	movl	$53, %ecx
	movl	$71, %r8d
	movl	$97, %r9d
	movl	$8, %eax
begin_mark:
	int3
	call	*(%rsp)
end_mark:
	int3
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	popq	%r15
	.cfi_adjust_cfa_offset -8
	popq	%r14
	.cfi_adjust_cfa_offset -8
	popq	%r13
	.cfi_adjust_cfa_offset -8
	popq	%r12
	.cfi_adjust_cfa_offset -8
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	invoke, .-invoke

	.section .note.GNU-stack,"",@progbits
