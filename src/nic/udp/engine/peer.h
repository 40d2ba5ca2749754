/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header declares the state of the engine of nic/udp: peers, their
 * connections, operations and packets. Its owner embeds struct wf_udp_op and
 * reads the rest; only the engine writes, except where a field says otherwise.
 *
 *   peer   another NIC, known by its address. Two connections, one each way:
 *     out    what we send: window, losses, congestion   (out.c, pump.c, cc.c)
 *     in     what we receive: which packets are here                  (in.c)
 *   op     one request of ours, or one read that we serve             (op.c)
 *   slot   one packet of an op from its first sending to its ack
 */
#ifndef WF_NIC_UDP_ENGINE_PEER_H
#define WF_NIC_UDP_ENGINE_PEER_H

#include "base/list.h"
#include "nic/nic.h"
#include "nic/timer.h"
#include "nic/udp/engine/cc.h"
#include "nic/udp/engine/packet_defs.h"

#define WF_UDP_NEVER UINT64_MAX

enum wf_udp_op_kind {
	WF_UDP_OP_SEND,
	WF_UDP_OP_WRITE,
	WF_UDP_OP_READ,
	WF_UDP_OP_SERVE, /* a peer's read */
};

struct wf_udp_op {
	/* Set by the owner before wf_udp_engine_submit(); members that may stay
	 * 0 are 0 then. */
	struct wf_udp_peer *peer;
	uint8_t kind;
	uint8_t rnr_retry; /* refusals for want of a receive that it takes;
			      WF_NIC_RNR_FOREVER: any */
	bool has_imm;	   /* WRITE: its last packet has immediate data */
	uint32_t len;
	struct wf_list owner_link; /* in a list of the owner's until the op has
				      ended; SERVE: peer->served */
	/* The engine's. */
	bool made;	     /* every packet of it has been made */
	bool in_list;	     /* link is in a list */
	uint8_t status;	     /* SERVE: why it was stopped */
	struct wf_list link; /* out.ops while packets are to be made of it,
				peer->reads while data is awaited */
	uint32_t next;	     /* first byte that is in no packet */
	uint32_t slots;	     /* packets not acknowledged */
};

enum wf_udp_slot_state {
	WF_UDP_SLOT_FLIGHT,
	WF_UDP_SLOT_LOST, /* to be sent again */
	WF_UDP_SLOT_RNR,  /* to be sent again, later */
};

struct wf_udp_slot {
	struct wf_list link;  /* of its state */
	struct wf_udp_op *op; /* NULL: a filler, the op is gone */
	struct wf_udp_peer *peer;
	uint64_t sent_at;
	uint64_t sent_no; /* in order of sending, repeats included */
	uint64_t due;	  /* RNR */
	uint32_t seq;
	uint32_t off;
	uint32_t cost;
	uint16_t len;
	uint8_t state;
	uint8_t data_op;
	uint8_t tries;
	uint8_t refusals; /* for want of a receive */
};

enum wf_udp_out_state {
	WF_UDP_OUT_CLOSED,
	WF_UDP_OUT_INIT, /* INIT was sent */
	WF_UDP_OUT_OPEN, /* OPEN was sent */
	WF_UDP_OUT_UP,
};

