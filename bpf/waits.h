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
 * A thread that waits for something quick is often woken while it is still being switched out, on another CPU: then the
 * wake-up is seen before the switch, or has the earlier time. Such an early wake-up is remembered, and when the thread is
 * switched in without another, it waited for the CPU from the start.
 *
 * An event that is missing makes a wait disappear, and never a longer one: a thread that was switched in without being
 * woken is taken to have slept until then. A thread without an entry did nothing yet.
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

/* An early wake-up counts if it came at most this long before the switch: choosing the next thread may take a while. */
#define EARLY_NS 1000000

#define WAIT_BITS 3
#define WAIT_MASK ((1 << WAIT_BITS) - 1)

struct thread {
	__u64 state;    /* when the wait began, ns << WAIT_BITS, and enum wait: one word, since wake-ups may overlap switches */
	__u64 early_ns; /* the last wake-up since the thread runs; 0: none */
};

inline_fn enum wait wait_of(__u64 state) { return state & WAIT_MASK; }
inline_fn __u64 since_of(__u64 state) { return state >> WAIT_BITS; }

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
	__u64 state = now << WAIT_BITS | wait;
	if (t) {
		*(volatile __u64 *)&t->state = state;
		return;
	}
	if (FIELD(p, flags) & PF_EXITING)
		return;
	__u32 tid = FIELD(p, pid);
	struct thread fresh = { .state = state };
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

/* Measures a sleep, of any kind. */
inline_fn void slept(const void *ctx, struct watched *w, enum wait wait, __u32 tgid, __u32 tid, __u64 ns, __u64 now)
{
	if (wait == BLOCKED) {
		measure(w, MEASURE_BLOCKED, ns);
		check(ctx, w, LIMIT_BLOCKED, tgid, tid, ns, now);
	} else {
		measure(w, MEASURE_SLEEPING, ns);
		check(ctx, w, LIMIT_SLEEPING, tgid, tid, ns, now);
	}
}

inline_fn void thread_woken(const void *ctx, struct task_struct *p, __u32 tgid, __u64 now)
{
	__u32 tid = FIELD(p, pid);
	struct watched *w = watched_process(tgid);
	if (!w)
		return;
	struct thread *t = bpf_map_lookup_elem(&threads, &tid);
	if (!t) {
		set_wait(NULL, p, RUNNABLE, now);
		return;
	}
	__u64 state = *(volatile __u64 *)&t->state, since = since_of(state);
	enum wait wait = wait_of(state);
	if (wait == RUNNING)
		t->early_ns = now;
	if (wait == RUNNING || wait == PREEMPTED)
		return;
	if (wait != RUNNABLE && since >= w->added_ns) {
		if (now < since)
			now = since;
		slept(ctx, w, wait, tgid, tid, now - since, now);
	}
	set_wait(t, p, RUNNABLE, now);
}

inline_fn void wait_ends(const void *ctx, struct task_struct *p, __u32 tgid, __u64 now)
{
	__u32 tid = FIELD(p, pid);
	struct thread *t = bpf_map_lookup_elem(&threads, &tid);
	if (!t)
		return;
	__u64 state = *(volatile __u64 *)&t->state, since = since_of(state), early = t->early_ns;
	enum wait wait = wait_of(state);
	t->early_ns = 0;
	set_wait(t, p, RUNNING, now);
	struct watched *w = watched_process(tgid);
	if (wait == RUNNING || !w || since < w->added_ns)
		return;
	if (wait == SLEEPING || wait == BLOCKED) {
		if (!early || early + EARLY_NS < since) {
			slept(ctx, w, wait, tgid, tid, now - since, now);
			return;
		}
		slept(ctx, w, wait, tgid, tid, 0, now);
	}
	measure(w, MEASURE_RUN_QUEUE, now - since);
	if (wait == PREEMPTED)
		measure(w, MEASURE_PREEMPTED, now - since);
	check(ctx, w, LIMIT_RUN_QUEUE, tgid, tid, now - since, now);
}

#else

inline_fn void wait_begins(struct task_struct *p, __u32 tgid, __u32 state, __u64 now) {}
inline_fn void wait_ends(const void *ctx, struct task_struct *p, __u32 tgid, __u64 now) {}
inline_fn void thread_woken(const void *ctx, struct task_struct *p, __u32 tgid, __u64 now) {}

#endif

#endif
