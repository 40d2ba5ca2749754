/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements: what each head says of the frames that have arrived, when a
 * head is sent for that alone, and the notes between two frames that carry one.
 */
#include <string.h>

#include "nic/tcp/stream.h"

/* An acknowledgement leaves with the next frame, or after this time, or at once
 * when so much waits for it. */
#define ACK_DELAY (8 * WF_NS_PER_US)
#define ACK_OWED (1u << 20)

static bool is_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static uint32_t nack_seq(const struct wf_list *link)
{
	return wf_container_of(link, struct wf_tcp_op, nack_link)->seq;
}

/* In the order of the frames: a frame that was held is refused after later
 * ones. */
void wf_tcp_ack_add_nack(struct wf_list *nacks, struct wf_tcp_op *op)
{
	struct wf_list *pos = nacks->prev;

	while (pos != nacks && is_before(op->seq, nack_seq(pos)))
		pos = pos->prev;
	wf_base_list_add_head(pos, &op->nack_link);
}

/* @ack, but less than the first frame that @nacks refuse. */
static uint32_t ack_before(const struct wf_list *nacks, uint32_t ack)
{
	uint32_t other;

	if (wf_likely(wf_base_list_empty(nacks)))
		return ack;
	other = nack_seq(nacks->next) - 1;
	return is_before(other, ack) ? other : ack;
}

/* How many frames of the peer may be acknowledged. A refused frame counts when
 * the refusal has been written. */
uint32_t wf_tcp_ack_of(const struct wf_tcp_chan *chan)
{
	uint32_t ack = ack_before(&chan->nacks, chan->taken), other;

	if (wf_unlikely(!wf_base_list_empty(&chan->held))) {
		other = wf_container_of(chan->held.next, struct wf_tcp_held,
					link)
				->seq -
			1;
		ack = is_before(other, ack) ? other : ack;
	}
	return ack;
}

/* The acknowledgement that a head on channel @via may carry. Refusals go by
 * SMALL, so there a head comes after them. On another channel the head could
 * overtake a refusal, and the sender would take the refused frame for
 * delivered; so there the peer must have acknowledged the refusals before. */
static uint32_t ack_via(const struct wf_tcp_chan *chan, unsigned int via)
{
	uint32_t ack = wf_tcp_ack_of(chan);

	return via == WF_TCP_SMALL ? ack : ack_before(&chan->nacks_sent, ack);
}

/* The bulk channel that heads on @via acknowledge: SMALL the first one, each
 * bulk channel itself. */
static struct wf_tcp_chan *bulk_of(const struct wf_tcp_chan *via)
{
	unsigned int index =
		via->index > WF_TCP_BULK ? via->index : WF_TCP_BULK;

	return &via->peer->chans[index];
}

/* Whether everything that has arrived was acknowledged. */
static bool is_all_acked(const struct wf_tcp_peer *peer)
{
	for (unsigned i = 0; i < WF_TCP_BULK + 1u + peer->rails; i++) {
		const struct wf_tcp_chan *chan = &peer->chans[i];

		if (chan->ack_sent != wf_tcp_ack_of(chan) &&
		    (i <= WF_TCP_BULK || chan->state == WF_TCP_UP))
			return false;
		if (wf_unlikely(chan->answers) && chan->state == WF_TCP_UP)
			return false;
	}
	return true;
}

void wf_tcp_ack_stamp(const struct wf_tcp_chan *via, uint32_t ack[2])
{
	struct wf_tcp_peer *peer = via->peer;
	struct wf_tcp_chan *small = &peer->chans[WF_TCP_SMALL];
	struct wf_tcp_chan *bulk = bulk_of(via);

	small->ack_sent = ack_via(small, via->index);
	bulk->ack_sent = ack_via(bulk, via->index);
	ack[0] = small->ack_sent;
	ack[1] = bulk->ack_sent;
	peer->chans[via->index].answers = false;
	/* SMALL carries the other acknowledgements. If it is down, its next
	 * connection begins with them. A head on it has just said all that
	 * there is to say, of two channels, unless BULK has an answer to
	 * give. */
	if ((wf_unlikely(peer->rails || bulk->answers) || via != small) &&
	    !is_all_acked(peer) && small->state == WF_TCP_UP)
		return;
	if (peer->owes)
		wf_base_list_del(&peer->acker);
	peer->owes = false;
	peer->owed = 0;
}

