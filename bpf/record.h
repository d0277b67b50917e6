/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * What every program shares: the maps, the filter by process, the ring buffer, the loss counters.
 *
 * Each hook is compiled twice, as tp_btf (fields are plain loads, which the verifier checks against the kernel's own
 * BTF) and, with BRAID_RAW_TP, as raw_tp (fields are read with bpf_probe_read_kernel, for kernels whose BTF is given
 * from outside). FIELD hides the difference.
 *
 * Loader settings are const volatile: the verifier knows them and drops the branches that a kernel cannot take.
 */
#ifndef BRAID_RECORD_H
#define BRAID_RECORD_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "events.h"

#ifdef BRAID_RAW_TP
#define HOOK(name) SEC("raw_tp/" #name)
#define FIELD(p, f) BPF_CORE_READ(p, f)
#define BITFIELD(p, f) BPF_CORE_READ_BITFIELD_PROBED(p, f)
#else
#define HOOK(name) SEC("tp_btf/" #name)
#define FIELD(p, f) ((p)->f)
#define BITFIELD(p, f) BPF_CORE_READ_BITFIELD(p, f)
#endif

/* Units that watch are the same sources compiled again, so that recording alone pays nothing for them; see watch.h. */
#ifdef BRAID_WATCH
#define WATCHING 1
#else
#define WATCHING 0
#endif

#define inline_fn static __attribute__((always_inline)) inline

typedef const __u64 args; /* a hook's arguments, one a word */

/* Bytes in the ring from which on the reader is woken; until then it polls and the traced program pays for no wake-up. */
const volatile __u64 wake_bytes = 1 << 22;

/* All events of all units, in one order. The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} events SEC(".maps");

/* A watched process has limits and histograms, and no events. Targets have both, where units watch. */
enum { NOT_TARGET, TARGET, PENDING, WATCHED };

#define PAGE_IDS 4096

/*
 * One byte a process id says what it is: a lookup is two loads, it can never be full, and user space sets bytes through
 * a mapping while programs set others. The loader sets max_entries for pid_max.
 */
struct target_page {
	__u8 state[PAGE_IDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct target_page);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

inline_fn void count(enum counter c)
{
	__u32 key = c;
	__u64 *n = bpf_map_lookup_elem(&counters, &key);
	if (n)
		*n += 1;
}

/* Returns the byte of a process, or NULL if its id is beyond pid_max. */
inline_fn __u8 *target_state(__u32 tgid)
{
	__u32 key = tgid / PAGE_IDS;
	struct target_page *page = bpf_map_lookup_elem(&targets, &key);
	return page ? &page->state[tgid % PAGE_IDS] : NULL;
}

inline_fn bool is_target(__u32 tgid)
{
	__u8 *state = target_state(tgid);
	return state && *state == TARGET;
}

/* Targets, and where units watch also watched processes. */
inline_fn bool is_known(__u32 tgid)
{
	__u8 *state = target_state(tgid);
	return state && (*state == TARGET || (WATCHING && *state == WATCHED));
}

/* The current thread, as bpf_get_current_pid_tgid has it: process in the high half, thread in the low. */
inline_fn __u32 id_tgid(__u64 id) { return id >> 32; }
inline_fn __u32 id_tid(__u64 id) { return (__u32)id; }

/*
 * Where the kernel has no ring buffer, the loader makes events a perf event array. That takes events from elsewhere: each
 * is made in a slot of its CPU. Slots are taken and given back in turns, since an interrupt's programs run to their end
 * before what they interrupted goes on; programs on tracepoints are not preempted by threads on any kernel without the ring.
 */
const volatile bool perf_array = false;

#define SLOTS 4
#define SLOT_BYTES 256

struct event_slot {
	__u64 counter; /* enum counter of what is lost if there is no room */
	__u64 data[SLOT_BYTES / 8];
};

struct event_slots {
	__u64 taken;
	struct event_slot slot[SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_slots);
} slots_of_cpu SEC(".maps");

inline_fn void *take_slot(__u64 size, enum counter c)
{
	__u32 zero = 0;
	struct event_slots *s = bpf_map_lookup_elem(&slots_of_cpu, &zero);
	if (!s || size > SLOT_BYTES)
		return NULL;
	__u64 n = s->taken;
	if (n >= SLOTS)
		return NULL;
	s->taken = n + 1;
	s->slot[n].counter = c;
	return s->slot[n].data;
}

/*
 * Reserves an event, which must be submitted; returns NULL, counted under c, if there is no room. size must be a
 * constant.
 */
inline_fn void *reserve(__u64 size, enum counter c)
{
	void *e = perf_array ? take_slot(size, c) : bpf_ringbuf_reserve(&events, size, 0);
	if (!e)
		count(c);
	return e;
}

inline_fn void fill_header(struct event_header *h, __u64 now, __u32 tid, __u8 kind, __u8 flags)
{
	h->time = now;
	h->tid = tid;
	h->cpu = (__u16)bpf_get_smp_processor_id();
	h->kind = kind;
	h->flags = flags;
}

inline_fn void output_slot(const void *ctx, void *e, __u64 size)
{
	__u32 zero = 0;
	struct event_slots *s = bpf_map_lookup_elem(&slots_of_cpu, &zero);
	if (bpf_perf_event_output((void *)ctx, &events, BPF_F_CURRENT_CPU, e, size))
		count(((__u64 *)e)[-1]);
	if (s && s->taken)
		s->taken -= 1;
}

/*
 * Hands an event to the reader. The reader is woken while the ring fills from wake_bytes to half as much again: once
 * is enough, and a program that fills the ring further need not pay for one wake-up an event.
 */
inline_fn void submit_event(const void *ctx, void *e, __u64 size)
{
	if (perf_array) {
		output_slot(ctx, e, size);
		return;
	}
	__u64 over = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) - wake_bytes;
	bpf_ringbuf_submit(e, over < wake_bytes / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* The same, and wakes the reader at once. */
inline_fn void submit_urgent_event(const void *ctx, void *e, __u64 size)
{
	if (perf_array)
		output_slot(ctx, e, size);
	else
		bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
}

/* For an event e, where ctx is what the program was called with: a perf event array needs it. */
#define submit(e) submit_event(ctx, e, sizeof(*(e)))
#define submit_urgent(e) submit_urgent_event(ctx, e, sizeof(*(e)))

inline_fn void copy_comm(struct comm *to, struct task_struct *p)
{
#ifdef BRAID_RAW_TP
	bpf_core_read(to, sizeof(*to), &p->comm);
#else
	const __u64 *word = (const __u64 *)p->comm;
	to->word[0] = word[0];
	to->word[1] = word[1];
#endif
}

inline_fn __u32 task_state(struct task_struct *p)
{
	if (bpf_core_field_exists(p->__state))
		return FIELD(p, __state);
	struct task_struct___state *old = (void *)p;
	return (__u32)FIELD(old, state);
}

inline_fn __u32 task_cpu(struct task_struct *p)
{
	if (bpf_core_field_exists(p->thread_info.cpu))
		return FIELD(p, thread_info.cpu);
	struct task_struct___cpu *old = (void *)p;
	return FIELD(old, cpu);
}

#endif
