/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A NIC with queue pairs, as its user sees it: EFA's data path. Messages are
 * reliable, unordered, delivered once. The device behind it (nic/udp: a
 * software NIC) is chosen when the NIC is opened; see ops.h.
 *
 * The path of a request: it is staged as a 64-byte WQE and copied to the ring
 * of the queue pair; the doorbell is written (unless more follow); the device
 * takes it, writes its completion to the ring of a completion queue, and
 * wf_nic_cq_poll() decodes it.
 *
 * Threads: the caller serializes calls on one queue pair, and on a completion
 * queue together with the queue pairs that report to it. Different ones may be
 * used at the same time if the NIC was opened with threads. Nothing here
 * blocks, except closing a NIC that has a thread of its own.
 *
 * Errors: 0 or -errno. -EAGAIN is flow control: poll, make progress, try again.
 */
#ifndef WF_NIC_NIC_H
#define WF_NIC_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/addr.h"
#include "nic/addr.h"
#include "nic/counters.h"
#include "nic/wqe_defs.h"

struct wf_nic;
struct wf_nic_cq;
struct wf_nic_qp;

struct wf_nic_caps {
	uint32_t max_msg;    /* bytes of a send: one packet */
	uint32_t max_rdma;   /* bytes of a read or write */
	uint32_t inline_max; /* bytes in the descriptor itself */
	uint32_t max_qp;
	uint32_t max_queue; /* entries of a send or receive queue */
	uint32_t max_batch; /* WQEs between two doorbells */
	uint32_t max_ah;
	uint32_t max_mr;
	uint32_t push_max; /* messages up to this are there sooner, and no less
			      of them at a time, if they are sent in packets
			      and not read by the receiver */
	bool takes_sends;  /* wf_nic_post_send() is done sooner than
				wf_nic_post_inline() */
	bool user_keys;	   /* wf_nic_attr.find is asked: wf_nic_remote */
	bool hard_reads;   /* RDMA by keys of wf_nic_key_open() ... */
	bool hard_writes;  /* ... in these directions */
	uint32_t recvs;	   /* that are worth posting. Where the last posted are
			      used first, many cost nothing until many messages
			      come at once. 0: as many as stay in a cache */
	uint32_t max_recv; /* what any peer may send in one message: receives
			      of this size take them all */
	uint32_t max_placed; /* bytes of a send in two pieces, whose second one
				the receiver gives a place: wf_nic_place(). 0:
				max_msg, as of any other */
	uint32_t copy_max;   /* bytes that are sooner copied into a packet than
			      registered; 0: the user's choice */
	bool copies_all; /* memory that was registered as a whole (address 0, all
			    bytes) is copied before it is sent */
	uint32_t run_head; /* bytes before each message of a run; 0: there are
			      no runs */
};

const struct wf_nic_caps *wf_nic_caps(const struct wf_nic *nic);
const struct wf_nic_counters *wf_nic_counters(const struct wf_nic *nic);
const char *wf_nic_name(const struct wf_nic *nic);

/* The address from which peers make their address handles. */
const struct wf_nic_addr *wf_nic_addr(const struct wf_nic *nic);
/* The same as a socket address. NULL: the device has other addresses. */
const struct wf_addr *wf_nic_socket(const struct wf_nic *nic);

/* Everything created with it must have been destroyed. Notifies peers. */
void wf_nic_close(struct wf_nic *nic);

/* In a forked child: the NIC belongs to the parent, and no other function may
 * be called there. Async-signal-safe. */
void wf_nic_forked(struct wf_nic *nic);

/* -- progress --------------------------------------------------------------- */

/* Lets the device work: sends, receives, timers. Returns how many things it
 * did; 0 means that a caller with nothing else to do may sleep. Does nothing
 * for a NIC with a thread of its own. Never returns a completion: poll for
 * those. */
int wf_nic_progress(struct wf_nic *nic);

/* Sleeping, one thread of a NIC at a time: wf_nic_wait_begin() returns -EAGAIN
 * if there is something to do or to poll right now. Otherwise sleep until
 * wf_nic_wait_fd() is readable or the deadline (of the monotonic clock,
 * UINT64_MAX: none) has come, whichever is first, then call wf_nic_wait_end()
 * and make progress. If the NIC was opened for several threads, a post by
 * another thread makes the descriptor readable, because there are new timers.
 * The descriptor belongs to the NIC: poll it, do not read it. */
