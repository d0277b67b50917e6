/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Threads of other processes that work for a binder transaction of a target: unit wait says which they are, unit sched
 * records what they wait for meanwhile.
 *
 * Two bytes a thread id, with one writer at a time each, since Linux 5.10 has no atomic operations but adds:
 *
 *   role   the thread itself, in a binder call or while it is switched out, writes it
 *   woken  whoever wakes it sets it to 1; the thread itself sets it to 0
 *
 *   1. SENDING: it has just sent a transaction to the process in the map senders. The first thread of that process that
 *      it wakes is woken for it.
 *   2. A thread that was woken so is recorded from the wake-up on. It becomes a server when it receives a target's
 *      transaction, and is no longer recorded when it goes to sleep without having received one: another thread took it.
 *   3. SERVER lasts until the reply, or until the thread asks for other work. ENDING is what follows: the thread is
 *      recorded until it sleeps, so that its last slice has an end.
 *
 * A wake-up in an interrupt that hits a sending thread may be taken for the transaction's; rule 2 ends that soon.
 */
#ifndef BRAID_SERVERS_H
#define BRAID_SERVERS_H

#include "record.h"

/* Whether unit wait is loaded too, on a kernel that has binder. Unit wait's own is always true. */
const volatile bool follow_servers = false;

enum {
	SENDING = 1,
	SERVER = 2,
	ENDING = 4,
};

struct server_page {
	__u8 role[PAGE_IDS];
	__u8 woken[PAGE_IDS];
};

/* The loader sets max_entries for pid_max, where servers are followed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct server_page);
} servers SEC(".maps");

/* By thread: the process that it has just sent a transaction to. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} senders SEC(".maps");

inline_fn struct server_page *server_page(__u32 tid)
{
	__u32 key = tid / PAGE_IDS;
	return bpf_map_lookup_elem(&servers, &key);
}

/* Whether a thread, of no target, is recorded. */
inline_fn bool serves(__u32 tid)
{
	struct server_page *page = follow_servers ? server_page(tid) : NULL;
	return page && (page->role[tid % PAGE_IDS] & (SERVER | ENDING) || page->woken[tid % PAGE_IDS]);
}

/* Whether a thread, of no target, works for a target's transaction now. */
inline_fn bool is_server(__u32 tid)
{
	struct server_page *page = follow_servers ? server_page(tid) : NULL;
	return page && page->role[tid % PAGE_IDS] & SERVER;
}

inline_fn void set_role(__u32 tid, __u8 role)
{
	struct server_page *page = server_page(tid);
	if (!page)
		return;
	page->role[tid % PAGE_IDS] = role;
	page->woken[tid % PAGE_IDS] = 0;
}

/* The thread, of no target and recorded, is switched out and sleeps. */
inline_fn void server_sleeps(__u32 tid)
{
	struct server_page *page = server_page(tid);
	if (page && !(page->role[tid % PAGE_IDS] & SERVER)) {
		page->role[tid % PAGE_IDS] = 0;
		page->woken[tid % PAGE_IDS] = 0;
	}
}

/* The current thread wakes a thread, of no target: is it recorded from now on? */
inline_fn bool woken_to_serve(__u32 tid, __u32 tgid)
{
	if (!follow_servers)
		return false;
	if (serves(tid))
		return true;
	__u32 waker = id_tid(bpf_get_current_pid_tgid());
	struct server_page *page = server_page(waker);
	if (!page || !(page->role[waker % PAGE_IDS] & SENDING))
		return false;
	__u32 *to = bpf_map_lookup_elem(&senders, &waker);
	if (!to || *to != tgid)
		return false;
	page->role[waker % PAGE_IDS] &= ~SENDING;
	page = server_page(tid);
	if (!page)
		return false;
	page->woken[tid % PAGE_IDS] = 1;
	return true;
}

#endif
