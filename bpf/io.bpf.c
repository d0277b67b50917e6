//go:build ignore

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * Unit io: block requests with their owners, the fsync family, major faults, direct reclaim.
 *
 * A request's owner is the thread that submitted its first bio. The bio is remembered when it is queued
 * (block_bio_queue) and again when a request is made of it (block_getrq, which also sees the bios that splitting
 * makes), found again through request.bio when the request goes to the device, whoever does that, and forgotten when
 * it completes. A merge at the front makes the other bio the first: it was queued too.
 *
 * A flush has no bio of its own: its owner is who last queued a bio that asks for one on that disk.
 *
 * Kernel threads' bios are remembered only while a target thread is within an fsync-family call.
 */
#include "block.h"
#include "syscalls.h"
#include "watch.h"

const volatile __u32 bio_queue_arg = 0;
const volatile __u32 getrq_arg = 0;
const volatile __u32 bio_complete_arg = 1;
const volatile __u32 rq_issue_arg = 0;
const volatile bool complete_has_status = true; /* blk_status_t, else a negative errno */

struct owner {
	__u64 sector; /* of the bio: guards against an entry that outlived its bio */
	__u32 tid;
	__u32 tgid; /* 0: a kernel thread, during an fsync-family call of a target */
};

struct request_start {
	__u64 id;
	__u64 issue_ns;
	__u64 sector;
	__u32 tid; /* of the header */
	__u32 owner_tid;
	__u32 owner_pid;
	__u32 flags; /* of the header, and QUIET */
};

#define QUIET (1 << 8) /* the owner was watched, and no target: there are no events */

struct sync_start {
	__u64 start_ns;
	__u32 call;
	__u32 flags; /* QUIET */
};

struct fault_start {
	__u64 start_ns;
	__u64 address;
};

#define HASH(name, entries, key_type, value_type)           \
	struct {                                            \
		__uint(type, BPF_MAP_TYPE_HASH);            \
		__uint(max_entries, entries);               \
		__type(key, key_type);                      \
		__type(value, value_type);                  \
	} name SEC(".maps")

HASH(bios, 16384, __u64, struct owner);             /* by bio */
HASH(requests, 8192, __u64, struct request_start);  /* by request */
HASH(flushers, 256, __u32, struct owner);           /* by disk */
HASH(calls, 8192, __u32, struct sync_start);        /* by thread */
HASH(faults, 16384, __u32, struct fault_start);     /* by thread */
HASH(reclaims, 4096, __u32, __u64);                 /* by thread: start */

/* How many known threads are within an fsync-family call, and how many of them quietly. Any CPU adds and subtracts. */
__u64 in_call;
__u64 in_quiet_call;

inline_fn void count_call(struct sync_start *s, __s64 n)
{
	__sync_fetch_and_add(&in_call, n);
	if (WATCHING && s->flags & QUIET)
		__sync_fetch_and_add(&in_quiet_call, n);
}

inline_fn bool in_target_call(void)
{
	return WATCHING ? in_call != in_quiet_call : in_call;
}

/* Block requests. */

inline_fn int bio_seen(struct bio *bio)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct owner o = { .tid = id_tid(id), .tgid = id_tgid(id) };
	bool known = is_known(o.tgid);
	if (!known && in_target_call()) {
		struct task_struct *p = (void *)bpf_get_current_task();
		known = BPF_CORE_READ(p, flags) & PF_KTHREAD;
		o.tgid = 0;
	}
	if (FIELD(bio, bi_opf) & 1u << bpf_core_enum_value(enum req_flag_bits, __REQ_PREFLUSH)) {
		__u32 dev = bio_dev(bio);
		if (!known)
			bpf_map_delete_elem(&flushers, &dev);
		else if (bpf_map_update_elem(&flushers, &dev, &o, BPF_ANY))
			count(COUNT_MAP_FULL_BIOS);
	}
	if (!known)
		return 0;
	__u64 key = (__u64)bio;
	o.sector = FIELD(bio, bi_iter.bi_sector);
	if (bpf_map_update_elem(&bios, &key, &o, BPF_ANY))
		count(COUNT_MAP_FULL_BIOS);
	return 0;
}

