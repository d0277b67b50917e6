/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Block requests: from the kernel's structures to an event's fields.
 */
#ifndef BRAID_BLOCK_H
#define BRAID_BLOCK_H

#include "record.h"

#define REQ_OP_MASK 0xff /* include/linux/blk_types.h */

/* Where a hook's bio or request is among its arguments; the loader reads it from the kernel's BTF. */
inline_fn void *argument(args *ctx, __u32 index)
{
	__u64 v;
	/* barrier_var keeps each load apart: the verifier wants constant offsets from ctx. */
	if (index == 0) {
		v = ctx[0];
		barrier_var(v);
	} else if (index == 1) {
		v = ctx[1];
		barrier_var(v);
	} else {
		v = ctx[2];
		barrier_var(v);
	}
	return (void *)v;
}

inline_fn __u32 disk_dev(struct gendisk *disk)
{
	return (__u32)FIELD(disk, major) << 20 | (__u32)FIELD(disk, first_minor);
}

inline_fn __u32 rq_dev(struct request *rq)
{
	struct request___disk *old = (void *)rq;
	if (bpf_core_field_exists(old->rq_disk))
		return disk_dev(FIELD(old, rq_disk));
	struct request_queue *q = FIELD(rq, q);
	return disk_dev(FIELD(q, disk));
}

inline_fn __u32 bio_dev(struct bio *bio)
{
	struct bio___disk *old = (void *)bio;
	if (bpf_core_field_exists(old->bi_disk))
		return disk_dev(FIELD(old, bi_disk));
	struct block_device *bdev = FIELD(bio, bi_bdev);
	return disk_dev(FIELD(bdev, bd_disk));
}

/* REQ_OP_* below 4 are the event's own values; the rest is other. */
inline_fn __u8 rq_op(struct request *rq)
{
	__u32 op = FIELD(rq, cmd_flags) & REQ_OP_MASK;
	return op <= OP_DISCARD ? (__u8)op : OP_OTHER;
}

/* errors[] of block/blk-core.c, Linux 6.12, for kernels whose block_rq_complete passes a blk_status_t (since 5.17). */
inline_fn __s32 status_errno(__u8 status)
{
	switch (status) {
	case 0: return 0;
	case 1: return -95;   /* NOTSUPP: EOPNOTSUPP */
	case 2: return -110;  /* TIMEOUT: ETIMEDOUT */
	case 3: return -28;   /* NOSPC: ENOSPC */
	case 4: return -67;   /* TRANSPORT: ENOLINK */
	case 5: return -121;  /* TARGET: EREMOTEIO */
	case 6: return -52;   /* RESV_CONFLICT: EBADE */
	case 7: return -61;   /* MEDIUM: ENODATA */
	case 8: return -84;   /* PROTECTION: EILSEQ */
	case 9: return -12;   /* RESOURCE: ENOMEM */
	case 12: return -11;  /* AGAIN: EAGAIN */
	case 13: return -16;  /* DEV_RESOURCE: EBUSY */
	default: return -5;   /* EIO */
	}
}

#endif
