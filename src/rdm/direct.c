/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMA by the device alone. Each request is for one piece of our memory and one
 * of the target's. A key that the target refuses fails the operation. If the
 * target's application must take part (it counts accesses, or the region has
 * several pieces), the whole operation is repeated by packets.
 */
#include "rdm/direct.h"

#include <errno.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "op/reg.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/tx.h"

/* One read: a longer one would delay others of the same peer. A write is as
 * long as possible, because nothing of it is written if its end is refused. */
#define READ_MAX ((uint64_t)1 << 20)

/* -- at the target ----------------------------------------------------------- */

enum wf_nic_status
wf_rdm_direct_find(void *arg, const struct wf_nic_access *want, void **at)
{
	const struct wf_rdm_ep *ep = arg;
	const struct wf_host *host = ep->host;
	bool writes = want->access & WF_NIC_REMOTE_WRITE;
	struct wf_reg_view view = wf_op_regs_view(host->regs);
	const struct wf_reg_access access = {
		.addr = want->addr,
		.len = want->len,
		.key = want->key,
		.access = writes ? FI_REMOTE_WRITE : FI_REMOTE_READ,
	};
	struct wf_reg_target target;
	int err = wf_op_reg_find(&view, &access, &target);

	/* -EAGAIN: it is being changed just now. */
	if (err)
		return err == -EAGAIN ? WF_NIC_UNSUPP_OP : WF_NIC_REM_ADDR;
	if (target.seg_count != 1 || (target.flags & WF_REG_EVENTS) ||
	    (writes ? host->remote_writes : host->remote_reads))
		return WF_NIC_UNSUPP_OP;
	*at = target.segs[0].iov_base;
	return WF_NIC_OK;
}

/* -- at the initiator -------------------------------------------------------- */

static unsigned int place_of(uint64_t key)
{
	return (unsigned int)(key * 0x9e3779b97f4a7c15u >> 60) %
	       WF_RDM_SLOW_KEYS;
}

static bool is_slow(const struct wf_rdm_peer *peer, uint64_t key)
{
	unsigned int at = place_of(key);

	return peer->has_slow_key[at] && peer->slow_keys[at] == key;
}

static void remember_slow(struct wf_rdm_peer *peer, const struct wf_remote *to)
{
	for (uint32_t i = 0; i < to->seg_count; i++) {
		unsigned int at = place_of(to->segs[i].key);

		peer->slow_keys[at] = to->segs[i].key;
		peer->has_slow_key[at] = true;
	}
}

/* If one of several pieces is refused, nothing may be written: so only what the
 * target checks as one request. */
static bool is_one_range(const struct wf_remote *remote)
{
	const struct wf_remote_seg *segs = remote->segs;

	for (uint32_t i = 1; i < remote->seg_count; i++) {
		if (segs[i].key != segs[0].key ||
		    segs[i].addr != segs[i - 1].addr + segs[i - 1].len)
			return false;
	}
	return true;
}

/* By a key of the device. Less is copied into packets, unless our memory is known
 * to the device: to register it costs more. */
static bool is_hard(const struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx)
{
	const struct wf_nic_caps *caps = wf_nic_caps(ep->nic);

	if (!tx->registered)
		return false;
	if (tx->req.kind == WF_TX_READ ?
		    !caps->hard_reads :
		    !caps->hard_writes || tx->req.len > caps->max_rdma)
		return false;
	for (uint32_t i = 0; i < tx->remote.seg_count; i++) {
		if (tx->remote.segs[i].key > UINT32_MAX)
			return false;
	}
	return true;
}

bool wf_rdm_direct_can_use(const struct wf_rdm_ep *ep,
			   const struct wf_rdm_tx *tx, size_t room)
{
	(void)room;
	if (!ep->direct || tx->not_direct || tx->req.has_data || !tx->req.len ||
	    (!tx->registered && !tx->bounce) ||
	    (tx->req.kind == WF_TX_WRITE && !is_one_range(&tx->remote)) ||
	    (ep->hard && !is_hard(ep, tx)))
		return false;
	for (uint32_t i = 0; i < tx->remote.seg_count; i++) {
		if (is_slow(tx->named.peer, tx->remote.segs[i].key))
			return false;
	}
	return true;
}

