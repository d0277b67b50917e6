/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Unit sched: which CPUs are idle while a target could use them.
 *
 * Every switch says whether its CPU becomes idle; the program of sched_switch sees all of them. Each CPU owns a bit of
 * a shared word. The word is told (an event with all of it) only where it matters:
 *
 *   - a target begins to run on a CPU that is weaker than others, or to wait for a CPU that is busy, and the word is
 *     not the one that was told last;
 *   - a CPU becomes idle or busy while such a target runs or waits.
 *
 * So what is told is exact at any time at which a target runs on a weaker CPU or waits for a busy one, but for CPUs that
 * change within the same instant as another one tells. On a machine whose CPUs are alike and which is not overloaded,
 * hardly anything is told.
 *
 * 1. A bit is changed by its CPU alone, with interrupts off, by adding or subtracting it: Linux 5.10 has no other atomic
 *    operations. The CPU's own line says what the bit is, so that it never carries.
 * 2. waiting[] has a byte a CPU, since any CPU may set it. It is cleared when its CPU becomes idle, as the queue is empty
 *    then. Until then it may say that a target waits when none does any more: that tells too much, never too little.
 */
#ifndef BRAID_IDLE_H
#define BRAID_IDLE_H

#include "record.h"

#define MAX_IDLE_CPUS 64

/* The loader clears it where there are more CPUs: then nothing of this is recorded. */
const volatile bool tells_idle = false;
const volatile bool has_clusters = false; /* some CPUs are weaker than others */
const volatile __u64 possible_cpus = ~0ull;

/*
 * What belongs to one CPU. Only the CPU itself uses its entry, with interrupts off; an entry has a cache line to itself.
 * The loader sets max_entries to the number of possible CPUs, and stronger and weaker.
 */
struct cpu_line {
	__u64 foreigner; /* who runs here is no target, and came right after one: the next switch is recorded too, so that
			    a viewer knows how long the foreigner kept the CPU */
	__u64 idle;      /* this CPU's bit in the word of the same name, as 0 or 1 */
	__u64 target;
	__u64 stronger; /* CPUs that can do more in a time than this one */
	__u64 weaker;
	__u64 pad[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_line);
} cpus SEC(".maps");

/* What all CPUs share. Words are by CPU, bit 0 first. */
struct idleness {
	__u64 idle;       /* the idle thread runs there */
	__u64 target;     /* a target runs there; kept only where has_clusters */
	__u64 told;       /* what was told last */
	__u64 restricted; /* a target was seen that may not use all CPUs */
	__u64 told_ns;
	__u64 pad[3];
	__u8 waiting[MAX_IDLE_CPUS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct idleness);
} idleness SEC(".maps");

/* The CPUs that are online: user space sets it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} usable SEC(".maps");

/* A flushed trace begins somewhere: where units watch, what is still so is told again after this time. */
#define RETELL_NS 1000000000

struct affinity {
	__u64 allowed;
	__u64 told_ns;
};

/* By thread, the CPUs that it may use, as they were told last. A thread without an entry may use all. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct affinity);
} affinities SEC(".maps");

inline_fn struct idleness *idleness_of(void)
{
	__u32 key = 0;
	return tells_idle ? bpf_map_lookup_elem(&idleness, &key) : NULL;
}

inline_fn __u64 idle_cpus(struct idleness *m)
{
	__u32 key = 0;
	__u64 *online = bpf_map_lookup_elem(&usable, &key);
	return *(volatile __u64 *)&m->idle & (online ? *online : 0);
}

inline_fn void tell_idle(const void *ctx, struct idleness *m, __u64 idle)
{
	struct idle_event *e = reserve(sizeof(*e), COUNT_RING_FULL_IDLE);
	if (!e)
		return;
	__u64 now = bpf_ktime_get_boot_ns();
	m->told = idle;
	m->told_ns = now;
	fill_header(&e->h, now, 0, KIND_IDLE, 0);
	e->idle = idle;
	submit(e);
}

inline_fn bool anybody_waits(struct idleness *m)
{
	volatile __u64 *w = (void *)m->waiting;
	return w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7];
}

inline_fn void add_bit(__u64 *word, __u64 *own, bool set, __u32 cpu)
{
	*own = set;
	__sync_fetch_and_add(word, set ? 1ull << cpu : -(1ull << cpu));
}

/* At each switch: what the CPU does from now on. */
inline_fn void cpu_switches(const void *ctx, struct cpu_line *line, __u32 cpu, bool idle, bool target)
{
	struct idleness *m = idleness_of();
	if (!m || cpu >= MAX_IDLE_CPUS)
		return;
	if (has_clusters && line->target != target)
		add_bit(&m->target, &line->target, target, cpu);
	if (line->idle == idle)
		return;
	add_bit(&m->idle, &line->idle, idle, cpu);
	if (idle)
		m->waiting[cpu] = 0;
	if ((has_clusters && *(volatile __u64 *)&m->target & line->weaker) || anybody_waits(m))
		tell_idle(ctx, m, idle_cpus(m));
}

inline_fn bool to_retell(__u64 told_ns)
{
	return WATCHING && bpf_ktime_get_boot_ns() - told_ns > RETELL_NS;
}

inline_fn void tell_affinity(const void *ctx, struct idleness *m, struct task_struct *p)
{
	__u64 allowed = possible_cpus;
	if (bpf_core_field_exists(p->cpus_mask))
		allowed &= FIELD(p, cpus_mask.bits[0]);
	if (allowed == possible_cpus && !m->restricted)
		return;
	__u32 tid = FIELD(p, pid);
	struct affinity *told = bpf_map_lookup_elem(&affinities, &tid);
	if ((told ? told->allowed : possible_cpus) == allowed && !(told && to_retell(told->told_ns)))
		return;
	struct affinity_event *e = reserve(sizeof(*e), COUNT_RING_FULL_AFFINITY);
	if (!e)
		return;
	struct affinity now = { .allowed = allowed, .told_ns = bpf_ktime_get_boot_ns() };
	fill_header(&e->h, now.told_ns, tid, KIND_AFFINITY, 0);
	e->allowed = allowed;
	submit(e);
	m->restricted = 1;
	bpf_map_update_elem(&affinities, &tid, &now, BPF_ANY);
}

inline_fn void tell_if_new(const void *ctx, struct idleness *m)
{
	__u64 idle = idle_cpus(m);
	if (idle != m->told || to_retell(m->told_ns))
		tell_idle(ctx, m, idle);
}

/* A target is about to run on a CPU. */
inline_fn void target_runs(const void *ctx, struct cpu_line *line, struct task_struct *p)
{
	struct idleness *m = has_clusters && line->stronger ? idleness_of() : NULL;
	if (!m)
		return;
	tell_affinity(ctx, m, p);
	tell_if_new(ctx, m);
}

/* A target begins to wait in a CPU's queue. Returns whether it waits behind others, and not just for the CPU to wake up. */
inline_fn bool target_waits(const void *ctx, struct task_struct *p, __u32 cpu)
{
	struct idleness *m = idleness_of();
	if (!m || cpu >= MAX_IDLE_CPUS || *(volatile __u64 *)&m->idle >> cpu & 1)
		return false;
	m->waiting[cpu] = 1;
	tell_affinity(ctx, m, p);
	tell_if_new(ctx, m);
	return true;
}

#endif
