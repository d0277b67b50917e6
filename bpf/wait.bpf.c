//go:build ignore

// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * Unit wait: for what a thread sleeps in a system call, who releases futexes, and calls through binder.
 *
 * The hooks of system calls run at every call of the machine. A call of a target is noted at its beginning, and told at
 * its end if the thread has slept meanwhile: given up its CPU of its own accord. What the call was about is only then
 * looked up.
 */
#include "waitcalls.h"
#include "waitfile.h"
#include "syscalls.h"
#include "servers.h"

/* What a thread's call began with. Only the thread itself uses its entry, which stays until it ends. */
struct call {
	__u64 start_ns; /* 0: in no call */
	__u64 switches;
	__u64 nr;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct call);
} syscalls SEC(".maps");

/* The call that the thread is in is none that is told. */
inline_fn void forget_call(__u32 tid)
{
	struct call *c = bpf_map_lookup_elem(&syscalls, &tid);
	if (c)
		c->start_ns = 0;
}

#include "binder.h"

/* include/uapi/linux/futex.h */
#define FUTEX_CMD_MASK 127
enum {
	OP_FUTEX_WAIT = 0,
	OP_FUTEX_WAKE = 1,
	OP_FUTEX_REQUEUE = 3,
	OP_FUTEX_CMP_REQUEUE = 4,
	OP_FUTEX_WAKE_OP = 5,
	OP_FUTEX_LOCK_PI = 6,
	OP_FUTEX_UNLOCK_PI = 7,
	OP_FUTEX_WAIT_BITSET = 9,
	OP_FUTEX_WAKE_BITSET = 10,
	OP_FUTEX_WAIT_REQUEUE_PI = 11,
	OP_FUTEX_CMP_REQUEUE_PI = 12,
	OP_FUTEX_LOCK_PI2 = 13,
};

struct futex_waitv {
	__u64 val;
	__u64 uaddr;
	__u32 flags;
	__u32 reserved;
};

struct pollfd {
	__s32 fd;
	__u16 events;
	__u16 revents;
};

/* The first three arguments of a call, which its end has left in the registers. */
struct call_args {
	__u64 a[3];
};

inline_fn bool recorded(__u64 id)
{
	return is_target(id_tgid(id)) || is_server(id_tid(id));
}

#if defined(__TARGET_ARCH_x86)

inline_fn __u64 call_number(struct pt_regs *r) { return FIELD(r, orig_ax) & ~(__u64)X32_SYSCALL; }

inline_fn void read_args(struct call_args *to, struct pt_regs *r, bool compat)
{
	to->a[0] = compat ? (__u32)FIELD(r, bx) : FIELD(r, di);
	to->a[1] = compat ? (__u32)FIELD(r, cx) : FIELD(r, si);
	to->a[2] = compat ? (__u32)FIELD(r, dx) : FIELD(r, dx);
}

#elif defined(__TARGET_ARCH_arm64)

inline_fn __u64 call_number(struct pt_regs *r) { return (__u32)FIELD(r, syscallno); }

inline_fn void read_args(struct call_args *to, struct pt_regs *r, bool compat)
{
	to->a[0] = FIELD(r, orig_x0); /* the result is where it was */
	to->a[1] = FIELD(r, regs[1]);
	to->a[2] = FIELD(r, regs[2]);
	if (compat) {
		to->a[0] = (__u32)to->a[0];
		to->a[1] = (__u32)to->a[1];
		to->a[2] = (__u32)to->a[2];
	}
}

#endif

inline_fn __u8 call_family(__u64 nr, bool compat)
{
	if (nr >= CALL_NUMBERS)
		return WAIT_OTHER;
	return compat ? compat_calls[nr] : native_calls[nr];
}

/* Whether a call of this number may wake others, in either of the ABIs. */
inline_fn bool may_wake(__u64 nr)
{
	if (nr >= CALL_NUMBERS)
		return false;
	return native_calls[nr] >= FUTEX || compat_calls[nr] >= FUTEX;
}

inline_fn __u64 voluntary_switches(void)
{
	struct task_struct *p = (void *)bpf_get_current_task();
	return BPF_CORE_READ(p, nvcsw);
}

HOOK(sys_enter)
int on_sys_enter(args *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	if (!recorded(id))
		return 0;
	__u32 tid = id_tid(id);
	struct call *old = bpf_map_lookup_elem(&syscalls, &tid);
	struct call c = { .start_ns = bpf_ktime_get_boot_ns(), .switches = voluntary_switches(), .nr = ctx[1] };
	if (old)
		*old = c;
	else if (bpf_map_update_elem(&syscalls, &tid, &c, BPF_ANY))
		count(COUNT_MAP_FULL_SYSCALLS);
	return 0;
}

/* The family of a futex call that sleeps. */
inline_fn __u8 futex_family(__u8 family, __u64 op)
{
	if (family < FUTEX)
		return family;
	if (family != FUTEX)
		return WAIT_OTHER;
	switch (op & FUTEX_CMD_MASK) {
	case OP_FUTEX_WAIT:
	case OP_FUTEX_WAIT_BITSET:
	case OP_FUTEX_WAIT_REQUEUE_PI: return WAIT_FUTEX_WAIT;
	case OP_FUTEX_LOCK_PI:
	case OP_FUTEX_LOCK_PI2: return WAIT_FUTEX_LOCK_PI;
	}
	return WAIT_OTHER;
}

