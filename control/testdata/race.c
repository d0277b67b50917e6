/* race FILE THREADS CALLS SPIN SEED SLOW [ASK]: threads that make calls, and say in FILE which call they are at, at which one
 * they were turned on, and at which off. With CALLS, threads end after about so many, and others follow.
 * With ASK, threads turn themselves on and off.
 *
 * It is linked with a runtime that calls __braid_point at its numbered points, where a thread waits for a while, long if the
 * number is a bit of SLOW. It may also have traps between the instructions of its stubs, where it does the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "../../inline/runtime/src/arena.h"
#define QUIET __attribute__((section(".text.braid_notrace")))
#define INLINE static inline __attribute__((always_inline))
extern int __braid_api_thread(int on) __attribute__((visibility("hidden"))); /* behind include/braid.h */
extern __thread struct braid_block *__braid_tls __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* What one thread says of itself. Record 2n is the entry of its call n, 2n+1 the exit. truth_test.go mirrors it. */
struct truth {
  volatile braid_u32 tid, serial;
  volatile braid_u32 starts, offs; /* how often it was turned on, and has found itself turned off */
  volatile braid_u32 ended, reserved;
  volatile braid_u64 at;           /* the record that is to come next */
  volatile braid_u64 first, last;  /* since it was turned on: its first record, and the one behind which it was off */
  braid_u64 reserved2[2];
};
enum { TRUTHS = 1 << 14 };
static struct shared {
  volatile braid_u32 used, reserved;
  volatile braid_u64 hits[64];       /* of __braid_point */
  volatile braid_u64 trapped[448];   /* addresses of traps */
  struct truth truth[TRUTHS];
} *all;

static int spin, ask; static unsigned calls; static braid_u64 slow, seed;
static __thread struct truth *me; static __thread int on; static __thread braid_u32 before; static __thread braid_u64 random_state;

INLINE braid_u64 rnd(void) { braid_u64 x = random_state; x ^= x << 13; x ^= x >> 7; return random_state = x ^ x << 17; }

static QUIET void pause_for(long us) { struct timespec t = {0, us * 1000}; int e = errno; nanosleep(&t, 0); errno = e; }

static QUIET void wait_some(int is_slow) {
  braid_u64 r = rnd() >> 8;
  int how = r % 16, much = r >> 8 & 1023;
  if (is_slow && how < 10) pause_for(how < 8 ? much / 8 : much);
  else if (how < 3) sched_yield();
  else if (how < 7) for (volatile int i = 0; i < much; i++) ;
}

__attribute__((visibility("hidden"))) QUIET void __braid_point(int n) {
  if (!me) return;
  __atomic_fetch_add(&all->hits[n], 1, __ATOMIC_RELAXED);
  if (n == 14) { /* on, and the record that is to come is the first */
    me->first = me->at;
    on = 1;
    before = 0;
    __atomic_store_n(&me->starts, me->starts + 1, __ATOMIC_RELEASE);
  }
  wait_some(slow >> n & 1);
}

static QUIET void trap(int s, siginfo_t *i, void *context) {
  (void)s, (void)i;
  ucontext_t *u = context;
#if defined(__x86_64__)
  braid_u64 pc = u->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  braid_u64 pc = u->uc_mcontext.pc += 4;
#else
  braid_u64 pc = u->uc_mcontext.arm_pc += 4;
#endif
  for (unsigned k = pc * 2654435761u % 448, n = 0; n < 448; n++, k = (k + 1) % 448) {
    if (all->trapped[k] == 0) __atomic_compare_exchange_n(&all->trapped[k], &(braid_u64){0}, pc, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (all->trapped[k] == pc) break;
  }
  if (me) wait_some(rnd() % 64 == 0);
}

/* The record at is past. There is none if the thread was turned off where it stood behind the one before, or was turned on. */
INLINE void see(void) {
  braid_u32 c = *(volatile braid_u32 *)&__braid_tls->cursor;
  if (on && (c & BRAID_TAG) == BRAID_OFF) {
    me->last = me->at - ((before ? before & ~BRAID_TAG : (braid_u32)__braid_tls->ring_addr) == c);
    on = 0;
    __atomic_store_n(&me->offs, me->offs + 1, __ATOMIC_RELEASE);
  }
  before = c;
  me->at++;
}

#define F(name, n) __attribute__((noinline)) void name(void) { see(); for (int i = 0; i < spin; i++) __asm__ volatile("" :: "r"(n)); }
F(f0, 0) F(f1, 1) F(f2, 2) F(f3, 3) F(f4, 4) F(f5, 5) F(f6, 6) F(f7, 7)
static volatile int never; static jmp_buf there;
__attribute__((noinline)) void f8(void) { see(); if (never && setjmp(there)) never++; } /* records of two slots */
static void (*const f[])(void) = {f0, f1, f2, f3, f4, f5, f6, f7, f8};

static QUIET void *body(void *p) {
  braid_u32 n = __atomic_fetch_add(&all->used, 1, __ATOMIC_RELAXED);
  struct truth *t = &all->truth[n % TRUTHS];
  t->at = t->starts = t->offs = t->ended = 0;
  t->serial = n;
  random_state = (seed + n + 1) * 0x9e3779b97f4a7c15ull;
  __atomic_store_n(&t->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
  me = t;
  unsigned many = calls ? calls + rnd() % calls : 0;
  for (braid_u32 i = 0; !many || i < many; i++) {
    f[(i * 2654435761u >> 16) % 9]();
    see();
    if (i % 16 == 0) sched_yield();
    if (ask && rnd() >> 8 & 8) __braid_api_thread(rnd() >> 8 & 1);
  }
  if (on) t->last = t->at - 1;
  __atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
  return p;
}

QUIET int main(int argc, char **argv) {
  if (argc < 7) return 1;
  int file = open(argv[1], O_RDWR), threads = atoi(argv[2]);
  all = mmap(0, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (all == MAP_FAILED || threads > 64) return 1;
  calls = atoi(argv[3]), spin = atoi(argv[4]), seed = strtoull(argv[5], 0, 10), slow = strtoull(argv[6], 0, 10), ask = argc > 7;
  struct sigaction a = {.sa_sigaction = trap, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGTRAP, &a, 0);
  pthread_t t[64];
  for (unsigned n = 0;; n++) {
    if (n == (unsigned)threads && write(1, "ready\n", 6) != 6) return 1;
    if (n >= (unsigned)threads) pthread_join(t[n % threads], 0);
    if (pthread_create(&t[n % threads], 0, body, 0)) return 2;
  }
}
