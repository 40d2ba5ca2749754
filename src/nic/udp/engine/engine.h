/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The half of nic/udp that decides: handshake, peers, loss, congestion, timers.
 * It has no socket and no descriptor, reads no clock and calls no kernel. Time
 * comes in with each call (@now, of the monotonic clock), packets come in by
 * wf_udp_engine_receive() and go out through a table, struct wf_udp_port, that
 * its owner fills in. Tests drive it at times of their choice (engine_test.c).
 *
 * One lock, the owner's, covers all of it: every function here is called with
 * it held, and none blocks.
 */
#ifndef WF_NIC_UDP_ENGINE_ENGINE_H
#define WF_NIC_UDP_ENGINE_ENGINE_H

#include "base/pool.h"
#include "nic/udp/engine/peer.h"

struct iovec;
struct wf_udp_engine;

/* A packet that is to leave. */
struct wf_udp_packet {
	const struct wf_addr *to;
	const struct wf_addr *from; /* our address that the peer knows;
				       family 0: the kernel chooses */
	const void *head;
	uint32_t head_len; /* at most WF_UDP_HEAD_MOST */
	uint32_t len;	   /* of the payload */
	const struct iovec *iov;
	uint8_t pieces; /* of the payload: 0 to 2 */
	bool alone; /* not as a segment of a larger buffer of the kernel's */
	struct wf_udp_slot *slot; /* NULL: nobody waits for it */
};

#define WF_UDP_HEAD_MOST                                                       \
	(sizeof(struct wf_udp_ack) + sizeof(uint64_t) * WF_UDP_ACK_WORDS)

/* The functions that the engine needs of its owner. Called inside the engine's
 * functions. */
struct wf_udp_port {
	/* Sends, or keeps for the next flush: the header is copied, the payload
	 * stays where it is until then. -EAGAIN: no room, and the owner has
	 * called wf_udp_engine_later(). For each slot that is not sent after
	 * all, wf_udp_engine_unsent() is called. */
	int (*send)(struct wf_udp_engine *engine,
		    const struct wf_udp_packet *packet);
	/* Sends the packets of the batch. No slot is remembered afterwards. */
	void (*flush)(struct wf_udp_engine *engine);
	/* Fills in the fields of a packet's header that describe its op (queue
	 * pairs, keys, addresses, immediate data), and where @len bytes from
	 * @off of the op are now. Pieces; -1: they may not be read any more. */
	int (*fetch)(struct wf_udp_engine *engine,
		     const struct wf_udp_slot *slot, uint32_t off, uint32_t len,
		     struct wf_udp_data *head, struct iovec iov[2]);
	/* Executes a data packet. WF_NIC_OK: done, once; otherwise it was
	 * refused and nothing happened. */
	enum wf_nic_status (*place)(struct wf_udp_engine *engine,
				    struct wf_udp_peer *peer,
				    const struct wf_udp_data *head,
				    const uint8_t *payload);
	/* An op is over, and in no list any more: its memory is the owner's. */
	void (*ended)(struct wf_udp_engine *engine, struct wf_udp_op *op,
		      enum wf_nic_status status);
	/* Bytes of a datagram that reach @to in one piece, as far as the kernel
	 * knows. Asked for once in a handshake. */
	uint32_t (*mtu)(struct wf_udp_engine *engine, const struct wf_addr *to);
	/* Whether @addr is an address of this host. */
	bool (*is_local)(struct wf_udp_engine *engine,
			 const struct wf_addr *addr);
};

/* A message of the network about a packet that was not delivered. Anybody who
 * knows addresses and ports can forge one; the quote shows that its sender has
 * seen the packet. */
struct wf_udp_icmp {
	struct wf_addr to; /* of the packet */
	bool refused;	   /* the port is closed */
	bool too_large;	   /* for the link to carry */
	uint32_t mtu;	   /* too_large: of that link, as is said */
	size_t quoted;	   /* bytes of the packet; often none */
	uint8_t quote[24];
};

/* A failure says why our kernel did not send a packet. */
struct wf_udp_failure {
	struct wf_addr to;
	bool too_large;	  /* larger than the path */
	bool segments;	  /* one of several in one buffer */
	bool no_segments; /* which it does not do here */
};

/* Set by the owner before wf_udp_engine_init(). */
struct wf_udp_setup {
	const struct wf_udp_port *port;
	struct wf_nic_counters *counters;
	uint64_t secret[2];  /* random: of cookies and connection ids */
	uint64_t dead_ns;    /* silence after which a peer is given up */
	uint64_t connect_ns; /* the same of a handshake */
	uint32_t max_peers;  /* and as many again may come by themselves */
	uint32_t rcvbuf;     /* bytes that the socket holds */
	bool payload_crc;
	/* Bound to any address: a peer knows us by the one that it uses, so
	 * that packets to it must come from that one. */
	bool any;
	struct wf_addr name; /* the one that peers are told; or none */
};