void wf_tcp_ack_owe(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		    uint32_t bytes)
{
	uint64_t at = dev->now + ACK_DELAY;

	peer->owed +=
		bytes < ACK_OWED ? bytes + WF_TCP_ACK_PER_FRAME : ACK_OWED;
	if (peer->owed >= ACK_OWED && (!peer->owes || peer->ack_at)) {
		if (peer->owes)
			wf_base_list_del(&peer->acker);
		peer->owes = true;
		peer->ack_at = 0;
		wf_base_list_add_head(&dev->ackers, &peer->acker);
	}
	if (peer->owes)
		return;
	peer->owes = true;
	peer->ack_at = at;
	wf_base_list_add_tail(&dev->ackers, &peer->acker);
}

void wf_tcp_ack_again(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer)
{
	for (unsigned i = 0; i < WF_TCP_BULK + 1u + peer->rails; i++)
		peer->chans[i].ack_sent = wf_tcp_ack_of(&peer->chans[i]) - 1;
	wf_tcp_ack_owe(dev, peer, 0);
}

/* Puts a head without a frame between two frames. False: there is no room. */
static bool put_note(struct wf_tcp_conn *conn, enum wf_tcp_kind kind,
		     uint8_t flags)
{
	struct wf_tcp_head head = {
		.magic = WF_TCP_MAGIC,
		.kind = (uint8_t)kind,
		.flags = flags,
	};

	if (conn->note_len + sizeof(head) > sizeof(conn->note))
		return false;
	wf_tcp_ack_stamp(conn->chan, head.ack);
	memcpy(conn->note + conn->note_len, &head, sizeof(head));
	conn->note_len = (uint8_t)(conn->note_len + sizeof(head));
	return true;
}

bool wf_tcp_ack_has_news(const struct wf_tcp_chan *via)
{
	const struct wf_tcp_chan *small = &via->peer->chans[WF_TCP_SMALL];
	const struct wf_tcp_chan *bulk = bulk_of(via);

	return is_before(small->ack_sent, ack_via(small, via->index)) ||
	       is_before(bulk->ack_sent, ack_via(bulk, via->index));
}

static int send_ack(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	if (chan->state != WF_TCP_UP ||
	    (!wf_tcp_ack_has_news(chan) && !chan->answers))
		return 0;
	wf_tcp_count(dev, acks_sent, 1);
	if (put_note(chan->conn, WF_TCP_ACK, 0))
		wf_tcp_out_pump(dev, chan, 0);
	return 1;
}

/* A channel without a connection is left out: its next connection begins with
 * acknowledgements. An acknowledgement that one channel has sent is not sent by
 * the next again. */
static int send_acks(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer)
{
	int did = 0;

	for (unsigned i = 0; i < WF_TCP_BULK + 1u + peer->rails; i++)
		did += send_ack(dev, &peer->chans[i]);
	return did;
}

bool wf_tcp_ack_ask(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	struct wf_tcp_conn *conn = chan->conn;

	if (conn->full || conn->ended || conn->part ||
	    !put_note(conn, WF_TCP_ACK, WF_TCP_ASKS))
		return false;
	wf_tcp_count(dev, probes, 1);
	wf_tcp_out_pump(dev, chan, 0);
	return true;
}

int wf_tcp_ack_send(struct wf_tcp_dev *dev, bool all)
{
	int did = 0;

	while (!wf_base_list_empty(&dev->ackers)) {
		struct wf_tcp_peer *peer = wf_container_of(
			dev->ackers.next, struct wf_tcp_peer, acker);

		if (!all && peer->ack_at > dev->now)
			break;
		wf_base_list_del(&peer->acker);
		peer->owes = false;
		peer->owed = 0;
		did += send_acks(dev, peer);
	}
	return did;
}

void wf_tcp_ack_say(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		    enum wf_tcp_kind kind)
{
	struct iovec iov;
	bool full;

	(void)dev;
	if (conn->part || !put_note(conn, kind, 0))
		return;
	iov.iov_base = conn->note + conn->note_at;
	iov.iov_len = (size_t)(conn->note_len - conn->note_at);
	(void)!wf_tcp_stream_send(conn, &iov, 1, iov.iov_len, &full);
}
