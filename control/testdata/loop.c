#include <stdlib.h>
#include <unistd.h>
#include <stdio.h>
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
int main(int argc, char **argv) { int n = atoi(argv[1]), s = 0; for (int i = 0; i < n; i++) s = leaf(s);
  if (argc > 2) { puts("ready"); fflush(stdout); pause(); } return s != n; }
