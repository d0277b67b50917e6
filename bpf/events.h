/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The layout of kernel events: what the programs put into the ring buffer and what the trace file keeps.
 * internal/kevent documents each field and mirrors this file; layout_test.go compares the two.
 *
 * All integers are little-endian and naturally aligned, every event's size is a multiple of 8, and padding is written
 * as 0. Times are bpf_ktime_get_boot_ns, ids those of the initial pid namespace.
 */
#ifndef BRAID_EVENTS_H
#define BRAID_EVENTS_H

#define COMM_LEN 16

enum event_kind {
	KIND_SWITCH = 1,
	KIND_WAKING = 2,
	KIND_FORK = 3,
	KIND_EXEC = 4,
	KIND_EXIT = 5,
	KIND_RENAME = 6,
	KIND_MIGRATE = 7,
	KIND_FREQ = 8,
	KIND_IDLE = 9,
	KIND_AFFINITY = 10,
	KIND_RQ_ISSUE = 16,
	KIND_RQ_COMPLETE = 17,
	KIND_FSYNC = 18,
	KIND_MAJOR_FAULT = 19,
	KIND_RECLAIM = 20,
	KIND_SYSCALL_WAIT = 21,
	KIND_FUTEX_WAKE = 22,
	KIND_ANNOUNCE = 24,
	KIND_FIRED = 25,
	KIND_BINDER_TRANSACTION = 26,
	KIND_BINDER_RECEIVED = 27,
	KIND_BINDER_DONE = 28,
};

#define FLAG_PREEMPTED   (1 << 0) /* switch */
#define FLAG_PREV_TARGET (1 << 1) /* switch */
#define FLAG_NEXT_TARGET (1 << 2) /* switch */
#define FLAG_IO_WAIT     (1 << 3) /* switch */
#define FLAG_PREV_SERVER (1 << 4) /* switch */
#define FLAG_NEXT_SERVER (1 << 5) /* switch */
#define FLAG_NEW         (1 << 0) /* waking */
#define FLAG_SERVER      (1 << 1) /* waking */
#define FLAG_BEHIND      (1 << 2) /* waking, migrate */
#define FLAG_THREAD      (1 << 0) /* fork */
#define FLAG_INDIRECT    (1 << 0) /* rq_issue, rq_complete */
#define FLAG_MATCH       (1 << 0) /* announce */
#define FLAG_COMPAT      (1 << 0) /* syscall_wait, futex_wake */

enum rq_op {
	OP_READ = 0,
	OP_WRITE = 1,
	OP_FLUSH = 2,
	OP_DISCARD = 3,
	OP_OTHER = 255,
};

enum sync_call {
	CALL_FSYNC = 0,
	CALL_FDATASYNC = 1,
	CALL_SYNC = 2,
	CALL_SYNCFS = 3,
	CALL_MSYNC = 4,
	CALL_SYNC_FILE_RANGE = 5,
	CALL_NONE = 255, /* not of the family; never in an event */
};

enum wait_call {
	WAIT_OTHER = 0,
	WAIT_FUTEX_WAIT = 1,
	WAIT_FUTEX_LOCK_PI = 2,
	WAIT_FUTEX_WAITV = 3,
	WAIT_EPOLL_WAIT = 4,
	WAIT_POLL = 5,
	WAIT_SELECT = 6,
	WAIT_READ = 7,
	WAIT_WRITE = 8,
	WAIT_ACCEPT = 9,
	WAIT_CONNECT = 10,
	WAIT_RECV = 11,
	WAIT_SEND = 12,
	WAIT_NANOSLEEP = 13,
	WAIT_CHILD = 14,
	WAIT_IOCTL = 15,
	WAIT_FILE_LOCK = 16,
	WAIT_SIGNAL = 17,
	WAIT_SYNC = 18,
	WAIT_SPLICE = 19,
	WAIT_AIO = 20,
	WAIT_IPC = 21,
	WAIT_OPEN = 22,
	WAIT_MEMORY = 23,
	WAIT_MAX,
};

