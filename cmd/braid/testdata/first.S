/* A program that dies in its first instruction. */
	.globl _start
_start:
	ud2
	.section .note.GNU-stack,"",@progbits
