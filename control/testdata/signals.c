#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
static volatile int over; static volatile long handled;
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int inner(int x) { __asm__ volatile(""); return x - 1; }
void handler(int s) { handled += inner(inner(s)) == s - 2; }
static pthread_t target;
__attribute__((section(".text.braid_notrace"))) static void *nag(void *p) {
  while (!over) { pthread_kill(target, SIGUSR1); pthread_kill(target, SIGUSR2); for (volatile int i = 0; i < 300; i++) ; } return p; }
int main(int argc, char **argv) { // each may interrupt the other's handler, and neither its own: the stack is bounded
  struct sigaction a = {.sa_handler = handler}; sigaction(SIGUSR1, &a, 0); sigaction(SIGUSR2, &a, 0);
  target = pthread_self(); pthread_t t; pthread_create(&t, 0, nag, 0);
  volatile int s = 0; int n = atoi(argv[1]);
  for (int i = 0; i < n; i++) s = leaf(s);
  over = 1; pthread_join(t, 0);
  a.sa_handler = SIG_IGN; sigaction(SIGUSR1, &a, 0); sigaction(SIGUSR2, &a, 0);
  printf("%ld\n", handled);
  return 0;
}