int wf_nic_wait_fd(struct wf_nic *nic);
int wf_nic_wait_begin(struct wf_nic *nic, struct wf_nic_cq *cq,
		      uint64_t *deadline_ns);
void wf_nic_wait_end(struct wf_nic *nic);

/* -- memory ----------------------------------------------------------------- */

#define WF_NIC_LOCAL_WRITE 0x1u /* receives and reads may write here */
#define WF_NIC_REMOTE_READ 0x2u
#define WF_NIC_REMOTE_WRITE 0x4u

struct wf_nic_mr {
	uint32_t lkey; /* for our own descriptors */
	uint32_t rkey; /* for peers */
	bool lent;     /* the application's: wf_nic_mr_use() */
};

/* You may send from all registered memory. Keys are never 0, and a key that was
 * deregistered is not used again soon. -ENOSPC: max_mr. */
int wf_nic_mr_reg(struct wf_nic *nic, void *addr, size_t len, unsigned access,
		  struct wf_nic_mr *mr);

/* The same; but memory inside a registration of the application that @desc names
 * (wf_nic_key_desc()) and that has this access is known to the device, which is
 * not asked: @mr is lent, and its keys are those of the whole registration.
 * wf_nic_mr_dereg() then ends no access: requests that the device has go on, and
 * a peer that knows the rkey can use it until the application closes its
 * registration, when requests that still use the memory fail. @desc may be
 * anything. */
int wf_nic_mr_use(struct wf_nic *nic, const void *desc, void *addr, size_t len,
		  unsigned access, struct wf_nic_mr *mr);

/* Bytes that a peer wants to access by a key of our user. */
struct wf_nic_access {
	uint64_t key;
	uint64_t addr;
	uint64_t len;
	unsigned access; /* WF_NIC_REMOTE_READ or WF_NIC_REMOTE_WRITE */
};

/* Returns when the device is not in the middle of an access: afterwards it does
 * not touch memory that wf_nic_attr.find no longer returns. */
void wf_nic_sync(struct wf_nic *nic);

/* From here on the device does not touch the memory, unless it was lent: requests
 * that still use it fail. -EINVAL: no such key. */
int wf_nic_mr_dereg(struct wf_nic *nic, uint32_t lkey);

/* -- address handles -------------------------------------------------------- */

/* One handle per peer address; the same address gives the same handle again,
 * with a reference count. -EINVAL: this NIC cannot reach the address,
 * -ENOSPC. */
int wf_nic_ah_create(struct wf_nic *nic, const struct wf_nic_addr *addr,
		     uint16_t *ah);
/* The same by a socket address. */
int wf_nic_ah_create_socket(struct wf_nic *nic, const struct wf_addr *addr,
			    uint16_t *ah);
int wf_nic_ah_destroy(struct wf_nic *nic, uint16_t ah);

/* A few words that the user wants to get back when it has another handle for
 * the same address. */
struct wf_nic_memo {
	uint32_t words[8];
};

/* As wf_nic_ah_destroy(). The device keeps @memo as long as it knows the peer,
 * that is, while a connection in either direction is open. */
int wf_nic_ah_leave(struct wf_nic *nic, uint16_t ah,
		    const struct wf_nic_memo *memo);
/* Returns it, once. False: there is none. */
bool wf_nic_ah_recall(struct wf_nic *nic, uint16_t ah,
		      struct wf_nic_memo *memo);

/* A peer that the device has given up, because it does not answer or refuses
 * our connection, is lost: all requests to it end, and so does every request
 * that is posted before wf_nic_ah_renew(). So nothing that was meant for a
 * process can reach the process that takes its place, and nothing that was
 * posted before the loss arrives after what is posted later.
 * wf_nic_ah_abandon() makes a peer lost at the user's request: its requests end
 * with ABORT, which is not counted as a reset; a request that could still
 * arrive after later ones ends when it no longer can. -EINVAL: no such
 * handle. */
int wf_nic_ah_abandon(struct wf_nic *nic, uint16_t ah);

/* Requests then reach the process that is at the address now, over another
 * connection. The device may still have old descriptors in a ring: to keep them
 * from being taken for new ones, wait until all have completed. */
int wf_nic_ah_renew(struct wf_nic *nic, uint16_t ah);