HOOK(block_bio_queue)
int on_bio_queue(args *ctx)
{
	return bio_seen(argument(ctx, bio_queue_arg));
}

HOOK(block_getrq)
int on_getrq(args *ctx)
{
	return bio_seen(argument(ctx, getrq_arg));
}

HOOK(block_bio_complete)
int on_bio_complete(args *ctx)
{
	__u64 key = (__u64)argument(ctx, bio_complete_arg);
	bpf_map_delete_elem(&bios, &key);
	return 0;
}

HOOK(block_rq_issue)
int on_rq_issue(args *ctx)
{
	struct request *rq = argument(ctx, rq_issue_arg);
	struct owner *o;
	__u8 op = rq_op(rq);
	__u64 sector = op == OP_FLUSH ? 0 : FIELD(rq, __sector), key = (__u64)rq;
	struct request_start *issued = bpf_map_lookup_elem(&requests, &key);
	if (issued && issued->sector == sector)
		return 0; /* the driver had given it back (its queue was full) and now takes it: it was issued before */
	if (op == OP_FLUSH) {
		__u32 dev = rq_dev(rq);
		o = bpf_map_lookup_elem(&flushers, &dev);
	} else {
		__u64 bio = (__u64)FIELD(rq, bio);
		o = bpf_map_lookup_elem(&bios, &bio);
		if (o && o->sector != sector)
			o = NULL;
	}
	if (!o)
		return 0;

	__u64 now = bpf_ktime_get_boot_ns();
	struct request_start r = { .issue_ns = now, .sector = sector, .flags = o->tgid ? 0 : FLAG_INDIRECT };
	r.id = now << 10 | (bpf_get_smp_processor_id() & 1023); /* one CPU issues one request at a time */
	if (o->tgid) {
		r.tid = id_tid(bpf_get_current_pid_tgid());
		r.owner_tid = o->tid;
		r.owner_pid = o->tgid;
		if (WATCHING && !is_target(o->tgid))
			r.flags |= QUIET;
	} else {
		r.tid = o->tid;
	}
	if (bpf_map_update_elem(&requests, &key, &r, BPF_ANY))
		count(COUNT_MAP_FULL_REQUESTS);
	if (WATCHING && r.flags & QUIET)
		return 0;

	struct rq_event *e = reserve(sizeof(*e), COUNT_RING_FULL_RQ_ISSUE);
	if (!e)
		return 0;
	fill_header(&e->h, now, r.tid, KIND_RQ_ISSUE, (__u8)r.flags);
	e->id = r.id;
	e->sector = sector;
	e->issue_ns = 0;
	e->dev = rq_dev(rq);
	e->bytes = op == OP_FLUSH ? 0 : FIELD(rq, __data_len);
	e->owner_tid = r.owner_tid;
	e->owner_pid = r.owner_pid;
	e->op = op;
	e->pad[0] = e->pad[1] = e->pad[2] = 0;
	e->error = 0;
	submit(e);
	return 0;
}

inline_fn void measure_request(const void *ctx, struct request_start *r, __u8 op, __u64 now)
{
	struct watched *w = watched_process(r->owner_pid);
	if (!w || r->issue_ns < w->added_ns)
		return;
	measure(w, op <= OP_FLUSH ? MEASURE_READ + op : MEASURE_OTHER_IO, now - r->issue_ns);
	check(ctx, w, LIMIT_BLOCK_IO, r->owner_pid, r->owner_tid, now - r->issue_ns, now);
}

