/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of nic/udp: what its files share. The NIC's lock covers all of it;
 * every function here is called with it held.
 *
 *   dev    the NIC: socket, peers, timers, thread
 *   peer   another NIC, known by its address. Two connections, one each way:
 *     out    what we send: window, losses, congestion   (out.c, pump.c, cc.c)
 *     in     what we receive: which packets are here    (in.c, target.c)
 *   op     one request of ours, or one read that we serve           (work.c)
 *   slot   one packet of an op from its first sending to its ack
 */
#ifndef WF_NIC_UDP_DEV_H
#define WF_NIC_UDP_DEV_H

#include "base/clock.h"
#include "base/list.h"
#include "base/pool.h"
#include "nic/attend.h"
#include "nic/soft.h"
#include "nic/udp/cc.h"
#include "nic/udp/packet_defs.h"
#include "nic/udp/sock.h"
#include "nic/timer.h"
#include "os/thread.h"

#define WF_UDP_NEVER UINT64_MAX
#define WF_UDP_READS_MOST 4096u /* of ours at a time; others wait */
#define WF_UDP_SERVE_MOST 1024u /* reads of one peer that we serve at a time */
#define WF_UDP_SERVE_ALL 16384u /* and of all together: their memory is ours */

enum wf_udp_op_kind {
	WF_UDP_OP_SEND,
	WF_UDP_OP_WRITE,
	WF_UDP_OP_READ,
	WF_UDP_OP_SERVE, /* a peer's read */
};

struct wf_udp_op {
	struct wf_list link;	/* out.ops while packets are to be made of it,
				   peer->reads while data is awaited */
	struct wf_list qp_link; /* of its queue pair; SERVE: peer->served */
	struct wf_udp_peer *peer;
	struct wf_nic_qp *qp; /* NULL: SERVE */
	uint8_t kind;
	bool made;	/* every packet of it has been made */
	bool in_list;	/* link is in a list */
	uint8_t status; /* SERVE: why it was stopped */
	uint16_t src_qpn;
	uint32_t next;	  /* first byte that is in no packet */
	uint32_t slots;	  /* packets not acknowledged */
	uint32_t got;	  /* READ: bytes that are here */
	uint32_t read_id; /* READ: ours; SERVE: the peer's */
	/* SERVE: raddr is here. */
	struct wf_nic_request req;
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
	uint64_t instance;   /* of the peer's device that accepted it */
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
	uint64_t ack_at;
	uint32_t highest;
	uint32_t round;	      /* of dev->senders, that it was counted in */
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
	/* Our address as the peer knows it, for our connection: see sock.any.
	 * Family 0: not known yet, the kernel chooses. */
	struct wf_addr local;
	uint16_t index;
	uint16_t ah;
	uint32_t handles; /* address handles that point here */
	uint32_t serving;
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
	uint32_t guess;		   /* payload that may reach it, before we know;
				      0: not asked for */
	bool lost;		   /* see wf_nic_ah_abandon() */
	bool has_memo;		   /* of the user's, while there is no handle */
	struct wf_nic_memo memo;
	/* Connections of the peer's that were replaced: an OPEN of theirs that
	 * comes late must not take the place of the present one. */
	uint64_t retired[WF_UDP_RETIRED];
	uint32_t retirements;
	struct wf_udp_out out;
	struct wf_udp_in in;
};

/* What a queue pair has here. */
struct wf_udp_qp {
	struct wf_list ops;
	struct wf_nic_stuck *stuck;
};

