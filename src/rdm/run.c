/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Injected messages in one packet, and sends that complete early.
 */
#include "rdm/run.h"

#include <errno.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "op/iov.h"
#include "rdm/pkt.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/tx.h"

/* As many as one call of the kernel takes without a loss. */
#define BYTES (17u << 10)
#define MESSAGES 128u
/* Longer ones are copied when they are on their way. */
#define LATE_MIN 512u
/* At a time: 1 MiB. If there is none, messages go by themselves. */
#define RUNS 64u

/* The memory of a run's packet. */
struct run {
	uint16_t lens[MESSAGES]; /* without the device's heads */
	uint8_t bytes[BYTES];
};

static struct run *run_of(struct wf_rdm_pkt *pkt)
{
	return (struct run *)pkt->buf;
}

uint8_t *wf_rdm_run_bytes(struct wf_rdm_pkt *pkt)
{
	return run_of(pkt)->bytes;
}

void wf_rdm_run_open(struct wf_rdm_ep *ep)
{
	wf_base_pool_init(&ep->runs,
			  sizeof(struct wf_rdm_pkt) + sizeof(struct run), 8,
			  RUNS);
}

static size_t write_header(const struct wf_rdm_peer *peer,
			   const struct wf_tx *req, uint8_t *to)
{
	struct wf_wire_packet wire;

	if (wf_likely(req->tagged && !req->has_data)) {
		wf_wire_packet_put_eager(to, peer->next_msg_id, req->tag,
					 peer->life.ours);
		return WF_WIRE_EAGER_HEADER;
	}
	wf_wire_packet_clear(&wire);
	wire.type = req->tagged ? WF_WIRE_EAGER_TAGRTM : WF_WIRE_EAGER_MSGRTM;
	wire.flags = (uint16_t)(WF_WIRE_CONNID | WF_WIRE_MSG |
				(req->tagged ? WF_WIRE_TAGGED : 0) |
				(req->has_data ? WF_WIRE_CQ_DATA : 0));
	wire.msg_id = peer->next_msg_id;
	wire.connid = peer->life.ours;
	wire.tag = req->tag;
	wire.cq_data = req->data;
	return wf_wire_packet_encode(&wire, to, WF_WIRE_HEADER_MAX);
}

/* Writes the next message behind the others; the payload only if it is not @late.
 * Returns its bytes, with the device's head; 0: there is no room. */
static uint32_t put(const struct wf_rdm_peer *peer, struct wf_rdm_pkt *pkt,
		    const struct wf_tx *req, bool late)
{
	uint32_t head = peer->ep->run_head;
	struct run *run = run_of(pkt);
	uint8_t *to = run->bytes + pkt->len + head;
	size_t len;

	if (pkt->len + head + WF_WIRE_HEADER_MAX + req->len > BYTES)
		return 0;
	len = write_header(peer, req, to);
	if (wf_likely(req->iov_count == 1)) {
		if (req->len && !late)
			memcpy(to + len, req->iov[0].iov_base, req->len);
	} else {
		wf_op_iov_gather(req->iov, req->iov_count, 0, to + len,
				 req->len);
	}
	return head + (uint32_t)len + (uint32_t)req->len;
}

/* The device has it. */
static void account(struct wf_rdm_peer *peer, size_t len)
{
	struct wf_stats *stats = &peer->ep->stats;

	peer->next_msg_id++;
	peer->posted++;
	wf_base_stats_add(stats, WF_RDM_STAT_sent_eager, 1);
	wf_base_stats_add(stats, WF_RDM_STAT_sent_eager_bytes, len);
}

static bool extend(struct wf_rdm_peer *peer, const struct wf_tx *req)
{
	struct wf_rdm_tx *tx = peer->run;
	struct wf_rdm_pkt *pkt = tx->run;
	uint32_t bytes = pkt->run < MESSAGES ? put(peer, pkt, req, false) : 0;

	if (!bytes ||
	    !wf_rdm_pkt_extend(peer->ep, pkt, req->more, tx->run_id, bytes)) {
		peer->run = NULL;
		return false;
	}
	run_of(pkt)->lens[pkt->run++] = (uint16_t)(bytes - peer->ep->run_head);
	pkt->len = (uint16_t)(pkt->len + bytes);
	pkt->payload += (uint32_t)req->len;
	tx->req.len += req->len;
	tx->sent += req->len;
	peer->ep->run_more++;
	account(peer, req->len);
	return true;
}

