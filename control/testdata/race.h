/* Included before everything else in the runtime that race.c is linked with. */
#ifndef __ASSEMBLER__
#define BRAID_POINT(number) __braid_point(number)
__attribute__((visibility("hidden"))) void __braid_point(int number);
#endif
