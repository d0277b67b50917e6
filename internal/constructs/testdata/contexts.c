// Stacks that take turns: swapcontext, getcontext and setcontext.
//
// tree: main{leaf ping{yield_{body_one{inner_one{leaf yield_{body_two;{inner_two;{leaf yield_;}}} leaf}
//   inner_one{leaf yield_{^body_two;{^inner_two{^yield_ leaf} inner_two;{leaf yield_;}}} leaf}
//   inner_one{leaf yield_{^body_two!{^inner_two{^yield_ leaf} inner_two!{leaf yield_!}}} leaf}}}}
//   leaf loops{leaf*4} leaf}
#include "construct.h"
#include <ucontext.h>

static ucontext_t main_, one, two;
static char stacks[2][1 << 16];
static int trace_[64], n;
F int leaf(int x) { KEEP; return trace_[n++] = x; }
F void yield_(ucontext_t *from, ucontext_t *to) { swapcontext(from, to); KEEP; }
F void inner_one(int k) { leaf(k); yield_(&one, &two); leaf(k + 1); KEEP; }
F void body_one(void) { for (int i = 0; i < 3; i++) inner_one(10 * i); KEEP; }
F void inner_two(int k) { leaf(k); yield_(&two, &one); leaf(k + 1); KEEP; }
F void body_two(void) { for (int i = 0; i < 3; i++) inner_two(100 * i); KEEP; }
F void ping(void) {
	getcontext(&one);
	one.uc_stack.ss_sp = stacks[0];
	one.uc_stack.ss_size = sizeof stacks[0];
	one.uc_link = &main_;
	makecontext(&one, body_one, 0);
	getcontext(&two);
	two.uc_stack.ss_sp = stacks[1];
	two.uc_stack.ss_size = sizeof stacks[1];
	two.uc_link = &main_;
	makecontext(&two, body_two, 0);
	yield_(&main_, &one);
	KEEP;
}
F int loops(void) {
	ucontext_t here;
	volatile int k = 0;
	getcontext(&here);
	leaf(k);
	if (k++ < 3) setcontext(&here);
	KEEP;
	return k;
}

int main(void) {
	leaf(1);
	ping();
	leaf(2);
	IS(loops() == 4);
	leaf(3);
	for (int i = 0; i < n; i++) printf("%d ", trace_[i]);
	return 0;
}