/* Repeats an operation by packets. */
static void go_by_packets(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	struct wf_rdm_peer *peer = tx->named.peer;

	remember_slow(peer, &tx->remote);
	tx->constructed = false;
	tx->sent = 0;
	tx->acked = 0;
	if (wf_rdm_protocol_select(ep, tx)) {
		wf_rdm_tx_abort(ep, tx, FI_EIO);
		return;
	}
	wf_base_list_del(&tx->link);
	wf_base_list_add_head(&peer->queue, &tx->link);
	wf_rdm_post_activate(peer);
}

static void part_done(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt, int err)
{
	struct wf_rdm_tx *tx = pkt->owner;

	tx->outstanding--;
	if (!err)
		tx->acked += pkt->payload;
	else if (err == FI_EOPNOTSUPP || (err == FI_EKEYREJECTED && ep->hard))
		tx->not_direct = true; /* the peer may know the key */
	else if (!tx->err)
		tx->err = err;
	if (tx->not_direct && !tx->outstanding && !tx->err && !tx->reported)
		go_by_packets(ep, tx);
	else
		wf_rdm_tx_settle(ep, tx);
}

/* Where byte @at of the whole lies here, and how many follow it. */
static uint64_t find_local(const struct wf_rdm_ep *ep,
			   const struct wf_rdm_tx *tx, uint64_t at,
			   struct wf_nic_sge *sge)
{
	const struct wf_tx *req = &tx->req;
	uint32_t i = 0;

	for (; at >= req->iov[i].iov_len; i++)
		at -= req->iov[i].iov_len;
	sge->addr = (char *)req->iov[i].iov_base + at;
	sge->lkey = tx->bounce ? ep->own.lkey : tx->mrs[i].lkey;
	return req->iov[i].iov_len - at;
}

static uint64_t find_remote(const struct wf_rdm_ep *ep,
			    const struct wf_rdm_tx *tx, uint64_t at,
			    struct wf_nic_remote *remote)
{
	const struct wf_remote_seg *segs = tx->remote.segs;
	uint64_t len = tx->req.len;
	uint32_t i = 0;

	if (tx->req.kind == WF_TX_READ) {
		for (; at >= segs[i].len; i++)
			at -= segs[i].len;
		len = segs[i].len;
	}
	*remote = (struct wf_nic_remote){
		.addr = segs[i].addr + at,
		.rkey = (uint32_t)segs[i].key,
		.rkey_hi = (uint32_t)(segs[i].key >> 32),
		.user_key = !ep->hard,
	};
	return len - at;
}

static struct wf_rdm_pkt *next_part(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	struct wf_rdm_pkt *pkt = wf_rdm_pkt_get(ep, tx->named.peer, 0);
	uint64_t left = tx->req.len - tx->sent, here, there, most;

	if (!pkt)
		return NULL;
	here = find_local(ep, tx, tx->sent, &pkt->data);
	there = find_remote(ep, tx, tx->sent, &pkt->remote);
	left = left < here ? left : here;
	left = left < there ? left : there;
	most = tx->req.kind == WF_TX_READ ? READ_MAX :
					    wf_nic_caps(ep->nic)->max_rdma;
	left = left < most ? left : most;
	pkt->data.len = (uint32_t)left;
	pkt->payload = (uint32_t)left;
	pkt->rdma =
		tx->req.kind == WF_TX_READ ? WF_NIC_OP_READ : WF_NIC_OP_WRITE;
	pkt->completed = part_done;
	pkt->owner = tx;
	tx->sent += left;
	tx->outstanding++;
	tx->packets++;
	return pkt;
}

int wf_rdm_direct_construct(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
			    struct wf_rdm_pkt **pkts, int max)
{
	int count = 0;

	/* Refused: it waits for the requests in flight. */
	while (!tx->not_direct && count < max && tx->sent < tx->req.len) {
		pkts[count] = next_part(ep, tx);
		if (!pkts[count])
			break;
		count++;
	}
	tx->constructed = tx->sent == tx->req.len;
	return count;
}

bool wf_rdm_direct_completed(const struct wf_rdm_tx *tx)
{
	return !tx->outstanding && tx->acked == tx->req.len;
}

int wf_rdm_direct_answered(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
			   const struct wf_wire_packet *packet)
{
	(void)peer;
	(void)tx;
	(void)packet;
	return -EPROTO;
}
