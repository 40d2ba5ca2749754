/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that the other side asked for by CTS, sent as CTSDATA: the rest of a
 * long message or write, or of what a peer reads.
 */
#ifndef WF_RDM_STREAM_H
#define WF_RDM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct wf_rdm_ep;
struct wf_rdm_peer;
struct wf_rdm_pkt;
struct wf_rdm_stream;
struct wf_wire_packet;

struct wf_rdm_stream {
	struct wf_list link; /* peer->streams while there is a window */
	/* A packet with that header and these bytes, its callback set. NULL:
	 * not now; *@err: never. */
	struct wf_rdm_pkt *(*packet)(struct wf_rdm_ep *ep,
				     struct wf_rdm_stream *stream,
				     const struct wf_wire_packet *wire,
				     uint64_t offset, size_t len, int *err);
	/* Called when the stream has failed, with a positive errno. */
	void (*failed)(struct wf_rdm_ep *ep, struct wf_rdm_stream *stream,
		       int err);
	uint64_t at;	  /* next byte to send */
	uint64_t window;  /* bytes that may be sent */
	uint64_t end;	  /* of all bytes */
	uint32_t peer_op; /* the other side's number for it */
};

void wf_rdm_stream_init(struct wf_rdm_stream *stream);

/* A CTS. -EPROTO when it asks for more than there is. */
int wf_rdm_stream_grant(struct wf_rdm_peer *peer, struct wf_rdm_stream *stream,
			uint32_t peer_op, uint64_t more);

/* Posts up to @budget packets of one stream. Returns how many. */
int wf_rdm_stream_pump(struct wf_rdm_peer *peer, struct wf_rdm_stream *stream,
		       int budget);

static inline bool wf_rdm_stream_over(const struct wf_rdm_stream *stream)
{
	return stream->at == stream->end;
}

#endif
