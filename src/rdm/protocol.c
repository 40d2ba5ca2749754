/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of protocols, and the choice among them.
 */
#include "rdm/protocol.h"

#include <errno.h>

#include "os/inline.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/post.h"
#include "rdm/tx.h"

/* In the order in which they are tried. */
const struct wf_rdm_protocol *const wf_rdm_protocols[WF_RDM_PROTOCOLS] = {
	&wf_rdm_protocol_eager,		 &wf_rdm_protocol_medium,
	&wf_rdm_protocol_runtread,	 &wf_rdm_protocol_longread,
	&wf_rdm_protocol_longcts,	 &wf_rdm_protocol_direct_write,
	&wf_rdm_protocol_eager_write,	 &wf_rdm_protocol_longread_write,
	&wf_rdm_protocol_longcts_write,	 &wf_rdm_protocol_direct_read,
	&wf_rdm_protocol_short_read,	 &wf_rdm_protocol_longcts_read,
	&wf_rdm_protocol_write_atomic,	 &wf_rdm_protocol_fetch_atomic,
	&wf_rdm_protocol_compare_atomic,
};

static uint8_t type_of(const struct wf_rdm_protocol *protocol, bool tagged,
		       bool dc)
{
	const struct wf_rdm_request_types *types = &protocol->types;
	uint8_t with = tagged ? types->dc_tagged : types->dc_msg;

	/* Operations that end with an answer are delivered when it arrives. */
	if (dc && (with || !protocol->ends_by_answer))
		return with;
	return tagged ? types->tagged : types->msg;
}

static uint16_t flags_of(const struct wf_rdm_tx *tx)
{
	const struct wf_rdm_peer *peer = tx->named.peer;
	uint16_t flags = WF_WIRE_CONNID;

	if (tx->req.kind == WF_TX_SEND)
		flags |= tx->req.tagged ? WF_WIRE_MSG | WF_WIRE_TAGGED :
					  WF_WIRE_MSG;
	if (tx->req.kind == WF_TX_ATOMIC)
		flags |= WF_WIRE_ATOMIC;
	if (tx->req.has_data)
		flags |= WF_WIRE_CQ_DATA;
	if (!peer->greeted_us)
		flags |= WF_WIRE_RAW_ADDR;
	/* libfabric's efa wants one of them. */
	if (peer->life.fixed && !peer->greeted_us)
		flags &= (uint16_t)~WF_WIRE_CONNID;
	return flags;
}

int wf_rdm_protocol_select(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	/* The length of a header depends on these fields alone. */
	struct wf_wire_packet wire;

	tx->wire_flags = flags_of(tx);
	wire.flags = tx->wire_flags;
	if (wf_unlikely(tx->wire_flags & WF_WIRE_RAW_ADDR))
		wire.raw_addr_len = wf_rdm_tx_raw_len(ep);
	wire.rma_iov_count = tx->remote.seg_count;
	wire.read_iov_count = 0;
	wire.extra_count = 0;
	tx->ordered =
		tx->req.kind == WF_TX_SEND || tx->req.kind == WF_TX_ATOMIC;
	for (int i = 0; i < WF_RDM_PROTOCOLS; i++) {
		const struct wf_rdm_protocol *protocol = wf_rdm_protocols[i];

		if (protocol->kind != tx->req.kind)
			continue;
		tx->wire_type =
			type_of(protocol, tx->req.tagged, tx->req.delivery);
		if (!tx->wire_type && !protocol->no_packets)
			continue;
		wire.type = tx->wire_type;
		if (!protocol->can_use_for_send(
			    ep, tx,
			    protocol->no_packets ? 0 :
						   wf_rdm_tx_room(tx, &wire)))
			continue;
		tx->protocol = protocol;
		return 0;
	}
	tx->protocol = wf_rdm_protocols[0]; /* to be released by someone */
	return -EMSGSIZE;
}

int wf_rdm_protocol_nack(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	if (tx->err || tx->nacked || tx->reported)
		return -EPROTO;
	wf_rdm_stat_add(ep, WF_RDM_STAT_read_nacks, 1);
	tx->nacked = true;
	if (tx->constructed)
		wf_rdm_protocol_nacked(ep, tx);
	return 0;
}

void wf_rdm_protocol_nacked(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx)
{
	struct wf_rdm_peer *peer = tx->named.peer;

	if (tx->protocol->released)
		tx->protocol->released(ep, tx);
	tx->constructed = false;
	tx->protocol = &wf_rdm_protocol_longcts;
	tx->wire_flags |= WF_WIRE_NACKED;
	tx->wire_type = type_of(tx->protocol, tx->req.tagged, tx->req.delivery);
	wf_base_list_del(&tx->link);
	wf_base_list_add_head(&peer->queue, &tx->link);
	wf_rdm_post_activate(peer);
}

/* The protocol of each type; written once, with the same values by every
 * thread. */
WF_SAME_FOR_ALL static const struct wf_rdm_protocol *by_type[256];

void wf_rdm_protocol_init(void)
{
	for (int i = 0; i < WF_RDM_PROTOCOLS; i++) {
		const struct wf_rdm_protocol *protocol = wf_rdm_protocols[i];
		const struct wf_rdm_request_types *types = &protocol->types;
		/* A type of 0 is that of no packet. */
		const uint8_t all[] = { types->msg, types->tagged,
					types->dc_msg, types->dc_tagged };

		for (size_t j = 0; j < sizeof(all); j++)
			__atomic_store_n(&by_type[all[j]], protocol,
					 __ATOMIC_RELAXED);
	}
}

const struct wf_rdm_protocol *wf_rdm_protocol_of(uint8_t type)
{
	return __atomic_load_n(&by_type[type], __ATOMIC_RELAXED);
}

unsigned int wf_rdm_protocol_index(const struct wf_rdm_protocol *protocol)
{
	unsigned int i = 0;

	while (wf_rdm_protocols[i] != protocol)
		i++;
	return i;
}
