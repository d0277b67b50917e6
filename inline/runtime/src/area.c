/* SPDX-License-Identifier: Apache-2.0 */
/* Making a process's area, and making it anew in a forked child. */
#include "runtime.h"

/* How much of an area to map: a limit on address space or on file size is left to the program. */
static braid_u64 span(void)
{
	braid_u64 want = NARROW ? BRAID_NARROW_STRIDE : BRAID_AREA_STRIDE, lim[2];
	for (int res = LIMIT_FSIZE; res <= LIMIT_AS; res += LIMIT_AS - LIMIT_FSIZE)
		if (!failed(sys6(SYS_prlimit, 0, res, 0, (long)lim, 0, 0)) && lim[0] != ~0ull && lim[0] / 16 < want)
			want = lim[0] / 16;
	return want & ~0xffffull;
}

HIDDEN int __braid_open_memory(braid_u64 addr, braid_u64 bytes)
{
	return !failed(sys(SYS_mprotect, (word)addr, (size_t)bytes, PROT_RW));
}

/* Most of an area can't be accessed: whatever reads all memory that a process may read (a leak check, a dump) would
 * have the kernel make every page of it. The header's part is opened here, a ring before it is used (rings.c). */
static struct braid_header *map(int fd, braid_u64 off, braid_u64 *bytes)
{
	for (; *bytes >= BRAID_RINGS_OFF + (2 << 20); *bytes = *bytes / 2 & ~0xffffull) {
		long p = sys6(SYS_mmap, 0, *bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, map_offset(off));
		if (failed(p))
			continue;
		sys(SYS_madvise, p, *bytes, MADV_DONTDUMP);
		if (__braid_open_memory(address((void *)p), BRAID_RINGS_OFF))
			return (struct braid_header *)p;
		sys(SYS_munmap, p, *bytes, 0);
		return 0;
	}
	return 0;
}

/* Takes the next area of the recorder's session, or returns 0: no session, or it can't be opened from here. */
static struct braid_header *session_area(braid_u64 *bytes)
{
	if (!__braid_session_path[0])
		return 0;
	long fd = sys6(SYS_openat, AT_CWD, (long)__braid_session_path, RDWR_CLOEXEC, 0, 0, 0);
	if (failed(fd))
		return 0;
	struct braid_header *h = 0;
	long p = sys6(SYS_mmap, 0, 4096, PROT_RW, MAP_SHARED, fd, 0);
	if (!failed(p)) {
		struct braid_session *s = (void *)p;
		if (s->magic == BRAID_SESSION_MAGIC && s->version == BRAID_VERSION) {
			braid_u32 k = __atomic_fetch_add(NARROW ? &s->narrow_next : &s->area_next, 1, __ATOMIC_ACQ_REL);
			braid_u64 off = NARROW ? (k + 1ull) * s->narrow_stride : s->area_first + k * s->area_stride;
			if (k < (NARROW ? s->narrow_max : s->area_max) && (h = map(fd, off, bytes))) {
				h->policy = s->policy;
				h->armed = s->armed;
				h->ring_bytes = s->ring_bytes;
			}
		}
		sys(SYS_munmap, p, 4096, 0);
	}
	sys(SYS_close, fd, 0, 0);
	return h;
}

/* Makes an area in a memory file of the program's own. The descriptor stays open, out of the way, because without root
 * /proc/PID/fd is the only door to it; nothing here uses it again, so a program may close it. */
static struct braid_header *own_area(braid_u64 *bytes)
{
	long fd = sys(SYS_memfd_create, "braid", MFD_CLOEXEC | MFD_ALLOW_SEALING, 0);
	if (failed(fd))
		return 0;
	struct braid_header *h = 0;
	if (!failed(sys(SYS_ftruncate, fd, *bytes, 0)))
		h = map(fd, 0, bytes);
	if (h)
		sys(SYS_fcntl, fd, DUPFD_CLOEXEC, 230);
	sys(SYS_close, fd, 0, 0);
	return h;
}

HIDDEN struct braid_header *__braid_make_area(void)
{
	braid_u64 bytes = span(), all = bytes;
	struct braid_header *h = session_area(&bytes);
	if (!h) {
		bytes = all;
		h = own_area(&bytes);
	}
	if (!h)
		return 0;
	h->version = BRAID_VERSION;
	h->pid = sys(SYS_getpid, 0, 0, 0);
	h->base = address(h);
	h->bytes = bytes;
	h->counter_hz = braid_counter_hz();
	h->started = braid_counter();
	if (!h->ring_bytes)
		h->ring_bytes = 32 << 20;
	h->ring_next = BRAID_RINGS_OFF;
	return h;
}