/* What a futex call that woke somebody did, or WAKE_MAX. */
inline_fn __u8 wake_op(__u8 family, __u64 op)
{
	if (family == FUTEX_WAKE_CALL)
		return WAKE_FUTEX_WAKE;
	if (family == FUTEX_REQUEUE_CALL)
		return WAKE_FUTEX_REQUEUE;
	switch (op & FUTEX_CMD_MASK) {
	case OP_FUTEX_WAKE:
	case OP_FUTEX_WAKE_BITSET: return WAKE_FUTEX_WAKE;
	case OP_FUTEX_REQUEUE:
	case OP_FUTEX_CMP_REQUEUE:
	case OP_FUTEX_CMP_REQUEUE_PI: return WAKE_FUTEX_REQUEUE;
	case OP_FUTEX_WAKE_OP: return WAKE_FUTEX_WAKE_OP;
	case OP_FUTEX_UNLOCK_PI: return WAKE_FUTEX_UNLOCK_PI;
	}
	return WAKE_MAX;
}

inline_fn void tell_wake(const void *ctx, __u64 id, __u64 now, __u64 start_ns, __u8 op, __u64 address, __s64 ret, bool compat)
{
	if (op == WAKE_MAX || ret < 0 || (ret == 0 && op != WAKE_FUTEX_UNLOCK_PI))
		return;
	struct futex_wake_event *e = reserve(sizeof(*e), COUNT_RING_FULL_FUTEX_WAKE);
	if (!e)
		return;
	fill_header(&e->h, now, id_tid(id), KIND_FUTEX_WAKE, compat ? FLAG_COMPAT : 0);
	e->start_ns = start_ns;
	e->address = address;
	e->key = 0;
	e->tgid = id_tgid(id);
	e->woken = op == WAKE_FUTEX_UNLOCK_PI ? 1 : (__s32)ret;
	e->op = op;
	__builtin_memset(e->pad, 0, sizeof(e->pad));
	submit(e);
}

/* The descriptor that a call is about, or -1. */
inline_fn __s32 call_fd(__u8 family, struct call_args *args)
{
	switch (family) {
	case WAIT_EPOLL_WAIT:
	case WAIT_READ:
	case WAIT_WRITE:
	case WAIT_ACCEPT:
	case WAIT_CONNECT:
	case WAIT_RECV:
	case WAIT_SEND:
	case WAIT_IOCTL:
	case WAIT_FILE_LOCK:
	case WAIT_SPLICE: return (__s32)args->a[0];
	case WAIT_POLL: {
		struct pollfd p = { .fd = -1 };
		if (args->a[1] == 1)
			bpf_probe_read_user(&p, sizeof(p), (void *)args->a[0]);
		return p.fd;
	}
	}
	return -1;
}

/* The futex that a call waits at, or 0. */
inline_fn __u64 call_futex(__u8 family, struct call_args *args)
{
	switch (family) {
	case WAIT_FUTEX_WAIT:
	case WAIT_FUTEX_LOCK_PI: return args->a[0];
	case WAIT_FUTEX_WAITV: {
		struct futex_waitv v = {};
		bpf_probe_read_user(&v, sizeof(v), (void *)args->a[0]);
		return v.uaddr;
	}
	}
	return 0;
}

HOOK(sys_exit)
int on_sys_exit(args *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	if (!recorded(id))
		return 0;
	__u32 tid = id_tid(id);
	struct call *c = bpf_map_lookup_elem(&syscalls, &tid);
	__u64 start_ns = c ? c->start_ns : 0, switches = 0;
	if (c && !start_ns)
		return 0; /* its beginning was not seen */
	struct pt_regs *regs = (void *)ctx[0];
	__u64 nr = c ? c->nr : call_number(regs);
#if defined(__TARGET_ARCH_x86)
	nr &= ~(__u64)X32_SYSCALL;
#endif
	if (c) {
		c->start_ns = 0;
		switches = voluntary_switches() - c->switches;
	}
	bool told = c ? switches : is_target(id_tgid(id)), wake = may_wake(nr);
	if (!told && !wake)
		return 0;

	struct task_struct *p = (void *)bpf_get_current_task();
	bool compat = is_compat(p);
	__u8 family = call_family(nr, compat);
	if (!c && family == WAIT_OTHER)
		return 0; /* the end of a fork in the child, or of an exec */
	struct call_args a;
	read_args(&a, regs, compat);
	__u64 now = bpf_ktime_get_boot_ns();
	__s64 ret = (__s64)ctx[1];
	if (family >= FUTEX)
		tell_wake(ctx, id, now, start_ns, wake_op(family, a.a[1]), a.a[0], ret, compat);
	if (!told)
		return 0;
	family = futex_family(family, a.a[1]);
	if (!c && family == WAIT_OTHER)
		return 0;

	struct waited_file file = { .object = call_futex(family, &a), .kind = FILE_NONE };
	__s32 fd = call_fd(family, &a);
	if (fd >= 0)
		fill_file(&file, fd);
	struct syscall_wait_event *e = reserve(sizeof(*e), COUNT_RING_FULL_SYSCALL_WAIT);
	if (!e)
		return 0;
	fill_header(&e->h, now, tid, KIND_SYSCALL_WAIT, compat ? FLAG_COMPAT : 0);
	e->start_ns = start_ns;
	e->object = file.object;
	e->key = 0;
	e->ret = ret;
	e->tgid = id_tgid(id);
	e->fd = fd;
	e->switches = (__u32)switches;
	e->nr = (__u16)nr;
	e->call = family;
	e->file = file.kind;
	submit(e);
	return 0;
}

/* A thread that ends leaves nothing behind, whatever its process is or was. */
HOOK(sched_process_exit)
int on_thread_exit(args *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	__u32 tid = FIELD(p, pid);
	bpf_map_delete_elem(&syscalls, &tid);
	if (follow_servers)
		forget_binder_thread(tid);
	return 0;
}

/* The kernel asks for a GPL-compatible licence; this file is offered under GPL-2.0 as well. */
char LICENSE[] SEC("license") = "GPL";
