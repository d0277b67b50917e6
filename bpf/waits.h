/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Unit sched where it watches: how long each thread of a watched process waits, and for what.
 *
 * The states are those of the timeline (docs/kernel.md). A thread's entry has the state that it is in, and since when:
 *
 *   switched out  sleeping, blocked or preempted
 *   woken         what it waited for is measured; runnable
 *   switched in   the wait for a CPU is measured; running
 *
 * An event that is missing makes a wait disappear, and never a longer one: a thread that was switched in without being
 * woken is taken to have slept until then, and one that is woken while it runs goes on running. A thread without an
 * entry did nothing yet.
 */
#ifndef BRAID_WAITS_H
#define BRAID_WAITS_H

#include "watch.h"

#if WATCHING

/* include/linux/sched.h, Linux 6.12; the same in 5.10 */
#define PF_EXITING           0x00000004
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_NOLOAD          0x0400

enum wait { RUNNING, RUNNABLE, PREEMPTED, SLEEPING, BLOCKED };

struct thread {
	__u64 since_ns;
	__u64 wait;
};

/* By thread. The loader sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

inline_fn void forget_thread(__u32 tid)
{
	bpf_map_delete_elem(&threads, &tid);
}

/* A thread that is past its exit hook gets no entry any more: nobody would delete it. */
inline_fn void set_wait(struct thread *t, struct task_struct *p, enum wait wait, __u64 now)
{
	if (t) { /* a wake-up on one CPU may overlap a switch on another: either may win, and both are of this instant */
		t->since_ns = now;
		t->wait = wait;
		return;
	}
	if (FIELD(p, flags) & PF_EXITING)
		return;
	__u32 tid = FIELD(p, pid);
	struct thread fresh = { .since_ns = now, .wait = wait };
	if (bpf_map_update_elem(&threads, &tid, &fresh, BPF_ANY))
		count(COUNT_MAP_FULL_THREADS);
}

inline_fn void wait_begins(struct task_struct *p, __u32 tgid, __u32 state, __u64 now)
{
	struct watched *w = watched_process(tgid);
	if (!w)
		return;
	add(state ? &w->voluntary : &w->involuntary, 1);
	enum wait wait = SLEEPING;
	if (!state)
		wait = PREEMPTED;
	else if (state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD))
		wait = BLOCKED;
	__u32 tid = FIELD(p, pid);
	set_wait(bpf_map_lookup_elem(&threads, &tid), p, wait, now);
}

/* Measures a sleep, of any kind, that ends now. */
inline_fn void slept(struct watched *w, struct thread *t, __u32 tgid, __u32 tid, __u64 now)
{
	__u64 ns = now - t->since_ns;
	if (t->wait == BLOCKED) {
		measure(w, MEASURE_BLOCKED, ns);
		check(w, LIMIT_BLOCKED, tgid, tid, ns, now);
	} else {
		measure(w, MEASURE_SLEEPING, ns);
		check(w, LIMIT_SLEEPING, tgid, tid, ns, now);
	}
}

inline_fn void thread_woken(struct task_struct *p, __u32 tgid, __u64 now)
{
	__u32 tid = FIELD(p, pid);
	struct watched *w = watched_process(tgid);
	struct thread *t = bpf_map_lookup_elem(&threads, &tid);
	if (!w || (t && (t->wait == RUNNING || t->wait == PREEMPTED)))
		return;
	if (t && t->wait != RUNNABLE && t->since_ns >= w->added_ns)
		slept(w, t, tgid, tid, now);
	set_wait(t, p, RUNNABLE, now);
}

inline_fn void wait_ends(struct task_struct *p, __u32 tgid, __u64 now)
{
	__u32 tid = FIELD(p, pid);
	struct thread *t = bpf_map_lookup_elem(&threads, &tid);
	if (!t || t->wait == RUNNING)
		return;
	struct watched *w = watched_process(tgid);
	__u64 ns = now - t->since_ns;
	if (w && t->since_ns >= w->added_ns) {
		if (t->wait == RUNNABLE || t->wait == PREEMPTED) {
			measure(w, MEASURE_RUN_QUEUE, ns);
			if (t->wait == PREEMPTED)
				measure(w, MEASURE_PREEMPTED, ns);
			check(w, LIMIT_RUN_QUEUE, tgid, tid, ns, now);
		} else {
			slept(w, t, tgid, tid, now);
		}
	}
	t->wait = RUNNING;
}

#else

inline_fn void wait_begins(struct task_struct *p, __u32 tgid, __u32 state, __u64 now) {}
inline_fn void wait_ends(struct task_struct *p, __u32 tgid, __u64 now) {}
inline_fn void thread_woken(struct task_struct *p, __u32 tgid, __u64 now) {}

#endif

#endif
