/* A thread with the smallest stack there may be calls a traced function; prints how much of it was used. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) void leaf(void) { __asm__ volatile(""); }

__attribute__((section(".text.braid_notrace"))) static void *body(void *p)
{
	leaf();
	return p;
}

__attribute__((section(".text.braid_notrace"))) int main(void)
{
	static unsigned char stack[16384] __attribute__((aligned(4096)));
	memset(stack, 0x5a, sizeof stack);
	pthread_attr_t a;
	pthread_t t;
	pthread_attr_init(&a);
	if (pthread_attr_setstack(&a, stack, sizeof stack) || pthread_create(&t, &a, body, 0) || pthread_join(t, 0))
		return 1;
	int low = 0;
	while (low < (int)sizeof stack && stack[low] == 0x5a)
		low++;
	printf("%d\n", (int)sizeof stack - low);
	return 0;
}
