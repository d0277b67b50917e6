//go:build ignore

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * Probes at a method: how long each of its calls took, told if longer than a limit. Loaded once for each method, with
 * its settings, so that kernels before 5.15, which can not hand a program a value of its attachment, do too.
 *
 *   1. No return probe: that would put another return address on the stack, and a C++ exception that passes it ends the
 *      program, because the unwinder finds nothing of it. User space finds the places where the method ends instead.
 *   2. A place may be reached without an end: a jump through a register may stay in the method. A call ends where the
 *      stack pointer is what it was at its beginning; otherwise calls would be cut short.
 *   3. A call that longjmp or an exception ends reaches no such place. It is forgotten at the next event that it can not
 *      have lived to see: a beginning at its stack pointer or above, an end above.
 *   4. A thread has an entry only while it is in the method, and loses it when it ends.
 */
#include "record.h"

#define MAX_OPEN 16

const volatile __u64 limit_ns;
const volatile __u32 process;
const volatile __u32 cookie;

/* include/uapi/asm/ptrace.h: of the registers, only the stack pointer is read. */
struct user_regs {
#if defined(__TARGET_ARCH_x86)
	__u64 before[19];
#else
	__u64 before[31];
#endif
	__u64 sp;
};

struct open_call {
	__u64 sp;
	__u64 start_ns;
};

/* The calls that a thread is in, the outermost first. */
struct open_calls {
	__u64 count;
	struct open_call call[MAX_OPEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct open_calls);
} open_calls SEC(".maps");

/* The innermost open call, or NULL. */
inline_fn struct open_call *innermost(struct open_calls *o)
{
	__u64 top = o->count - 1;
	barrier_var(top); /* else the compiler, which finds the test elsewhere, leaves out the one that the verifier needs */
	return top < MAX_OPEN ? &o->call[top] : NULL;
}

/* Forgets calls whose stack pointer is below: the stack grows downwards, and they are no longer on it. */
inline_fn void forget_below(struct open_calls *o, __u64 sp)
{
	for (int i = 0; i < MAX_OPEN; i++) {
		struct open_call *c = innermost(o);
		if (!c || c->sp >= sp)
			return;
		o->count--;
	}
}

SEC("uprobe")
int on_enter(struct user_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id_tid(id);
	if (id_tgid(id) != process)
		return 0;
	struct open_calls *o = bpf_map_lookup_elem(&open_calls, &tid);
	if (!o) {
		struct open_calls none = {};
		bpf_map_update_elem(&open_calls, &tid, &none, BPF_ANY);
		o = bpf_map_lookup_elem(&open_calls, &tid);
	}
	if (!o) {
		count(COUNT_MAP_FULL_METHODS);
		return 0;
	}
	forget_below(o, ctx->sp + 1);
	__u64 n = o->count;
	barrier_var(n);
	if (n >= MAX_OPEN) {
		count(COUNT_MAP_FULL_METHODS);
		return 0;
	}
	o->count = n + 1;
	o->call[n].sp = ctx->sp;
	o->call[n].start_ns = bpf_ktime_get_boot_ns();
	return 0;
}

SEC("uprobe")
int on_leave(struct user_regs *ctx)
{
	__u64 now = bpf_ktime_get_boot_ns(), id = bpf_get_current_pid_tgid();
	__u32 tid = id_tid(id);
	struct open_calls *o = bpf_map_lookup_elem(&open_calls, &tid);
	if (!o)
		return 0;
	forget_below(o, ctx->sp);
	struct open_call *c = innermost(o);
	if (!c || c->sp != ctx->sp)
		return 0;
	__u64 ns = now - c->start_ns;
	if (--o->count == 0)
		bpf_map_delete_elem(&open_calls, &tid);
	if (ns <= limit_ns)
		return 0;
	struct fired_event *e = reserve(sizeof(*e), COUNT_RING_FULL_FIRED);
	if (!e)
		return 0;
	fill_header(&e->h, now, tid, KIND_FIRED, 0);
	e->value = ns;
	e->limit = limit_ns;
	e->suppressed = cookie;
	e->tgid = process;
	e->what = LIMIT_METHOD;
	e->pad[0] = e->pad[1] = e->pad[2] = 0;
	submit_urgent(e);
	return 0;
}

/* raw_tp on every kernel: nothing is read of the arguments. */
SEC("raw_tp/sched_process_exit")
int on_thread_end(args *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id_tid(id);
	if (id_tgid(id) == process)
		bpf_map_delete_elem(&open_calls, &tid);
	return 0;
}

/* The kernel asks for a GPL-compatible licence; this file is offered under GPL-2.0 as well. */
char LICENSE[] SEC("license") = "GPL";
