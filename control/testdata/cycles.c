#include <pthread.h>
#include <stdio.h>
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int pair(int x) { return leaf(x) + leaf(x + 1); }
void *body(void *p) { volatile int s = 0; for (;;) s = pair(s); return p; }
int main(void) { pthread_t t; for (int i = 0; i < 5; i++) pthread_create(&t, 0, body, 0); puts("ready"); fflush(stdout); body(0); }
