/* swaps THREADS SPIN COUNT ROUNDS MODE: threads whose records count. Block i is a call of mark, then calls of eight of
 * f0 to f7, which are the octal digits of i: not one record can be missing unseen. COUNT blocks a thread, 0 without end. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define QUIET __attribute__((section(".text.braid_notrace")))
static volatile int spin, over; static int count, yielding, resting;
#define F(name, n) __attribute__((noinline)) void name(void) { for (int i = 0; i < spin; i++) __asm__ volatile("" :: "r"(n)); }
F(mark, 8) F(f0, 0) F(f1, 1) F(f2, 2) F(f3, 3) F(f4, 4) F(f5, 5) F(f6, 6) F(f7, 7)
F(inner, 9)
void handler(int s) { (void)s; inner(); inner(); }
void *body(void *p) {
  for (unsigned i = 0; !count || i < (unsigned)count; i++) {
    mark();
    for (int k = 0; k < 8; k++)
      switch (i >> 3 * k & 7) {
      case 0: f0(); break; case 1: f1(); break; case 2: f2(); break; case 3: f3(); break;
      case 4: f4(); break; case 5: f5(); break; case 6: f6(); break; case 7: f7(); break; }
    if (yielding && i % 16 == 0) sched_yield();
    if (resting && i % 4096 == 4095) { char c; write(1, ".", 1); if (read(0, &c, 1) != 1) exit(0); }
  }
  return p; }
static pthread_t t[64]; static int threads;
static QUIET void *nag(void *p) {
  while (!over) { for (int k = 0; k < threads; k++) { pthread_kill(t[k], SIGUSR1); pthread_kill(t[k], SIGUSR2); }
    for (volatile int i = 0; i < 3000; i++) ; } return p; }
QUIET int main(int argc, char **argv) {
  threads = atoi(argv[1]); spin = atoi(argv[2]); count = atoi(argv[3]); int rounds = atoi(argv[4]);
  const char *mode = argc > 5 ? argv[5] : "";
  yielding = !strcmp(mode, "yield"); resting = !strcmp(mode, "rest");
  struct sigaction a = {.sa_handler = handler}; sigaction(SIGUSR1, &a, 0); sigaction(SIGUSR2, &a, 0);
  for (int r = 0; r < rounds; r++) {
    for (int k = 0; k < threads; k++) if (pthread_create(&t[k], 0, body, 0)) return 2;
    pthread_t n; if (!strcmp(mode, "signals")) pthread_create(&n, 0, nag, 0);
    if (!resting) { puts("ready"); fflush(stdout); }
    for (int k = 0; k < threads; k++) pthread_join(t[k], 0);
  }
  return 0;
}
