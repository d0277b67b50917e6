//go:build ignore

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * Unit watch: tells user space of processes that it may want to record, as they come, change and go.
 *
 *   1. Nothing is told of a process that neither matches nor is known: the filter is here.
 *   2. A process is known from its first announcement, or from when user space adds it, until it ends. A program that it
 *      executes and that does not match is still announced; after that it is known only if user space has added it.
 *   3. A child of a known process is announced, and known, whether it matches or not.
 *   4. A process's end is announced once, by its last thread. Nothing of it is left here, whatever was missed.
 *   5. With adopt, a process that comes to match by executing a program or by renaming itself is a target before it runs
 *      on. User space, which hears of it later, may find that it is another one of that name, and removes it.
 */
#include "process.h"

#define MAX_NAMES 32
#define MAX_CGROUPS 32
#define MAX_UIDS 64
#define CGROUP_DEPTH 8

/* The loader loads this unit before the unit process, so that the exec or the rename is the target's first event. */
const volatile bool adopt = false;

/* A name matches if it is equal to want in all bits of mask: those of its first bytes, with or without the NUL. */
struct pattern {
	struct comm want;
	struct comm mask;
};

/*
 * Who is asked for: a process that has one of the names or is in one of the cgroups or belongs to one of the users.
 * User space replaces it whole; a program that runs meanwhile may see some of the old and some of the new.
 */
struct match {
	__u32 names, cgroups, uids, pad;
	struct pattern name[MAX_NAMES];
	__u64 cgroup[MAX_CGROUPS];
	__u32 uid[MAX_UIDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct match);
} match SEC(".maps");

enum { KNOWN = 1, ENDED };

/*
 * The processes that are known. One that ended stays until it is freed, so that its end is not announced again when user
 * space, which adds only what is not there, comes late.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u8);
} announced SEC(".maps");

inline_fn bool is_announced(__u32 tgid)
{
	return bpf_map_lookup_elem(&announced, &tgid);
}

inline_fn bool fits(const struct pattern *p, const struct comm *name)
{
	return !((p->want.word[0] ^ name->word[0]) & p->mask.word[0]) && !((p->want.word[1] ^ name->word[1]) & p->mask.word[1]);
}

inline_fn bool name_matches(const struct match *m, const struct comm *name)
{
	for (int i = 0; i < MAX_NAMES && i < m->names; i++)
		if (fits(&m->name[i], name))
			return true;
	return false;
}

inline_fn bool uid_matches(const struct match *m, __u32 uid)
{
	for (int i = 0; i < MAX_UIDS && i < m->uids; i++)
		if (m->uid[i] == uid)
			return true;
	return false;
}

/* A process is also in the cgroups that its own is within, here up to CGROUP_DEPTH of them. */
inline_fn bool cgroup_matches(const struct match *m, struct task_struct *p)
{
	if (!m->cgroups)
		return false;
	struct cgroup *c = BPF_CORE_READ(p, cgroups, dfl_cgrp);
	for (int level = 0; level < CGROUP_DEPTH && c; level++) {
		__u64 id = BPF_CORE_READ(c, kn, id);
		for (int i = 0; i < MAX_CGROUPS && i < m->cgroups; i++)
			if (m->cgroup[i] == id)
				return true;
		c = (void *)BPF_CORE_READ(c, self.parent);
	}
	return false;
}

inline_fn __u32 owner(struct task_struct *p)
{
	return BPF_CORE_READ(p, cred, euid.val);
}

inline_fn bool matches(struct task_struct *p, const struct comm *name)
{
	__u32 zero = 0;
	struct match *m = bpf_map_lookup_elem(&match, &zero);
	return m && (name_matches(m, name) || uid_matches(m, owner(p)) || cgroup_matches(m, p));
}

inline_fn void know(__u32 tgid)
{
	__u8 known = KNOWN;
	if (bpf_map_update_elem(&announced, &tgid, &known, BPF_ANY))
		count(COUNT_MAP_FULL_ANNOUNCED);
}

