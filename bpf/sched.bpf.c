//go:build ignore

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * Unit sched: which thread runs on which CPU, who woke it, where it was moved, how fast the CPU runs, and which CPUs are
 * idle meanwhile.
 */
#include "waits.h"
#include "idle.h"
#include "servers.h"

/* sched_switch says the outgoing thread's state (since 5.18); before, it is read from the thread, a moment later. */
const volatile bool switch_has_state = false;

inline_fn void fill_next(struct switch_event *e, struct task_struct *next, __u32 tgid)
{
	e->next_tid = FIELD(next, pid);
	e->next_tgid = tgid;
	e->next_prio = FIELD(next, prio);
	copy_comm(&e->next_comm, next);
}

/* The time of an event at which a wait was measured is that of the measurement. */
inline_fn __u64 event_time(__u64 measured)
{
	return WATCHING && measured ? measured : bpf_ktime_get_boot_ns();
}

/* The state that the outgoing thread takes, 0 if it stays runnable. */
inline_fn __u32 outgoing_state(args *ctx)
{
	if ((bool)ctx[0]) /* preempted: whatever state it was about to take, it is runnable */
		return 0;
	return switch_has_state ? (__u32)ctx[3] : task_state((void *)ctx[1]);
}

HOOK(sched_switch)
int on_switch(args *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	__u32 prev_tgid = FIELD(prev, tgid), next_tgid = FIELD(next, tgid);
	__u64 now = 0;
	if (WATCHING) {
		bool prev_known = is_known(prev_tgid), next_known = is_known(next_tgid);
		if (prev_known || next_known)
			now = bpf_ktime_get_boot_ns();
		if (prev_known)
			wait_begins(prev, prev_tgid, outgoing_state(ctx), now);
		if (next_known)
			wait_ends(ctx, next, next_tgid, now);
	}
	__u32 prev_tid = FIELD(prev, pid);
	__u8 flags = 0;
	if (is_target(prev_tgid))
		flags |= FLAG_PREV_TARGET;
	else if (serves(prev_tid))
		flags |= FLAG_PREV_SERVER;
	if (is_target(next_tgid))
		flags |= FLAG_NEXT_TARGET;
	else if (serves(FIELD(next, pid)))
		flags |= FLAG_NEXT_SERVER;
	bool from = flags & (FLAG_PREV_TARGET | FLAG_PREV_SERVER), to = flags & (FLAG_NEXT_TARGET | FLAG_NEXT_SERVER);
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_line *line = bpf_map_lookup_elem(&cpus, &cpu);
	if (line)
		cpu_switches(ctx, line, cpu, FIELD(next, pid) == 0, flags & FLAG_NEXT_TARGET);
	if (!from && !to && (!line || !line->foreigner))
		return 0;
	if (line)
		line->foreigner = from && !to;
	__u32 state = outgoing_state(ctx);
	if (flags & FLAG_PREV_SERVER && state)
		server_sleeps(prev_tid);
	if (flags & FLAG_PREV_TARGET && state == 0)
		target_waits(ctx, prev, cpu);
	if (line && flags & FLAG_NEXT_TARGET)
		target_runs(ctx, line, next);

	struct switch_event *e = reserve(sizeof(*e), COUNT_RING_FULL_SWITCH);
	if (!e)
		return 0;
	if (state == 0)
		flags |= FLAG_PREEMPTED;
	else if (BITFIELD(prev, in_iowait))
		flags |= FLAG_IO_WAIT;
	e->h.time = event_time(now);
	e->h.tid = prev_tid;
	e->h.cpu = (__u16)cpu;
	e->h.kind = KIND_SWITCH;
	e->h.flags = flags;
	e->prev_tgid = prev_tgid;
	e->prev_state = state;
	e->prev_prio = FIELD(prev, prio);
	if (from || to) {
		fill_next(e, next, next_tgid);
	} else {
		e->next_tid = 0;
		e->next_tgid = 0;
		e->next_prio = 0;
		e->next_comm = (struct comm){};
	}
	submit(e);
	return 0;
}

inline_fn int woken(const void *ctx, struct task_struct *p, __u8 flags)
{
	__u32 tgid = FIELD(p, tgid);
	__u64 now = 0;
	if (WATCHING && is_known(tgid)) {
		now = bpf_ktime_get_boot_ns();
		thread_woken(ctx, p, tgid, now);
	}
	if (is_target(tgid)) {
		if (target_waits(ctx, p, task_cpu(p)))
			flags |= FLAG_BEHIND;
	} else if (woken_to_serve(FIELD(p, pid), tgid)) {
		flags |= FLAG_SERVER;
	} else {
		return 0;
	}

	struct waking_event *e = reserve(sizeof(*e), COUNT_RING_FULL_WAKING);
	if (!e)
		return 0;
	__u64 waker = bpf_get_current_pid_tgid();
	fill_header(&e->h, event_time(now), FIELD(p, pid), KIND_WAKING, flags);
	e->waker_tid = id_tid(waker);
	e->waker_tgid = id_tgid(waker);
	e->target_cpu = task_cpu(p);
	e->prio = FIELD(p, prio);
	copy_comm(&e->comm, p);
	e->tgid = tgid;
	e->pad = 0;
	submit(e);
	return 0;
}

HOOK(sched_waking)
int on_waking(args *ctx)
{
	return woken(ctx, (void *)ctx[0], 0);
}

HOOK(sched_wakeup_new)
int on_wakeup_new(args *ctx)
{
	return woken(ctx, (void *)ctx[0], FLAG_NEW);
}

HOOK(sched_migrate_task)
int on_migrate(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	bool target = is_target(FIELD(p, tgid));
	if (!target && !serves(FIELD(p, pid)))
		return 0;

	__u8 flags = target && target_waits(ctx, p, (__u32)ctx[1]) ? FLAG_BEHIND : 0;
	struct migrate_event *e = reserve(sizeof(*e), COUNT_RING_FULL_MIGRATE);
	if (!e)
		return 0;
	fill_header(&e->h, bpf_ktime_get_boot_ns(), FIELD(p, pid), KIND_MIGRATE, flags);
	e->from_cpu = task_cpu(p);
	e->to_cpu = (__u32)ctx[1];
	submit(e);
	return 0;
}

#if WATCHING
/* Also of processes that were known once: their last switch may come when they no longer are. */
HOOK(sched_process_exit)
int on_thread_exit(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	forget_thread(FIELD(p, pid));
	return 0;
}

/* A thread that executes a program takes over the id of its process's first. */
HOOK(sched_process_exec)
int on_thread_exec(args *ctx)
{
	forget_thread((__u32)ctx[1]);
	return 0;
}
#endif

/* Frequency is a CPU's, not a process's: recorded for all, it changes rarely. */
HOOK(cpu_frequency)
int on_frequency(args *ctx)
{
	struct freq_event *e = reserve(sizeof(*e), COUNT_RING_FULL_FREQ);
	if (!e)
		return 0;
	fill_header(&e->h, bpf_ktime_get_boot_ns(), 0, KIND_FREQ, 0);
	e->khz = (__u32)ctx[0];
	e->cpu = (__u32)ctx[1];
	submit(e);
	return 0;
}

/* The kernel asks for a GPL-compatible licence; this file is offered under GPL-2.0 as well. */
char LICENSE[] SEC("license") = "GPL";