struct wf_udp_dev {
	union { /* first */
		struct wf_nic nic;
		struct wf_nic_soft soft;
	};
	struct wf_udp_sock sock;
	uint64_t now;
	bool late; /* nobody looked at the socket for long: when what is in it
		      came, nobody knows */
	_Atomic uint64_t looked_at;
	struct wf_nic_timers timers; /* of peers */
	uint64_t retry_at;	     /* the socket was full */
	uint64_t dead_ns;
	uint64_t connect_ns;
	uint32_t max_peers;
	uint32_t max_msg;
	bool payload_crc;
	struct wf_udp_peer **peers; /* by index; NULL: none */
	uint32_t peer_count;	    /* indexes that were ever used */
	uint32_t peer_room;
	uint32_t peers_here;
	uint32_t strangers; /* of them without a handle */
	uint16_t rx_qpn;    /* whose receive the last message took */
	/* Peers that sent data in this round of 100 ms or so, and in the one
	 * before. */
	uint32_t senders;
	uint32_t senders_before;
	uint32_t senders_round;
	uint64_t senders_from;
	uint32_t serving; /* reads of all peers */
	uint32_t wholes;  /* of all peers */
	struct wf_list all_wholes;
	struct wf_list buckets[256];
	struct wf_list active;
	struct wf_list ackers;
	struct wf_pool ops;
	struct wf_pool slots;
	struct wf_queue_ids read_ids;
	struct wf_udp_op **reads;
	bool ring_waits;    /* descriptors in some ring do: for a read id, or
				memory */
	uint64_t secret[2]; /* of cookies */
	uint64_t instance;  /* tells peers this device from others before it */
	uint64_t random;
	uint64_t reset_at; /* resets are rationed */
	uint32_t resets;
	uint64_t
		look_at; /* errors of the network are looked for now and then */
	/* Of the thread. */
	bool threaded;
	uint32_t kicks_held;  /* since ... */
	uint64_t received_at; /* the socket was looked at */
	uint64_t kicked_at;   /* ... packets left the last time */
	struct wf_nic_attend attend;
	bool stop;
	struct wf_os_thread thread;
	int wake_fd; /* to the thread */
	int poll_fd; /* of the socket and user_fd: threads, but none of ours */
	pid_t pid;   /* whose all of this is */
	_Atomic uint32_t asleep;
	_Atomic uint32_t dirty; /* some doorbell was written */
};

static inline struct wf_udp_dev *wf_udp_dev_of(struct wf_nic *nic)
{
	return (struct wf_udp_dev *)nic;
}

/* Microseconds for the wire. */
static inline uint32_t wf_udp_dev_us(const struct wf_udp_dev *dev)
{
	return (uint32_t)(dev->now / WF_NS_PER_US);
}

#define wf_udp_count(dev, name, n) wf_nic_count(&(dev)->nic.counters->name, n)

/* -- dev.c ------------------------------------------------------------------ */

uint64_t wf_udp_dev_random(struct wf_udp_dev *dev);

/* -- pass.c ----------------------------------------------------------------- */

/* Sends what is in the batch. */
int wf_udp_dev_flush(struct wf_udp_dev *dev);
/* Sending has to wait a moment: the kernel has no room, or we no memory. */
void wf_udp_dev_later(struct wf_udp_dev *dev);
/* One packet of @len bytes that nobody waits for, from the address that a peer
 * at @to knows us by. */
void wf_udp_dev_control(struct wf_udp_dev *dev, const struct wf_addr *to,
			struct wf_udp_common *packet, size_t len);
/* The same from @from, which is an address of ours: an answer leaves from the
 * address that the question came to. */
void wf_udp_dev_answer(struct wf_udp_dev *dev, const struct wf_addr *to,
		       const struct wf_addr *from, struct wf_udp_common *packet,
		       size_t len);
/* A note over our connection to @peer with zeros behind it, @len bytes in all.
 */
void wf_udp_dev_padded(struct wf_udp_dev *dev, const struct wf_udp_peer *peer,
		       struct wf_udp_note *note, size_t len);
/* Everything once. Returns how many things it did. */
int wf_udp_pass(struct wf_udp_dev *dev);
/* Sends what peers have to send. */
void wf_udp_pass_pump(struct wf_udp_dev *dev);
/* When there is something to do even if nobody calls. */
uint64_t wf_udp_pass_next(struct wf_udp_dev *dev);
/* No lock. What a sleeper needs beside the socket; the thread. */
int wf_udp_pass_fds(struct wf_udp_dev *dev, bool thread);
int wf_udp_pass_start(struct wf_udp_dev *dev);

