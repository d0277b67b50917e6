#include <unistd.h>
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
int main(void) { volatile int s = 0; while (s < 20011) s = leaf(s); write(1, "ready", 6); for (;;) s = leaf(s); }
