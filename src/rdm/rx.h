/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An operation of a peer: a message that takes more than one packet or has no
 * receive yet, a write in parts, the answer to a read or an atomic. There may
 * be as many as fit into memory, because unexpected messages are never dropped.
 *
 * Packets that we owe the peer for the operation (CTS, EOR, RECEIPT, answers,
 * errors) are made from the state noted here when there is room. None of them
 * needs memory when it falls due.
 */
#ifndef WF_RDM_RX_H
#define WF_RDM_RX_H

#include "match/rxq.h"
#include "nic/nic.h"
#include "rdm/named.h"
#include "rdm/stream.h"
#include "wire/packet.h"

struct wf_rdm_ep;
struct wf_rdm_peer;
struct wf_rdm_protocol;
struct wf_rdm_pull;

/* In the order in which they are sent. */
#define WF_RDM_OWES_READ 0x01u /* reads of the sender's memory */
#define WF_RDM_OWES_NACK 0x02u /* READ_NACK */
#define WF_RDM_OWES_CTS 0x04u
#define WF_RDM_OWES_ANSWER 0x08u /* READRSP or ATOMRSP */
#define WF_RDM_OWES_ERROR 0x10u	 /* PEER_ERROR */
#define WF_RDM_OWES_EOR 0x20u
#define WF_RDM_OWES_RECEIPT 0x40u

enum wf_rdm_rx_kind {
	WF_RDM_RX_MESSAGE,
	WF_RDM_RX_WRITE,
	WF_RDM_RX_ANSWER,
};

struct wf_rdm_rx {
	struct wf_rdm_named named;
	struct wf_list link; /* peer->rxs, or ->parked when all is here */
	struct wf_list owe_link;
	struct wf_list msg_link; /* ep->by_msg while packets may look for it */
	struct wf_ux ux;	 /* while it waits for a receive */
	struct wf_rdm_ep *ep;
	const struct wf_rdm_protocol *protocol;
	enum wf_rdm_rx_kind kind;
	uint8_t owes;
	uint8_t answer; /* ANSWER: type of the packet */
	bool tagged;
	bool receipt;  /* the sender wants one */
	bool waits;    /* in the matcher */
	bool dropping; /* nobody wants the bytes */
	bool over;     /* reported, or there is nothing to report; or it has
			  failed and is reported after its last read */
	bool nacked;   /* comes by CTS after all */
	bool placing;  /* the device has its place: place.h */
	uint32_t place;
	uint32_t unclaimed; /* bytes that are counted as such: place.h */
	int err;	    /* positive: failed */
	struct wf_rx *rx;
	struct wf_envelope env;
	uint32_t msg_id;
	uint32_t send_id;     /* the peer's number for it */
	uint32_t outstanding; /* packets and reads that the device has */
	uint64_t have;	      /* bytes in place */
	uint64_t granted;     /* bytes that the peer may have sent */
	uint8_t *buffer;      /* bytes without a receive, or of an answer */
	size_t buffer_len;
	uint32_t read_count; /* memory of the sender that we read */
	uint32_t seg_count;  /* memory of ours that the peer names */
	uint64_t read_from;
	uint64_t since; /* first seen by waits.c, ns; 0: not yet */
	struct wf_rdm_pull *pull;
	struct wf_rdm_stream stream; /* ANSWER to a long read */
	struct wf_wire_iov reads[WF_WIRE_IOV_MAX];
	struct wf_wire_iov segs[WF_WIRE_IOV_MAX];
};

/* An entry for @peer in peer->rxs; NULL without memory. */
struct wf_rdm_rx *wf_rdm_rx_new(struct wf_rdm_peer *peer,
				const struct wf_rdm_protocol *protocol,
				enum wf_rdm_rx_kind kind);
/* At once, without a completion. */
void wf_rdm_rx_free(struct wf_rdm_rx *rx);

/* A message of @total bytes of which @early arrive before it has a receive. The
 * receive is taken, or the message parked. NULL without memory. */
struct wf_rdm_rx *wf_rdm_rx_message(struct wf_rdm_peer *peer,
				    const struct wf_rdm_protocol *protocol,
				    const struct wf_wire_packet *packet,
				    uint64_t total, size_t early);

/* The message that is being assembled, or NULL. */
struct wf_rdm_rx *wf_rdm_rx_find(const struct wf_rdm_peer *peer,
				 uint32_t msg_id);

/* Puts bytes of a message in place. */
void wf_rdm_rx_place(struct wf_rdm_rx *rx, uint64_t offset, const void *bytes,
		     size_t len);

/* Records that the peer is owed a packet, which is sent when there is room. */
void wf_rdm_rx_owe(struct wf_rdm_rx *rx, uint8_t what);
/* Sends owed packets. False if there is no room for all of them. */
bool wf_rdm_rx_pay(struct wf_rdm_rx *rx);

/* Reports a message that has its receive and all of its bytes. */
void wf_rdm_rx_finish(struct wf_rdm_rx *rx);

/* Ends it with a positive errno; @tell: informs the peer if possible. */
void wf_rdm_rx_fail(struct wf_rdm_rx *rx, int err, bool tell);

/* Frees it if nothing is left to do. */
void wf_rdm_rx_settle(struct wf_rdm_rx *rx);

/* Asks for bytes by CTS if too few are in flight. */
void wf_rdm_rx_grant(struct wf_rdm_rx *rx);

/* The peer's place in the AV. */
void wf_rdm_rx_rename(struct wf_rdm_rx *rx, uint64_t name);

#endif