HOOK(block_rq_complete)
int on_rq_complete(args *ctx)
{
	struct request *rq = (void *)ctx[0];
	__u64 key = (__u64)rq;
	struct request_start *r = bpf_map_lookup_elem(&requests, &key);
	if (!r)
		return 0;

	__u32 bytes = (__u32)ctx[2];
	__u8 op = rq_op(rq);
	bool whole = bytes >= FIELD(rq, __data_len); /* else a part: the rest of the request completes later */
	__u64 now = bpf_ktime_get_boot_ns();
	if (WATCHING && whole && r->owner_pid)
		measure_request(ctx, r, op, now);
	struct rq_event *e = NULL;
	if (!WATCHING || !(r->flags & QUIET))
		e = reserve(sizeof(*e), COUNT_RING_FULL_RQ_COMPLETE);
	if (e) {
		fill_header(&e->h, now, r->tid, KIND_RQ_COMPLETE, (__u8)r->flags);
		e->id = r->id;
		e->sector = op == OP_FLUSH ? 0 : FIELD(rq, __sector);
		e->issue_ns = r->issue_ns;
		e->dev = rq_dev(rq);
		e->bytes = op == OP_FLUSH ? 0 : bytes;
		e->owner_tid = r->owner_tid;
		e->owner_pid = r->owner_pid;
		e->op = op;
		e->pad[0] = e->pad[1] = e->pad[2] = 0;
		e->error = complete_has_status ? status_errno((__u8)ctx[1]) : (__s32)ctx[1];
		submit(e);
	}
	if (whole)
		bpf_map_delete_elem(&requests, &key);
	return 0;
}

/* The fsync family. The hooks run at every system call of the machine, so each first looks at what it has in hand. */

HOOK(sys_enter)
int on_sys_enter(args *ctx)
{
	__u64 nr = ctx[1];
	enum sync_call native = native_call(nr), compat = compat_call(nr);
	if (native == CALL_NONE && compat == CALL_NONE)
		return 0;
	__u64 id = bpf_get_current_pid_tgid();
	if (!is_known(id_tgid(id)))
		return 0;

	struct task_struct *p = (void *)bpf_get_current_task();
	struct sync_start s = { .call = is_compat(p) ? compat : native };
	if (s.call == CALL_NONE)
		return 0;
	if (WATCHING && !is_target(id_tgid(id)))
		s.flags = QUIET;
	__u32 tid = id_tid(id);
	s.start_ns = bpf_ktime_get_boot_ns();
	if (bpf_map_update_elem(&calls, &tid, &s, BPF_ANY))
		count(COUNT_MAP_FULL_CALLS);
	else
		count_call(&s, 1);
	return 0;
}

/* Measures what began at start_ns and ended now, of a thread of a known process. */
inline_fn void measure_call(const void *ctx, __u64 id, enum measure what, enum limit limit, __u64 start_ns, __u64 now)
{
	struct watched *w = watched_process(id_tgid(id));
	if (!w || start_ns < w->added_ns)
		return;
	measure(w, what, now - start_ns);
	check(ctx, w, limit, id_tgid(id), id_tid(id), now - start_ns, now);
}

HOOK(sys_exit)
int on_sys_exit(args *ctx)
{
	if (!in_call)
		return 0;
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id_tid(id);
	struct sync_start *s = bpf_map_lookup_elem(&calls, &tid);
	if (!s)
		return 0;

	__u64 now = bpf_ktime_get_boot_ns();
	if (WATCHING)
		measure_call(ctx, id, MEASURE_FSYNC, LIMIT_FSYNC, s->start_ns, now);
	struct fsync_event *e = NULL;
	if (!WATCHING || !(s->flags & QUIET))
		e = reserve(sizeof(*e), COUNT_RING_FULL_FSYNC);
	if (e) {
		fill_header(&e->h, now, tid, KIND_FSYNC, 0);
		e->start_ns = s->start_ns;
		e->tgid = id_tgid(id);
		e->call = s->call;
		e->ret = (__s64)ctx[1];
		submit(e);
	}
	count_call(s, -1);
	bpf_map_delete_elem(&calls, &tid);
	return 0;
}

/* Major faults: the perf event tells of their end, the tracepoints (amd64 only) of every fault's start. */

inline_fn int fault_begins(__u64 address)
{
	__u64 id = bpf_get_current_pid_tgid();
	if (!is_target(id_tgid(id)))
		return 0;
	__u32 tid = id_tid(id);
	struct fault_start *old = bpf_map_lookup_elem(&faults, &tid);
	struct fault_start f = { .start_ns = bpf_ktime_get_boot_ns(), .address = address };
	if (old)
		*old = f; /* only its own thread writes an entry */
	else if (bpf_map_update_elem(&faults, &tid, &f, BPF_ANY))
		count(COUNT_MAP_FULL_FAULTS);
	return 0;
}

