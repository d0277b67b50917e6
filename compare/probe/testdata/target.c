// Functions that begin with all kinds of instructions, and static probes. For each line "FUNCTION CALLS" on its input it calls
// that function so often, and answers with a line.
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#define RET "ret"
#define FUNCTIONS(F) \
	F(nop1, ".byte 0x90") \
	F(nop2, ".byte 0x66, 0x90") \
	F(nop3, ".byte 0x0f, 0x1f, 0x00") \
	F(nop5, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00") \
	F(nop5_of_prefixes, ".byte 0x66, 0x66, 0x66, 0x66, 0x90") \
	F(nop7, ".byte 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00") \
	F(nop9, ".byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00") \
	F(nop10, ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00") \
	F(push, "push %rbp\n pop %rbp") \
	F(push_r12, "push %r12\n pop %r12") \
	F(push_constant, "push $1\n pop %rax") \
	F(jump, "jmp 1f\n 1:") \
	F(branch, "je 1f\n 1:") \
	F(far_branch, ".byte 0x0f, 0x84, 0, 0, 0, 0") \
	F(endbr, "endbr64") \
	F(mov, "mov %rdi, %rax") \
	F(xor, "xor %eax, %eax") \
	F(sub, "sub $8, %rsp\n add $8, %rsp") \
	F(relative, "mov table(%rip), %rax") \
	F(counter, "rdtscp") \
	F(vector, "vpxor %xmm0, %xmm0, %xmm0") \
	F(vector_load, "vmovdqu -16(%rsp), %xmm0") \
	F(locked, "lock orl $0, (%rsp)")
#elif defined(__aarch64__)
#define RET "ret"
#define FUNCTIONS(F) \
	F(nop, "nop") \
	F(push, "stp x29, x30, [sp, #-16]!\n ldp x29, x30, [sp], #16") \
	F(paciasp, "hint #25\n hint #29") \
	F(bti, "hint #34") \
	F(hint, "hint #1") \
	F(mov, "mov x0, x1") \
	F(sub, "sub sp, sp, #16\n add sp, sp, #16") \
	F(jump, "b 1f\n 1:") \
	F(zero, "cbz x0, 1f\n 1:") \
	F(page, "adrp x0, table") \
	F(counter, "mrs x0, cntvct_el0") \
	F(exclusive, "ldxr x1, [sp]\n clrex")
#endif

#define DEFINE(name, code) \
	__asm__(".text\n .p2align 6\n .globl " #name "\n .type " #name ", %function\n" #name ":\n" code "\n" RET "\n .size " #name ", . - " #name "\n"); \
	void name(void);
FUNCTIONS(DEFINE)

// What sys/sdt.h makes of DTRACE_PROBE.
#define PROBE(name) \
	__asm__ volatile("990: nop\n" \
		".pushsection .note.stapsdt, \"\", \"note\"\n" \
		".balign 4\n .4byte 992f-991f, 994f-993f, 3\n" \
		"991: .asciz \"stapsdt\"\n 992: .balign 4\n" \
		"993: .8byte 990b, _.stapsdt.base, watchers\n .asciz \"braid\"\n .asciz \"" name "\"\n .asciz \"\"\n" \
		"994: .balign 4\n .popsection\n" \
		".ifndef _.stapsdt.base\n .pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
		".weak _.stapsdt.base\n .hidden _.stapsdt.base\n _.stapsdt.base: .space 1\n .size _.stapsdt.base, 1\n .popsection\n .endif")

unsigned short watchers __attribute__((section(".probes"), used));

__attribute__((noinline)) void usdt(void)
{
	PROBE("entry");
	__asm__ volatile("");
	PROBE("return");
}

// Calls itself, so that returns are nested.
__attribute__((noinline)) int nested(int depth)
{
	__asm__ volatile("");
	return depth <= 1 ? 1 : 1 + nested(depth - 1);
}

static void ten(void) { nested(10); }

#define ENTRY(name, code) {#name, name},
static const struct {
	const char *name;
	void (*call)(void);
} all[] = {FUNCTIONS(ENTRY){"usdt", usdt}, {"nested", ten}};
const void *table = all;

int main(void)
{
	char name[64];
	long calls;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (scanf("%63s %ld", name, &calls) == 2) {
		for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
			if (!strcmp(name, all[i].name))
				for (long c = 0; c < calls; c++)
					all[i].call();
		printf("%d\n", watchers);
	}
	return 0;
}
