/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of nic/tcp: what its files share. The NIC's lock covers all of it;
 * every function here is called with it held.
 *
 *   dev    the NIC: the socket that listens, peers, timers, thread
 *   peer   another NIC, known by its address, and its present life
 *   chan   one of its channels: what is to be sent and what was counted.
 *          It outlives connections: what a broken one did not deliver is sent
 *          again over the next.
 *   conn   one TCP connection: of a channel, or of a guest, whose hello has not
 *          come yet
 *   op     one request of ours, one read that we serve, or one refusal
 *
 * conn.h, peer.h and op.h have these; a channel is in peer.h.
 */
#ifndef WF_NIC_TCP_DEV_H
#define WF_NIC_TCP_DEV_H

#include "base/clock.h"
#include "base/list.h"
#include "base/pool.h"
#include "nic/attend.h"
#include "nic/soft.h"
#include "nic/tcp/conn.h"
#include "nic/tcp/frame_defs.h"
#include "nic/tcp/op.h"
#include "nic/tcp/peer.h"
#include "nic/timer.h"
#include "nic/worker.h"

struct wf_tcp_tls;

#define WF_TCP_NEVER UINT64_MAX
#define WF_TCP_READS_MOST 4096u /* of ours at a time; others wait */
#define WF_TCP_SERVE_MOST 1024u /* reads of one peer that we serve at a time */
#define WF_TCP_SERVE_ALL 16384u /* and of all together: their memory is ours */
#define WF_TCP_STAGE (128u << 10)
#define WF_TCP_PLACES_MOST 1024u /* messages that ask, or have a place */
#define WF_TCP_HOT_MOST 2u
/* A message counts for more than its bytes when it is acknowledged. */
#define WF_TCP_ACK_PER_FRAME 4096u
/* Bytes of a message in two pieces: a header of rdm, and 512 KiB. */
#define WF_TCP_PLACED_MAX ((512u << 10) + 512u)

/* The device keeps this for a queue pair. */
struct wf_tcp_qp {
	struct wf_list ops;
	struct wf_nic_stuck *stuck;
	/* Receives off the ring that no frame has; the last is used next. */
	struct wf_nic_rx_desc *spare;
	uint32_t spares;
};

/* A message whose user is asked where its payload goes: place.c. */
struct wf_tcp_place {
	struct wf_nic_qp *qp;
	struct wf_tcp_conn *conn; /* over which it comes; NULL: it is here */
	struct wf_tcp_held *held; /* what came before there was a place */
	uint8_t *from;		  /* held: where the payload begins */
	void *at;		  /* what the user said ... */
	void *arg;
	uint32_t len;
	bool given;  /* ... if it has answered */
	bool done;   /* in dev->placed; arg NULL: the user wants no report */
	bool failed; /* that memory cannot be written */
};

