/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The fsync family's system call numbers, of 64-bit and 32-bit programs (arch/x86/entry/syscalls/syscall_{64,32}.tbl,
 * include/uapi/asm-generic/unistd.h, arch/arm64/include/asm/unistd32.h, Linux 6.12).
 */
#ifndef BRAID_SYSCALLS_H
#define BRAID_SYSCALLS_H

#include "record.h"

#if defined(__TARGET_ARCH_x86)

#define TS_COMPAT 0x0002       /* arch/x86/include/asm/thread_info.h */
#define X32_SYSCALL 0x40000000 /* arch/x86/include/uapi/asm/unistd.h */

inline_fn enum sync_call native_call(__u64 nr)
{
	switch (nr & ~(__u64)X32_SYSCALL) {
	case 74: return CALL_FSYNC;
	case 75: return CALL_FDATASYNC;
	case 162: return CALL_SYNC;
	case 306: return CALL_SYNCFS;
	case 26: return CALL_MSYNC;
	case 277: return CALL_SYNC_FILE_RANGE;
	default: return CALL_NONE;
	}
}

inline_fn enum sync_call compat_call(__u64 nr)
{
	switch (nr) {
	case 118: return CALL_FSYNC;
	case 148: return CALL_FDATASYNC;
	case 36: return CALL_SYNC;
	case 344: return CALL_SYNCFS;
	case 144: return CALL_MSYNC;
	case 314: return CALL_SYNC_FILE_RANGE;
	default: return CALL_NONE;
	}
}

inline_fn bool is_compat(struct task_struct *p)
{
	return BPF_CORE_READ(p, thread_info.status) & TS_COMPAT;
}

#elif defined(__TARGET_ARCH_arm64)

#define TIF_32BIT 22 /* arch/arm64/include/asm/thread_info.h */

inline_fn enum sync_call native_call(__u64 nr)
{
	switch (nr) {
	case 82: return CALL_FSYNC;
	case 83: return CALL_FDATASYNC;
	case 81: return CALL_SYNC;
	case 267: return CALL_SYNCFS;
	case 227: return CALL_MSYNC;
	case 84: return CALL_SYNC_FILE_RANGE;
	default: return CALL_NONE;
	}
}

inline_fn enum sync_call compat_call(__u64 nr)
{
	switch (nr) {
	case 118: return CALL_FSYNC;
	case 148: return CALL_FDATASYNC;
	case 36: return CALL_SYNC;
	case 373: return CALL_SYNCFS;
	case 144: return CALL_MSYNC;
	case 341: return CALL_SYNC_FILE_RANGE;
	default: return CALL_NONE;
	}
}

inline_fn bool is_compat(struct task_struct *p)
{
	return BPF_CORE_READ(p, thread_info.flags) >> TIF_32BIT & 1;
}

#endif

#endif
