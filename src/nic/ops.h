/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the queue pairs and the device behind them: one ops table per device,
 * and the structs that both sides see. Users include nic.h instead.
 */
#ifndef WF_NIC_OPS_H
#define WF_NIC_OPS_H

#include "base/list.h"
#include "base/lock.h"
#include "nic/mr.h"
#include "nic/nic.h"
#include "queue/cq.h"
#include "queue/ids.h"
#include "queue/sub.h"

#define WF_NIC_QP_MAX 1024u
#define WF_NIC_AH_MAX 16384u
#define WF_NIC_AH_BUCKETS 256u
#define WF_NIC_AH_REST 64u /* numbers that are free before one is met again */

struct wf_nic_ah;
struct wf_nic_attr;

/* Where the rings of a queue pair lie. */
struct wf_nic_rings {
	void *sq; /* of 64-byte descriptors, 64-aligned, zeroed */
	void *rq; /* of 16-byte descriptors; NULL: none were asked for */
	_Atomic uint32_t *sq_doorbell;
	_Atomic uint32_t *rq_doorbell;
};

/* Called with the NIC's lock held unless said otherwise; none blocks. */
struct wf_nic_ops {
	const char *name;
	const char *about; /* what it is, in some words */
	int socket; /* what carries an address: SOCK_STREAM, SOCK_DGRAM */
	unsigned int addrs; /* of a host that it uses at once; 0: one */
	/* What lies behind the send rings: 0 for device memory; a device in
	 * ordinary memory says WF_QUEUE_COPY_MEMORY (docs/wqe.md). */
	enum wf_queue_copy_kind copy;

	/* No lock. Opens a device and fills in its caps: see open.h. */
	int (*open)(const struct wf_nic_attr *attr, struct wf_nic **nic);
	/* No lock. Whether a device can be opened with a key: 0, and in @why
	 * how it encrypts, or -errno, and why it cannot and what to do. NULL:
	 * this device does not encrypt. */
	int (*secure)(const char *key_file, char *why, size_t room);
	/* No lock: nobody else is left. Frees the NIC. May wait for its own
	 * thread. */
	void (*close)(struct wf_nic *nic);

	/* No lock, and none may be taken: in a child that was forked, all
	 * descriptors are closed. Async-signal-safe. NULL: peers do not hear
	 * from a descriptor that the child has. */
	void (*forked)(struct wf_nic *nic);

	/* Registers memory; the keys are the device's own. 0, -ENOSPC,
	 * -ENOMEM. Devices in software share wf_nic_mr_soft_reg(). */
	int (*mr_reg)(struct wf_nic *nic, void *addr, size_t len,
		      unsigned access, struct wf_nic_mr *mr);
	/* The device does not touch the memory any more. -EINVAL: no such
	 * key. */
	int (*mr_dereg)(struct wf_nic *nic, uint32_t lkey);

	/* No lock. Memory and doorbells of @sq and @rq descriptors, if they lie
	 * in the device: it gives them back in qp_destroy. NULL: ordinary
	 * memory will do. */
	int (*qp_rings)(struct wf_nic *nic, struct wf_nic_qp *qp, uint32_t sq,
			uint32_t rq, struct wf_nic_rings *rings);
	/* No lock. Memory of a completion queue of @entries entries, zeroed,
	 * and how to give it back. NULL, both: ordinary memory. */
	int (*cq_ring)(struct wf_nic *nic, uint32_t entries, void **ring);
	void (*cq_free)(struct wf_nic *nic, void *ring);
	/* No lock. The completions that wf_nic_cq_poll() hands out; NULL: they
	 * are in the ring, as entries of wqe_defs.h. */
	int (*cq_poll)(struct wf_nic_cq *cq, struct wf_nic_wc *wc, int n);

