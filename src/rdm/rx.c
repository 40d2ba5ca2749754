/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of peers: their life, and the packets that we owe for them.
 */
#include "rdm/rx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "op/iov.h"
#include "rdm/ep.h"
#include "rdm/lost.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/place.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/pull.h"
#include "rdm/serve.h"

/* Packets of a long message under way at once. */
#define GRANT_PACKETS 64

static const struct wf_ux_ops ux_ops;

struct wf_rdm_rx *wf_rdm_rx_new(struct wf_rdm_peer *peer,
				const struct wf_rdm_protocol *protocol,
				enum wf_rdm_rx_kind kind)
{
	struct wf_rdm_rx *rx = malloc(sizeof(*rx));

	if (!rx)
		return NULL;
	memset(rx, 0, offsetof(struct wf_rdm_rx, reads));
	rx->named.peer = peer;
	rx->ep = peer->ep;
	rx->protocol = protocol;
	rx->kind = kind;
	wf_base_list_init(&rx->owe_link);
	wf_base_list_init(&rx->msg_link);
	wf_rdm_stream_init(&rx->stream);
	wf_base_list_add_tail(&peer->rxs, &rx->link);
	return rx;
}

void wf_rdm_rx_free(struct wf_rdm_rx *rx)
{
	struct wf_rdm_ep *ep = rx->ep;

	wf_rdm_pull_end(rx);
	wf_rdm_place_end(rx);
	wf_rdm_place_claim(rx);
	/* The endpoint closes, but the receive that it was filling stays. */
	if (rx->rx && ep->rxq->shared)
		wf_match_rxq_fail(ep->rxq, rx->rx, &rx->env, FI_ECANCELED);
	wf_rdm_named_del(ep, &rx->named);
	wf_base_list_del(&rx->link);
	wf_base_list_del(&rx->owe_link);
	wf_base_list_del(&rx->msg_link);
	wf_base_list_del(&rx->stream.link);
	free(rx->buffer);
	free(rx);
}

static void report_failure(struct wf_rdm_rx *rx)
{
	if (rx->rx)
		wf_match_rxq_fail(rx->ep->rxq, rx->rx, &rx->env, rx->err);
	rx->rx = NULL;
}

void wf_rdm_rx_settle(struct wf_rdm_rx *rx)
{
	if (rx->err && !rx->outstanding)
		report_failure(rx);
	if (rx->over && !rx->waits && !rx->owes && !rx->outstanding)
		wf_rdm_rx_free(rx);
}

/* -- messages -------------------------------------------------------------- */

static struct wf_envelope envelope(const struct wf_rdm_peer *peer,
				   const struct wf_wire_packet *packet,
				   uint64_t total)
{
	return (struct wf_envelope){
		.tag = packet->tag,
		.data = packet->cq_data,
		.src = peer->name,
		.flags =
			packet->flags & WF_WIRE_CQ_DATA ? FI_REMOTE_CQ_DATA : 0,
		.len = total,
	};
}

static void park(struct wf_rdm_rx *rx)
{
	struct wf_rxq *rxq = rx->ep->rxq;

	rx->ux = (struct wf_ux){
		.ops = &ux_ops,
		.rxq = rxq,
		.compq = rxq->compq,
		.cntr = rxq->cntr,
		.owner = rx->ep,
		.reports_all = rxq->reports_all,
		.tag = rx->env.tag,
		.data = rx->env.data,
		.src = rx->env.src,
		.flags = rx->env.flags,
		.len = rx->env.len,
	};
	rx->waits = true;
	rx->ep->unexpected++;
	wf_match_park(wf_match_rxq_of(rxq, rx->tagged), &rx->ux);
}

/* Numbers of one peer follow each other and fill the buckets evenly. Each peer
 * begins at another. */
static struct wf_list *bucket_of(const struct wf_rdm_peer *peer,
				 uint32_t msg_id)
{
	return &peer->ep->by_msg[(((uintptr_t)peer >> 6) + msg_id) %
				 WF_RDM_MSG_BUCKETS];
}

struct wf_rdm_rx *wf_rdm_rx_message(struct wf_rdm_peer *peer,
				    const struct wf_rdm_protocol *protocol,
				    const struct wf_wire_packet *packet,
				    uint64_t total, size_t early)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_rdm_rx *rx = wf_rdm_rx_new(peer, protocol, WF_RDM_RX_MESSAGE);
	unsigned int kind = wf_wire_packet_kind(packet->type);

	if (!rx)
		return NULL;
	rx->env = envelope(peer, packet, total);
	rx->tagged = kind & WF_WIRE_KIND_TAGGED;
	rx->receipt = (kind & WF_WIRE_KIND_DC) && !peer->mute;
	rx->msg_id = packet->msg_id;
	rx->send_id = packet->send_id;
	rx->rx = wf_match_rxq_take(ep->rxq, rx->tagged, rx->env.tag,
				   rx->env.src, total);
	wf_base_list_add_tail(bucket_of(peer, rx->msg_id), &rx->msg_link);
	if (rx->rx)
		return rx;
	if (early) {
		rx->buffer = malloc(early);
		if (!rx->buffer) {
			wf_rdm_rx_free(rx);
			return NULL;
		}
		rx->buffer_len = early;
	}
	park(rx);
	return rx;
}

