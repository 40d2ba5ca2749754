/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of nic/tcp: peers and their channels. dev.h includes it.
 */
#ifndef WF_NIC_TCP_PEER_H
#define WF_NIC_TCP_PEER_H

#include "base/addr.h"
#include "base/list.h"
#include "nic/nic.h"
#include "nic/tcp/frame_defs.h"
#include "nic/timer.h"

struct wf_tcp_conn;
struct wf_tcp_dev;

enum wf_tcp_chan_state {
	WF_TCP_DOWN,	/* nobody wants it */
	WF_TCP_WAIT,	/* until retry_at */
	WF_TCP_CONNECT, /* the kernel connects */
	WF_TCP_GREET,	/* our hello waits for its answer */
	WF_TCP_UP,
};

struct wf_tcp_chan {
	struct wf_tcp_peer *peer;
	struct wf_tcp_conn *conn;   /* from CONNECT on */
	struct wf_list active_link; /* dev->active */
	struct wf_list settle_link; /* dev->settles */
	struct wf_list todo;
	struct wf_list flight;
	/* Refusals of the peer's frames, in order of the frames: those that are
	 * not written, and those that are and may not be there yet. */
	struct wf_list nacks;
	struct wf_list nacks_sent;
	struct wf_list held;
	uint8_t index;
	uint8_t state;
	bool active;
	bool insists;
	bool by_first; /* a rail that does not connect: rail.c */
	bool answers;  /* the peer has asked for a head: probe.c */
	uint8_t probes;
	uint8_t looks; /* since the last probe, that sent none */
	uint8_t tries;
	uint8_t disputes;  /* in a row: see disagree() */
	uint32_t number;   /* of our last connection */
	uint32_t welcome;  /* of the peer's, the last that we welcomed */
	uint32_t welcomed; /* of ours, the last that the peer welcomed */
	uint32_t sent;	   /* counted frames written ... */
	uint32_t known;	   /* ... that the peer has said are there ... */
	uint32_t acked;	   /* ... and that have ended: follows known */
	uint32_t taken;	   /* of the peer's, read off the stream */
	uint32_t ack_sent; /* of them, acknowledged by us */
	uint32_t flying;   /* bytes in flight */
	uint32_t held_bytes;
	uint64_t retry_at;
	uint64_t asked_from; /* since when we try to connect; 0: we do not */
	/* probe.c: since when the peer has said nothing new; 0: not looked at;
	 * and known at that time. */
	uint64_t silent_from;
	uint32_t silent_known;
};

struct wf_tcp_peer {
	struct wf_list bucket;
	struct wf_list link; /* dev->peers */
	struct wf_list acker;
	struct wf_list reads;  /* ops whose request is there */
	struct wf_list served; /* SERVE ops */
	struct wf_addr addr;
	struct wf_addr
		local; /* our address as it knows it; family 0: unknown */
	uint16_t ah;
	bool mirror;  /* the other end of our connections to ourselves */
	bool is_near; /* on this host; known once it was connected */
	bool knows_near;
	bool owes; /* in dev->ackers */
	bool has_memo;
	bool lost;	   /* see wf_nic_ah_abandon() */
	bool is_refused;   /* see struct wf_nic_path */
	uint8_t rails;	   /* bulk channels beyond the first */
	uint8_t next_rail; /* of them all */
	int last_err;	   /* of connecting, positive */
	uint32_t handles;
	uint32_t serving;
	uint32_t fails;
	uint32_t refusals;  /* NACK ops */
	uint32_t owed;	    /* bytes that were not acknowledged by us */
	uint64_t life;	    /* its; 0: not known */
	uint64_t lost_life; /* its, that ended last */
	uint64_t our_life;  /* as it knows us */
	uint64_t ack_at;
	uint64_t used_at; /* time of the last request or frame */
	struct wf_nic_memo memo;
	struct wf_nic_timer timer;
	struct wf_nic_timer probe; /* dev->probes */
	struct wf_addr rail_addrs[WF_TCP_RAILS_MOST - 1];
	struct wf_tcp_chan chans[WF_TCP_CHANNELS];
};

/* -- peer.c ------------------------------------------------------------------ */

struct wf_tcp_peer *wf_tcp_peer_find(struct wf_tcp_dev *dev,
				     const struct wf_addr *addr);
/* NULL: too many, or no memory. */
struct wf_tcp_peer *wf_tcp_peer_get(struct wf_tcp_dev *dev,
				    const struct wf_addr *addr, bool stranger);
struct wf_tcp_peer *wf_tcp_peer_mirror(struct wf_tcp_dev *dev,
				       const struct wf_addr *addr);
void wf_tcp_peer_free(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer);
/* Ends the requests that were begun with it with @status, because its life is
 * over or because it does not answer. @ours: the peer does not know that; it
 * will see that our own life is another. */
void wf_tcp_peer_end_life(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
			  enum wf_nic_status status, bool ours);
/* The channel goes on over a new connection: the other side has @taken of our
 * frames. False: that cannot be. */
bool wf_tcp_peer_resume(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
			uint32_t taken);
/* Frees it if nothing depends on it any more. One that lives is kept, as long as
 * others do not need its place. */
void wf_tcp_peer_release(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer);
void wf_tcp_peer_arm(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		     uint64_t due);
/* It is this device itself: the peer for what it sends to itself, or its mirror. */
bool wf_tcp_peer_is_self(const struct wf_tcp_dev *dev,
			 const struct wf_tcp_peer *peer);
bool wf_tcp_peer_is_busy(const struct wf_tcp_peer *peer);
bool wf_tcp_chan_is_busy(const struct wf_tcp_chan *chan);
/* The channel has lost its connection: does anything wait for another one? */
bool wf_tcp_chan_is_needed(const struct wf_tcp_dev *dev,
			   const struct wf_tcp_chan *chan);

#endif