/* In the owner's place. */
uint64_t wf_udp_pass_attend(struct wf_nic_attend *attend, bool woken);
void wf_udp_pass_stop(struct wf_udp_dev *dev);

/* -- peer.c ----------------------------------------------------------------- */

struct wf_udp_peer *wf_udp_peer_find(struct wf_udp_dev *dev,
				     const struct wf_addr *addr);
/* NULL: too many, or no memory. @stranger: who came by himself. Those cannot
 * take the places of those whom the user wants to reach. */
struct wf_udp_peer *wf_udp_peer_get(struct wf_udp_dev *dev,
				    const struct wf_addr *addr, bool stranger);
void wf_udp_peer_free(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
/* The peer one of whose connections has our id @cid. NULL: none. */
struct wf_udp_peer *wf_udp_peer_by_cid(struct wf_udp_dev *dev, uint64_t cid);
/* A timer has moved: the NIC's next one may have, too. */
void wf_udp_peer_arm(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
void wf_udp_peer_activate(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
/* Our connection to it leads to a process that is gone, and another may be in
 * its place: requests end with ABORT. The peer's connection to us stays: it may
 * be the new process's. */
void wf_udp_peer_abandon(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
/* The peer says so: as above, and it counts as a death. */
void wf_udp_peer_refused(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
/* Everything that depends on it fails, both ways. */
void wf_udp_peer_fail(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		      enum wf_nic_status status);
void wf_udp_peer_tick(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
/* A packet that is certainly its own came. */
void wf_udp_peer_heard(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
/* The network proves, or our kernel says, that it cannot be reached. */
void wf_udp_peer_against(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
			 bool refused);
/* Whether @bytes are of a packet that we sent to the peer: they have an id that
 * only it was told. */
bool wf_udp_peer_quoted(const struct wf_udp_peer *peer, const uint8_t *bytes,
			size_t len);
/* Somebody says so without proof: the peer is asked. */
void wf_udp_peer_doubt(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
/* Whether it is to be given up, if @since is when we began to wait. Then it
 * has been. */
bool wf_udp_peer_overdue(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
			 uint64_t since);
/* Asks for a sign of life that costs little. @cid: which of its ends. */
void wf_udp_peer_ping(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		      uint64_t cid);
/* The last handle for it is gone: so is it, once nothing is left to do. */
void wf_udp_peer_let_go(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
uint64_t wf_udp_peer_new_cid(struct wf_udp_dev *dev, struct wf_udp_peer *peer);

/* -- hello.c: the handshake ------------------------------------------------- */

void wf_udp_hello_start(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
void wf_udp_hello_tick(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
void wf_udp_hello_receive(struct wf_udp_dev *dev, const struct wf_addr *from,
			  const struct wf_udp_hello *hello);
uint32_t wf_udp_hello_rwnd(const struct wf_udp_dev *dev);
/* Payload that reaches @to in one piece, as far as we know. System calls. */
uint32_t wf_udp_hello_seg(const struct wf_udp_dev *dev,
			  const struct wf_addr *to);

/* -- out.c, pump.c: sending ------------------------------------------------- */

void wf_udp_out_init(struct wf_udp_out *out);
int wf_udp_out_up(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		  uint32_t seg, uint32_t rwnd);
void wf_udp_out_ack(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		    uint32_t base, const uint64_t *bits, unsigned words,
		    uint32_t ts, bool late);
void wf_udp_out_nack(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		     uint32_t seq, enum wf_nic_status status);
void wf_udp_out_tick(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
/* Its packets become fillers. */
void wf_udp_out_forget(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		       struct wf_udp_op *op);
/* Frees every slot; ops are the caller's to end. */
void wf_udp_out_close(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
void wf_udp_out_unsent(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		       struct wf_udp_slot *slot);
/* A packet was seen to arrive after one that was sent later. */
void wf_udp_out_reorders(struct wf_udp_out *out);
void wf_udp_out_set_probe(struct wf_udp_dev *dev, struct wf_udp_peer *peer);

/* Sends what may be sent, up to @quantum packets; leaves the active list when
 * that is nothing. */
void wf_udp_pump(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		 unsigned quantum);
/* One packet, whatever the window says. -EAGAIN: the socket is full. */
int wf_udp_pump_slot(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		     struct wf_udp_slot *slot, bool ack_now);

/* -- path.c: how large a packet may be -------------------------------------- */

void wf_udp_path_up(struct wf_udp_out *out, uint32_t seg);
/* It carries no more than @seg, somebody says. */
void wf_udp_path_narrow(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
			uint32_t seg);
/* What became of packets. Again: nothing is heard of it, it is sent once more.
 * Unheard of: the peer answers pings, and acknowledges none. */
void wf_udp_path_lost(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		      const struct wf_udp_slot *slot);
void wf_udp_path_acked(struct wf_udp_out *out, const struct wf_udp_slot *slot);
void wf_udp_path_again(struct wf_udp_out *out, const struct wf_udp_slot *slot);
void wf_udp_path_unheard(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
void wf_udp_path_tick(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
void wf_udp_path_probed(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
			uint32_t size);

/* -- part.c: packets in parts ----------------------------------------------- */

bool wf_udp_part_valid(const struct wf_udp_part *part, uint16_t len);
/* 1: all parts are here, *@bytes is the whole, which stays until it is dropped;
 * 0: not yet; -1: no room for another. */
int wf_udp_part_take(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		     const struct wf_udp_data *head,
		     const struct wf_udp_part *part, const uint8_t *payload,
		     const uint8_t **bytes);
void wf_udp_part_drop(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		      uint32_t seq);
void wf_udp_part_drop_all(struct wf_udp_dev *dev, struct wf_udp_peer *peer);

/* -- in.c, target.c: receiving ---------------------------------------------- */

/* One packet off the wire: nothing in it is believed. */
void wf_udp_in_packet(void *dev, const struct wf_addr *from,
		      const uint8_t *bytes, size_t len);
void wf_udp_in_open(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
		    uint64_t remote_cid, bool crc);
void wf_udp_in_close(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
void wf_udp_in_send_ack(struct wf_udp_dev *dev, struct wf_udp_peer *peer);
uint32_t wf_udp_in_echo(const struct wf_udp_dev *dev,
			const struct wf_udp_peer *peer);
/* The part of an ack that fits a data header; false: there is nothing to say,
 * or more than fits. */
bool wf_udp_in_fill_ack(struct wf_udp_dev *dev, struct wf_udp_peer *peer,
			struct wf_udp_data *head);

/* Does what a data packet asks for. WF_NIC_OK: done, once; else it was refused
 * and nothing happened. */
enum wf_nic_status wf_udp_target(struct wf_udp_dev *dev,
				 struct wf_udp_peer *peer,
				 const struct wf_udp_data *head,
				 const uint8_t *payload);

/* -- work.c: requests and completions --------------------------------------- */

/* Takes what the doorbell of @qp has told. */
void wf_udp_work_take(struct wf_udp_dev *dev, struct wf_nic_qp *qp);
/* The end of an op: its completion, and its memory. */
void wf_udp_work_end(struct wf_udp_dev *dev, struct wf_udp_op *op,
		     enum wf_nic_status status);
/* An op that lost or finished a packet: is it done? */
void wf_udp_work_check(struct wf_udp_dev *dev, struct wf_udp_op *op);
void wf_udp_work_flush(struct wf_udp_dev *dev, struct wf_nic_qp *qp);
void wf_udp_work_complete(struct wf_udp_dev *dev, struct wf_nic_qp *qp,
			  const struct wf_nic_cqe *cqe);

#endif
