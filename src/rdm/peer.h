/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer: its address handle, its features, the order of its messages, and
 * everything in flight to and from it. A peer is created at the first operation
 * or packet, and released when it holds nothing and nobody talks to it
 * (crowd.h); its name in the AV comes and goes.
 *
 * Connection ids distinguish the lives of a peer: see life.h. All packets of
 * one life of ours go over one connection of the device. When a life ends, the
 * connection does, and the peer is barred: nothing is posted to it until the
 * device has returned every request of the old life.
 */
#ifndef WF_RDM_PEER_H
#define WF_RDM_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/list.h"
#include "rdm/life.h"
#include "rdm/order.h"

struct wf_rdm_ep;
struct wf_rdm_rx;
struct wf_rdm_tx;
struct wf_nic_memo;
struct wf_wire_packet;

#define WF_RDM_SLOW_KEYS 8u

struct wf_rdm_peer {
	struct wf_rdm_ep *ep;
	struct wf_list link;	    /* in ep->peers */
	struct wf_list bucket;	    /* in ep->by_addr */
	struct wf_list active_link; /* in ep->active: has something to post; or
				       in ep->leaving */
	struct wf_addr addr;
	uint64_t name;	   /* fi_addr_t, WF_MATCH_ANY when not in the AV */
	uint32_t named_by; /* places in ep->by_name */
	bool leaving;	   /* its handle was given back */
	uint16_t ah;
	uint16_t left_ah; /* the one it had before */
	uint64_t used;	  /* when a packet or an operation last was */
	uint64_t seen;	  /* of that, when it was last looked at */
	uint32_t max_msg; /* bytes of a packet that the way there carries */
	bool active;
	bool barred;	     /* the device still has requests of an old life */
	bool greeted_us;     /* its handshake came */
	bool owes_handshake; /* we owe ours */
	bool sent_handshake;
	bool owes_probe; /* whether it lives is to be found out */
	/* For a peer whose id does not change (life.h): the device has said that
	 * it is gone, and has not heard of it since. */
	bool gone;
	uint64_t ask_at;   /* then: when to ask next whether it is back ... */
	uint64_t ask_wait; /* ... and how long after that */
	/* A message failed, and the peer cannot be told: it would wait for that
	 * message and deliver none that follows. */
	bool stuck;
	struct wf_rdm_life life;
	bool warned; /* that it does not answer; until it does */
	bool traced; /* and has a number for it: */
	uint16_t trace_channel;
	uint64_t asked_ns; /* for how long the device asked, at the last look */
	uint64_t features; /* WF_WIRE_FEATURE_*, with greeted_us */

	/* Sending. */
	uint32_t next_msg_id;
	uint32_t outstanding;	/* requests that the device has */
	uint64_t posted;	/* request packets so far ... */
	struct wf_list unacked; /* ... of messages whose are not all acked */
	struct wf_list queue;	/* wf_rdm_tx that have packets to make */
	struct wf_list flight;	/* wf_rdm_tx that wait for something */
	struct wf_list streams; /* wf_rdm_stream with a window */
	struct wf_list asking;	/* wf_rdm_tx: reads that want more */
	struct wf_list again;	/* wf_rdm_pkt, to be posted again: lost.h */
	struct wf_rdm_tx *run;	/* to which messages can be added: run.h */
	uint32_t pushed;	/* bytes of long messages that go unasked */
	uint32_t writes;	/* in flight, for those who asked for order */
	uint32_t reads;
	/* Keys of memory that the device cannot reach by itself. */
	uint64_t slow_keys[WF_RDM_SLOW_KEYS];
	bool has_slow_key[WF_RDM_SLOW_KEYS];

	/* Receiving. */
	struct wf_rdm_order order;
	bool behind;	       /* packets whose turn it is wait for memory */
	bool mute;	       /* its operations get no answers any more */
	bool asks_first;       /* it is told to announce long messages */
	uint64_t unclaimed;    /* see wf_rdm_place_claim() */
	struct wf_list rxs;    /* wf_rdm_rx that are not complete */
	struct wf_list parked; /* complete ones that wait for a receive */
	struct wf_list owing;  /* wf_rdm_rx that owe the peer a packet */
};

/* By address; made if need be, for an operation of ours or because a packet of
 * it @came. NULL: no memory, too many peers (-EAGAIN), or nothing that the
 * device can reach (then *@err says which). */
struct wf_rdm_peer *wf_rdm_peer_get(struct wf_rdm_ep *ep,
				    const struct wf_addr *addr, bool came,
				    int *err);
struct wf_rdm_peer *wf_rdm_peer_find(struct wf_rdm_ep *ep,
				     const struct wf_addr *addr);
void wf_rdm_peer_free(struct wf_rdm_peer *peer);

/* For crowd.c: the words with which it can continue; another handle. */
void wf_rdm_peer_remember(const struct wf_rdm_peer *peer,
			  struct wf_nic_memo *memo);
int wf_rdm_peer_take_handle(struct wf_rdm_peer *peer);

/* Changes the name of the peer in the AV; WF_MATCH_ANY: it has none any more. */
void wf_rdm_peer_rename(struct wf_rdm_peer *peer, uint64_t name);

/* Our life with it ends: operations fail with @err (positive), and so do those
 * of the peer that we would have to answer. */
void wf_rdm_peer_fail(struct wf_rdm_peer *peer, int err);

/* The same, because the device says that the peer is not there; and the device
 * has reached it again. */
void wf_rdm_peer_gone(struct wf_rdm_peer *peer, int err);
void wf_rdm_peer_back(struct wf_rdm_peer *peer);

/* There is something to post. False: the device still has requests of an old
 * life. */
bool wf_rdm_peer_unbar(struct wf_rdm_peer *peer);

/* Whether any operation of ours needs more of the peer than that the device
 * delivers its packets. */
bool wf_rdm_peer_needs(const struct wf_rdm_peer *peer);

/* Whether the device has lost the peer, and wf_rdm_peer_check() has not run
 * since: a post to it now fails. */
bool wf_rdm_peer_is_reset(const struct wf_rdm_peer *peer);

/* The device may have lost peers: fails the ones that it has lost. */
void wf_rdm_peer_check(struct wf_rdm_peer *peer);

/* Checks which life a packet belongs to. 0; -EPROTO: drop it; -EAGAIN: not now,
 * there is no memory for what came before it. */
int wf_rdm_peer_admit(struct wf_rdm_peer *peer,
		      const struct wf_wire_packet *packet);

/* Takes the handshake of the peer. */
void wf_rdm_peer_greeted(struct wf_rdm_peer *peer,
			 const struct wf_wire_packet *packet);

#endif