/* The device knows this about the path to the peer. -EINVAL: no such handle. */
struct wf_nic_path {
	bool up;    /* connected */
	bool lost;  /* requests end with ABORT until it is renewed */
	bool hears; /* the peer is connected to us: more messages may come */
	/* Lost, and a process other than the lost one has connected to us
	 * since. */
	bool replaced;
	/* The two sides have refused each other, and the device has reported the
	 * reason. */
	bool refused;
	uint64_t srtt_ns;    /* 0: not measured yet */
	uint64_t min_rtt_ns; /* 0: not measured yet */
	uint64_t cwnd;	     /* bytes */
	uint64_t in_flight;
	uint64_t queued; /* requests taken but not completed */
	/* Bytes of a send that go there as one packet. More (to max_msg of the
	 * NIC) arrives, too, but goes in parts. Until the path
	 * is up what we know of it ourselves; afterwards what the peer's link
	 * carries counts, too, and it may shrink. */
	uint32_t max_msg;
	/* How long we have been asking for a connection that is not there yet;
	 * 0: it is there, or nobody asks. */
	uint64_t asking_ns;
	uint32_t
		resets; /* times the peer was given up or left; nothing that was
			  * sent to it before can still arrive;
			  * counters.peer_deaths is the sum of all */
};

int wf_nic_ah_query(struct wf_nic *nic, uint16_t ah, struct wf_nic_path *path);

/* -- completion queues ------------------------------------------------------ */

/* It needs as many entries as may be outstanding in the queues that report to
 * it. Otherwise the device holds completions back (and refuses receives) until
 * there is room. */
int wf_nic_cq_create(struct wf_nic *nic, uint32_t entries,
		     struct wf_nic_cq **cq);
/* Whether queue pairs report to it. */
bool wf_nic_cq_is_used(struct wf_nic_cq *cq);
/* -EBUSY: it is used. */
int wf_nic_cq_destroy(struct wf_nic_cq *cq);

#define WF_NIC_WC_RECV 0x1u /* of a receive, else of a send queue */
#define WF_NIC_WC_IMM 0x2u
#define WF_NIC_WC_UNSOLICITED 0x4u
/* The first piece of a message is in the receive; @more bytes wait for a place,
 * which wf_nic_place() gives to number @imm. */
#define WF_NIC_WC_ASKS 0x8u
/* Several messages are in the receive, each behind caps.run_head bytes. */
#define WF_NIC_WC_RUN 0x10u

struct wf_nic_wc {
	uint64_t wr_id;
	/* Received, or written by a peer with immediate data. Of a run of ours:
	 * how many of its messages are there, from the first on. */
	uint32_t len;
	uint32_t imm;
	uint32_t more; /* WF_NIC_WC_ASKS */
	uint16_t qpn;
	uint16_t src_qpn; /* receives */
	uint16_t ah;	  /* receives: WF_NIC_AH_UNKNOWN if we have none */
	uint8_t status;	  /* enum wf_nic_status */
	uint8_t op;	  /* enum wf_nic_opcode */
	uint32_t flags;
	struct wf_nic_addr from; /* receives with WF_NIC_AH_UNKNOWN: of whom */
};

/* @notify is called when a completion is written after wf_nic_cq_arm(), once
 * for each call of that: by the thread that does the device's work, with the
 * NIC's lock held. It takes no lock and calls no function of the NIC. NULL:
 * never. */
void wf_nic_cq_notify(struct wf_nic_cq *cq, void (*notify)(void *arg),
		      void *arg);
/* Completions that are there already do not count: poll after this call. */
void wf_nic_cq_arm(struct wf_nic_cq *cq);

/* A ring for a user that writes descriptors, or reads completions, by itself,
 * as on hardware. */
struct wf_nic_ring {
	void *at;
	uint32_t stride;
	uint32_t entries;
	uint32_t max_batch;
	_Atomic uint32_t *doorbell;
};

/* From here on completions are overwritten, not held back, if there is no room:
 * the device does not know how far the user has read. The user's doorbell is a
 * word for wf_nic_cq_watch(). */
void wf_nic_cq_export(struct wf_nic_cq *cq, struct wf_nic_ring *ring);
/* Checks the doorbell: bits 15:0 are the number of completions read, bit 31
 * requests a notification of the next one. One thread must call this
 * repeatedly. */
void wf_nic_cq_watch(struct wf_nic_cq *cq);

/* Up to @n completions. Completions of destroyed queue pairs, and those with an
 * invalid request id, are dropped and counted. */