struct wf_tcp_dev {
	union { /* first */
		struct wf_nic nic;
		struct wf_nic_soft soft;
	};
	uint64_t now;
	uint64_t awake_at; /* when the last pass was, or the next has to be */
	enum wf_nic_status (*find)(void *arg, const struct wf_nic_access *want,
				   void **at);
	void *find_arg;
	uint64_t dead_ns;
	uint64_t connect_ns;
	uint64_t idle_ns;
	uint32_t max_peers;
	int listen_fd;
	char control[16];   /* congestion control of the system; "": unknown */
	unsigned int rails; /* further addresses: rail.c */
	int rail_fds[WF_TCP_RAILS_MOST - 1]; /* that listen there */
	struct wf_addr rail_addrs[WF_TCP_RAILS_MOST - 1];
	bool own_listen;
	bool no_accept; /* out of descriptors: see accept_at */
	uint64_t accept_at;
	int poll_fd;
	uint16_t port;
	struct wf_list peers;
	uint32_t peer_count;
	uint32_t strangers; /* of them without a handle */
	struct wf_list buckets[256];
	struct wf_tcp_peer *mirror;
	struct wf_nic_timers timers;
	struct wf_nic_timers probes;
	struct wf_list active;	/* channels with something to write */
	struct wf_list ackers;	/* in order of ack_at */
	bool hastens;		/* some peer waits for one: WF_TCP_WAITS */
	uint8_t idles;		/* passes since then that read nothing */
	struct wf_list settles; /* channels whose acked is behind known */
	bool delivered;		/* this pass: a message for the user */
	bool settle_now;	/* something waits for it */
	uint32_t loud;		/* requests whose end somebody may wait for */
	uint32_t hurries;	/* passes that did nothing else */
	struct wf_list conns;
	struct wf_list guests; /* the oldest first */
	struct wf_list dead;
	struct wf_list sinks; /* connections in the middle of a payload */
	struct wf_list carriers;
	struct wf_list deaf; /* connections that are not read for now */
	struct wf_list hots;
	uint32_t hot_count;
	uint32_t apart_count;
	uint32_t guest_count;
	uint64_t looked_at; /* at all connections */
	uint32_t passes;
	uint32_t full_count;	 /* connections without room */
	struct wf_list all_held; /* in the order in which they came */
	uint64_t held_bytes;
	uint32_t serving;
	uint32_t refusals; /* NACK ops of all peers */
	struct wf_pool ops;
	struct wf_queue_ids place_ids;
	struct wf_tcp_place *places;
	uint32_t *placed; /* a ring of numbers that wf_nic_placed() tells */
	uint32_t placed_at;
	uint32_t placed_end;
	uint64_t kept_bytes; /* of places: in memory of ours */
	uint64_t filling;    /* bytes of frames that come into a wf_tcp_held */
	uint64_t announced;  /* of them, long ones of strangers */
	bool attending;	     /* this pass is not the owner's */
	bool owned;	     /* this is a pass of the owner */
	struct wf_queue_ids read_ids;
	struct wf_tcp_op **reads;
	bool ring_waits;    /* requests in some ring wait for a read id or for
			    memory */
	bool warned_files;  /* that descriptors are short */
	uint32_t shortages; /* of the process that we know of: files.c */
	uint32_t flying;    /* ops in flight */
	uint32_t kicks_held;
	uint32_t posts;	 /* kicks since the owner's last pass */
	uint32_t streak; /* kicks without a pause while others were under way */
	uint64_t posted_at; /* time of the last kick */
	uint64_t held_back; /* bytes that were taken since the last kick that
			       was not held */
	uint64_t kicked_at;
	struct wf_tcp_tls *tls; /* NULL: there is no key */
	uint8_t warned_key;	/* reasons that the user knows: secure.c */
	uint8_t *stage;		/* received bytes are read into it */
	uint8_t *out;		/* frames are packed into it to be sent */
	struct wf_nic_attend attend;
	struct wf_nic_worker worker;
	pid_t pid;
	bool is_copy; /* of another process, which forked */
};

static inline struct wf_tcp_dev *wf_tcp_dev_of(struct wf_nic *nic)
{
	return (struct wf_tcp_dev *)nic;
}

static inline bool wf_tcp_is_counted(unsigned int kind)
{
	return kind >= WF_TCP_NACK;
}

/* Bytes of head and extension. */
static inline uint32_t wf_tcp_frame_len(unsigned int kind)
{
	return kind >= WF_TCP_WRITE ? sizeof(struct wf_tcp_frame) :
				      sizeof(struct wf_tcp_head);
}

#define wf_tcp_count(dev, name, n) wf_nic_count(&(dev)->nic.counters->name, n)

/* -- files.c: descriptors ----------------------------------------------------- */

bool wf_tcp_files_is_short(int err);
/* There was none: closes an idle connection, and warns once. */
void wf_tcp_files_short(struct wf_tcp_dev *dev, int err);
/* Closes an idle connection if another device of this process needs one. */
void wf_tcp_files_share(struct wf_tcp_dev *dev);

/* -- rail.c: several addresses ----------------------------------------------- */

/* Listens at @more, as far as there are places. */
int wf_tcp_rail_open(struct wf_tcp_dev *dev, const struct wf_addr *more,
		     unsigned int count);
void wf_tcp_rail_close(struct wf_tcp_dev *dev);
int wf_tcp_rail_watch(struct wf_tcp_dev *dev);
void wf_tcp_rail_unwatch(struct wf_tcp_dev *dev);
void wf_tcp_rail_write(const struct wf_addr *addr, struct wf_tcp_rail *rail);
/* Writes the rails into a hello of SMALL. */
void wf_tcp_rail_fill(const struct wf_tcp_dev *dev, struct wf_tcp_hello *hello);
bool wf_tcp_rail_valid(const struct wf_tcp_hello *hello);
void wf_tcp_rail_learn(const struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		       const struct wf_tcp_hello *hello);
/* The peer whose bulk channel this hello opens. NULL: no peer is known by these
 * lives. */
struct wf_tcp_peer *wf_tcp_rail_peer(struct wf_tcp_dev *dev,
				     const struct wf_tcp_hello *hello);