/* Sends the first message of a run. State that sending does not need is written
 * after the packet has left. */
static int begin(struct wf_rdm_peer *peer, const struct wf_tx *req)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_rdm_pkt *pkt;
	struct wf_rdm_tx *tx;
	uint32_t id;
	bool late;
	int ret;

	if (!wf_rdm_post_room(peer))
		return 1;
	tx = wf_base_pool_get(&ep->tx_pool);
	if (!tx)
		return -EAGAIN;
	pkt = wf_rdm_pkt_get_run(ep, peer);
	if (!pkt)
		goto alone;
	late = req->len > LATE_MIN && req->iov_count == 1;
	pkt->len = (uint16_t)put(peer, pkt, req, late);
	ret = wf_rdm_pkt_post_run(ep, pkt, late ? &req->iov[0] : NULL,
				  req->more, &id);
	if (wf_unlikely(ret < 0)) {
		wf_rdm_pkt_put(ep, pkt);
		goto alone;
	}
	run_of(pkt)->lens[0] = (uint16_t)(pkt->len - ep->run_head);
	wf_rdm_tx_run(tx, req, pkt);
	tx->run_id = id;
	tx->ordered = true;
	tx->msg_id = peer->next_msg_id;
	wf_rdm_post_begin(peer, tx);
	wf_base_list_add_tail(&peer->flight, &tx->link);
	peer->run = ret || req->wants_comp ? NULL : tx;
	account(peer, req->len);
	/* Complete the send early only if the device has written all of it: bytes
	 * that are only in the copy are lost if the program ends. */
	if (ret == WF_NIC_RUN_LEFT && req->wants_comp) {
		tx->req.wants_comp = false;
		wf_op_compq_push_sent(ep->txq, req->context, req->comp_flags);
	}
	return 0;
alone:
	wf_base_pool_put(&ep->tx_pool, tx);
	return 1;
}

int wf_rdm_run_send(struct wf_rdm_peer *peer, const struct wf_tx *req)
{
	struct wf_rdm_ep *ep = peer->ep;

	if (wf_unlikely(ep->tx_pool.in_use + ep->run_more >= ep->host->tx_size))
		return -EAGAIN;
	if (wf_unlikely(wf_rdm_post_is_ahead(peer)))
		return 1;
	if (peer->run && !req->wants_comp && extend(peer, req))
		return 0;
	return begin(peer, req);
}

void wf_rdm_run_close(struct wf_rdm_tx *tx)
{
	if (tx->named.peer->run == tx)
		tx->named.peer->run = NULL;
}

void wf_rdm_run_lost(struct wf_rdm_pkt *pkt, uint32_t good)
{
	struct wf_rdm_tx *tx = pkt->owner;

	tx->run_good = good;
}

/* The error completion of a message is made from its header. */
void wf_rdm_run_report(const struct wf_rdm_tx *tx)
{
	const struct wf_rdm_ep *ep = tx->named.peer->ep;
	const struct run *run = run_of(tx->run);
	const uint8_t *at = run->bytes;

	for (uint32_t i = 0; i < tx->run->run; i++) {
		struct wf_wire_packet wire;
		struct wf_comp comp = { .src = WF_MATCH_ANY };

		at += ep->run_head;
		if (i >= tx->run_good &&
		    !wf_wire_packet_decode(&wire, at, run->lens[i])) {
			comp.flags =
				FI_SEND |
				(wire.type == WF_WIRE_EAGER_TAGRTM ? FI_TAGGED :
								     FI_MSG);
			comp.tag = wire.tag;
			comp.data = wire.cq_data;
			wf_op_compq_fail(ep->txq, &comp, tx->err, 0);
		}
		at += run->lens[i];
	}
}

void wf_rdm_run_free(struct wf_rdm_tx *tx)
{
	wf_rdm_run_close(tx);
	tx->named.peer->ep->run_more -= tx->run->run - 1u;
}
