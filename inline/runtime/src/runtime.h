/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the runtime share. All names that the linker sees begin with __braid_ and are local to the object in
 * the end, but for those that stubs and include/braid.h use (generate.sh). */
#ifndef BRAID_RUNTIME_H
#define BRAID_RUNTIME_H

#include "sys.h"

typedef __SIZE_TYPE__ size_t;
typedef __UINTPTR_TYPE__ word; /* an address; ElfW(Addr) */

#if __SIZEOF_POINTER__ == 8 /* Elf64_Phdr, Elf32_Phdr */
struct phdr { braid_u32 type, flags; word off, vaddr, paddr, filesz, memsz, align; };
#else
struct phdr { braid_u32 type; word off, vaddr, paddr, filesz, memsz; braid_u32 flags; word align; };
#endif
struct phdr_info { word addr; const char *name; const struct phdr *phdr; unsigned short phnum; };
enum { PT_LOAD = 1, PT_NOTE = 4, AT_HWCAP = 16, AT_SECURE = 23 };
extern int dl_iterate_phdr(int (*)(struct phdr_info *, size_t, void *), void *);
extern unsigned long getauxval(unsigned long);
extern int pthread_atfork(void (*)(void), void (*)(void), void (*)(void));
extern int pthread_key_create(braid_u32 *, void (*)(void *));
extern int pthread_key_delete(braid_u32);
extern int pthread_setspecific(braid_u32, const void *);
extern char **environ;

#define HIDDEN __attribute__((visibility("hidden")))

/* Where a test has a thread wait, to let the recorder come between two steps (control/race_test.go). Nothing otherwise. */
#ifndef BRAID_POINT
#define BRAID_POINT(number)
#endif

/* ---- state of this copy (runtime.c) ---- */

extern HIDDEN struct braid_block __braid_first_dummy, __braid_parked;
#ifndef BRAID_WORD
extern HIDDEN __thread struct braid_block *__braid_tls __attribute__((tls_model("initial-exec")));
#endif
extern HIDDEN struct braid_header *__braid_area;
extern HIDDEN braid_u64 __braid_bytes;
extern HIDDEN struct braid_module *__braid_self;
extern HIDDEN char __braid_session_path[64];
extern HIDDEN braid_u32 __braid_exit_key;
extern HIDDEN int __braid_exit_key_ok;
extern HIDDEN unsigned long __braid_hwcap; /* which vector registers the slow path has to keep (slow_ARCH.S) */

/* ---- area.c ---- */

HIDDEN struct braid_header *__braid_make_area(void);
HIDDEN int __braid_open_memory(braid_u64 addr, braid_u64 bytes); /* of the area; whether it can be accessed now */
HIDDEN void __braid_open_area(struct braid_header *h);
HIDDEN void __braid_forked(void);

/* ---- modules.c ---- */

struct module_scan {
	struct braid_header *peer; /* another copy's area */
	word inside;               /* an address in the module that is looked for */
	struct braid_module found;
};

HIDDEN int __braid_scan(struct phdr_info *i, size_t size, void *scan);
HIDDEN void __braid_register_module(struct braid_header *h, struct braid_module *found);

/* ---- threads.c ---- */

HIDDEN void __braid_fill(struct braid_header *h, struct braid_block *b, braid_u32 tid);
HIDDEN struct braid_block *__braid_registered(struct braid_header *h, braid_u32 tid, braid_u64 thread);
HIDDEN struct braid_block *__braid_claim(struct braid_header *h, braid_u32 tid, braid_u32 api);
HIDDEN void __braid_attend(struct braid_block **mine);
HIDDEN void __braid_thread_exit(void *block);

/* ---- rings.c ---- */

HIDDEN void __braid_put_next_away(struct braid_block *b);
HIDDEN void __braid_start(struct braid_header *h, struct braid_block *b, braid_u64 cursor, braid_u64 mask);
HIDDEN void __braid_leave(struct braid_block *b);
HIDDEN void __braid_swap(struct braid_header *h, struct braid_block *b, braid_u64 cursor);

/* ---- api.c; the linker sees them ---- */

HIDDEN int __braid_api_thread(int on);
HIDDEN int __braid_api_trigger(const char *why);

/* ---- small things ---- */

static inline void copy(void *to, const void *from, size_t n)
{
	volatile char *t = to;
	const char *f = from;
	while (n--)
		*t++ = *f++;
}

static inline size_t length(const char *s)
{
	size_t n = 0;
	while (s[n])
		n++;
	return n;
}

static inline int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* gcc would extend the sign of a 32-bit pointer. */
static inline braid_u64 address(const void *p) { return (word)p; }

static inline struct braid_block *blocks(struct braid_header *h)
{
	return (struct braid_block *)((char *)h + BRAID_BLOCKS_OFF);
}

static inline struct braid_module *modules(struct braid_header *h)
{
	return (struct braid_module *)((char *)h + BRAID_MODULES_OFF);
}

/* Returns what was blocked before. */
static inline braid_u64 block_signals(void)
{
	braid_u64 all = ~0ull, old = 0;
	sys6(SYS_sigprocmask, 2, (long)&all, (long)&old, 8, 0, 0);
	return old;
}

static inline void unblock_signals(braid_u64 old) { sys6(SYS_sigprocmask, 2, (long)&old, 0, 8, 0, 0); }

static inline int failed(long r) { return r < 0 && r > -4096; }

#endif
