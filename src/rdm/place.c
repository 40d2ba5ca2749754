/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places for the payload of messages.
 */
#include "rdm/place.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "op/iov.h"
#include "rdm/ep.h"
#include "rdm/order.h"
#include "rdm/peer.h"
#include "rdm/post.h"
#include "rdm/protocol.h"

/* Told at once. */
#define BATCH 16

/* Bytes of messages without a receive, of one peer and of all, from which on a
 * peer is to announce long ones; until there are half as many. */
#define UNCLAIMED_MOST (4u << 20)
#define UNCLAIMED_ALL (64u << 20)

/* -- messages that nobody receives ------------------------------------------- */

static void tell(struct wf_rdm_peer *peer)
{
	struct wf_rdm_ep *ep = peer->ep;
	bool is_so = peer->asks_first;
	bool many = peer->unclaimed > UNCLAIMED_MOST >> is_so ||
		    (peer->unclaimed && ep->unclaimed > UNCLAIMED_ALL >> is_so);

	if (many == is_so || ep->closing)
		return;
	peer->asks_first = many;
	peer->owes_handshake = true;
	wf_rdm_post_activate(peer);
}

static void count(struct wf_rdm_rx *rx)
{
	struct wf_rdm_peer *peer = rx->named.peer;

	rx->unclaimed = (uint32_t)rx->env.len;
	peer->unclaimed += rx->unclaimed;
	peer->ep->unclaimed += rx->unclaimed;
	tell(peer);
}

void wf_rdm_place_claim(struct wf_rdm_rx *rx)
{
	struct wf_rdm_peer *peer = rx->named.peer;

	if (!rx->unclaimed)
		return;
	peer->unclaimed -= rx->unclaimed;
	peer->ep->unclaimed -= rx->unclaimed;
	rx->unclaimed = 0;
	tell(peer);
}

/* -- places ------------------------------------------------------------------ */

void wf_rdm_place_drop(struct wf_rdm_ep *ep, const struct wf_rdm_buf *buf)
{
	wf_nic_place(ep->nic, buf->place, NULL, NULL);
}

void wf_rdm_place_end(struct wf_rdm_rx *rx)
{
	if (!rx->placing)
		return;
	rx->placing = false;
	if (rx->ep->nic)
		wf_nic_unplace(rx->ep->nic, rx->place);
}

/* Where the bytes go. NULL: no memory. */
static void *place_of(struct wf_rdm_rx *rx)
{
	const struct wf_rx *to = rx->rx;

	if (to && !rx->buffer && to->iov_count == 1 && to->len >= rx->env.len)
		return to->iov[0].iov_base;
	/* In pieces, or more than fits: they go through memory of ours. */
	if (!rx->buffer) {
		rx->buffer = malloc(rx->env.len);
		rx->buffer_len = rx->env.len;
	}
	return rx->buffer;
}

/* Finds the message to which the packet belongs. All packets of a life come over
 * one connection, in the order of their numbers. A number that is ahead is an error
 * of the peer, unless the messages before it are here and wait for memory. A number
 * that had its turn comes again if the connection broke before the whole message
 * was here. */
static int find(struct wf_rdm_peer *peer, const struct wf_wire_packet *packet,
		uint32_t len, struct wf_rdm_rx **out)
{
	struct wf_rdm_rx *rx;

	if (packet->msg_id == peer->order.expected) {
		rx = wf_rdm_rx_message(peer, &wf_rdm_protocol_eager, packet,
				       len, len);
		if (!rx)
			return -EAGAIN;
		wf_rdm_order_advance(&peer->order);
		if (rx->waits)
			count(rx);
	} else if (wf_unlikely(peer->behind) &&
		   (int32_t)(packet->msg_id - peer->order.expected) > 0) {
		return -EAGAIN;
	} else {
		rx = wf_rdm_rx_find(peer, packet->msg_id);
		if (!rx || rx->protocol != &wf_rdm_protocol_eager ||
		    rx->env.len != len)
			return -EPROTO;
		wf_rdm_place_end(rx);
	}
	*out = rx;
	return 0;
}

int wf_rdm_place_receive(struct wf_rdm_peer *peer,
			 const struct wf_wire_packet *packet,
			 struct wf_rdm_buf *buf)
{
	struct wf_rdm_rx *rx;
	void *at;
	int err;

	if (wf_rdm_protocol_of(packet->type) != &wf_rdm_protocol_eager ||
	    packet->data_len)
		return -EPROTO;
	err = find(peer, packet, buf->more, &rx);
	if (err)
		return err;
	at = place_of(rx);
	if (!at)
		return -EAGAIN;
	rx->place = buf->place;
	rx->placing = !wf_nic_place(peer->ep->nic, buf->place, at, rx);
	if (wf_unlikely(peer->order.held))
		wf_rdm_in_catch_up(peer);
	return 0;
}

/* All bytes of @rx are in its receive or in its buffer. */
static void finish(struct wf_rdm_rx *rx)
{
	rx->placing = false;
	rx->have = rx->env.len;
	if (rx->rx && rx->buffer) {
		size_t len =
			rx->env.len < rx->rx->len ? rx->env.len : rx->rx->len;

		wf_op_iov_scatter(rx->rx->iov, rx->rx->iov_count, 0, rx->buffer,
				  len);
		free(rx->buffer);
		rx->buffer = NULL;
		rx->buffer_len = 0;
	}
	wf_rdm_rx_finish(rx);
}

int wf_rdm_place_done(struct wf_rdm_ep *ep)
{
	struct wf_nic_placed placed[BATCH];
	int count = wf_nic_placed(ep->nic, placed, BATCH);

	for (int i = 0; i < count; i++) {
		struct wf_rdm_rx *rx = placed[i].arg;

		if (wf_unlikely(placed[i].failed)) {
			rx->placing = false;
			wf_rdm_rx_fail(rx, FI_EFAULT, rx->receipt);
		} else {
			finish(rx);
		}
	}
	return count;
}