/* The reader is woken at once: a process that comes should be traced from its beginning. */
inline_fn void announce(const void *ctx, struct task_struct *p, __u8 what, bool match, const struct comm *name)
{
	struct announce_event *e = reserve(sizeof(*e), COUNT_RING_FULL_ANNOUNCE);
	if (!e)
		return;
	fill_header(&e->h, bpf_ktime_get_boot_ns(), FIELD(p, pid), KIND_ANNOUNCE, match ? FLAG_MATCH : 0);
	e->cgroup = BPF_CORE_READ(p, cgroups, dfl_cgrp, kn, id);
	e->tgid = FIELD(p, tgid);
	e->parent_tgid = BPF_CORE_READ(p, real_parent, tgid);
	e->uid = owner(p);
	e->what = what;
	e->signal = what == ANNOUNCE_EXIT ? FIELD(p, exit_code) & 0x7f : 0;
	e->pad[0] = e->pad[1] = 0;
	e->comm = *name;
	submit_urgent(e);
}

inline_fn void adopt_process(__u32 tgid)
{
	__u8 *state = adopt ? target_state(tgid) : NULL;
	if (state && *state != TARGET)
		become_target(state, tgid, bpf_ktime_get_boot_ns());
}

inline_fn bool is_kernel_thread(struct task_struct *p)
{
	return FIELD(p, flags) & PF_KTHREAD;
}

HOOK(sched_process_fork)
int on_fork_announce(args *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	__u32 tgid = FIELD(child, tgid), parent_tgid = FIELD(parent, tgid);
	if (tgid == parent_tgid || is_kernel_thread(child))
		return 0;
	struct comm name;
	copy_comm(&name, child);
	bool match = matches(child, &name);
	if (!match && !is_announced(parent_tgid))
		return 0;
	know(tgid);
	announce(ctx, child, ANNOUNCE_FORK, match, &name);
	return 0;
}

/* Whether the executed file, with links followed, has one of the names: of a script it is its interpreter. */
inline_fn bool file_matches(struct linux_binprm *bprm)
{
	__u32 zero = 0;
	struct match *m = bpf_map_lookup_elem(&match, &zero);
	struct comm name = {};
	const void *base = BPF_CORE_READ(bprm, file, f_path.dentry, d_name.name);
	if (!m || bpf_probe_read_kernel_str(&name, sizeof(name), base) < 0)
		return false;
	return name_matches(m, &name);
}

HOOK(sched_process_exec)
int on_exec_announce(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	__u32 tgid = FIELD(p, tgid);
	struct comm name;
	copy_comm(&name, p);
	bool match = matches(p, &name) || file_matches((void *)ctx[2]);
	if (!match && !is_announced(tgid))
		return 0;
	if (match) {
		know(tgid);
		adopt_process(tgid);
	}
	announce(ctx, p, ANNOUNCE_EXEC, match, &name);
	__u8 *state = target_state(tgid);
	if (!match && (!state || *state == NOT_TARGET))
		bpf_map_delete_elem(&announced, &tgid);
	return 0;
}

/* Executing a program renames too, just before: that is left to on_exec_announce. */
HOOK(task_rename)
int on_rename_announce(args *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	__u32 tgid = FIELD(task, tgid);
	if (FIELD(task, pid) != tgid || is_kernel_thread(task))
		return 0;
	if (bpf_core_field_exists(task->in_execve) && BITFIELD(task, in_execve))
		return 0;
	struct comm name = {};
	bpf_probe_read_kernel_str(&name, sizeof(name), (const void *)ctx[1]);
	bool match = matches(task, &name);
	if (!match && !is_announced(tgid))
		return 0;
	know(tgid);
	if (match)
		adopt_process(tgid);
	announce(ctx, task, ANNOUNCE_RENAME, match, &name);
	return 0;
}

HOOK(sched_process_exit)
int on_exit_announce(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	__u32 tgid = FIELD(p, tgid);
	if (BPF_CORE_READ(p, signal, live.counter))
		return 0;
	/* Two threads that end together may both find that none is left: only one of them can delete the entry. */
	__u8 *state = bpf_map_lookup_elem(&announced, &tgid), ended = ENDED;
	if (!state || *state == ENDED || bpf_map_delete_elem(&announced, &tgid))
		return 0;
	bpf_map_update_elem(&announced, &tgid, &ended, BPF_ANY); /* there is room: one was just deleted */
	struct comm name;
	copy_comm(&name, p);
	announce(ctx, p, ANNOUNCE_EXIT, matches(p, &name), &name);
	return 0;
}

HOOK(sched_process_free)
int on_free_announced(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	__u32 tgid = FIELD(p, tgid);
	if (FIELD(p, pid) == tgid)
		bpf_map_delete_elem(&announced, &tgid);
	return 0;
}

/* The kernel asks for a GPL-compatible licence; this file is offered under GPL-2.0 as well. */
char LICENSE[] SEC("license") = "GPL";
