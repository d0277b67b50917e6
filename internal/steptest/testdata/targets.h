#ifndef TARGETS_H
#define TARGETS_H

/* Functions that keep their name, their arguments and their stubs at every level of optimisation. */
#ifdef __clang__
#define TARGET __attribute__((noinline, used))
#else
#define TARGET __attribute__((noipa, used))
#endif
#define UNTRACED __attribute__((noinline, section(".text.braid_notrace")))

#ifdef __cplusplus
extern "C" {
#endif
extern void invoke(void *f);
long catcher(long a);
long passer(long a);
#ifdef __cplusplus
}
#endif

#endif
