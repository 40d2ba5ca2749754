/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive: where a message goes and how its completion is reported. Lives in
 * the matcher while posted, belongs to the transport from the match until
 * wf_match_rxq_done().
 */
#ifndef WF_OP_RX_H
#define WF_OP_RX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "os/types.h"

#define WF_OP_IOV_MAX 4

struct wf_rx {
	struct wf_list link;
	uint64_t seq; /* order of posting, across buckets */
	uint64_t tag;
	uint64_t ignore;
	uint64_t src; /* only from this peer, or FI_ADDR_UNSPEC */
	void *context;
	uint64_t flags; /* of the completion: FI_RECV, FI_TAGGED or FI_MSG */
	size_t len;	/* bytes the iov holds */
	uint32_t iov_count;
	bool plain; /* one buffer, one message, reported when it is there */
	bool wants_comp; /* successes are reported too */
	bool multi;	 /* FI_MULTI_RECV: consumed piece by piece */
	bool tagged;
	bool described;	 /* desc is set */
	bool closing;	 /* multi: no further message fits, no longer posted */
	uint8_t lane;	 /* masked: of the matcher */
	uint32_t pieces; /* multi: messages that still write into it */
	struct wf_rx *parent;	    /* piece: the buffer it was cut from */
	struct wf_list masked_link; /* masked: in the matcher's list */
	struct iovec iov[WF_OP_IOV_MAX];
	/* What fi_mr_desc() gave for each piece; NULL: nothing. */
	void *desc[WF_OP_IOV_MAX];
};

#endif
