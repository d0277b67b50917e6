//go:build ignore

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * What a probe does in a study: the least that a tracer has to do. It counts, or it writes 16 bytes to a ring buffer
 * and wakes nobody. Nothing is filtered: the kernel attaches to one process alone.
 *
 * The same bodies stand behind each way of attaching, because the kernel wants to know that way when a program is loaded.
 * Only the programs that a way needs are loaded.
 */
#include "../../bpf/kernel.h"
#include <bpf/bpf_helpers.h>

#define inline_fn static __attribute__((always_inline)) inline

/* Whether this kernel hands a program the value of its attachment (Linux 5.15); else records name the place instead. */
const volatile __u32 have_cookie = 1;

/* Added to the value of an attachment at returns. */
#define AT_RETURN (1ULL << 63)

enum counter { COUNT_EVENTS, COUNT_DROPPED, COUNT_MAX };

/* One of each for each CPU, so that CPUs do not wait for each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct record {
	__u64 what; /* the attachment's value, or the place */
	__u64 ns;   /* CLOCK_MONOTONIC */
};

/* The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 12);
} records SEC(".maps");

/* include/uapi/asm/ptrace.h: of the registers, only the instruction pointer is read. */
struct user_regs {
#if defined(__TARGET_ARCH_x86)
	__u64 before[16];
#else
	__u64 before[32];
#endif
	__u64 ip;
};

/* Since Linux 6.13; kernel/trace/bpf_trace.c. Only in programs of sessions. */
extern bool bpf_session_is_return(void) __ksym;

inline_fn int count(enum counter c)
{
	__u32 key = c;
	__u64 *n = bpf_map_lookup_elem(&counters, &key);
	if (n)
		(*n)++;
	return 0;
}

inline_fn int write(struct user_regs *ctx, __u64 flags)
{
	struct record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r)
		return count(COUNT_DROPPED);
	r->what = (have_cookie ? bpf_get_attach_cookie(ctx) : ctx->ip) | flags;
	r->ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("uprobe")
int count_single(struct user_regs *ctx)
{
	return count(COUNT_EVENTS);
}

SEC("uprobe.multi")
int count_multi(struct user_regs *ctx)
{
	return count(COUNT_EVENTS);
}

/* A session asks at each entry whether the return is wanted; 0 says yes. */
SEC("uprobe.session")
int count_session(struct user_regs *ctx)
{
	return count(COUNT_EVENTS);
}

SEC("uprobe")
int write_single(struct user_regs *ctx)
{
	return write(ctx, 0);
}

SEC("uprobe.multi")
int write_multi(struct user_regs *ctx)
{
	return write(ctx, 0);
}

SEC("uprobe.session")
int write_session(struct user_regs *ctx)
{
	return write(ctx, bpf_session_is_return() ? AT_RETURN : 0);
}

/* The kernel asks for a GPL-compatible licence; this file is offered under GPL-2.0 as well. */
char LICENSE[] SEC("license") = "GPL";