HOOK(page_fault_user)
int on_page_fault_user(args *ctx)
{
	return fault_begins(ctx[0]);
}

HOOK(page_fault_kernel)
int on_page_fault_kernel(args *ctx)
{
	return fault_begins(ctx[0]);
}

inline_fn void count_major_fault(const void *ctx, __u64 id, __u64 now)
{
	struct watched *w = watched_process(id_tgid(id));
	if (!w)
		return;
	add(&w->major_faults, 1);
	if (now - w->window_ns >= 1000000000) {
		w->window_ns = now;
		w->window_faults = 0;
	}
	add(&w->window_faults, 1);
	check(ctx, w, LIMIT_MAJOR_FAULTS, id_tgid(id), id_tid(id), w->window_faults, now);
}

SEC("perf_event")
int on_major_fault(struct bpf_perf_event_data *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	if (!is_known(id_tgid(id)))
		return 0;
	__u64 now = bpf_ktime_get_boot_ns();
	if (WATCHING) {
		count_major_fault(ctx, id, now);
		if (!is_target(id_tgid(id)))
			return 0;
	}

	__u32 tid = id_tid(id);
	__u64 address = ctx->addr;
	struct fault_start *f = bpf_map_lookup_elem(&faults, &tid);
	struct major_fault_event *e = reserve(sizeof(*e), COUNT_RING_FULL_MAJOR_FAULT);
	if (!e)
		return 0;
	fill_header(&e->h, now, tid, KIND_MAJOR_FAULT, 0);
	e->start_ns = f && f->address >> 12 == address >> 12 ? f->start_ns : 0;
	e->address = address;
	e->tgid = id_tgid(id);
	e->pad = 0;
	submit(e);
	return 0;
}

/* Direct reclaim. */

HOOK(mm_vmscan_direct_reclaim_begin)
int on_reclaim_begin(args *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	if (!is_known(id_tgid(id)))
		return 0;
	__u32 tid = id_tid(id);
	__u64 now = bpf_ktime_get_boot_ns();
	if (bpf_map_update_elem(&reclaims, &tid, &now, BPF_ANY))
		count(COUNT_MAP_FULL_RECLAIMS);
	return 0;
}

HOOK(mm_vmscan_direct_reclaim_end)
int on_reclaim_end(args *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	if (!is_known(id_tgid(id)))
		return 0;
	__u32 tid = id_tid(id);
	__u64 *start = bpf_map_lookup_elem(&reclaims, &tid);
	if (!start)
		return 0;

	__u64 now = bpf_ktime_get_boot_ns();
	if (WATCHING)
		measure_call(ctx, id, MEASURE_RECLAIM, LIMIT_RECLAIM, *start, now);
	struct reclaim_event *e = NULL;
	if (!WATCHING || is_target(id_tgid(id)))
		e = reserve(sizeof(*e), COUNT_RING_FULL_RECLAIM);
	if (e) {
		fill_header(&e->h, now, tid, KIND_RECLAIM, 0);
		e->start_ns = *start;
		e->tgid = id_tgid(id);
		e->reclaimed = (__u32)ctx[0];
		submit(e);
	}
	bpf_map_delete_elem(&reclaims, &tid);
	return 0;
}

/* A thread that ends leaves nothing behind, even if its process is no longer known, where processes are forgotten. */
HOOK(sched_process_exit)
int on_thread_exit(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	if (!WATCHING && !is_target(FIELD(p, tgid)))
		return 0;
	__u32 tid = FIELD(p, pid);
	bpf_map_delete_elem(&faults, &tid);
	bpf_map_delete_elem(&reclaims, &tid);
	struct sync_start *s = bpf_map_lookup_elem(&calls, &tid);
	if (s) {
		count_call(s, -1);
		bpf_map_delete_elem(&calls, &tid);
	}
	return 0;
}

/* The kernel asks for a GPL-compatible licence; this file is offered under GPL-2.0 as well. */
char LICENSE[] SEC("license") = "GPL";