struct wf_rdm_rx *wf_rdm_rx_find(const struct wf_rdm_peer *peer,
				 uint32_t msg_id)
{
	const struct wf_list *head = bucket_of(peer, msg_id), *pos;

	for (pos = head->next; pos != head; pos = pos->next) {
		struct wf_rdm_rx *rx =
			wf_container_of(pos, struct wf_rdm_rx, msg_link);

		if (rx->named.peer == peer && rx->msg_id == msg_id)
			return rx;
	}
	return NULL;
}

void wf_rdm_rx_place(struct wf_rdm_rx *rx, uint64_t offset, const void *bytes,
		     size_t len)
{
	uint64_t room = rx->rx ? rx->rx->len : rx->buffer_len;
	size_t fits = len;

	rx->have += len;
	if (offset >= room || rx->dropping)
		return;
	if (fits > room - offset)
		fits = room - offset;
	if (rx->rx)
		wf_op_iov_scatter(rx->rx->iov, rx->rx->iov_count, offset, bytes,
				  fits);
	else
		memcpy(rx->buffer + offset, bytes, fits);
}

void wf_rdm_rx_finish(struct wf_rdm_rx *rx)
{
	wf_base_list_del(&rx->msg_link);
	if (rx->waits) {
		/* Nothing more will arrive: no packet looks for it any more. */
		wf_base_list_del(&rx->link);
		wf_base_list_add_tail(&rx->named.peer->parked, &rx->link);
		return;
	}
	if (rx->rx)
		wf_match_rxq_done(rx->ep->rxq, rx->rx, &rx->env);
	rx->rx = NULL;
	rx->over = true;
	wf_rdm_pull_end(rx);
	if (rx->receipt)
		wf_rdm_rx_owe(rx, WF_RDM_OWES_RECEIPT);
	wf_rdm_rx_settle(rx);
}

void wf_rdm_rx_fail(struct wf_rdm_rx *rx, int err, bool tell)
{
	bool is_lent = wf_rdm_pull_is_lent(rx);

	if (rx->err)
		return;
	rx->err = err;
	rx->owes = 0;
	wf_base_list_del(&rx->owe_link);
	wf_base_list_del(&rx->msg_link);
	wf_base_list_del(&rx->stream.link);
	/* From here on the device does not touch the memory. If it is the
	 * application's registration, reads that the device has go on: the
	 * memory is the application's again when they are done. */
	wf_rdm_pull_end(rx);
	wf_rdm_place_end(rx);
	if (!is_lent)
		report_failure(rx);
	rx->over = true;
	/* It waits for a receive to fail, and not for the peer. */
	if (rx->waits) {
		wf_base_list_del(&rx->link);
		wf_base_list_add_tail(&rx->named.peer->parked, &rx->link);
	}
	if (tell)
		wf_rdm_rx_owe(rx, WF_RDM_OWES_ERROR);
	wf_rdm_rx_settle(rx);
}

void wf_rdm_rx_rename(struct wf_rdm_rx *rx, uint64_t name)
{
	rx->env.src = name;
	rx->ux.src = name;
}

/* -- from the matcher ------------------------------------------------------ */

static struct wf_rdm_rx *rx_of(struct wf_ux *ux)
{
	return wf_container_of(ux, struct wf_rdm_rx, ux);
}

static void go_on(struct wf_rdm_rx *rx)
{
	if (rx->have == rx->env.len && !rx->read_count)
		wf_rdm_rx_finish(rx);
	else if (rx->protocol->matched)
		rx->protocol->matched(rx);
}

static void deliver(struct wf_ux *ux, struct wf_rx *to)
{
	struct wf_rdm_rx *rx = rx_of(ux);
	size_t len = rx->buffer_len < to->len ? rx->buffer_len : to->len;

	rx->waits = false;
	rx->ep->unexpected--;
	wf_rdm_place_claim(rx);
	if (rx->err) {
		wf_match_rxq_fail(ux->rxq, to, &rx->env, rx->err);
		wf_rdm_rx_settle(rx);
		return;
	}
	rx->rx = to;
	/* The device still fills the buffer. */
	if (rx->placing)
		return;
	/* It has holes where bytes are still missing. */
	wf_op_iov_scatter(to->iov, to->iov_count, 0, rx->buffer, len);
	free(rx->buffer);
	rx->buffer = NULL;
	rx->buffer_len = 0;
	go_on(rx);
}

