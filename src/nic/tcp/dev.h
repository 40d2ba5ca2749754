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
 */
#ifndef WF_NIC_TCP_DEV_H
#define WF_NIC_TCP_DEV_H

#include "base/clock.h"
#include "base/list.h"
#include "base/pool.h"
#include "nic/attend.h"
#include "nic/soft.h"
#include "nic/tcp/frame_defs.h"
#include "nic/timer.h"
#include "nic/worker.h"

struct wf_tcp_session;
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

enum wf_tcp_op_kind {
	WF_TCP_OP_SEND,
	WF_TCP_OP_WRITE,
	WF_TCP_OP_READ,
	WF_TCP_OP_SERVE, /* a peer's read */
	WF_TCP_OP_NACK,	 /* a refusal */
};

enum wf_tcp_op_where {
	WF_TCP_NOWHERE, /* READ: all that is left is to wait for the data */
	WF_TCP_TODO,	/* not written, or not all of it */
	WF_TCP_FLIGHT,	/* written, not acknowledged */
};

struct wf_tcp_op {
	struct wf_list link;	  /* chan->todo, chan->flight, peer->reads */
	struct wf_list qp_link;	  /* of its queue pair; SERVE: peer->served */
	struct wf_list nack_link; /* NACK: in a list of the refused's channel */
	struct wf_tcp_chan *chan;
	struct wf_nic_qp *qp; /* NULL: SERVE, NACK, or its request is over */
	uint8_t kind;
	uint8_t where;
	uint8_t status; /* how it ends once it is acknowledged; SERVE: why it
			   cannot be served; NACK: why */
	bool over;	/* its end is not reported: the frame is only counted */
	uint8_t pad;	/* SEND in two pieces: bytes between them */
	bool split;	/* WF_TCP_SPLIT */
	bool quiet;	/* nobody waits for its end */
	bool lone;	/* WF_TCP_WAITS */
	uint16_t src_qpn;
	/* SEND: run.c. */
	uint16_t run;  /* messages in it; 0: it is not a run */
	uint16_t sent; /* of them written and counted, until all are */
	uint16_t done; /* of them acknowledged */
	uint16_t cut;  /* those before them, that are in an op of their own */
	uint16_t good; /* status: those before the first that was refused, with
			  cut */
	uint32_t read_id; /* READ: ours; SERVE: the peer's */
	uint32_t seq;	  /* NACK: of the refused frame */
	/* SERVE: raddr is here. */
	struct wf_nic_request req;
};

/* A frame that has to wait for a receive, or for other reads to be served. */
struct wf_tcp_held {
	struct wf_list link;	 /* chan->held */
	struct wf_list dev_link; /* dev->all_held */
	struct wf_tcp_chan *chan;
	struct wf_tcp_frame frame;
	uint32_t seq;
	uint64_t from;	/* when it began to come */
	uint64_t until; /* then it is refused */
	bool asked;	/* the user was asked for a place, and only the payload
			   is here: place.c */
	bool stranger;	/* long, of a peer without a handle, not all here yet */
	uint32_t place;
	uint8_t payload[];
};

enum wf_tcp_sink_kind {
	WF_TCP_SINK_NONE,
	WF_TCP_SINK_DROP,   /* refused: the payload goes nowhere */
	WF_TCP_SINK_RECV,   /* into a receive */
	WF_TCP_SINK_HELD,   /* into a wf_tcp_held */
	WF_TCP_SINK_WRITE,  /* into memory of ours that the peer writes to */
	WF_TCP_SINK_READ,   /* into memory that we read to */
	WF_TCP_SINK_ASKED,  /* the user has not said where to */
	WF_TCP_SINK_PLACED, /* where the user said */
};

/* Where the payload of the frame that is being received goes. */
struct wf_tcp_sink {
	uint8_t kind;
	uint8_t status; /* DROP: why */
	uint8_t *at;
	uint32_t left;
	struct wf_nic_qp *qp;	    /* RECV */
	struct wf_nic_rx_desc desc; /* RECV */
	bool has_place;		    /* RECV of a first piece, ASKED, PLACED */
	uint32_t place;
	struct wf_tcp_held *held;
};

