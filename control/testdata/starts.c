/* Threads that call a method a while and end, eight at a time, without end. */
#include <pthread.h>
#include <stdio.h>
__attribute__((noinline)) void step(void) { __asm__ volatile(""); }
void *body(void *p) { for (int i = 0; i < 3000; i++) step(); return p; }
__attribute__((section(".text.braid_notrace"))) int main(void) {
  pthread_t t[8];
  puts("ready"); fflush(stdout);
  for (unsigned n = 0;; n++) {
    if (n >= 8) pthread_join(t[n % 8], 0);
    if (pthread_create(&t[n % 8], 0, body, 0)) return 1;
  }
}