/* Whether the channel connects addresses other than the first; if so, which. */
bool wf_tcp_rail_is_on(const struct wf_tcp_chan *chan);
void wf_tcp_rail_ends(const struct wf_tcp_dev *dev,
		      const struct wf_tcp_chan *chan, struct wf_addr *from,
		      struct wf_addr *to);
/* A try by them has failed; it may have been the last. */
void wf_tcp_rail_failed(struct wf_tcp_chan *chan, int err);
/* From now on by the first addresses. */
void wf_tcp_rail_leave(struct wf_tcp_chan *chan, int err);
/* The bulk channel for the next payload. */
struct wf_tcp_chan *wf_tcp_rail_choose(struct wf_tcp_peer *peer);

static inline bool wf_tcp_rail_listens(const struct wf_tcp_dev *dev,
				       const void *tag)
{
	const int *fd = tag;

	return fd >= dev->rail_fds && fd < dev->rail_fds + dev->rails;
}

/* -- in.c, target.c: receiving ----------------------------------------------- */

/* Reads what is there, up to a limit. Returns whether there was something. */
int wf_tcp_in_read(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* Reads those again of which less is held now. */
void wf_tcp_in_listen(struct wf_tcp_dev *dev);
/* Whether there may be @len more bytes of long messages in memory of ours. */
bool wf_tcp_in_may_hold(const struct wf_tcp_dev *dev, uint32_t len);
/* Whether bytes that wait keep some socket readable. */
bool wf_tcp_in_is_blind(const struct wf_tcp_dev *dev);
/* Goes on with bytes that were read before. */
int wf_tcp_in_resume(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* @len bytes of the stream. */
void wf_tcp_in_bytes(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		     const uint8_t *bytes, uint32_t len);
/* The rest of the frame that @conn is receiving will not come. */
void wf_tcp_in_forget(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* The receive of a first piece is taken away: so is the rest of the frame. */
void wf_tcp_in_lose_place(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* Whether the memory that the payload goes to may still be written; if not, the
 * rest of it goes nowhere. */
void wf_tcp_in_check(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);

/* Finds the place of a frame's payload: conn->sink. -EAGAIN: there is no receive
 * now, and there may be soon; or no memory to hold it. */
int wf_tcp_target_begin(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			bool may_wait);
/* Where the bytes are that a peer names by the key @rkey, or by the user's,
 * whose higher half is @hi. WF_NIC_OK, or why it may not. */
struct wf_tcp_reach {
	bool user_key;
	uint32_t rkey;
	uint32_t hi;
	uint64_t addr;
	uint32_t len;
	unsigned access;
};
enum wf_nic_status wf_tcp_target_reach(const struct wf_tcp_dev *dev,
				       const struct wf_tcp_reach *want,
				       void **at);
/* The frame in @held is complete, or its rest will not come. */
void wf_tcp_target_filled(struct wf_tcp_dev *dev,
			  const struct wf_tcp_held *held);
/* The rest of a write: whether its memory may still be written. */
void wf_tcp_target_check(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* The first piece of a message is in a receive, the rest asks for a place. */
void wf_tcp_target_announce(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
			    struct wf_nic_qp *qp,
			    const struct wf_nic_rx_desc *desc,
			    const struct wf_tcp_head *head, uint32_t number);
/* The payload of the frame is complete. */
void wf_tcp_target_end(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* Delivers @count messages with their heads, @len bytes in all; @head is that of the
 * first. False: there is no receive for them. */
bool wf_tcp_target_run(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		       const struct wf_tcp_head *head, const uint8_t *bytes,
		       uint32_t len, uint32_t count);
/* Tries frames that are held. */
int wf_tcp_target_retry(struct wf_tcp_dev *dev);
/* See wf_tcp_conn_absent(). */
void wf_tcp_target_absent(struct wf_tcp_dev *dev, uint64_t ns);
void wf_tcp_target_drop_held(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan);

/* -- place.c: payloads that go where the user says ---------------------------- */

int wf_tcp_place_open(struct wf_tcp_dev *dev);
void wf_tcp_place_fini(struct wf_tcp_dev *dev);
bool wf_tcp_place_has_room(const struct wf_tcp_dev *dev);
/* The first piece of a frame is about to be received; it has room. */
void wf_tcp_place_begin(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* The first piece is here: tells the user. From here on nothing is read. */
void wf_tcp_place_ask(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* The user takes long: the rest of the frame is kept meanwhile. 0 or -ENOMEM. */
int wf_tcp_place_keep(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* The payload is in its place as a whole. */
void wf_tcp_place_end(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* Tells the user that the place cannot be written. */
void wf_tcp_place_fail(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* The whole frame is in @held, which belongs to the question from now on. */
void wf_tcp_place_kept(struct wf_tcp_dev *dev, struct wf_tcp_held *held);
/* Asks the user for a place for a frame that is complete. Returns the number of the
 * question; the caller has made sure that there is room for one. */
uint32_t wf_tcp_place_whole(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
			    struct wf_tcp_held *held);
/* The rest of the frame does not come. */
void wf_tcp_place_lose(struct wf_tcp_dev *dev, uint32_t number);
void wf_tcp_place_flush(struct wf_tcp_dev *dev, struct wf_nic_qp *qp);
int wf_tcp_place_give(struct wf_nic *nic, uint32_t number, void *at, void *arg);
void wf_tcp_place_take(struct wf_nic *nic, uint32_t number);
int wf_tcp_place_tell(struct wf_nic *nic, struct wf_nic_placed *out, int n);

/* Bytes of @head's payload that go into a receive, with those between the
 * pieces. */
static inline uint32_t wf_tcp_first_len(const struct wf_tcp_head *head)
{
	return head->flags & WF_TCP_SPLIT ? wf_tcp_split_at(head->arg) :
					    head->len;
}

/* -- out.c: what goes -------------------------------------------------------- */

void wf_tcp_out_activate(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan);
/* Writes what the kernel takes, up to @quantum bytes. Returns how many. */
size_t wf_tcp_out_pump(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
		       size_t quantum);
/* Writes one message at once, if nothing is before it and it is short. False: it
 * is to be queued. */
bool wf_tcp_out_now(struct wf_tcp_dev *dev, struct wf_tcp_op *op);
/* Whether a message could be written at once; and what follows from a call that
 * has written @n bytes of it (-errno: none): true, if all of it has left. */
bool wf_tcp_out_is_free(const struct wf_tcp_chan *chan, size_t cost);
bool wf_tcp_out_wrote(struct wf_tcp_dev *dev, struct wf_tcp_op *op, ssize_t n,
		      bool full);

/* -- ack.c: acknowledgements ------------------------------------------------- */

/* Writes the acknowledgements into a head on @via, which is about to be
 * written. */
void wf_tcp_ack_stamp(const struct wf_tcp_chan *via, uint32_t ack[2]);
/* Something of the peer was taken: it is to be told, soon or now. */
void wf_tcp_ack_owe(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		    uint32_t bytes);
/* Whether a head on @via would acknowledge anything new. */
bool wf_tcp_ack_has_news(const struct wf_tcp_chan *via);
/* A head with acknowledgements may not leave after all. */
void wf_tcp_ack_again(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer);
int wf_tcp_ack_send(struct wf_tcp_dev *dev, bool all);
/* Sends a head that asks for one, if nothing is in the way. False: something
 * is. */
bool wf_tcp_ack_ask(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan);
uint32_t wf_tcp_ack_of(const struct wf_tcp_chan *chan);
/* Puts a refusal into chan->nacks or chan->nacks_sent. */
void wf_tcp_ack_add_nack(struct wf_list *nacks, struct wf_tcp_op *op);
/* Writes the word BYE or REST at once, if the socket has room. */
void wf_tcp_ack_say(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		    enum wf_tcp_kind kind);

/* -- probe.c: losses at the end of what was sent ------------------------------ */

#define WF_TCP_PROBE_AFTER (1 * WF_NS_PER_MS)

/* Probes that are due. Returns how many peers were looked at. */
int wf_tcp_probe_run(struct wf_tcp_dev *dev);
/* When the next is due, if anything is in flight. */
uint64_t wf_tcp_probe_next(struct wf_tcp_dev *dev);

/* A frame was written. Within a host none is lost. */
static inline void wf_tcp_probe_want(struct wf_tcp_dev *dev,
				     struct wf_tcp_peer *peer)
{
	if (peer->probe.at == WF_NIC_TIMER_NONE && !peer->is_near)
		wf_nic_timers_set(&dev->probes, &peer->probe,
				  dev->now + WF_TCP_PROBE_AFTER);
}

/* -- pass.c ------------------------------------------------------------------ */

int wf_tcp_pass(struct wf_tcp_dev *dev);
void wf_tcp_pass_pump(struct wf_tcp_dev *dev, size_t quantum);
/* Before a sleep: owed acknowledgements leave, room is watched for. When there
 * is something to do next. */
uint64_t wf_tcp_pass_rest(struct wf_tcp_dev *dev);
uint64_t wf_tcp_pass_attend(struct wf_nic_attend *attend, bool woken);
int wf_tcp_pass_start(struct wf_tcp_dev *dev);

#endif