enum file_kind {
	FILE_NONE = 0, /* the call is not about one file, or the file is not known */
	FILE_REGULAR = 1,
	FILE_DIRECTORY = 2,
	FILE_PIPE = 3,
	FILE_UNIX_SOCKET = 4,
	FILE_INET_SOCKET = 5,
	FILE_OTHER_SOCKET = 6,
	FILE_TTY = 7,
	FILE_BINDER = 8,
	FILE_CHAR_DEVICE = 9,
	FILE_BLOCK_DEVICE = 10,
	FILE_EVENTFD = 11,
	FILE_EPOLL = 12,
	FILE_TIMERFD = 13,
	FILE_SIGNALFD = 14,
	FILE_INOTIFY = 15,
	FILE_OTHER = 16,
	FILE_MAX,
};

enum wake_op {
	WAKE_FUTEX_WAKE = 0,
	WAKE_FUTEX_REQUEUE = 1,
	WAKE_FUTEX_WAKE_OP = 2,
	WAKE_FUTEX_UNLOCK_PI = 3,
	WAKE_MAX,
};

enum announcement {
	ANNOUNCE_FORK = 0,
	ANNOUNCE_EXEC = 1,
	ANNOUNCE_RENAME = 2,
	ANNOUNCE_EXIT = 3,
};

enum limit {
	LIMIT_RUN_QUEUE = 0,
	LIMIT_SLEEPING = 1,
	LIMIT_BLOCKED = 2,
	LIMIT_BLOCK_IO = 3,
	LIMIT_FSYNC = 4,
	LIMIT_RECLAIM = 5,
	LIMIT_MAJOR_FAULTS = 6,
	LIMIT_MAX,
	LIMIT_METHOD = 8, /* of a method, not of a process */
};

struct event_header {
	__u64 time;
	__u32 tid;
	__u16 cpu;
	__u8 kind;
	__u8 flags;
};

/* A name is two words, so that it is copied with two loads and two stores. */
struct comm {
	__u64 word[COMM_LEN / 8];
};

struct switch_event {
	struct event_header h;
	__u32 prev_tgid;
	__u32 prev_state;
	__s32 prev_prio;
	__u32 next_tid;
	__u32 next_tgid;
	__s32 next_prio;
	struct comm next_comm;
};

struct waking_event {
	struct event_header h;
	__u32 waker_tid;
	__u32 waker_tgid;
	__u32 target_cpu;
	__s32 prio;
	struct comm comm;
	__u32 tgid;
	__u32 pad;
};

struct fork_event {
	struct event_header h;
	__u32 tgid;
	__u32 parent_tid;
	__u32 parent_tgid;
	__u32 pad;
	struct comm comm;
};

struct exec_event {
	struct event_header h;
	__u32 tgid;
	__u32 old_tid;
	struct comm comm;
};

struct exit_event {
	struct event_header h;
	__u32 tgid;
	__u32 pad;
};

struct rename_event {
	struct event_header h;
	__u32 tgid;
	__u32 pad;
	struct comm comm;
};

struct migrate_event {
	struct event_header h;
	__u32 from_cpu;
	__u32 to_cpu;
};

struct freq_event {
	struct event_header h;
	__u32 khz;
	__u32 cpu;
};

struct idle_event {
	struct event_header h;
	__u64 idle;
};

struct affinity_event {
	struct event_header h;
	__u64 allowed;
};

struct rq_event {
	struct event_header h;
	__u64 id;
	__u64 sector;
	__u64 issue_ns;
	__u32 dev;
	__u32 bytes;
	__u32 owner_tid;
	__u32 owner_pid;
	__u8 op;
	__u8 pad[3];
	__s32 error;
};

struct fsync_event {
	struct event_header h;
	__u64 start_ns;
	__u32 tgid;
	__u32 call;
	__s64 ret;
};

struct major_fault_event {
	struct event_header h;
	__u64 start_ns;
	__u64 address;
	__u32 tgid;
	__u32 pad;
};

struct reclaim_event {
	struct event_header h;
	__u64 start_ns;
	__u32 tgid;
	__u32 reclaimed;
};

