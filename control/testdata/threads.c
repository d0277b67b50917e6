#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
void *body(void *p) { int s = 0; for (int i = 0; i < 101; i++) s = leaf(s); return (void *)(long)s; }
int main(void) {
  pthread_t t[211];
  for (int k = 0; k < 211; k++) if (pthread_create(&t[k], 0, body, 0)) return 2;
  for (int k = 0; k < 211; k++) pthread_join(t[k], 0);
  for (int k = 0; k < 7; k++) { pid_t p = fork(); if (!p) { body(0); if (k == 6) execl("/bin/true", "true", (char *)0); exit(0); }
    int st; waitpid(p, &st, 0); if (st) return 3; }
  return 0;
}
