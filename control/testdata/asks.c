/* Does what it is told, letter by letter, and answers each with a line. */
#include "../../inline/include/braid.h"
#include <unistd.h>
__attribute__((noinline)) void step(void) { __asm__ volatile(""); }
int main(void) {
  step();
  if (write(1, "ready\n", 6) != 6) return 1;
  for (char c; read(0, &c, 1) == 1;) {
    int r = 0;
    if (c == 't') r = braid_trigger("too \033[31mslow, and more words than there is any room for in the sixty-four bytes");
    if (c == 'o') braid_thread_on();
    if (c == 'f') braid_thread_off();
    step();
    if (write(1, r ? "yes\n" : "no \n", 4) != 4) return 1;
  }
  return 0;
}