int wf_nic_cq_poll(struct wf_nic_cq *cq, struct wf_nic_wc *wc, int n);
const char *wf_nic_status_str(enum wf_nic_status status);

/* -- places ----------------------------------------------------------------- */

/* If the NIC was opened with wf_nic_attr.places, the device receives the
 * long second piece of a message directly into memory that the user names.
 * The first piece completes a receive (WF_NIC_WC_ASKS); then the user says
 * where the second piece goes. If the user takes long, the device keeps the
 * bytes in memory of its own.
 *
 * The device owns the memory until wf_nic_placed() has returned @arg, or
 * until wf_nic_unplace(). @at NULL: the bytes are not wanted, and
 * wf_nic_placed() does not report them. -ESTALE: the connection broke; the
 * message arrives and asks again. */
int wf_nic_place(struct wf_nic *nic, uint32_t number, void *at, void *arg);
/* The user owns the memory again, and wf_nic_placed() does not report it. A
 * number that is no longer in use has no effect. */
void wf_nic_unplace(struct wf_nic *nic, uint32_t number);
/* Up to @n of those whose bytes are all in place, or whose memory cannot be
 * written. */
struct wf_nic_placed {
	void *arg;
	bool failed;
};
int wf_nic_placed(struct wf_nic *nic, struct wf_nic_placed *out, int n);
/* Whether there are some. */
bool wf_nic_has_placed(const struct wf_nic *nic);

/* -- queue pairs ------------------------------------------------------------ */

#define WF_NIC_RNR_FOREVER 7 /* as in verbs */

/* The first queue pair of a NIC has this number: with a qkey that both sides
 * agree on, a peer needs only the address to send the first message. A NIC that
 * was closed and opened again at its address uses the number again. Messages
 * for the old NIC are refused nevertheless (ABORT), but a peer that renews its
 * handle reaches the new one: protocols that care put an id of the process into
 * their first message. Peers must be told later numbers. */
#define WF_NIC_QPN_FIRST 0

struct wf_nic_qp_attr {
	struct wf_nic_cq *send_cq;
	struct wf_nic_cq *recv_cq;
	uint32_t sq_entries; /* rounded up to a power of two */
	uint32_t rq_entries; /* same; 0: sends and RDMA only */
	uint32_t qkey;	     /* what peers must know to reach it */
	uint8_t rnr_retry;   /* tries without a receive before RNR */
	/* udp: writes with immediate data take no receive; their completions
	 * carry WF_NIC_WC_UNSOLICITED and no wr_id. */
	bool unsolicited;
	/* tcp: a whole message of the peer with handle @ah, to be taken where
	 * it lies, without a receive. False: it completes a receive. Called in
	 * wf_nic_progress() alone, with the NIC's lock held, while the user has
	 * polled all completions; it calls nothing of the NIC. NULL: all
	 * messages complete receives. */
	bool (*hear)(void *arg, uint16_t ah, const uint8_t *bytes,
		     uint32_t len);
	void *hear_arg;
};

/* -EINVAL: sizes, no completion queue; -ENOSPC: max_qp. */
int wf_nic_qp_create(struct wf_nic *nic, const struct wf_nic_qp_attr *attr,
		     struct wf_nic_qp **qp);
uint16_t wf_nic_qp_num(const struct wf_nic_qp *qp);

/* Changes these values, for what is posted or arrives from now on. */
void wf_nic_qp_modify(struct wf_nic_qp *qp, uint32_t qkey, uint8_t rnr_retry);

/* Whether messages of peers without a handle are accepted; if not, they are
 * refused (RNR) before they are acknowledged. At first they are accepted.
 * Messages that completed before the call must still be polled. */
void wf_nic_qp_strangers(struct wf_nic_qp *qp, bool welcome);

/* Every outstanding request completes with FLUSHED; posts return -ESHUTDOWN. */
void wf_nic_qp_flush(struct wf_nic_qp *qp);

/* Completions that were not polled by then are lost: a later queue pair has
 * another number. The device no longer touches any memory of its requests. */
void wf_nic_qp_destroy(struct wf_nic_qp *qp);

/* Exports both rings; the user must not post by the functions below any
 * more. */
void wf_nic_qp_export(struct wf_nic_qp *qp, struct wf_nic_ring *sq,
		      struct wf_nic_ring *rq);
