/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that the other side asked for.
 */
#include "rdm/stream.h"

#include <errno.h>

#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/post.h"
#include "wire/packet.h"

void wf_rdm_stream_init(struct wf_rdm_stream *stream)
{
	*stream = (struct wf_rdm_stream){ .at = 0 };
	wf_base_list_init(&stream->link);
}

int wf_rdm_stream_grant(struct wf_rdm_peer *peer, struct wf_rdm_stream *stream,
			uint32_t peer_op, uint64_t more)
{
	if (!more || more > stream->end - stream->at - stream->window)
		return -EPROTO;
	stream->peer_op = peer_op;
	stream->window += more;
	if (wf_base_list_empty(&stream->link))
		wf_base_list_add_tail(&peer->streams, &stream->link);
	wf_rdm_post_activate(peer);
	return 0;
}

int wf_rdm_stream_pump(struct wf_rdm_peer *peer, struct wf_rdm_stream *stream,
		       int budget)
{
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_wire_packet wire = {
		.type = WF_WIRE_CTSDATA,
		.flags = WF_WIRE_CONNID,
		.connid = peer->life.ours,
		.recv_id = stream->peer_op,
	};
	size_t room = peer->max_msg - wf_wire_packet_header(&wire);
	int count = 0;

	while (stream->window && count < budget && wf_rdm_post_room(peer)) {
		size_t len = stream->window < room ? stream->window : room;
		struct wf_rdm_pkt *pkt;
		int err = 0;

		wire.seg_offset = stream->at;
		wire.seg_length = len;
		pkt = stream->packet(ep, stream, &wire, stream->at, len, &err);
		if (err) {
			wf_base_list_del(&stream->link);
			stream->window = 0;
			stream->failed(ep, stream, err);
			return count;
		}
		if (!pkt)
			break;
		stream->at += len;
		stream->window -= len;
		wf_rdm_pkt_post(ep, pkt);
		count++;
	}
	if (!stream->window)
		wf_base_list_del(&stream->link);
	return count;
}