	/* qp->dev is the device's. The rings are there already. */
	int (*qp_create)(struct wf_nic *nic, struct wf_nic_qp *qp);
	/* Completes everything it has taken, and everything in the rings, with
	 * FLUSHED; afterwards it reads neither rings nor memory of requests. */
	void (*qp_flush)(struct wf_nic *nic, struct wf_nic_qp *qp);
	/* After qp_flush. */
	void (*qp_destroy)(struct wf_nic *nic, struct wf_nic_qp *qp);

	/* ah->dev is the device's; it may outlive the handle. -EINVAL: not an
	 * address that this device can reach. */
	int (*ah_create)(struct wf_nic *nic, struct wf_nic_ah *ah);
	/* @memo: NULL, or to be kept with what the device knows of the peer. */
	void (*ah_destroy)(struct wf_nic *nic, struct wf_nic_ah *ah,
			   const struct wf_nic_memo *memo);
	bool (*ah_recall)(struct wf_nic *nic, struct wf_nic_ah *ah,
			  struct wf_nic_memo *memo);
	/* Requests end with ABORT, present ones and those that are taken from
	 * a ring before ah_renew; a first handle is renewed. */
	void (*ah_abandon)(struct wf_nic *nic, struct wf_nic_ah *ah);
	void (*ah_renew)(struct wf_nic *nic, struct wf_nic_ah *ah);
	void (*ah_query)(struct wf_nic *nic, const struct wf_nic_ah *ah,
			 struct wf_nic_path *path);

	/* See nic.h. NULL, all of them: caps.max_placed is 0. */
	int (*place)(struct wf_nic *nic, uint32_t number, void *at, void *arg);
	void (*unplace)(struct wf_nic *nic, uint32_t number);
	int (*placed)(struct wf_nic *nic, void **args, int n);

	/* Where caps.takes_sends: no lock. A message as wf_nic_post_send() has
	 * it, behind all that is in the ring. Without WF_NIC_WR_MORE it
	 * leaves, as if a doorbell had been written. -ENOMEM: it is to go
	 * by the ring; errors of the request come as completions. */
	int (*send)(struct wf_nic *nic, struct wf_nic_qp *qp, uint16_t req_id,
		    const struct wf_nic_wr *wr, const struct wf_nic_sge *sge,
		    int count);

	/* A doorbell of the send queue was written. No lock; a device that
	 * sees doorbells by itself has none of these. */
	void (*kick)(struct wf_nic *nic, struct wf_nic_qp *qp);

	/* No lock. See nic.h. */
	int (*progress)(struct wf_nic *nic);
	int (*wait_fd)(struct wf_nic *nic);
	int (*wait_begin)(struct wf_nic *nic, struct wf_nic_cq *cq,
			  uint64_t *deadline_ns);
	void (*wait_end)(struct wf_nic *nic);
};

struct wf_nic_ah {
	struct wf_list link; /* bucket */
	struct wf_nic_addr addr;
	void *dev;
	uint32_t refs; /* 0: free, and link is in the list of those */
	uint16_t num;
};

struct wf_nic {
	const struct wf_nic_ops *ops;
	struct wf_nic_caps caps;
	struct wf_nic_addr addr;
	struct wf_addr socket; /* the same; family 0: it is not a socket's */
	struct wf_lock lock;   /* of everything below and of the device */
	void (*source)(const struct wf_addr *addr, uint8_t source[16]);
	struct wf_nic_counters *counters;
	struct wf_nic_counters *own_counters; /* where the caller gave none */
	struct wf_nic_mr_table mrs;
	struct wf_queue_ids qpns;
	struct wf_nic_qp **qps;
	bool had_qp;		 /* at some time */
	_Atomic uint32_t placed; /* that wf_nic_placed() has not told */
	struct wf_nic_ah **ahs;	 /* by number; grows */
	uint32_t ah_count;	 /* numbers that were ever given out */
	uint32_t ah_room;
	struct wf_list ah_free; /* the longest free first */
	uint32_t ah_frees;
	struct wf_list ah_buckets[WF_NIC_AH_BUCKETS];
};

