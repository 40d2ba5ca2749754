/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation of ours as the application requested it: what to move, where to,
 * and how to report it. The provider fills one in on its stack; every transport
 * takes the same description and copies what it keeps. The transport keeps its
 * progress elsewhere.
 */
#ifndef WF_OP_TX_H
#define WF_OP_TX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "op/cntr.h"
#include "op/remote.h"
#include "op/rx.h"
#include "os/types.h"

enum wf_tx_kind {
	WF_TX_SEND,
	WF_TX_WRITE,
	WF_TX_READ,
	WF_TX_ATOMIC,
};

struct wf_tx {
	enum wf_tx_kind kind;
	bool tagged;
	bool has_data;	 /* FI_REMOTE_CQ_DATA */
	bool delivery;	 /* FI_DELIVERY_COMPLETE */
	bool transmit;	 /* FI_TRANSMIT_COMPLETE: not before the peer has it */
	bool wants_comp; /* its success is reported, too */
	bool inject;	 /* the buffers are the caller's again on return */
	bool fence;	 /* not before everything that was sent before it */
	bool more;	 /* FI_MORE: another one follows at once */
	bool described;	 /* desc is set */
	uint64_t tag;
	uint64_t data;
	uint64_t comp_flags; /* of its completion */
	void *context;
	struct wf_cntr *cntr;	  /* counts it, or NULL */
	size_t len;		  /* bytes of the peer's memory, or message */
	struct wf_remote *remote; /* NULL: a message */
	uint32_t iov_count;	  /* local: the source, or where a read goes */
	/* As many as are counted are set. */
	struct iovec iov[WF_OP_IOV_MAX];
	/* What fi_mr_desc() gave for each piece; NULL: nothing. */
	void *desc[WF_OP_IOV_MAX];
};

/* Zeroes all but the vectors, which are most of it. */
static inline void wf_op_tx_init(struct wf_tx *tx, enum wf_tx_kind kind)
{
	memset(tx, 0, offsetof(struct wf_tx, iov));
	tx->kind = kind;
}

/* @to refers to the same remote memory as @from; a user that keeps it longer
 * than the call must copy that as well. */
static inline void wf_op_tx_copy(struct wf_tx *to, const struct wf_tx *from)
{
	memcpy(to, from, offsetof(struct wf_tx, iov));
	for (uint32_t i = 0; i < from->iov_count; i++)
		to->iov[i] = from->iov[i];
	for (uint32_t i = 0; from->described && i < from->iov_count; i++)
		to->desc[i] = from->desc[i];
}

#endif
