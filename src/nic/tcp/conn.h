/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of nic/tcp: connections. Their sockets, where the payload goes that
 * one receives, who may come in, and whose connection is used. dev.h includes it.
 */
#ifndef WF_NIC_TCP_CONN_H
#define WF_NIC_TCP_CONN_H

#include "base/addr.h"
#include "base/list.h"
#include "nic/soft.h"
#include "nic/tcp/frame_defs.h"

struct wf_tcp_chan;
struct wf_tcp_dev;
struct wf_tcp_peer;
struct wf_tcp_session;

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
/* Returns the result of that connect: 0 or -errno. */
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

#endif
