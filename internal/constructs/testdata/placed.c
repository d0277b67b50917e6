// Functions that are not simply a name and a body in .text: sections, aliases, weak ones, quoted names, functions that
// the program writes in assembly, data between functions.
//
// tree: main{target*3 weak section{leaf} name$with.dots away{leaf} hot aligned leaf*3}
#include "construct.h"

F int leaf(int x) { KEEP; return x + 1; }
F int target(int x) { KEEP; return x + 2; }
int also(int) __attribute__((alias("target")));
int weakly(int) __attribute__((weak, alias("target")));
F __attribute__((weak)) int weak(int x) { KEEP; return x + 3; }
F __attribute__((section(".text.apart"))) int section(int x) { int y = leaf(x); KEEP; return y + 3; }
F int quoted(int x) __asm__("name$with.dots");
F int quoted(int x) { KEEP; return x + 4; }
F __attribute__((used, section("elsewhere"))) int away(int x) { int y = leaf(x); KEEP; return y + 3; }
F __attribute__((hot)) int hot(int x) { KEEP; return x + 5; }
F __attribute__((aligned(256))) int aligned(int x) { KEEP; return x + 6; }

#define NAKED __attribute__((naked, used))
NAKED int bare(int x) { __asm__("leal 7(%rdi), %eax\n\tret"); }
NAKED int bare_calls(int x) { __asm__("subq $8, %rsp\n\tcall leaf\n\taddq $8, %rsp\n\tincl %eax\n\tret"); }
NAKED int bare_jumps(int x) { __asm__("jmp leaf"); }

__asm__(".text\n\t.globl outside\n\t.type outside, @function\noutside:\n\tsubq $8, %rsp\n\tcall leaf\n\taddq $8, %rsp\n\t"
	"imull $3, %eax\n\tret\n\t.size outside, .-outside\n\t.long 0x12345678, 0xc3c3c3c3\n\t.asciz \"ret in text\"\n\t.p2align 4\n");
int outside(int);
extern const int in_text[];
__asm__(".text\n\t.p2align 3\nin_text:\n\t.long 42, 43\n\t.previous\n");
__attribute__((section(".text.data,\"ax\",@progbits#"))) const int with_code = 17;

int main(void) {
	IS(target(1) == 3);
	IS(also(1) == 3);
	IS(weakly(1) == 3);
	IS(weak(1) == 4);
	IS(section(1) == 5);
	IS(quoted(1) == 5);
	IS(away(1) == 5);
	IS(hot(1) == 6);
	IS(aligned(1) == 7);
	IS(bare(1) == 8);
	IS(bare_calls(1) == 3);
	IS(bare_jumps(1) == 2);
	IS(outside(1) == 6);
	IS(in_text[1] == 43);
	IS(with_code == 17);
	return 0;
}
