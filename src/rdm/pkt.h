/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets on their way out, and requests to the device that are no packets
 * (reads). Each names the function to call when it is done. Small ones hold a
 * header and a few bytes, and refer to their other bytes; large ones hold
 * everything.
 */
#ifndef WF_RDM_PKT_H
#define WF_RDM_PKT_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "nic/nic.h"

struct wf_rdm_ep;
struct wf_rdm_peer;
struct wf_wire_packet;

/* Bytes of a small packet: the longest header, and what is copied rather than
 * looked up. */
#define WF_RDM_PKT_SMALL 1024

struct wf_rdm_pkt {
	struct wf_rdm_peer *peer;
	/* The device is done with it; @err is 0 or a positive errno. The caller
	 * frees the packet. */
	void (*completed)(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt,
			  int err);
	void *owner;	  /* a wf_rdm_tx or wf_rdm_rx, or NULL */
	uint32_t payload; /* bytes of the user's in it */
	uint16_t len;	  /* bytes in buf */
	uint16_t turn;	  /* differs whenever the place is used again */
	uint16_t run;	  /* messages in it, where it is a run; else 0: run.h */
	bool large;
	bool is_request; /* of an operation: see wf_rdm_tx.unacked */
	bool quiet;	 /* nobody waits for its end */
	bool repeats;	 /* its receiver may get it twice: see lost.h */
	uint8_t rdma;	 /* WF_NIC_OP_READ or _WRITE of data; else 0 */
	struct wf_nic_remote remote; /* of that */
	struct wf_nic_sge data;	     /* a second piece; len 0: none */
	struct wf_list link;	     /* peer->again */
	uint8_t buf[];
};

/* Returns a packet with room for @bytes. NULL: no memory, or all large packets are
 * under way. */
struct wf_rdm_pkt *wf_rdm_pkt_get(struct wf_rdm_ep *ep,
				  struct wf_rdm_peer *peer, size_t bytes);
void wf_rdm_pkt_put(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt);

/* A packet with the header @wire and room for @more bytes behind it. */
struct wf_rdm_pkt *wf_rdm_pkt_make(struct wf_rdm_ep *ep,
				   struct wf_rdm_peer *peer,
				   const struct wf_wire_packet *wire,
				   size_t more);
/* As wf_rdm_pkt_make(), for a header whose length is known. */
struct wf_rdm_pkt *wf_rdm_pkt_build(struct wf_rdm_ep *ep,
				    struct wf_rdm_peer *peer,
				    const struct wf_wire_packet *wire,
				    size_t header, size_t more);

/* Passes it to the device; wf_rdm_ep_ring() rings the doorbell, unless it is the
 * last (ep->last). The caller has checked that there is room. */
void wf_rdm_pkt_post(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt);
void wf_rdm_pkt_post_read(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt,
			  const struct wf_nic_remote *from,
			  const struct wf_nic_sge *to);

/* A run with one message, of pkt->len bytes with its head. @late: its payload is
 * there, and the device copies it; NULL: it is in the packet. enum wf_nic_run;
 * -ENOMEM: not now. */
int wf_rdm_pkt_post_run(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt,
			const struct iovec *late, bool more, uint32_t *id);
/* Adds a message of @len bytes to a run. False: the run has left. */
bool wf_rdm_pkt_extend(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt, bool more,
		       uint32_t id, uint32_t len);
/* Returns a packet for a run, or NULL. */
struct wf_rdm_pkt *wf_rdm_pkt_get_run(struct wf_rdm_ep *ep,
				      struct wf_rdm_peer *peer);

/* Takes the completion of a packet that the device has written. */
void wf_rdm_pkt_done(struct wf_rdm_ep *ep, const struct wf_nic_wc *wc);

/* For packets whose completion nobody waits for. */
void wf_rdm_pkt_none(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt, int err);

#endif
