/* Writes whatever comes to mind into its own arena, all the time, once it has been told to. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define QUIET __attribute__((section(".text.braid_notrace")))
static uint64_t x = 88172645463325252ull;
static QUIET uint64_t next(void) { x ^= x << 13; x ^= x >> 7; return x ^= x << 17; }
__attribute__((noinline)) void once(void) { __asm__ volatile(""); }
QUIET int main(void) {
  FILE *m = fopen("/proc/self/maps", "r"); char line[512]; unsigned long low = 0, high;
  while (m && fgets(line, sizeof line, m))
    if (strstr(line, "memfd:braid") && strstr(line, "rw-s")) { sscanf(line, "%lx-%lx", &low, &high); break; }
  if (!low || mprotect((void *)low, 0x200000, PROT_READ | PROT_WRITE)) return 2; /* rings are not open before they are used */
  once();
  puts("ready"); fflush(stdout);
  char c; if (read(0, &c, 1) != 1) return 0;
  volatile uint64_t *w = (void *)low;
  static const uint64_t tags[] = {0, 3, 7, 5}, sizes[] = {0, 4096, 1 << 20, 1ull << 35, ~0ull, 1ull << 63};
  for (uint64_t n = 0;; n++) {
    uint64_t r = next(), v = next(), at;
    switch (r % 8) {
    case 0: at = 1 + (r >> 8) % 127; break;                              /* header, but for its magic */
    case 1: case 2: case 3: case 4: at = (0x10000 + 256 * ((r >> 8) % 4) + 8 * ((r >> 16) % 32)) / 8; break;
    case 5: at = (r >> 8) % (0x100000 / 8 - 1) + 1; break;
    case 6: at = (0x90000 + (r >> 8) % 2048) / 8; break;
    default: at = (0x100000 + (r >> 8) % (64 << 10)) / 8; }
    switch (r >> 60) {
    case 0: case 1: case 2: v = low + 0x100000 + (v & 0xffff0) + tags[r >> 58 & 3]; break;
    case 3: case 4: v = sizes[(r >> 32) % 6]; break;
    case 5: v = 0x100000 + (v & 0xff000); break;
    case 6: v = ~sizes[(r >> 32) % 6] & ~tags[r >> 58 & 3]; break;
    case 7: case 8: v &= 0x300000003; break;                              /* state, want, armed ... */
    case 9: v = 0; break; }
    w[at] = v;
  }
}