static void discard(struct wf_ux *ux)
{
	struct wf_rdm_rx *rx = rx_of(ux);

	rx->waits = false;
	rx->ep->unexpected--;
	wf_rdm_place_claim(rx);
	rx->dropping = true;
	if (rx->ep->closing)
		wf_rdm_rx_free(rx);
	else if (rx->err)
		wf_rdm_rx_settle(rx);
	else if (!rx->placing)
		go_on(rx);
}

/* -- what is owed ---------------------------------------------------------- */

void wf_rdm_rx_owe(struct wf_rdm_rx *rx, uint8_t what)
{
	struct wf_rdm_peer *peer = rx->named.peer;

	rx->owes |= what;
	if (wf_base_list_empty(&rx->owe_link))
		wf_base_list_add_tail(&peer->owing, &rx->owe_link);
	wf_rdm_post_activate(peer);
}

void wf_rdm_rx_grant(struct wf_rdm_rx *rx)
{
	uint64_t window = (uint64_t)GRANT_PACKETS * rx->named.peer->max_msg;

	if (rx->granted < rx->env.len && rx->granted - rx->have <= window / 2)
		wf_rdm_rx_owe(rx, WF_RDM_OWES_CTS);
}

static void cts_done(struct wf_rdm_rx *rx, struct wf_wire_packet *wire)
{
	uint64_t left = rx->env.len - rx->granted;
	uint64_t window = (uint64_t)GRANT_PACKETS * rx->named.peer->max_msg;

	wire->recv_length = left < window ? left : window;
	rx->granted += wire->recv_length;
}

/* A packet that is a header and nothing else. */
static bool pay_note(struct wf_rdm_rx *rx, uint8_t what, uint8_t type)
{
	struct wf_rdm_peer *peer = rx->named.peer;
	struct wf_wire_packet wire = {
		.type = type,
		.flags = WF_WIRE_CONNID,
		.connid = peer->life.ours,
		.send_id = rx->send_id,
		.recv_id = rx->named.id,
		.msg_id = rx->msg_id,
		.op_id = rx->send_id,
		.ref_kind = WF_RDM_REF_OP,
		.prov_errno = (uint32_t)rx->err,
	};
	struct wf_rdm_pkt *pkt;

	if (type == WF_WIRE_PEER_ERROR && !wf_rdm_lost_may_refuse(peer)) {
		rx->owes &= (uint8_t)~what;
		return true;
	}
	if (type == WF_WIRE_CTS && wf_rdm_named_add(rx->ep, &rx->named))
		return false;
	wire.recv_id = rx->named.id;
	if (type == WF_WIRE_CTS)
		cts_done(rx, &wire);
	pkt = wf_rdm_pkt_make(rx->ep, peer, &wire, 0);
	if (!pkt) {
		rx->granted -= wire.recv_length;
		return false;
	}
	/* A second CTS would grant more than was meant. */
	pkt->repeats = type != WF_WIRE_CTS;
	if (type == WF_WIRE_PEER_ERROR && wf_rdm_lost_may_not_know(peer))
		wf_rdm_lost_keep(pkt);
	else
		wf_rdm_pkt_post(rx->ep, pkt);
	rx->owes &= (uint8_t)~what;
	return true;
}

static const struct {
	uint8_t what;
	uint8_t type; /* 0: not just a header */
	bool (*pay)(struct wf_rdm_rx *rx);
} debts[] = {
	{ WF_RDM_OWES_READ, 0, wf_rdm_pull_pump },
	{ WF_RDM_OWES_NACK, WF_WIRE_READ_NACK, NULL },
	{ WF_RDM_OWES_CTS, WF_WIRE_CTS, NULL },
	{ WF_RDM_OWES_ANSWER, 0, wf_rdm_serve_answer },
	{ WF_RDM_OWES_ERROR, WF_WIRE_PEER_ERROR, NULL },
	{ WF_RDM_OWES_EOR, WF_WIRE_EOR, NULL },
	{ WF_RDM_OWES_RECEIPT, WF_WIRE_RECEIPT, NULL },
};

bool wf_rdm_rx_pay(struct wf_rdm_rx *rx)
{
	for (size_t i = 0; i < sizeof(debts) / sizeof(debts[0]); i++) {
		if (!(rx->owes & debts[i].what))
			continue;
		if (!wf_rdm_ep_has_room(rx->ep))
			return false;
		if (debts[i].type ?
			    !pay_note(rx, debts[i].what, debts[i].type) :
			    !debts[i].pay(rx))
			return false;
	}
	/* Sending one owed packet may create another: failed reads are
	 * reported. */
	if (rx->owes)
		return false;
	wf_base_list_del(&rx->owe_link);
	wf_rdm_rx_settle(rx);
	return true;
}

static const struct wf_ux_ops ux_ops = {
	.deliver = deliver,
	.discard = discard,
};
