/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that a traced program shares with whoever records it. This header is the source of the layout;
 * layout.go mirrors it and a test compares both.
 *
 * A process has one area: a header, control blocks, a table of modules, then rings. Areas lie in a memory file. Under
 * "braid record -- command" that file is the recorder's (a session: its first page is a session header, area k lies at
 * area_first + k * area_stride), so that it outlives the shortest process. A 32-bit program can map only the file's first
 * 2^44 bytes (mmap2 counts 4096-byte pages in 32 bits), so areas of such programs lie there: area k at
 * (k+1) * narrow_stride. Elsewhere each process makes a memory file of its own
 * that holds one area at offset 0.
 *
 * "program" below is the traced program, "recorder" whoever maps the file from outside. Nothing here is trusted by the
 * recorder: every offset and size that it reads is checked against the file.
 */
#ifndef BRAID_ARENA_H
#define BRAID_ARENA_H

typedef unsigned long long braid_u64;
typedef unsigned int braid_u32;

#define BRAID_ARENA_MAGIC 0x414e455241445242ull   /* "BRDARENA" */
#define BRAID_SESSION_MAGIC 0x534553534442524full /* "ORBDSSES", so that a session is not taken for an area */
#define BRAID_VERSION 4u

/* Offsets from the area's start, bytes. */
#define BRAID_BLOCKS_OFF 0x10000ull
#define BRAID_BLOCK_MAX 2048u
#define BRAID_MODULES_OFF 0x90000ull
#define BRAID_MODULE_MAX 256u
#define BRAID_RINGS_OFF 0x100000ull
#define BRAID_AREA_STRIDE (1ull << 36)
#define BRAID_AREA_MAX 65536u
#define BRAID_AREA_FIRST (1ull << 44)
#define BRAID_NARROW_STRIDE (1ull << 28) /* 256 MiB: an address space has 3 or 4 GiB */
#define BRAID_NARROW_MAX 65534u

/* Tags in the low bits of a cursor. A trace point moves it by (cursor + 8) & mask. So the recorder turns the tag of a thread
 * that is on into another by clearing bits of the mask: all three for off, bit 2 for attend. */
#define BRAID_OFF 0ull    /* off; a non-zero rest is where the thread stopped */
#define BRAID_ATTEND 3ull /* the thread is to take the slow path at its next trace point. Alone: to start. With an address, which
			     is where its ring ends: to go on in the next ring */
#define BRAID_ON 7ull     /* on; the rest is the address of the next slot */
#define BRAID_TAG 7ull

/* Which threads start by themselves when they register. */
#define BRAID_POLICY_NONE 0u
#define BRAID_POLICY_MAIN 1u
#define BRAID_POLICY_ALL 2u

/* A control block's states. The program takes FREE -> CLAIMING -> READY -> EXITING, the recorder EXITING or READY ->
 * FREE once the thread is gone and its ring has been read. A thread that never had a ring frees its block itself. */
#define BRAID_FREE 0u
#define BRAID_CLAIMING 1u
#define BRAID_READY 2u
#define BRAID_EXITING 3u

struct braid_block {
	/* The hot words, which a trace point uses. 64-byte aligned; stubs for arm64 move cursor and mask as one pair. A 32-bit
	   program's stubs use the low halves alone: the high halves of cursor and done stay 0, that of mask is all ones. */
	braid_u64 cursor;      /* tagged address of the next slot; by the thread while on, by the recorder while off */
	braid_u64 mask;        /* ~ring_bytes; the recorder clears bits 0 to 2 to ask for a stop, bit 2 to ask for a swap */
	braid_u64 done;        /* tagged address of the last slot that was written; by the thread. Behind it, up to cursor,
	                          a slot is reserved but not yet written */
	braid_u64 ring_addr;   /* in the program; a multiple of 2 * ring_bytes; 0 until the ring exists */
	braid_u64 ring_bytes;  /* a power of two */
	braid_u64 ring_off;    /* of the ring, from the area's start */
	braid_u64 start;       /* counter, before the first record was written */
	braid_u32 tid;
	braid_u32 state;       /* BRAID_FREE ... */
	braid_u32 want;        /* 1: takes a ring and starts when it next attends; by program and recorder */
	braid_u32 uses;        /* how many threads have had this block: tells a thread from its successor */
	/* Cold from here on; by the program. */
	braid_u64 thread;      /* the thread pointer, which with tid names a thread within a process */
	braid_u64 exit;        /* counter when the thread's exit hook ran, or 0 */
	char comm[16];         /* the thread's name when it registered, or when it ended */
	braid_u64 rounds;      /* how often the exit hook has been called */
	/* The second ring. The recorder writes next_*, next_addr last, then clears bit 2 of the mask. The thread's slow path then
	   writes prev_*, moves cursor from the old ring's end to the next ring's beginning with one compare-and-swap, and after
	   that, before any other record, writes start (= prev_end), done = 0, ring_*, next_addr = 0, swaps + 1, in this order.
	   So if the cursor lies in the ring that next_* names, that is the thread's ring already, and prev_* hold. prev_addr stays
	   when the block gets another thread: it is the block's second ring. */
	braid_u64 next_addr;   /* in the program; 0: none */
	braid_u64 next_bytes;  /* must be ring_bytes, or the old ring is kept: a stub may stand within a record of two slots */
	braid_u64 next_off;
	braid_u64 prev_addr;   /* the ring before this one */
	braid_u64 prev_bytes;
	braid_u64 prev_off;
	braid_u64 prev_cursor; /* where it ends, without a tag */
	braid_u64 prev_done;   /* done of then */
	braid_u64 prev_start;  /* start of that ring */
	braid_u64 prev_end;    /* counter at the swap */
	braid_u32 swaps;       /* since the thread has this block */
	braid_u32 api;         /* BRAID_API_*, what the program has asked for this thread */
	braid_u64 opened;      /* by the program: a ring besides ring_addr that is known to be accessible */
	braid_u64 reserved[6];
};

