/* Written by hand: must be assembled as it is. */
#define NAME part
	.text
	.globl	NAME
	.type	NAME, @function
NAME:
	leal	1(%rdi), %eax
	ret
	.size	NAME, .-NAME
	.section .note.GNU-stack,"",@progbits