struct wf_nic_cq {
	struct wf_nic *nic;
	struct wf_queue_cq ring;    /* the user's side */
	struct wf_queue_cqw writer; /* the device's, under the NIC's lock */
	_Atomic uint32_t credit;    /* how far the user is */
	uint32_t users;		    /* queue pairs */
	bool armed;		    /* under the NIC's lock */
	void (*notify)(void *arg);
	void *notify_arg;
	uint32_t watched; /* of an exported one: the last doorbell */
	void *memory;
};

struct wf_nic_qp {
	struct wf_nic *nic;
	struct wf_nic_cq *send_cq;
	struct wf_nic_cq *recv_cq;
	void *dev;
	uint32_t qkey;
	uint16_t num;
	uint8_t rnr_retry;
	bool flushed;
	bool no_strangers; /* under the NIC's lock */
	bool unsolicited;
	bool unkicked;	  /* sends with MORE, of caps.takes_sends */
	uint32_t watched; /* of an exported one: the last doorbell */
	/* The user's side. */
	struct wf_queue_sub sq;
	struct wf_queue_sub rq;
	struct wf_queue_ids sq_ids;
	struct wf_queue_ids rq_ids;
	uint64_t *sq_wr_ids;
	bool *sq_unringed; /* by request: it has no place in the ring */
	uint64_t *rq_wr_ids;
	/* The device's, under the NIC's lock. */
	struct wf_queue_work sq_work;
	struct wf_queue_work rq_work;
	void *memory; /* of both rings, where they are not the device's */
	/* By receive: who sent it, where there is no handle. Written by the
	 * device before the completion, read by the user after it. */
	struct wf_nic_addr *rq_from;
	_Alignas(64) _Atomic uint32_t sq_doorbell;
	_Alignas(64) _Atomic uint32_t rq_doorbell;
};

/* -- for devices ------------------------------------------------------------ */

/* The address of a device that has a socket's. */
void wf_nic_set_socket(struct wf_nic *nic, const struct wf_addr *addr);
/* The socket address of a handle, if it can be a peer of such a device; else
 * -EINVAL. */
int wf_nic_ah_socket(const struct wf_nic *nic, const struct wf_nic_ah *ah,
		     struct wf_addr *to);

/* Keys of the NIC's own table (mr.h), for devices in software. */
int wf_nic_mr_soft_reg(struct wf_nic *nic, void *addr, size_t len,
		       unsigned access, struct wf_nic_mr *mr);
int wf_nic_mr_soft_dereg(struct wf_nic *nic, uint32_t lkey);

/* Fills in the part of @nic that is not the device's own. */
int wf_nic_init(struct wf_nic *nic, const struct wf_nic_ops *ops, bool locked,
		struct wf_nic_counters *counters);
void wf_nic_fini(struct wf_nic *nic);

/* NULL: not in use. Numbers come from peers and from descriptors. */
struct wf_nic_qp *wf_nic_qp_find(struct wf_nic *nic, uint16_t num);
struct wf_nic_ah *wf_nic_ah_find(struct wf_nic *nic, uint16_t num);

/* To be said before the completion of a receive whose ah is
 * WF_NIC_AH_UNKNOWN. @req_id comes from the ring. */
void wf_nic_qp_note_from(struct wf_nic_qp *qp, uint16_t req_id,
			 const struct wf_nic_addr *from);
void wf_nic_qp_note_socket(struct wf_nic_qp *qp, uint16_t req_id,
			   const struct wf_addr *from);

/* -EAGAIN: no room. */
int wf_nic_cq_push(struct wf_nic_cq *cq, const struct wf_nic_cqe *cqe);
static inline bool wf_nic_cq_has_room(struct wf_nic_cq *cq)
{
	return wf_queue_cqw_room(&cq->writer) > 0;
}

#endif
