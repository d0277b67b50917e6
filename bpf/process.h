/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* How a process becomes a target, for the units that decide it: process and watch. */
#ifndef BRAID_PROCESS_H
#define BRAID_PROCESS_H

#include "record.h"

#define MAX_PROCESSES 16384

/* Every process that was a target, with the time at which it became one; processes that ended stay. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, __u32);
	__type(value, __u64);
} processes SEC(".maps");

inline_fn void become_target(__u8 *state, __u32 tgid, __u64 now)
{
	*state = TARGET;
	if (bpf_map_update_elem(&processes, &tgid, &now, BPF_ANY))
		count(COUNT_MAP_FULL_PROCESSES);
}

#endif
