/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_rma(3).
 */
#ifndef WF_PROV_RMA_H
#define WF_PROV_RMA_H

#include <rdma/fi_rma.h>

#include "op/tx.h"
#include "prov/ep.h"

extern struct fi_ops_rma wf_prov_rma_ops;

/* One operation on remote memory, whatever call it came by. */
struct wf_prov_remote {
	const struct iovec *iov;
	void *const *desc; /* of the pieces, or NULL, as in prov/xfer.h */
	size_t iov_count;
	fi_addr_t addr;
	uint64_t data;
	uint64_t flags; /* FI_* of the call */
	void *context;
	bool quiet; /* no completion, whatever the flags */
	uint64_t comp_flags;
	enum wf_prov_event event; /* that counts it */
	enum wf_tx_kind kind;
	struct wf_remote *remote;
};

/* Sends it off; takes the lock. */
ssize_t wf_prov_rma_submit(struct wf_prov_ep *ep,
			   const struct wf_prov_remote *op);

#endif