struct wf_udp_out {
	uint8_t state;
	bool crc;	   /* of payload too */
	bool limited;	   /* the window is what stops us */
	bool reorders;	   /* the path was seen to reorder */
	bool no_gso;	   /* the kernel makes no segments on this path */
	uint8_t backoff;   /* timeouts in a row */
	uint16_t reo_mult; /* patience with reordering, in quarters of rtt */
	uint16_t dups;	   /* as the peer last said */
	uint64_t reordered_cut; /* cc.cuts when it was last seen to */
	uint32_t una;		/* first not acknowledged */
	uint32_t next;		/* next to be used */
	uint32_t seg;	   /* payload of a full packet: what the path carries */
	uint32_t seg_most; /* ... and the links at its ends */
	/* Large packets get lost (path.c). */
	bool warned;
	uint8_t holes;	 /* round trips in a row that had no other */
	uint8_t unheard; /* sent again since the peer has acknowledged any */
	uint8_t size_tries;
	uint32_t hole_len; /* the largest of them */
	uint64_t hole_no;  /* sendings up to here belong to the last of them */
	uint32_t size_try; /* what is probed for */
	uint32_t rwnd;
	uint64_t cid;	     /* ours: acks carry it */
	uint64_t remote_cid; /* theirs: data carries it */
	uint64_t instance;   /* of the peer's device that accepted it, or the
				last one before it */
	uint64_t cookie;
	uint32_t epoch;
	uint32_t unasked; /* bytes since an ack was asked for */
	uint64_t in_flight;
	uint64_t sent_no;
	uint64_t asked_no; /* latest sending that asked for an ack */
	uint64_t acked_no; /* latest sending known to have arrived */
	uint64_t last_rtt;
	uint64_t opened_at; /* when the handshake began */
	uint64_t busy_at;   /* when we began to wait for an ack */
	uint64_t hello_at;  /* timers; WF_UDP_NEVER: off */
	uint64_t probe_at;
	uint64_t reo_at;
	uint64_t rnr_at;
	uint64_t pace_at;
	uint64_t size_at;
	struct wf_list ops;
	struct wf_list flight; /* in order of sending */
	struct wf_list lost;
	struct wf_list rnr;
	struct wf_udp_slot **slots; /* WF_UDP_WINDOW, by seq; NULL: acked */
	struct wf_udp_cc cc;
};

struct wf_udp_in {
	bool open;
	bool crc;
	bool ack_now;
	bool late;	  /* so is what ts belongs to */
	uint16_t dups;	  /* packets received twice */
	uint32_t pending; /* packets not acknowledged by us */
	uint32_t base;	  /* first that is not here */
	uint32_t ts;	  /* of the latest packet, and when it came */
	uint64_t ts_at;
	uint64_t cid;	     /* ours: data carries it */
	uint64_t remote_cid; /* theirs: acks carry it */
	uint64_t instance;   /* of the peer's device that opened it; 0: none
				has */
	uint64_t ack_at;
	uint32_t highest;
	uint32_t round;	      /* of engine->senders, that it was counted in */
	struct wf_addr local; /* our address that the peer connected to */
	uint64_t here[WF_UDP_ACK_WORDS]; /* by seq modulo the window */
};

#define WF_UDP_RETIRED 4u

struct wf_udp_peer {
	struct wf_list bucket;
	struct wf_list ripe;   /* its timer has run out */
	struct wf_list active; /* may have something to send */
	struct wf_list acker;  /* has an ack to send at the end of the pass */
	struct wf_list reads;  /* ops that wait for data */
	struct wf_list served; /* ops that serve the peer's reads */
	struct wf_list wholes; /* packets of which some parts are here */
	uint32_t whole_count;
	struct wf_addr addr;
	/* Our address as the peer knows it, for our connection: see engine->any.
	 * Family 0: not known yet, the kernel chooses. */
	struct wf_addr local;
	uint16_t index;
	uint32_t handles; /* address handles that point here */
	uint32_t fails;	  /* times it was given up, or left */
	uint32_t refused; /* times in a row the network said: nobody there */
	uint64_t heard_at;
	uint64_t against_from; /* since when the network speaks against it, and
				  when it last did; 0: not at all */
	uint64_t against_at;
	uint64_t doubted_at; /* when it was last asked because of a rumour */
	uint64_t ping_at;
	uint64_t reap_at;	   /* while nobody has a handle for it */
	struct wf_nic_timer timer; /* the first of all of them */
	bool lost;		   /* see wf_nic_ah_abandon() */
	/* Connections of the peer's that were replaced: an OPEN of theirs that
	 * comes late must not take the place of the present one. */
	uint64_t retired[WF_UDP_RETIRED];
	uint32_t retirements;
	struct wf_udp_out out;
	struct wf_udp_in in;
	/* The owner's. */
	uint16_t ah; /* WF_NIC_AH_UNKNOWN: none, as at the beginning */
	bool has_memo;
	uint32_t serving; /* reads */
	uint32_t guess;	  /* payload that may reach it, before we know; 0: not
			   asked for */
	struct wf_nic_memo memo;
};

#endif
