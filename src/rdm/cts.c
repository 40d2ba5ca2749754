/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending what the other side grants.
 */
#include "rdm/cts.h"

#include <errno.h>
#include <stddef.h>

#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/tx.h"

#define CREDITS 64 /* packets that we prefer to send at once */

static void data_done(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt, int err)
{
	struct wf_rdm_tx *tx = pkt->owner;

	if (wf_unlikely(err && !tx->err && !tx->reported))
		wf_rdm_peer_fail(pkt->peer, err);
	tx->outstanding--;
	tx->acked += err ? 0 : pkt->payload;
	wf_rdm_tx_settle(ep, tx);
}

static struct wf_rdm_pkt *data_packet(struct wf_rdm_ep *ep,
				      struct wf_rdm_stream *stream,
				      const struct wf_wire_packet *wire,
				      uint64_t offset, size_t len, int *err)
{
	struct wf_rdm_tx *tx =
		wf_container_of(stream, struct wf_rdm_tx, stream);
	struct wf_rdm_pkt *pkt = wf_rdm_tx_packet(ep, tx, wire, offset, len);

	(void)err;
	if (pkt)
		pkt->completed = data_done;
	return pkt;
}

static void data_failed(struct wf_rdm_ep *ep, struct wf_rdm_stream *stream,
			int err)
{
	wf_rdm_tx_abort(ep, wf_container_of(stream, struct wf_rdm_tx, stream),
			err);
}

int wf_rdm_cts_construct(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
			 struct wf_rdm_pkt **pkts, bool with_data)
{
	struct wf_wire_packet wire;
	size_t len = 0, room;

	if (wf_rdm_tx_name(ep, tx))
		return 0;
	wf_rdm_tx_header(tx, &wire);
	wire.credit_request = CREDITS;
	room = wf_rdm_tx_room(tx, &wire);
	if (with_data)
		len = tx->req.len < room ? tx->req.len : room;
	pkts[0] = wf_rdm_tx_request(ep, tx, &wire, 0, len);
	if (!pkts[0])
		return 0;
	/* After a NACK, the bytes that were sent before stay sent. */
	tx->sent += len;
	tx->constructed = true;
	return 1;
}

void wf_rdm_cts_posted(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	(void)ep;
	tx->stream.packet = data_packet;
	tx->stream.failed = data_failed;
	tx->stream.at = tx->sent;
	tx->stream.end = tx->req.len;
}
