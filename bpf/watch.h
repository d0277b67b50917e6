/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Limits and histograms of watched processes: decided and counted here, so that nothing is streamed until one fires.
 *
 * User space gives each process a slot and owns both sides of that: it sets a slot's limits and reads its histograms
 * through a mapping, word by word, at any time. Programs of all CPUs add to a slot at the same time, with atomic adds.
 *
 *   1. A slot is all zeros but for its limits before its number is in slots; otherwise a process begins with another's
 *      counts.
 *   2. A slot that was given back is reused last of all; a program that had found it before adds to it for as long as
 *      it runs, which is microseconds.
 *   3. Only time since added_ns counts; otherwise a wait that began while the process was not watched would be taken
 *      for one that did not end.
 *
 * fired_ns is set without a lock: two CPUs that exceed the same limit of one process in the same instant may both tell.
 */
#ifndef BRAID_WATCH_H
#define BRAID_WATCH_H

#include "record.h"

/* Bucket 0 is below 1024 ns, bucket i is below 1024 << i, the last is everything from 64 s (1 << 36 ns) on. */
#define BUCKETS 28

struct histogram {
	__u64 sum_ns;
	__u64 bucket[BUCKETS];
};

enum measure {
	MEASURE_RUN_QUEUE,
	MEASURE_SLEEPING,
	MEASURE_BLOCKED,
	MEASURE_PREEMPTED,
	MEASURE_READ,
	MEASURE_WRITE,
	MEASURE_FLUSH,
	MEASURE_OTHER_IO,
	MEASURE_FSYNC,
	MEASURE_RECLAIM,
	MEASURE_MAX,
};

struct watched {
	__u64 added_ns;
	__u64 cooldown_ns;
	__u64 limit[LIMIT_MAX]; /* ns, major faults in a second; 0: none */
	__u64 fired_ns[LIMIT_MAX];
	__u64 fired[LIMIT_MAX];
	__u64 suppressed[LIMIT_MAX];
	__u64 voluntary; /* switches */
	__u64 involuntary;
	__u64 major_faults;
	__u64 window_ns; /* when the second began in which window_faults are counted */
	__u64 window_faults;
	struct histogram hist[MEASURE_MAX];
};

#if WATCHING

/* The slot of a process. The loader sets both maps' max_entries to the same. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct watched);
} watched SEC(".maps");

#endif

inline_fn struct watched *watched_process(__u32 tgid)
{
#if WATCHING
	__u32 *slot = bpf_map_lookup_elem(&slots, &tgid);
	return slot ? bpf_map_lookup_elem(&watched, slot) : NULL;
#else
	return NULL;
#endif
}

inline_fn void add(__u64 *to, __u64 n)
{
	barrier_var(n); /* else adding 0 becomes an atomic or, which came with Linux 5.12 */
	__sync_fetch_and_add(to, n);
}

inline_fn __u32 bucket_of(__u64 ns)
{
	__u64 v = ns >> 10;
	__u32 bits = 0;
	if (v >> 27)
		return BUCKETS - 1;
	if (v >> 16) {
		bits += 16;
		v >>= 16;
	}
	if (v >> 8) {
		bits += 8;
		v >>= 8;
	}
	if (v >> 4) {
		bits += 4;
		v >>= 4;
	}
	if (v >> 2) {
		bits += 2;
		v >>= 2;
	}
	bits += v >> 1 ? 2 : (__u32)v;
	return bits;
}

inline_fn void measure(struct watched *w, __u32 what, __u64 ns)
{
	__u32 bucket = bucket_of(ns);
	barrier_var(what);
	barrier_var(bucket); /* else the compiler, which knows the bounds, leaves out the tests that the verifier needs */
	if (what >= MEASURE_MAX || bucket >= BUCKETS)
		return;
	add(&w->hist[what].sum_ns, ns);
	add(&w->hist[what].bucket[bucket], 1);
}

/* Tells user space at once if value is above the limit, unless it was told less than the cooldown ago. */
inline_fn void check(const void *ctx, struct watched *w, enum limit what, __u32 tgid, __u32 tid, __u64 value, __u64 now)
{
	__u64 limit = w->limit[what];
	if (!limit || value <= limit)
		return;
	/* Signed: another CPU may have fired after now was read here. */
	if (w->fired_ns[what] && (__s64)(now - w->fired_ns[what]) < (__s64)w->cooldown_ns) {
		add(&w->suppressed[what], 1);
		return;
	}
	struct fired_event *e = reserve(sizeof(*e), COUNT_RING_FULL_FIRED);
	if (!e)
		return; /* no cooldown: the next one tries again */
	w->fired_ns[what] = now;
	add(&w->fired[what], 1);
	fill_header(&e->h, now, tid, KIND_FIRED, 0);
	e->value = value;
	e->limit = limit;
	e->suppressed = w->suppressed[what];
	e->tgid = tgid;
	e->what = what;
	e->pad[0] = e->pad[1] = e->pad[2] = 0;
	submit_urgent(e);
}

#endif
