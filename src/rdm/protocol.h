/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protocols: how an operation becomes packets, and how the other end handles
 * them. One file and one table each; the registry is tried in order. All
 * callbacks run under the endpoint's lock and none blocks.
 */
#ifndef WF_RDM_PROTOCOL_H
#define WF_RDM_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "op/tx.h"

struct wf_rdm_ep;
struct wf_rdm_peer;
struct wf_rdm_pkt;
struct wf_rdm_rx;
struct wf_rdm_tx;
struct wf_envelope;
struct wf_rxq;
struct wf_wire_packet;

/* The request packet of each variant; 0: there is none. RMA and atomics use
 * msg and dc_msg. */
struct wf_rdm_request_types {
	uint8_t msg;
	uint8_t tagged;
	uint8_t dc_msg;
	uint8_t dc_tagged;
};

struct wf_rdm_protocol {
	const char *name;
	enum wf_tx_kind kind;
	struct wf_rdm_request_types types;
	/* Ends with the peer's answer (EOR, data), not when the device has
	 * delivered it. */
	bool ends_by_answer;
	/* A message may be several request packets, all with its number: those
	 * after the first arrive after their turn. */
	bool has_more;
	/* The device does it, and there is no request packet. */
	bool no_packets;
	/* The message arrives in request packets only, and waits for nothing from
	 * the receiver but a receipt that was asked for. */
	bool is_unasked;

	/* -- sending -- */
	/* Whether it can carry @tx, whose flags, wire type, numbers and memory
	 * are settled; @room is what one packet of this type holds. */
	bool (*can_use_for_send)(const struct wf_rdm_ep *ep,
				 const struct wf_rdm_tx *tx, size_t room);
	/* Makes up to @max packets in @pkts, each with its callback, and sets
	 * tx->constructed with the last. Returns how many; fewer than needed if
	 * no packet is free, then it is called again. */
	int (*construct_tx_packets)(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				    struct wf_rdm_pkt **pkts, int max);
	/* The device has all of them. NULL: nothing follows from that. */
	void (*handle_tx_packets_posted)(struct wf_rdm_ep *ep,
					 struct wf_rdm_tx *tx);
	/* All packets were made, and the device has delivered another, or the
	 * peer's last answer arrived: returns whether the operation is over. */
	bool (*request_completed)(const struct wf_rdm_tx *tx);
	/* A packet that names the operation: EOR, RECEIPT, READRSP, CTSDATA,
	 * ATOMRSP or READ_NACK. 0; -EPROTO: it does not fit the operation. */
	int (*answered)(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
			const struct wf_wire_packet *packet);
	/* The operation is over, or goes on by another protocol. NULL: it
	 * holds nothing that others share. */
	void (*released)(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx);

	/* -- receiving -- */
	/* A request packet, in its turn if it has one. 0; -EAGAIN: no memory,
	 * nothing has happened, pass it again; -EPROTO: drop it. */
	int (*receive)(struct wf_rdm_peer *peer,
		       const struct wf_wire_packet *packet);
	/* A parked message has its receive (or was discarded). NULL: it only
	 * waits for its packets. */
	void (*matched)(struct wf_rdm_rx *rx);
	/* All bytes that the request did not contain have arrived: they were
	 * read, or the peer has sent what was granted for a write. NULL: it has
	 * no such bytes, or they end the operation by themselves. */
	void (*pulled)(struct wf_rdm_rx *rx);
};

extern const struct wf_rdm_protocol wf_rdm_protocol_eager;
/* A message that wants no receipt, if there is a receive for it. False: there is
 * none. */
bool wf_rdm_eager_deliver(struct wf_rxq *rxq, bool tagged,
			  const struct wf_envelope *env, const void *data);
/* Where the device takes messages in two pieces, they share a connection with
 * short ones, which wait for what is before them. So these bytes at most (or one
 * message) are on their way to a peer; further messages are read by the receiver,
 * over another connection. */
#define WF_RDM_PUSHED_MOST (512u << 10)
/* Whether @tx would be more than that. */
bool wf_rdm_eager_is_crowded(const struct wf_rdm_ep *ep,
			     const struct wf_rdm_tx *tx);
/* The packet of such a message is about to be posted: counts it. */
void wf_rdm_eager_pushed(struct wf_rdm_pkt *pkt);
extern const struct wf_rdm_protocol wf_rdm_protocol_medium;
extern const struct wf_rdm_protocol wf_rdm_protocol_runtread;
extern const struct wf_rdm_protocol wf_rdm_protocol_longread;
extern const struct wf_rdm_protocol wf_rdm_protocol_longcts;
extern const struct wf_rdm_protocol wf_rdm_protocol_direct_write;
extern const struct wf_rdm_protocol wf_rdm_protocol_eager_write;
extern const struct wf_rdm_protocol wf_rdm_protocol_longread_write;
extern const struct wf_rdm_protocol wf_rdm_protocol_longcts_write;
extern const struct wf_rdm_protocol wf_rdm_protocol_direct_read;
extern const struct wf_rdm_protocol wf_rdm_protocol_short_read;
extern const struct wf_rdm_protocol wf_rdm_protocol_longcts_read;
extern const struct wf_rdm_protocol wf_rdm_protocol_write_atomic;
extern const struct wf_rdm_protocol wf_rdm_protocol_fetch_atomic;
extern const struct wf_rdm_protocol wf_rdm_protocol_compare_atomic;

#define WF_RDM_PROTOCOLS 15
extern const struct wf_rdm_protocol *const wf_rdm_protocols[WF_RDM_PROTOCOLS];

/* Settles everything about @tx that depends on the peer, then takes the first
 * that can: tx->protocol. 0, -EAGAIN, -EMSGSIZE when none can. */
int wf_rdm_protocol_select(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx);

/* READ_NACK, for protocols whose messages are read: the receiver cannot read
 * it, and the same message continues by CTS once all its packets are made. 0 or
 * -EPROTO. */
int wf_rdm_protocol_nack(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx);
void wf_rdm_protocol_nacked(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx);

/* Before the first packet. */
void wf_rdm_protocol_init(void);

/* The protocol of that request packet; NULL: none. */
const struct wf_rdm_protocol *wf_rdm_protocol_of(uint8_t type);

/* The number of a protocol in the registry, for counters. */
unsigned int wf_rdm_protocol_index(const struct wf_rdm_protocol *protocol);

#endif