struct wf_udp_engine {
	struct wf_udp_setup set;
	struct wf_nic_counters *counters;
	const struct wf_udp_port *port;
	uint64_t now;
	/* The owner's: nobody read the socket for long, so it is not known when
	 * the packets that are read now arrived. */
	bool late;
	bool ready;	     /* the owner's: there was a queue pair */
	struct wf_addr here; /* set.any: where the packet that is looked at
				came to */
	struct wf_nic_timers timers; /* of peers */
	uint64_t retry_at;	     /* sending has to wait */
	struct wf_udp_peer **peers;  /* by index; NULL: none */
	uint32_t peer_count;	     /* indexes that were ever used */
	uint32_t peer_room;
	uint32_t peers_here;
	uint32_t strangers; /* of them without a handle */
	/* Peers that sent data in this round of 100 ms or so, and in the one
	 * before. */
	uint32_t senders;
	uint32_t senders_before;
	uint32_t senders_round;
	uint64_t senders_from;
	uint32_t wholes; /* of all peers */
	struct wf_list all_wholes;
	struct wf_list buckets[256];
	struct wf_list active;
	struct wf_list ackers;
	struct wf_pool slots;
	uint64_t instance; /* tells peers this device from others before it */
	uint64_t random;
	uint64_t reset_at; /* resets are rationed */
	uint32_t resets;
};

void wf_udp_engine_init(struct wf_udp_engine *engine, uint64_t now,
			const struct wf_udp_setup *setup);
/* Frees peers and slots. Ops that have not ended are forgotten. */
void wf_udp_engine_fini(struct wf_udp_engine *engine);
/* Acknowledges everything that has arrived, so that nobody waits for it; then
 * says goodbye to every peer. */
void wf_udp_engine_goodbye(struct wf_udp_engine *engine, uint64_t now);

/* -- what comes ------------------------------------------------------------- */

/* Takes a packet that has arrived; nothing in it is trusted. @here is our address to
 * which it was sent, and is read only if set.any. */
void wf_udp_engine_receive(struct wf_udp_engine *engine, uint64_t now,
			   const struct wf_addr *from,
			   const struct wf_addr *here, const uint8_t *bytes,
			   size_t len);
void wf_udp_engine_icmp(struct wf_udp_engine *engine, uint64_t now,
			const struct wf_udp_icmp *icmp);
void wf_udp_engine_not_sent(struct wf_udp_engine *engine, uint64_t now,
			    const struct wf_udp_failure *failure);
/* The kernel had no room for it: it leaves again with the next pump. */
void wf_udp_engine_unsent(struct wf_udp_engine *engine,
			  struct wf_udp_slot *slot);
/* Sending has to wait a moment: the kernel has no room, or we no memory. */
void wf_udp_engine_later(struct wf_udp_engine *engine);

/* -- what is to be done ----------------------------------------------------- */

/* Opens a connection if there is none. */
void wf_udp_engine_submit(struct wf_udp_engine *engine, uint64_t now,
			  struct wf_udp_op *op);
/* Before it is done: packets of it that are not acknowledged become fillers. */
void wf_udp_op_end(struct wf_udp_engine *engine, struct wf_udp_op *op,
		   enum wf_nic_status status);

/* Sends what may be sent, each peer once: up to @quantum packets, of a peer
 * that is alone up to @alone. Returns how many peers. */
int wf_udp_engine_pump(struct wf_udp_engine *engine, uint64_t now,
		       unsigned quantum, unsigned alone);
/* Runs timers that are due, each peer once; then as wf_udp_engine_pump(); then
 * sends the acknowledgements that no packet has carried. Returns how many
 * things it did. */
int wf_udp_engine_turn(struct wf_udp_engine *engine, uint64_t now,
		       unsigned quantum, unsigned alone);
/* When a turn has something to do, if nothing comes; 0: now. */
uint64_t wf_udp_engine_next(struct wf_udp_engine *engine, uint64_t now);

/* -- handles of peers ------------------------------------------------------- */

/* Adds a handle to the peer at @addr. NULL: too many peers, or no memory. */
struct wf_udp_peer *wf_udp_engine_hold(struct wf_udp_engine *engine,
				       uint64_t now,
				       const struct wf_addr *addr);
/* Removes a handle. True: it was the last one; the peer stays while it may send to
 * us or has something to do. */
bool wf_udp_engine_release(struct wf_udp_engine *engine, uint64_t now,
			   struct wf_udp_peer *peer);
/* Our connection to it leads to a process that is gone, and another may be in
 * its place: requests end with ABORT. The peer's connection to us stays: it may
 * be the new process's. */
void wf_udp_engine_abandon(struct wf_udp_engine *engine, uint64_t now,
			   struct wf_udp_peer *peer);
/* Payload of a packet that reaches @to, as far as the kernel knows. */
uint32_t wf_udp_hello_seg(struct wf_udp_engine *engine,
			  const struct wf_addr *to);

/* Bytes of a datagram's payload on a link with @mtu. */
uint32_t wf_udp_path_payload(int family, uint32_t mtu);

#endif