/* Tells the device about a doorbell that the user has written. False: it was
 * not written. One thread must call this repeatedly. */
bool wf_nic_qp_watch(struct wf_nic_qp *qp);

struct wf_nic_sge {
	void *addr;
	uint32_t len;
	uint32_t lkey;
};

#define WF_NIC_WR_IMM 0x1u  /* imm is passed to the peer */
#define WF_NIC_WR_MORE 0x2u /* another post or wf_nic_qp_ring() follows */
/* The user does not wait for the end of the request: its completion may come
 * some polls later. */
#define WF_NIC_WR_QUIET 0x4u
#define WF_NIC_WR_RUN 0x8u /* of wf_nic_post_run(), for devices */

struct wf_nic_wr {
	uint64_t wr_id;
	uint32_t qkey; /* as qpn */
	uint32_t imm;
	uint16_t ah;
	uint16_t qpn; /* efa: both are part of the address, and not used */
	uint32_t flags;
	/* Of wf_nic_post_run(): the last bytes of the message are still here.
	 * The device copies them to where they belong when it has written the
	 * message, so that it need not wait for that. */
	const void *late;
	uint32_t late_len;
};

/* A message of up to max_msg bytes in 0 to 2 pieces, which belong to the device
 * until the completion. -EAGAIN (earlier posts have been rung), -EINVAL (too
 * many pieces), -ESHUTDOWN. Errors that only the device can find are reported
 * as completions. */
int wf_nic_post_send(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		     const struct wf_nic_sge *sge, int count);

/* A message of up to inline_max bytes, copied. */
int wf_nic_post_inline(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		       const void *buf, size_t len);

/* Runs, where caps.run_head is not 0. Short messages to one peer, in one piece of
 * memory, are one request: one place in the queue, and one completion at the end
 * of the last of them. Before each there are caps.run_head bytes, which the device
 * fills in. The memory is the device's until the completion, but the user may
 * write behind the messages that he has announced.
 *
 * Begins a run with one message; @sge has its head, too. *@id is the run's.
 * enum wf_nic_run; -ENOMEM: it is to be posted as a message of its own. */
enum wf_nic_run {
	WF_NIC_RUN_OPEN,   /* others can be added */
	WF_NIC_RUN_LEFT,   /* the kernel has all of it; nothing can be added */
	WF_NIC_RUN_CLOSED, /* nothing can be added, and some of it has not left */
};
int wf_nic_post_run(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		    const struct wf_nic_sge *sge, uint32_t *id);
/* Another message of @len bytes, with its head, is behind the others. @wr is that
 * of the run. False: the run has left, or something was posted after it. */
bool wf_nic_extend_run(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		       uint32_t id, uint32_t len);
/* The length of a message in a receive with WF_NIC_WC_RUN, by its head. */
#define WF_NIC_RUN_LEN_AT 4
static inline uint32_t wf_nic_run_len(const uint8_t *head)
{
	uint32_t len;

	memcpy(&len, head + WF_NIC_RUN_LEN_AT, sizeof(len));
	return len;
}

struct wf_nic_remote {
	uint64_t addr;
	uint32_t rkey;
	/* With caps.user_keys: the key is one that the target's user gave
	 * (wf_nic_attr.find), and has 64 bits. Not with WF_NIC_WR_IMM. */
	bool user_key;
	uint32_t rkey_hi;
};

/* RDMA of sge->len bytes. A write with WF_NIC_WR_IMM takes a receive at the
 * target, after all of it has arrived. */
int wf_nic_post_read(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		     const struct wf_nic_remote *from,
		     const struct wf_nic_sge *sge);
int wf_nic_post_write(struct wf_nic_qp *qp, const struct wf_nic_wr *wr,
		      const struct wf_nic_remote *to,
		      const struct wf_nic_sge *sge);

/* One message into one piece of memory, all of which the device may write to.
 * @more as WF_NIC_WR_MORE. */
int wf_nic_post_recv(struct wf_nic_qp *qp, uint64_t wr_id,
		     const struct wf_nic_sge *sge, bool more);

/* Writes the doorbells for everything that was posted with MORE. */
void wf_nic_qp_ring(struct wf_nic_qp *qp);

/* Free entries in the send and receive queue. */
uint32_t wf_nic_qp_send_room(const struct wf_nic_qp *qp);
uint32_t wf_nic_qp_recv_room(const struct wf_nic_qp *qp);

#endif
