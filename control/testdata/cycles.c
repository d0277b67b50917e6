/* As many threads as it is told, that do nothing but trace points, and let each other run. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int pair(int x) { return leaf(x) + leaf(x + 1); }
void *body(void *p) { volatile int s = 0; for (unsigned i = 0;; i++) { s = pair(s); if (i % 64 == 0) sched_yield(); } return p; }
int main(int argc, char **argv) {
  pthread_t t; int n = argc > 1 ? atoi(argv[1]) : 6;
  for (int i = 1; i < n; i++) pthread_create(&t, 0, body, 0);
  puts("ready"); fflush(stdout); body(0); }
