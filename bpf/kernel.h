/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The few kernel types that the programs read, in place of a dump of all of them. Only names and types matter: CO-RE
 * moves each access to where the running kernel has the field. A type with ___ in its name is an older or newer shape
 * of the type before the ___. Field names read from Linux 5.10 and 6.12; the differences:
 *
 *   task_struct.state        until 5.13, a long; then __state, an unsigned int
 *   task_struct.cpu          until 5.15; then thread_info.cpu
 *   request.rq_disk          until 5.16; then request.q->disk
 *   bio.bi_disk              until 5.11; then bio.bi_bdev->bd_disk
 *   thread_info.status       amd64 only: TS_COMPAT while in a 32-bit system call
 */
#ifndef BRAID_KERNEL_H
#define BRAID_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16; /* bpf_helper_defs.h names these three */
typedef __u32 __be32;
typedef __u32 __wsum;

#include <stdbool.h>

/* include/uapi/linux/bpf.h, which would bring the system's own types along. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_RB_NO_WAKEUP = 1 << 0,
	BPF_RB_FORCE_WAKEUP = 1 << 1,
	BPF_RB_AVAIL_DATA = 0,
};

#define BPF_F_CURRENT_CPU 0xffffffffull /* include/uapi/linux/bpf.h */
#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	unsigned long flags;
	__u32 status;
	__u32 cpu;
};

/* Of a process's start, name, owner and cgroup: what the watch unit announces. */

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t euid;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self; /* at the structure's start: a parent's address is its cgroup's too */
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

/* Of what is behind a file descriptor: what the wait unit tells. */

struct inode {
	unsigned short i_mode;
	unsigned int i_rdev;
	unsigned long i_ino;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct sock_common {
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
};

struct socket {
	struct sock *sk;
};

struct eventfd_ctx {
	int id;
};

/* The arguments of a system call. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bp;
	unsigned long bx;
	unsigned long r10;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
};
#endif

struct linux_binprm {
	struct file *file;
};

struct cpumask {
	unsigned long bits[1]; /* as many as CONFIG_NR_CPUS needs */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int prio;
	int pid;
	int tgid;
	unsigned in_iowait : 1;
	unsigned in_execve : 1;
	struct cpumask cpus_mask; /* since Linux 5.3 */
	struct task_struct *real_parent;
	unsigned long nvcsw;
	struct files_struct *files;
	struct signal_struct *signal;
	const struct cred *cred;
	struct css_set *cgroups;
	char comm[16];
	int exit_code;
};

struct task_struct___state {
	long state;
};

struct task_struct___cpu {
	unsigned int cpu;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bvec_iter {
	__u64 bi_sector;
};

struct bio {
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
};

struct bio___disk {
	struct gendisk *bi_disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	__u64 __sector;
	struct bio *bio;
};

struct request___disk {
	struct gendisk *rq_disk;
};

#pragma clang attribute pop

/* include/linux/blk_types.h: the bit's number moves between versions, so it is relocated by name. */
enum req_flag_bits {
	__REQ_PREFLUSH = 18,
};

/* include/uapi/linux/bpf_perf_event.h: the context of a perf_event program. */
struct bpf_perf_event_data {
#if defined(__TARGET_ARCH_x86)
	__u64 regs[21];
#elif defined(__TARGET_ARCH_arm64)
	__u64 regs[34];
#else
#error "unknown target"
#endif
	__u64 sample_period;
	__u64 addr;
};

#endif
