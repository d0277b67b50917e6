/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Binder: transactions of targets, from their tracepoints (drivers/android/binder_trace.h; the same from Linux 4.14 to
 * 6.12). These are classic tracepoint programs, which see the record that the kernel has made: binder may be a module,
 * and on Linux 5.10 nothing knows a module's types. The loader compares the structs with the kernel's own description.
 *
 * A transaction is followed if a target sends or receives it, or if its sender works for one that is followed. So what a
 * server asks of others on a target's behalf is followed as well, and so are the replies.
 */
#ifndef BRAID_BINDER_H
#define BRAID_BINDER_H

#include "servers.h"

#define TF_ONE_WAY 0x01 /* include/uapi/linux/android/binder.h */

struct binder_transaction_record {
	__u64 common;
	__s32 debug_id;
	__s32 target_node;
	__s32 to_proc;
	__s32 to_thread;
	__s32 reply;
	__u32 code;
	__u32 flags;
};

struct binder_received_record {
	__u64 common;
	__s32 debug_id;
};

struct binder_wait_record {
	__u64 common;
	bool proc_work;
	bool transaction_stack;
	bool thread_todo;
};

/* Followed transactions that were sent and not received yet, at their id modulo the size. */
#define TRANSACTIONS 16384

struct transaction {
	__s32 debug_id; /* 0: none */
	__u32 reply;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TRANSACTIONS);
	__type(key, __u32);
	__type(value, struct transaction);
} transactions SEC(".maps");

/* What a thread has received and not answered, the newest last: a server that waits for an answer may be asked itself. */
#define DEPTH 8

struct work {
	__s32 debug_id[DEPTH];
	__u32 depth; /* may be greater than DEPTH: the ids above are not known */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct work);
} works SEC(".maps");

inline_fn struct transaction *transaction_slot(__s32 debug_id)
{
	__u32 key = (__u32)debug_id % TRANSACTIONS;
	return bpf_map_lookup_elem(&transactions, &key);
}

inline_fn __s32 newest_work(struct work *w)
{
	__u32 i = w->depth - 1;
	barrier_var(i);
	return i < DEPTH ? w->debug_id[i] : 0;
}

/* A thread has one transaction less to answer. */
inline_fn void work_ends(struct work *w, __u32 tid, __u32 tgid, __u32 left)
{
	w->depth = left;
	if (left)
		return;
	bpf_map_delete_elem(&works, &tid);
	if (!is_target(tgid))
		set_role(tid, ENDING);
}

/* The first thread that the current one now wakes in the process is woken for the transaction. */
inline_fn void sends_to(__u32 tid, __u32 to)
{
	struct server_page *page = server_page(tid);
	if (!page)
		return;
	if (bpf_map_update_elem(&senders, &tid, &to, BPF_ANY))
		count(COUNT_MAP_FULL_BINDER);
	else
		page->role[tid % PAGE_IDS] |= SENDING;
}

SEC("tracepoint/binder/binder_transaction")
int on_binder_transaction(struct binder_transaction_record *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id_tid(id), tgid = id_tgid(id), to = ctx->to_proc;
	bool from_target = is_target(tgid), to_target = is_target(to), reply = ctx->reply;
	if (!from_target && !to_target && !is_server(tid))
		return 0;

	__u64 now = bpf_ktime_get_boot_ns();
	__s32 in_reply_to = 0;
	struct work *w = reply ? bpf_map_lookup_elem(&works, &tid) : NULL;
	if (w && w->depth) {
		in_reply_to = newest_work(w);
		work_ends(w, tid, tgid, w->depth - 1);
	}
	struct transaction *t = transaction_slot(ctx->debug_id);
	if (t) {
		if (t->debug_id)
			count(COUNT_MAP_FULL_BINDER);
		t->reply = reply;
		t->debug_id = ctx->debug_id;
	}
	if (!reply && !to_target)
		sends_to(tid, to);

	struct binder_transaction_event *e = reserve(sizeof(*e), COUNT_RING_FULL_BINDER_TRANSACTION);
	if (!e)
		return 0;
	fill_header(&e->h, now, tid, KIND_BINDER_TRANSACTION, 0);
	e->debug_id = ctx->debug_id;
	e->tgid = tgid;
	e->to_tgid = to;
	e->to_tid = ctx->to_thread;
	e->code = ctx->code;
	e->flags = ctx->flags;
	e->node = ctx->target_node;
	e->in_reply_to = in_reply_to;
	e->reply = reply;
	__builtin_memset(e->pad, 0, sizeof(e->pad));
	submit(e);
	return 0;
}

inline_fn void work_begins(__u32 tid, __u32 tgid, __s32 debug_id)
{
	struct work *w = bpf_map_lookup_elem(&works, &tid);
	if (!w) {
		struct work fresh = {};
		if (bpf_map_update_elem(&works, &tid, &fresh, BPF_ANY)) {
			count(COUNT_MAP_FULL_BINDER);
			return;
		}
		w = bpf_map_lookup_elem(&works, &tid);
		if (!w)
			return;
	}
	__u32 i = w->depth;
	barrier_var(i);
	if (i < DEPTH)
		w->debug_id[i] = debug_id;
	w->depth++;
	if (is_target(tgid))
		return;
	set_role(tid, SERVER);
	forget_call(tid);
}

SEC("tracepoint/binder/binder_transaction_received")
int on_binder_received(struct binder_received_record *ctx)
{
	struct transaction *t = transaction_slot(ctx->debug_id);
	if (!t || t->debug_id != ctx->debug_id)
		return 0;
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id_tid(id), tgid = id_tgid(id);
	__u64 now = bpf_ktime_get_boot_ns();
	t->debug_id = 0;
	if (!t->reply)
		work_begins(tid, tgid, ctx->debug_id);

	struct binder_received_event *e = reserve(sizeof(*e), COUNT_RING_FULL_BINDER_RECEIVED);
	if (!e)
		return 0;
	fill_header(&e->h, now, tid, KIND_BINDER_RECEIVED, 0);
	e->debug_id = ctx->debug_id;
	e->tgid = tgid;
	submit(e);
	return 0;
}

/* A thread that waits for any work of its process has nothing left to answer. */
SEC("tracepoint/binder/binder_wait_for_work")
int on_binder_wait(struct binder_wait_record *ctx)
{
	if (!ctx->proc_work)
		return 0;
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id_tid(id), tgid = id_tgid(id);
	if (!is_target(tgid) && !is_server(tid))
		return 0;
	struct work *w = bpf_map_lookup_elem(&works, &tid);
	if (!w || !w->depth)
		return 0;
	__u64 now = bpf_ktime_get_boot_ns();
	__s32 debug_id = newest_work(w);
	work_ends(w, tid, tgid, 0);

	struct binder_done_event *e = reserve(sizeof(*e), COUNT_RING_FULL_BINDER_DONE);
	if (!e)
		return 0;
	fill_header(&e->h, now, tid, KIND_BINDER_DONE, 0);
	e->debug_id = debug_id;
	e->tgid = tgid;
	submit(e);
	return 0;
}

inline_fn void forget_binder_thread(__u32 tid)
{
	bpf_map_delete_elem(&works, &tid);
	bpf_map_delete_elem(&senders, &tid);
	set_role(tid, 0);
}

#endif
