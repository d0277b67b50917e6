//go:build ignore

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * Processes: which are traced, and their births, names and deaths. Every unit needs these hooks.
 *
 *   1. A child of a target is a target from its creation: the hook runs before the child can.
 *   2. A pending process becomes a target when it executes a program; nothing of before is recorded.
 *   3. A process stays a target until its leader's task_struct is freed, which is after the last switch away from any
 *      of its threads; otherwise the end of their last slice would be missing.
 *   4. A new process of a foreigner is no target, whatever its id was before.
 */
#include "process.h"

union any_event {
	struct switch_event on_switch;
	struct waking_event waking;
	struct fork_event fork;
	struct exec_event exec;
	struct exit_event exit;
	struct rename_event rename;
	struct migrate_event migrate;
	struct freq_event freq;
	struct idle_event idle;
	struct affinity_event affinity;
	struct rq_event rq;
	struct fsync_event fsync;
	struct major_fault_event major_fault;
	struct reclaim_event reclaim;
	struct syscall_wait_event syscall_wait;
	struct futex_wake_event futex_wake;
	struct binder_transaction_event binder_transaction;
	struct binder_received_event binder_received;
	struct binder_done_event binder_done;
	struct announce_event announce;
	struct fired_event fired;
	enum event_kind kind;
	enum counter counter;
	enum announcement announcement;
	enum limit limit;
	enum wait_call wait_call;
	enum file_kind file_kind;
	enum wake_op wake_op;
};

/* Brings the layout of all events into this object's BTF, where layout_test.go reads it. */
const union any_event *layout __attribute__((unused));

HOOK(sched_process_fork)
int on_fork(args *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 tgid = FIELD(child, tgid), parent_tgid = FIELD(parent, tgid);
	bool thread = tgid == parent_tgid, target = is_target(parent_tgid);
	if (!target && thread)
		return 0;

	__u64 now = bpf_ktime_get_boot_ns();
	if (!thread) {
		__u8 *state = target_state(tgid);
		if (!target) {
			if (state && *state)
				*state = NOT_TARGET;
			return 0;
		}
		if (!state) {
			count(COUNT_MAP_FULL_TARGETS);
			return 0;
		}
		become_target(state, tgid, now);
	}
	struct fork_event *e = reserve(sizeof(*e), COUNT_RING_FULL_FORK);
	if (!e)
		return 0;
	fill_header(&e->h, now, FIELD(child, pid), KIND_FORK, thread ? FLAG_THREAD : 0);
	e->tgid = tgid;
	e->parent_tid = FIELD(parent, pid);
	e->parent_tgid = parent_tgid;
	e->pad = 0;
	copy_comm(&e->comm, child);
	submit(e);
	return 0;
}

HOOK(sched_process_exec)
int on_exec(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	__u32 tgid = FIELD(p, tgid);
	__u8 *state = target_state(tgid);
	if (!state || (*state != TARGET && *state != PENDING))
		return 0;

	__u64 now = bpf_ktime_get_boot_ns();
	if (*state == PENDING)
		become_target(state, tgid, now);
	struct exec_event *e = reserve(sizeof(*e), COUNT_RING_FULL_EXEC);
	if (!e)
		return 0;
	fill_header(&e->h, now, FIELD(p, pid), KIND_EXEC, 0);
	e->tgid = tgid;
	e->old_tid = (__u32)ctx[1];
	copy_comm(&e->comm, p);
	submit(e);
	return 0;
}

HOOK(sched_process_exit)
int on_exit(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	__u32 tgid = FIELD(p, tgid);
	if (!is_target(tgid))
		return 0;

	struct exit_event *e = reserve(sizeof(*e), COUNT_RING_FULL_EXIT);
	if (!e)
		return 0;
	fill_header(&e->h, bpf_ktime_get_boot_ns(), FIELD(p, pid), KIND_EXIT, 0);
	e->tgid = tgid;
	e->pad = 0;
	submit(e);
	return 0;
}

HOOK(sched_process_free)
int on_free(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	__u32 tgid = FIELD(p, tgid);
	__u8 *state = target_state(tgid);
	if (state && *state && FIELD(p, pid) == tgid)
		*state = NOT_TARGET;
	return 0;
}

HOOK(task_rename)
int on_rename(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	__u32 tgid = FIELD(p, tgid);
	if (!is_target(tgid))
		return 0;

	struct rename_event *e = reserve(sizeof(*e), COUNT_RING_FULL_RENAME);
	if (!e)
		return 0;
	fill_header(&e->h, bpf_ktime_get_boot_ns(), FIELD(p, pid), KIND_RENAME, 0);
	e->tgid = tgid;
	e->pad = 0;
	e->comm = (struct comm){};
	bpf_probe_read_kernel_str(&e->comm, sizeof(e->comm), (const void *)ctx[1]);
	submit(e);
	return 0;
}

/* The kernel asks for a GPL-compatible licence; this file is offered under GPL-2.0 as well. */
char LICENSE[] SEC("license") = "GPL";