struct wf_tcp_conn {
	struct wf_list link;	  /* dev->guests or dev->conns or dev->dead */
	struct wf_list sink_link; /* dev->sinks */
	struct wf_list hot_link;
	struct wf_list wait_link; /* dev->carriers */
	struct wf_list deaf_link; /* dev->deaf */
	struct wf_tcp_chan *chan; /* NULL: a guest */
	int fd;
	struct wf_tcp_session *tls; /* NULL: bytes go as they are */
	bool shaking;		    /* its handshake is under way */
	bool mine;		    /* we connected */
	bool dead;		    /* to be freed at the end of the pass */
	bool hot;		    /* something came lately */
	bool apart;		    /* and epoll is not asked for it */
	uint8_t warms;		    /* reads since it was, or is again */
	bool watches;		    /* for room to write */
	bool full;     /* the kernel had no room the last time: so it watches */
	bool waits;    /* frame is whole, and waits for a receive */
	bool is_near;  /* its round trips are short */
	uint8_t tunes; /* how often its path may still be found bad */
	bool deaf;     /* too much is held: it is not read for now */
	int ended;     /* 0, or why nothing can be written any more; what came
			 before is still read */
	uint32_t number;
	uint64_t came_at;	/* when bytes last came; of a guest, when it
			     connected */
	uint64_t tune_at;	/* when its path is looked at; NEVER: no more */
	uint32_t tune_segments; /* when it was looked at last */
	uint32_t tune_lost;
	/* Receiving. */
	uint8_t head_len; /* bytes of frame that are here */
	union {
		struct wf_tcp_frame frame;
		struct wf_tcp_hello hello; /* before any frame */
	};
	struct wf_tcp_sink sink;
	bool splits;	/* the last message was SPLIT */
	uint8_t *carry; /* bytes that were read and wait for a receive */
	uint32_t carry_at;
	uint32_t carry_len;
	uint64_t carry_from;
	/* Sending. */
	uint32_t part; /* bytes of the first frame of chan->todo that left */
	struct wf_tcp_frame part_frame;
	uint8_t note[2 * sizeof(struct wf_tcp_head)]; /* between frames */
	uint8_t note_at;
	uint8_t note_len;
};

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

/* What a queue pair has here. */
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

/* -- sock.c: everything that the kernel is asked for ------------------------- */

/* Counts begin at 0 with the connection, and wrap around. */
struct wf_tcp_path {
	uint32_t rtt_us;     /* smoothed */
	uint32_t min_rtt_us; /* the shortest */
	uint32_t delivered;  /* segments that it was seen with, and more */
	uint32_t segments;   /* with data, that were sent */
	uint32_t lost;	     /* of them, sent again for good reason */
	uint32_t unsent;     /* bytes that the kernel has not sent once */
};

/* Listens at @addr, whose port is filled in. A descriptor or -errno. */
int wf_tcp_sock_listen(struct wf_addr *addr);
/* Starts to connect from @from (family 0: the kernel's choice; its port does not
 * count). A descriptor, or -errno. *@done: it is connected already. */
int wf_tcp_sock_connect(const struct wf_tcp_dev *dev,
			const struct wf_addr *from, const struct wf_addr *to,
			bool *done);
/* What became of that. 0 or -errno. */
int wf_tcp_sock_result(int fd);
/* At the socket @listen_fd. */
int wf_tcp_sock_accept(const struct wf_tcp_dev *dev, int listen_fd);
/* The connection is over once the peer has been silent for @ns. */
void wf_tcp_sock_limit(int fd, uint64_t ns);
/* Finds the addresses of both ends of a connection. 0 or -errno. */
int wf_tcp_sock_names(int fd, struct wf_addr *from, struct wf_addr *to);
/* Sets the congestion control of the socket that listens, before a connection is
 * accepted. */
void wf_tcp_sock_begin(struct wf_tcp_dev *dev, int listen_fd);
/* Asks the kernel about the path of a connection. 0 or -errno. */
int wf_tcp_sock_look(int fd, struct wf_tcp_path *path);
/* The path is long, or loses segments: the system's congestion control is used
 * from now on. */
