/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation on its way through a channel.
 */
#include "shm/tx.h"

#include <stdlib.h>
#include <string.h>

#include "op/iov.h"
#include "shm/ep.h"

struct wf_shm_tx *wf_shm_tx_keep(struct wf_shm_ep *ep,
				 const struct wf_shm_tx *tx)
{
	struct wf_shm_tx *kept = wf_base_pool_get(&ep->tx_pool);

	if (!kept)
		return NULL;
	memcpy(kept, tx, offsetof(struct wf_shm_tx, own));
	wf_base_list_init(&kept->link);
	wf_op_tx_copy(&kept->own, tx->req);
	kept->req = &kept->own;
	kept->since = 0;
	if (!tx->req->remote)
		return kept;
	kept->own.remote = wf_base_pool_get(&ep->remote_pool);
	if (!kept->own.remote) {
		wf_base_pool_put(&ep->tx_pool, kept);
		return NULL;
	}
	wf_op_remote_copy(kept->own.remote, tx->req->remote);
	return kept;
}

/* Operands, then what to compare with. */
bool wf_shm_tx_copy_buffers(struct wf_shm_tx *kept)
{
	struct wf_tx *own = &kept->own;
	struct wf_remote *remote = own->remote;
	bool compares = remote && remote->compare_count;
	uint8_t *copy = malloc(own->len * (compares ? 2 : 1) + 1);

	if (!copy)
		return false;
	kept->bounce = copy;
	own->inject = false;
	if (own->iov_count) {
		wf_op_iov_gather(own->iov, own->iov_count, 0, copy, own->len);
		own->iov[0] = (struct iovec){ copy, own->len };
		own->iov_count = 1;
	}
	if (compares) {
		wf_op_iov_gather(remote->compare, remote->compare_count, 0,
				 copy + own->len, own->len);
		remote->compare[0] =
			(struct iovec){ copy + own->len, own->len };
		remote->compare_count = 1;
	}
	return true;
}

void wf_shm_tx_release(struct wf_shm_ep *ep, struct wf_shm_tx *kept)
{
	if (kept->own.remote)
		wf_base_pool_put(&ep->remote_pool, kept->own.remote);
	if (kept->bounce)
		free(kept->bounce);
	wf_base_pool_put(&ep->tx_pool, kept);
}

void wf_shm_tx_complete(struct wf_shm_ep *ep, const struct wf_shm_tx *tx)
{
	const struct wf_tx *req = tx->req;

	if (req->wants_comp)
		wf_op_compq_push_sent(ep->txq, req->context, req->comp_flags);
	wf_op_cntr_add(req->cntr, 1);
}

void wf_shm_tx_fail(struct wf_shm_ep *ep, const struct wf_shm_tx *tx, int err)
{
	const struct wf_tx *req = tx->req;
	struct wf_comp comp = {
		.context = req->context,
		.flags = req->comp_flags,
		.data = req->data,
		.tag = req->tag,
		.src = WF_MATCH_ANY,
	};

	/* Failures are reported even where successes are not (fi_cq(3)). */
	wf_op_compq_fail(ep->txq, &comp, err, 0);
	wf_op_cntr_fail(req->cntr, 1);
}