/* What a thread has asked for itself (include/braid.h). */
#define BRAID_API_NONE 0u
#define BRAID_API_ON 1u
#define BRAID_API_OFF 2u

struct braid_module {
	braid_u64 bias;        /* run-time address minus the ELF file's virtual address */
	braid_u64 low, high;   /* run-time addresses of its first and last loaded byte (exclusive) */
	braid_u64 loaded;      /* counter at its constructor; the first one's, if it was closed and came back */
	braid_u64 unloaded;    /* counter at its destructor, or 0 while it is loaded */
	braid_u32 build_id_len;
	braid_u32 state;       /* 1 once the entry is whole */
	unsigned char build_id[32];
	char path[432];        /* zero-terminated; empty if unknown or too long */
};

struct braid_header {
	braid_u64 magic;       /* written last, with release order */
	braid_u32 version;
	braid_u32 pid;         /* in the program's pid namespace */
	braid_u64 base;        /* the area's address in the program */
	braid_u64 bytes;       /* how much of it the program has mapped */
	braid_u64 counter_hz;  /* 0 where the processor does not say */
	braid_u64 started;     /* counter when the area was made */
	braid_u64 ring_bytes;  /* for rings made from now on; by program and recorder */
	braid_u32 policy;      /* BRAID_POLICY_*; likewise */
	braid_u32 armed;       /* 1: threads register at their next trace point; likewise */
	braid_u32 block_used;  /* blocks ever used: the recorder looks no further */
	braid_u32 module_used;
	braid_u64 ring_next;   /* offset behind the last ring */
	braid_u64 lost_threads; /* threads that found no free block */
	braid_u64 lost_rings;  /* times that a thread found no room for a ring, or could not make it accessible */
	braid_u64 lost_modules;
	braid_u32 session_fd_closed;
	braid_u32 parent;      /* pid of the process that this one was forked from under trace, or 0 */
	/* The program's own trigger. A caller takes the lock with one try, writes, adds 1 to seq, and lets go. */
	braid_u32 trigger_seq; /* how many there have been; written last, with release order */
	braid_u32 trigger_lock; /* 1 while the rest is being written */
	braid_u32 trigger_tid;
	braid_u32 trigger_reserved;
	braid_u64 trigger_at;  /* counter */
	braid_u64 trigger_lost; /* calls that found it locked */
	char trigger_why[64];  /* zero-terminated, cut off to fit */
	braid_u64 reserved[38];
	/* At offset 512: where the thread pointers of unregistered threads point. cursor is BRAID_OFF or BRAID_ATTEND. */
	struct braid_block dummy;
	/* At offset 768: where those of threads point that can't be registered. Always off. */
	struct braid_block parked;
};

struct braid_session {
	braid_u64 magic;
	braid_u32 version;
	braid_u32 area_max;
	braid_u64 area_stride;
	braid_u32 area_next;   /* areas given out; atomic add by programs */
	braid_u32 policy;      /* for new areas; by the recorder */
	braid_u64 ring_bytes;  /* likewise */
	braid_u32 armed;       /* likewise */
	braid_u32 narrow_next; /* areas given out to 32-bit programs; atomic add by programs */
	braid_u64 area_first;
	braid_u64 narrow_stride;
	braid_u32 narrow_max;
	braid_u32 reserved;
};

_Static_assert(sizeof(struct braid_block) == 256, "block");
_Static_assert(__builtin_offsetof(struct braid_block, mask) == 8, "pair");
_Static_assert(__builtin_offsetof(struct braid_header, dummy) == 512, "dummy");
_Static_assert(sizeof(struct braid_header) == 1024, "header");
_Static_assert(BRAID_BLOCKS_OFF + BRAID_BLOCK_MAX * sizeof(struct braid_block) <= BRAID_MODULES_OFF, "blocks");
_Static_assert(sizeof(struct braid_session) == 72, "session");
_Static_assert(sizeof(struct braid_module) == 512, "module");

#endif