void wf_tcp_sock_set_far(const struct wf_tcp_dev *dev, int fd);
int wf_tcp_sock_watch(struct wf_tcp_dev *dev, int fd, void *tag, bool room);
int wf_tcp_sock_rewatch(struct wf_tcp_dev *dev, int fd, void *tag, bool room);
/* For the end alone, and for room. */
int wf_tcp_sock_watch_end(struct wf_tcp_dev *dev, int fd, void *tag, bool room);
int wf_tcp_sock_unwatch(struct wf_tcp_dev *dev, int fd);
/* As many descriptors as the administrator allows. */
void wf_tcp_sock_raise_limit(void);

/* -- conn.c: connections ----------------------------------------------------- */

/* Something is to be sent over the channel: connects it if it is down. */
void wf_tcp_conn_want(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan);
/* The kernel says that @conn is connected or is not, or that there is something
 * to be read before it has a channel. */
void wf_tcp_conn_event(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		       uint32_t events);
void wf_tcp_conn_accept(struct wf_tcp_dev *dev, int listen_fd);
/* Closes it; the channel, if it has one, is left as it is. */
void wf_tcp_conn_close(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* The connection has failed with @err. Another one replaces it, and what was
 * under way is sent again over that. */
void wf_tcp_conn_broken(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			int err);
/* The timer of the peer has run out. */
void wf_tcp_conn_tick(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer);
/* For @ns nobody made a pass that was due: the process was stopped, or had no
 * processor. That time is not counted against peers and guests, which could not
 * be heard. */
void wf_tcp_conn_absent(struct wf_tcp_dev *dev, uint64_t ns);
void wf_tcp_conn_expire_guests(struct wf_tcp_dev *dev);
void wf_tcp_conn_free_dead(struct wf_tcp_dev *dev);
/* Closes one that is idle. */
void wf_tcp_conn_rest(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan);
/* Closes connections of @chan without telling the peer; the channel is down. */
void wf_tcp_conn_drop(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan);
/* Bytes came over @conn just now. */
void wf_tcp_conn_warm(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* Looks at its path: at conn->tune_at, when something is written. */
void wf_tcp_conn_tune(const struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);

/* -- secure.c: who may come in ----------------------------------------------- */

/* Goes on with the handshake of TLS. 1: it is over, and the other side knows the
 * key; 0: bytes of the other side are missing; -EKEYREJECTED: it does not know the
 * key, which is reported to the user; another -errno: the connection is over. */
int wf_tcp_secure_shake(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* A guest begins with TLS, and there is no key here. */
void wf_tcp_secure_unexpected(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* The answer to our hello was that TLS is wanted. */
void wf_tcp_secure_denied(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* Tells the other end, with TLS or without, that it is not let in. */
void wf_tcp_secure_refuse(int fd);
/* Writes the addresses of both ends of @conn into @hello, so that the other side can
 * compare them with those that it sees. */
int wf_tcp_secure_name(const struct wf_tcp_dev *dev,
		       const struct wf_tcp_conn *conn,
		       struct wf_tcp_hello *hello);
/* Whether the hello of a guest names us, at @to, and itself, at @from. If not,
 * reports that to the guest and to the user. */
bool wf_tcp_secure_is_meant(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			    const struct wf_tcp_hello *hello,
			    const struct wf_addr *from,
			    const struct wf_addr *to);
/* The answer to our hello was that we have reached another process than we
 * meant. */
void wf_tcp_secure_astray(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);

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
/* What a hello of SMALL says of them. */
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

/* -- hot.c: connections that talk --------------------------------------------- */

void wf_tcp_hot_add(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
void wf_tcp_hot_cool(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* Has epoll report it again if it is apart. 0 or -errno. */
int wf_tcp_hot_attach(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn);
/* Gives all of them back to epoll, before a thread sleeps. */
int wf_tcp_hot_attach_all(struct wf_tcp_dev *dev);

/* -- hello.c: whose connection it is ----------------------------------------- */

enum wf_tcp_verdict {
	WF_TCP_TAKE,   /* the connection becomes the channel's */
	WF_TCP_LEAVE,  /* ours is used: YIELD */
	WF_TCP_REFUSE, /* it makes no sense */
};

void wf_tcp_hello_fill(const struct wf_tcp_dev *dev,
		       const struct wf_tcp_chan *chan, enum wf_tcp_word word,
		       struct wf_tcp_hello *hello);
bool wf_tcp_hello_valid(const struct wf_tcp_hello *hello);
/* @below: our address is the smaller one. */
enum wf_tcp_verdict wf_tcp_hello_decide(const struct wf_tcp_chan *chan,
					const struct wf_tcp_hello *hello,
					bool below);
/* Which of two ends keeps its connection when both connect at once: the same
 * answer on both sides. */
bool wf_tcp_hello_below(const struct wf_addr *ours, const struct wf_addr *its);

/* -- peer.c ------------------------------------------------------------------ */

struct wf_tcp_peer *wf_tcp_peer_find(struct wf_tcp_dev *dev,
				     const struct wf_addr *addr);
/* NULL: too many, or no memory. */
struct wf_tcp_peer *wf_tcp_peer_get(struct wf_tcp_dev *dev,
				    const struct wf_addr *addr, bool stranger);
struct wf_tcp_peer *wf_tcp_peer_mirror(struct wf_tcp_dev *dev,
				       const struct wf_addr *addr);
void wf_tcp_peer_free(struct wf_tcp_dev *dev, struct wf_tcp_peer *peer);
/* What was begun with it ends with @status, because its life is over or because
 * it does not answer. @ours: and it does not know that; it will see that our own
 * life is another. */
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
bool wf_tcp_peer_is_busy(const struct wf_tcp_peer *peer);
bool wf_tcp_chan_is_busy(const struct wf_tcp_chan *chan);

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

/* What a head on @via acknowledges; it is about to be written. */
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

/* -- settle.c: the end of requests ------------------------------------------- */

/* The peer says that it has @count of the channel's frames. False: it cannot
 * have. Their requests end in wf_tcp_settle(). */
bool wf_tcp_settle_heard(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
			 uint32_t count);
/* The peer refuses frame @seq: its request ends with @status. */
void wf_tcp_settle_refused(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
			   uint32_t seq, uint8_t status);
void wf_tcp_settle(struct wf_tcp_dev *dev);

static inline uint32_t wf_tcp_op_payload(const struct wf_tcp_op *op)
{
	if (op->kind == WF_TCP_OP_READ || op->kind == WF_TCP_OP_NACK ||
	    (op->kind == WF_TCP_OP_SERVE && op->status))
		return 0;
	return op->req.len + op->pad;
}

static inline uint32_t wf_tcp_op_frames(const struct wf_tcp_op *op)
{
	return op->run ? op->run : 1;
}

/* Frames of it that are counted and not acknowledged. */
static inline uint32_t wf_tcp_op_flying(const struct wf_tcp_op *op)
{
	if (op->where == WF_TCP_FLIGHT)
		return wf_tcp_op_frames(op) - op->done;
	return op->run && op->where == WF_TCP_TODO ? op->sent - op->done : 0;
}

/* Of the window. Frames without a payload are counted for more than their
 * bytes, because the receiver keeps more for each. A run has its heads in its
 * payload. */
static inline uint32_t wf_tcp_op_cost(const struct wf_tcp_op *op)
{
	return (op->run ? op->run : 2) * (uint32_t)sizeof(struct wf_tcp_head) +
	       wf_tcp_op_payload(op);
}

/* -- run.c: short messages in one request ------------------------------------ */

/* Writes one message that is in no op yet. As wf_tcp_stream_send(). */
ssize_t wf_tcp_run_write(struct wf_tcp_chan *chan, const struct wf_nic_qp *qp,
			 const struct wf_nic_wr *wr,
			 const struct wf_nic_sge *sge, bool *full);
/* Copies what is late (struct wf_nic_wr) to where it belongs. */
void wf_tcp_run_catch_up(const struct wf_nic_sge *sge,
			 const struct wf_nic_wr *wr);
/* The first message of @op, which is to be a run. */
void wf_tcp_run_begin(struct wf_tcp_op *op);
/* The op of @qp's request @req_id, if a message can be added to it. */
struct wf_tcp_op *wf_tcp_run_open(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				  uint16_t req_id, uint16_t ah);
/* Adds the next message, of @len bytes with its head. */
void wf_tcp_run_add(struct wf_tcp_dev *dev, struct wf_tcp_op *op, uint32_t len);
/* Writes the same acknowledgement into all heads of a run that is about to leave. */
void wf_tcp_run_stamp(const struct wf_tcp_op *op, const uint32_t ack[2]);
/* The first @bytes of it were written, and the others follow. */
void wf_tcp_run_sent(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		     uint32_t bytes);
/* Ends a run of which only a part was written. Messages that were written and not
 * acknowledged still count. */
void wf_tcp_run_leave(struct wf_tcp_op *op);
/* The peer has the first @count of the messages that are not acknowledged, and not
 * the others. False: they are not to be sent again. */
bool wf_tcp_run_cut(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		    uint32_t count);
/* The op of the channel's frame *@at, from 1 on, of those that are counted and not
 * acknowledged; *@at is which of the op's it is, from 0 on. NULL: none. */
struct wf_tcp_op *wf_tcp_run_find(const struct wf_tcp_chan *chan, uint32_t *at);
/* The peer has refused message @at of @op. */
void wf_tcp_run_refused(struct wf_tcp_op *op, uint32_t at, uint8_t status);
/* Messages of a run that are there, in the end. */
uint32_t wf_tcp_run_good(const struct wf_tcp_op *op, enum wf_nic_status status);
/* Has the user take whole messages where they lie. Returns the bytes that it has
 * used; 0: the next frame is not one that he takes so. */
uint32_t wf_tcp_run_hear(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			 const uint8_t *bytes, uint32_t len);
/* Takes several short messages, all of which are in @bytes, into one receive.
 * Returns the bytes that it has used; 0: the next frame is to be taken by
 * itself. */
uint32_t wf_tcp_run_take(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			 const uint8_t *bytes, uint32_t len);

/* -- work.c: requests -------------------------------------------------------- */

void wf_tcp_work_take(struct wf_tcp_dev *dev, struct wf_nic_qp *qp);
/* A message that is in no ring. NULL: it is queued, has failed, or (*@err) there
 * is no memory for it. Else it is to be queued. */
struct wf_tcp_op *wf_tcp_work_send(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				   uint16_t req_id, const struct wf_nic_wr *wr,
				   const struct wf_nic_sge *sge, int count,
				   int *err);
/* The same of a run that can be written at once: what has to be noted of it is
 * noted after that. WF_NIC_RUN_LEFT, WF_NIC_RUN_CLOSED, or WF_NIC_RUN_OPEN: it
 * cannot, and nothing has been done. */
enum wf_nic_run wf_tcp_work_first(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
				  uint16_t req_id, const struct wf_nic_wr *wr,
				  const struct wf_nic_sge *sge);
/* The end of an op: its completion, and its memory once it is not counted. */
void wf_tcp_work_end(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		     enum wf_nic_status status);
/* Frees an op that is in no list any more. */
void wf_tcp_work_free(struct wf_tcp_dev *dev, struct wf_tcp_op *op);
void wf_tcp_work_queue(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		       struct wf_tcp_chan *chan);
/* A read of @peer's, by the channel for its length. */
void wf_tcp_work_serve(struct wf_tcp_dev *dev, struct wf_tcp_op *op,
		       struct wf_tcp_peer *peer);
void wf_tcp_work_flush(struct wf_tcp_dev *dev, struct wf_nic_qp *qp);
void wf_tcp_work_complete(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
			  const struct wf_nic_cqe *cqe);

/* -- pass.c ------------------------------------------------------------------ */

int wf_tcp_pass(struct wf_tcp_dev *dev);
void wf_tcp_pass_pump(struct wf_tcp_dev *dev, size_t quantum);
/* Before a sleep: what is owed leaves, room is watched for. When there is
 * something to do next. */
uint64_t wf_tcp_pass_rest(struct wf_tcp_dev *dev);
uint64_t wf_tcp_pass_attend(struct wf_nic_attend *attend, bool woken);
int wf_tcp_pass_start(struct wf_tcp_dev *dev);

#endif