HIDDEN void __braid_open_area(struct braid_header *h)
{
	__atomic_store_n(&h->dummy.cursor, h->armed ? BRAID_ATTEND : BRAID_OFF, __ATOMIC_RELEASE);
	__atomic_store_n(&h->magic, BRAID_ARENA_MAGIC, __ATOMIC_RELEASE);
}

/* ---- fork ---- */

/* Leaves the program running without tracing: private memory where the area was. */
static void detach(struct braid_header *h, braid_u64 bytes)
{
	sys6(SYS_mmap, (long)h, BRAID_RINGS_OFF, PROT_RW, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
	sys(SYS_munmap, (char *)h + BRAID_RINGS_OFF, bytes - BRAID_RINGS_OFF, 0);
	__braid_area = 0;
#ifndef BRAID_WORD /* elsewhere the thread's pointer is left to what it points to: a block that is off now */
	__braid_tls = &__braid_parked;
#endif
}

/* Moves a new area to where the old one is. It is at least two mappings, and mremap may take one at a time: at first the
 * header's part, in which no thread is on. Signals are blocked by the caller: a trace point in a handler would find the old
 * memory gone and the new one not there yet, if only between two steps of the kernel's. */
static int move(struct braid_header *h, struct braid_header *old, braid_u64 bytes)
{
	for (braid_u64 from = 0, n = BRAID_RINGS_OFF; from < bytes; from += n, n = bytes - from)
		if (failed(sys6(SYS_mremap, (long)h + from, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, (long)old + from, 0)))
			return 0;
	return 1;
}

static void make_anew(struct braid_header *old)
{
	struct braid_header *h;
	braid_u64 bytes = __braid_bytes; /* the recorder may have given a dead parent's memory back */
	braid_u32 mine = BRAID_BLOCK_MAX;
#ifndef BRAID_WORD
	for (braid_u32 k = 0; k < old->block_used && k < BRAID_BLOCK_MAX; k++)
		if (blocks(old)[k].state == BRAID_READY && blocks(old)[k].thread == braid_thread_pointer() &&
		    &blocks(old)[k] == __braid_tls)
			mine = k;
#endif
	if (mine == BRAID_BLOCK_MAX) /* this copy has not met the thread, another may have */
		for (braid_u32 k = 0; k < old->block_used && k < BRAID_BLOCK_MAX; k++)
			if (blocks(old)[k].state == BRAID_READY && blocks(old)[k].thread == braid_thread_pointer())
				mine = k;
	h = __braid_make_area();
	if (!h || h->bytes < bytes) {
		if (h)
			sys(SYS_munmap, h, h->bytes, 0);
		detach(old, bytes);
		return;
	}
	if (old->magic == BRAID_ARENA_MAGIC) {
		h->policy = old->policy;
		h->armed = old->armed;
		h->ring_bytes = old->ring_bytes;
	}
	h->parent = old->pid;
	h->base = address(old);
	h->bytes = bytes;
	h->module_used = old->module_used < BRAID_MODULE_MAX ? old->module_used : BRAID_MODULE_MAX;
	copy(modules(h), modules(old), h->module_used * sizeof(struct braid_module));
	int was_on = mine < BRAID_BLOCK_MAX && blocks(old)[mine].want;
	braid_u32 api = mine < BRAID_BLOCK_MAX ? blocks(old)[mine].api : BRAID_API_NONE;
	if (!move(h, old, bytes)) {
		sys(SYS_munmap, h, bytes, 0);
		detach(old, bytes);
		return;
	}
	h = old; /* R5: same address, new memory */
	sys(SYS_madvise, h, bytes, MADV_DONTDUMP);
	if (mine < BRAID_BLOCK_MAX) {
		struct braid_block *b = &blocks(h)[mine];
		b->state = BRAID_CLAIMING;
		h->block_used = mine + 1;
		__braid_fill(h, b, h->pid);
		b->want = (b->want | was_on) && h->armed;
		b->api = api;
		__braid_start(h, b, BRAID_OFF, b->mask);
		__atomic_store_n(&b->state, BRAID_READY, __ATOMIC_RELEASE);
	}
	__braid_open_area(h);
}

HIDDEN void __braid_forked(void)
{
	struct braid_header *h = __braid_area;
	if (!h || h->pid == (braid_u32)sys(SYS_getpid, 0, 0, 0))
		return; /* another copy's handler has been here */
	braid_u64 signals = block_signals();
	make_anew(h);
	unblock_signals(signals);
}
