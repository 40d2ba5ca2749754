/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation of ours, from the call to its completion. Operations come from a
 * pool with a hard limit, the transmit depth: taking one is the limit check.
 *
 * The memory of an operation is registered with the device as long as the
 * operation lasts. Giving the operation up removes the registration, and the
 * device no longer accesses the memory; the entry itself is freed when the
 * device has returned all packets. Memory that the application has registered is
 * lent to the operation (wf_nic_mr_use()), if no peer gets its key: then a read
 * that is given up is reported when the device no longer writes.
 */
#ifndef WF_RDM_TX_H
#define WF_RDM_TX_H

#include "nic/nic.h"
#include "op/tx.h"
#include "rdm/named.h"
#include "rdm/stream.h"
#include "wire/packet.h"

struct wf_rdm_ep;
struct wf_rdm_peer;
struct wf_rdm_pkt;
struct wf_rdm_protocol;

struct wf_rdm_tx {
	struct wf_rdm_named named;
	struct wf_list link;	     /* peer->queue, then peer->flight */
	struct wf_list unacked_link; /* peer->unacked */
	const struct wf_rdm_protocol *protocol;
	struct wf_rdm_stream stream; /* after a CTS */
	uint64_t began;		     /* peer->posted at its first packet */
	uint32_t msg_id;
	uint32_t requests;    /* request packets that the device has */
	uint32_t outstanding; /* all of its packets there */
	uint32_t packets;     /* so far, for the log */
	uint16_t wire_flags;
	uint8_t wire_type;
	bool ordered;	  /* has a msg_id */
	bool begun;	  /* has left the queue for the first time */
	bool constructed; /* all request packets were made */
	bool answered;	  /* the peer's last word came */
	bool reported;
	bool registered;  /* mrs are valid */
	bool lent;	  /* one of them is */
	bool nacked;	  /* the peer could not read: goes by CTS instead */
	bool counted;	  /* in peer->writes or ->reads */
	bool not_direct;  /* the target's application has to take part */
	int err;	  /* positive: fails with this */
	uint64_t sent;	  /* bytes in request packets */
	uint64_t acked;	  /* bytes the device has delivered */
	uint64_t have;	  /* READ: bytes that came */
	uint64_t granted; /* READ: bytes asked for */
	uint32_t peer_op; /* READ: the peer's number for it, once known */
	bool knows_peer_op;
	struct wf_rdm_tx *whole; /* of which this is a piece (atomics) */
	uint32_t pieces;	 /* that are not done */
	uint64_t piece_at;
	uint8_t *bounce;	/* copy of the caller's bytes */
	struct wf_rdm_pkt *run; /* it is a run: run.h */
	uint32_t run_id;
	uint32_t
		run_good; /* messages of a run that has failed, and are there */
	uint64_t since;	  /* first seen by waits.c, ns; 0: not yet */
	struct wf_nic_mr mrs[WF_OP_IOV_MAX];
	struct wf_tx req;
	struct wf_remote remote; /* of req; no segment: a message */
};

/* Bytes of our address in a packet; instead of our id, the whole of it. */
uint32_t wf_rdm_tx_raw_len(const struct wf_rdm_ep *ep);
void wf_rdm_tx_raw_addr(const struct wf_rdm_ep *ep,
			struct wf_wire_packet *wire);

/* Common fields of a request packet. */
void wf_rdm_tx_header(const struct wf_rdm_tx *tx, struct wf_wire_packet *wire);

/* Bytes of payload that fit behind @wire. */
size_t wf_rdm_tx_room(const struct wf_rdm_tx *tx,
		      const struct wf_wire_packet *wire);

/* A packet with @wire and the bytes [@offset, @offset + @len) of the operation:
 * copied if they are few or in pieces, otherwise referred to. NULL: no packet
 * is free now. */
struct wf_rdm_pkt *wf_rdm_tx_packet(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				    const struct wf_wire_packet *wire,
				    uint64_t offset, size_t len);

/* The device is done with a request packet. */
void wf_rdm_tx_request_done(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt,
			    int err);

/* As above, and a request packet: @completed is wf_rdm_tx_request_done(). */
struct wf_rdm_pkt *wf_rdm_tx_request(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx,
				     const struct wf_wire_packet *wire,
				     uint64_t offset, size_t len);

/* Makes @tx, which is new from the pool, a run, of which @pkt has all. */
void wf_rdm_tx_run(struct wf_rdm_tx *tx, const struct wf_tx *req,
		   struct wf_rdm_pkt *pkt);

/* Takes a number for the peer's answers. -ENOMEM, -ENOSPC. */
int wf_rdm_tx_name(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx);

/* The memory that peers may read, as packets contain it. */
uint32_t wf_rdm_tx_read_iov(const struct wf_rdm_tx *tx,
			    struct wf_wire_iov *iov);

/* The peer's last answer: 0 or a positive errno. */
void wf_rdm_tx_answer(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx, int err);

/* For protocols (request_completed): operations that end when the device has
 * delivered them, or with the requested receipt; and operations that end with
 * an answer. */
bool wf_rdm_tx_is_delivered(const struct wf_rdm_tx *tx);
bool wf_rdm_tx_is_answered(const struct wf_rdm_tx *tx);

/* For protocols (answered) of which a receipt is all that comes back. */
int wf_rdm_tx_receipt(struct wf_rdm_peer *peer, struct wf_rdm_tx *tx,
		      const struct wf_wire_packet *packet);

/* Fails it now, whatever is in flight. */
void wf_rdm_tx_abort(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx, int err);

/* Gives it up without a report: the endpoint closes. */
void wf_rdm_tx_quit(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx);

/* Something changed: reports it if it is complete, frees it if it is over. @tx
 * may be gone afterwards. */
void wf_rdm_tx_settle(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx);

/* A new one for @peer, not queued. -EAGAIN at the limit, -ENOMEM. */
int wf_rdm_tx_new(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer,
		  const struct wf_tx *req, struct wf_rdm_tx **tx);

/* The caller gets his buffers back: bytes that are not in packets yet are
 * copied. 0 or -ENOMEM. The bytes of long operations are copied from the
 * beginning. */
int wf_rdm_tx_keep_copy(struct wf_rdm_tx *tx);

/* Without a completion: the endpoint closes, or it was never submitted. Its
 * protocol has been selected, or could not be. */
void wf_rdm_tx_free(struct wf_rdm_ep *ep, struct wf_rdm_tx *tx);

#endif
