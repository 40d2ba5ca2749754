/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics that are longer than a packet.
 */
#include "rdm/pieces.h"

#include <errno.h>

#include <rdma/fi_errno.h>

#include "op/iov.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/protocol.h"
#include "rdm/tx.h"

static void cut_segs(const struct wf_remote *remote, uint64_t at, uint64_t len,
		     struct wf_remote *piece)
{
	piece->seg_count = 0;
	for (uint32_t i = 0; i < remote->seg_count && len; i++) {
		const struct wf_remote_seg *seg = &remote->segs[i];
		uint64_t part;

		if (at >= seg->len) {
			at -= seg->len;
			continue;
		}
		part = seg->len - at < len ? seg->len - at : len;
		piece->segs[piece->seg_count++] = (struct wf_remote_seg){
			.addr = seg->addr + at,
			.len = part,
			.key = seg->key,
		};
		len -= part;
		at = 0;
	}
}

/* The bytes [@at, @at + @len) of @req as an operation of their own. */
static void cut(const struct wf_tx *req, uint64_t at, uint64_t len,
		struct wf_tx *piece, struct wf_remote *to)
{
	const struct wf_remote *from = req->remote;

	wf_op_tx_copy(piece, req);
	wf_op_remote_copy(to, from);
	piece->remote = to;
	piece->len = len;
	piece->wants_comp = false;
	piece->cntr = NULL;
	piece->fence = req->fence && !at;
	cut_segs(from, at, len, to);
	piece->iov_count =
		req->iov_count ?
			(uint32_t)wf_op_iov_slice(req->iov, req->iov_count, at,
						  len, piece->iov) :
			0;
	to->result_count = (uint32_t)wf_op_iov_slice(
		from->result, from->result_count, at, len, to->result);
	to->compare_count = (uint32_t)wf_op_iov_slice(
		from->compare, from->compare_count, at, len, to->compare);
}

static bool request_completed(const struct wf_rdm_tx *tx)
{
	return !tx->pieces;
}

/* For the operation that was cut: it ends with its last piece, sends nothing
 * itself and has no number that a peer could answer. Not in the registry:
 * nothing selects it. */
static const struct wf_rdm_protocol in_pieces = {
	.name = "in_pieces",
	.kind = WF_TX_ATOMIC,
	.request_completed = request_completed,
};

/* All or none: the entries are allocated before the first is sent. */
int wf_rdm_pieces_submit(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer,
			 const struct wf_tx *req, bool receipt, size_t room)
{
	uint32_t count = (uint32_t)((req->len + room - 1) / room);
	struct wf_rdm_tx *whole;
	struct wf_remote remote;
	struct wf_tx piece;
	int err;

	if (ep->tx_pool.limit - ep->tx_pool.in_use < count + 1)
		return -EAGAIN;
	err = wf_rdm_tx_new(ep, peer, req, &whole);
	if (err)
		return err;
	whole->req.delivery = receipt;
	whole->pieces = count;
	whole->constructed = true;
	whole->protocol = &in_pieces;
	wf_base_list_add_tail(&peer->flight, &whole->link);
	for (uint64_t at = 0; at < req->len; at += room) {
		struct wf_rdm_tx *tx;

		cut(&whole->req, at,
		    req->len - at < room ? req->len - at : room, &piece,
		    &remote);
		err = wf_rdm_tx_new(ep, peer, &piece, &tx);
		if (!err) {
			tx->whole = whole;
			err = wf_rdm_ep_enqueue(ep, peer, tx);
		}
		if (err) {
			/* Without memory, half of it is in flight. */
			if (!whole->err)
				whole->err = FI_ENOMEM;
			whole->pieces--;
		}
	}
	if (!whole->pieces)
		wf_rdm_tx_settle(ep, whole);
	return 0;
}
