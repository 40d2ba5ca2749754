/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a peer that an operation of ours works on, and what an atomic
 * does there. Part of struct wf_tx (op/tx.h); the transports only read it.
 */
#ifndef WF_OP_REMOTE_H
#define WF_OP_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "op/rx.h"
#include "os/types.h"

struct wf_remote_seg {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

struct wf_remote {
	uint32_t seg_count;

	/* Atomics only. */
	uint8_t amo_kind; /* enum wf_op_amo_kind */
	uint8_t amo_op;	  /* enum fi_op */
	uint8_t amo_type; /* enum fi_datatype */
	uint32_t compare_count;
	uint32_t result_count;

	/* As many as are counted above are set. */
	struct wf_remote_seg segs[WF_OP_IOV_MAX];
	struct iovec compare[WF_OP_IOV_MAX];
	struct iovec result[WF_OP_IOV_MAX];
};

/* Zeroes all but the vectors, which are most of it. */
static inline void wf_op_remote_init(struct wf_remote *remote)
{
	memset(remote, 0, offsetof(struct wf_remote, segs));
}

static inline void wf_op_remote_copy(struct wf_remote *to,
				     const struct wf_remote *from)
{
	memcpy(to, from, offsetof(struct wf_remote, segs));
	for (uint32_t i = 0; i < from->seg_count; i++)
		to->segs[i] = from->segs[i];
	for (uint32_t i = 0; i < from->compare_count; i++)
		to->compare[i] = from->compare[i];
	for (uint32_t i = 0; i < from->result_count; i++)
		to->result[i] = from->result[i];
}

static inline uint64_t wf_op_remote_len(const struct wf_remote *remote)
{
	uint64_t len = 0;

	for (uint32_t i = 0; i < remote->seg_count; i++)
		len += remote->segs[i].len;
	return len;
}

#endif