struct syscall_wait_event {
	struct event_header h;
	__u64 start_ns;
	__u64 object;
	__u64 key;
	__s64 ret;
	__u32 tgid;
	__s32 fd;
	__u32 switches;
	__u16 nr;
	__u8 call;
	__u8 file;
};

struct futex_wake_event {
	struct event_header h;
	__u64 start_ns;
	__u64 address;
	__u64 key;
	__u32 tgid;
	__s32 woken;
	__u8 op;
	__u8 pad[7];
};

struct binder_transaction_event {
	struct event_header h;
	__s32 debug_id;
	__u32 tgid;
	__u32 to_tgid;
	__u32 to_tid;
	__u32 code;
	__u32 flags;
	__s32 node;
	__s32 in_reply_to;
	__u8 reply;
	__u8 pad[7];
};

struct binder_received_event {
	struct event_header h;
	__s32 debug_id;
	__u32 tgid;
};

struct binder_done_event {
	struct event_header h;
	__s32 debug_id;
	__u32 tgid;
};

struct announce_event {
	struct event_header h;
	__u64 cgroup;
	__u32 tgid;
	__u32 parent_tgid;
	__u32 uid;
	__u8 what;
	__u8 signal;
	__u8 pad[2];
	struct comm comm;
};

struct fired_event {
	struct event_header h;
	__u64 value;
	__u64 limit;
	__u64 suppressed; /* LIMIT_METHOD: the probe's cookie */
	__u32 tgid;
	__u8 what;
	__u8 pad[3];
};

/* What was lost, by name: Lost() reports COUNT_RING_FULL_SWITCH as kernel_ring_full_switch. */
enum counter {
	COUNT_RING_FULL_SWITCH,
	COUNT_RING_FULL_WAKING,
	COUNT_RING_FULL_FORK,
	COUNT_RING_FULL_EXEC,
	COUNT_RING_FULL_EXIT,
	COUNT_RING_FULL_RENAME,
	COUNT_RING_FULL_MIGRATE,
	COUNT_RING_FULL_FREQ,
	COUNT_RING_FULL_IDLE,
	COUNT_RING_FULL_AFFINITY,
	COUNT_RING_FULL_RQ_ISSUE,
	COUNT_RING_FULL_RQ_COMPLETE,
	COUNT_RING_FULL_FSYNC,
	COUNT_RING_FULL_MAJOR_FAULT,
	COUNT_RING_FULL_RECLAIM,
	COUNT_RING_FULL_SYSCALL_WAIT,
	COUNT_RING_FULL_FUTEX_WAKE,
	COUNT_RING_FULL_ANNOUNCE,
	COUNT_RING_FULL_FIRED,
	COUNT_RING_FULL_BINDER_TRANSACTION,
	COUNT_RING_FULL_BINDER_RECEIVED,
	COUNT_RING_FULL_BINDER_DONE,
	COUNT_MAP_FULL_TARGETS,   /* a child's id is beyond the pid_max that was in force at the start */
	COUNT_MAP_FULL_PROCESSES, /* more processes than Targets can list; they are recorded all the same */
	COUNT_MAP_FULL_BIOS,      /* a block request's owner was not kept: its request is missing */
	COUNT_MAP_FULL_REQUESTS,  /* an issued request was not kept: its completion is missing */
	COUNT_MAP_FULL_CALLS,     /* the start of an fsync-family call was not kept: the call is missing */
	COUNT_MAP_FULL_FAULTS,    /* the start of a page fault was not kept: its start is 0 */
	COUNT_MAP_FULL_RECLAIMS,  /* the start of a reclaim was not kept: the reclaim is missing */
	COUNT_MAP_FULL_ANNOUNCED, /* a process was announced and not noted: its end and children are not announced */
	COUNT_MAP_FULL_THREADS,   /* a thread's state was not kept: its waits are in no histogram and fire nothing */
	COUNT_MAP_FULL_METHODS,   /* a call of a probed method was not kept: it fires nothing */
	COUNT_MAP_FULL_SYSCALLS,  /* the start of a system call was not kept: its start is 0, or its wait is missing */
	COUNT_MAP_FULL_BINDER,    /* a binder transaction was not kept: what follows it is missing */
	COUNT_MAX,
};

#endif
