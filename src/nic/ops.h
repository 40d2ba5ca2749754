/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the queue pairs and the device behind them: one ops table per device,
 * and the structs that both sides use. Users include nic.h instead.
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
#define WF_NIC_AH_REST 64u /* free numbers before one is used again */

struct wf_nic_ah;
struct wf_nic_attr;
struct wf_nic_key;
struct wf_nic_port;

/* Where the rings of a queue pair are. */
struct wf_nic_rings {
	void *sq; /* of 64-byte descriptors, 64-aligned, zeroed */
	void *rq; /* of 16-byte descriptors; NULL: none were requested */
	_Atomic uint32_t *sq_doorbell;
	_Atomic uint32_t *rq_doorbell;
};

/* Called with the NIC's lock held unless said otherwise; none blocks. */
struct wf_nic_ops {
	const char *name;
	const char *about; /* what it is, in some words */
	/* What carries an address: SOCK_STREAM, SOCK_DGRAM; 0: a port. */
	int socket;
	unsigned int addrs; /* of a host that it uses at once; 0: one */
	/* The memory of the send rings: 0 for device memory; a device in
	 * ordinary memory uses WF_QUEUE_COPY_MEMORY (docs/wqe.md). */
	enum wf_queue_copy_kind copy;

	/* No lock. Of devices without sockets: see open.h. Others, NULL. */
	int (*find)(char *name, size_t room, struct wf_addr *addr);
	int (*port_open)(bool rings, struct wf_nic_port **port,
			 struct wf_addr *addr, int *fd);
	void (*port_close)(struct wf_nic_port *port);
	void (*port_forked)(struct wf_nic_port *port);

	/* No lock. Memory of no NIC: see wf_nic_key_open(). */
	int (*key_open)(void *addr, size_t len, unsigned access,
			struct wf_nic_key **key, uint32_t *rkey);
	void (*key_close)(struct wf_nic_key *key);

	/* No lock. Opens a device and fills in its caps: see open.h. */
	int (*open)(const struct wf_nic_attr *attr, struct wf_nic **nic);
	/* No lock. Whether a device can be opened with a key: 0, and in @why
	 * how it encrypts, or -errno, and in @why the reason and what to do.
	 * NULL: this device does not encrypt. */
	int (*secure)(const char *key_file, char *why, size_t room);
	/* No lock: nobody else uses the NIC. Frees it. May wait for its own
	 * thread. */
	void (*close)(struct wf_nic *nic);

	/* No lock, and none may be taken: closes all descriptors in a forked
	 * child. Async-signal-safe. NULL: descriptors of the child do not
	 * affect peers. */
	void (*forked)(struct wf_nic *nic);

	/* Registers memory; the keys are the device's own. 0, -ENOSPC,
	 * -ENOMEM. Devices in software share wf_nic_mr_soft_reg(). */
	int (*mr_reg)(struct wf_nic *nic, void *addr, size_t len,
		      unsigned access, struct wf_nic_mr *mr);
	/* The same for memory inside a registration of wf_nic_key_open().
	 * -ENOENT: it is not. NULL: there are none. */
	int (*mr_use)(struct wf_nic *nic, const void *desc, void *addr,
		      size_t len, unsigned access, struct wf_nic_mr *mr);
	/* The device does not touch the memory any more, if it is of mr_reg.
	 * -EINVAL: no such key. */
	int (*mr_dereg)(struct wf_nic *nic, uint32_t lkey);

	/* No lock. Memory and doorbells of @sq and @rq descriptors, if they are
	 * in the device, which frees them in qp_destroy. NULL: uses ordinary
	 * memory. */
	int (*qp_rings)(struct wf_nic *nic, struct wf_nic_qp *qp, uint32_t sq,
			uint32_t rq, struct wf_nic_rings *rings);
	/* No lock. Memory of a completion queue of @entries entries, zeroed,
	 * and how to free it. NULL, both: ordinary memory. */
	int (*cq_ring)(struct wf_nic *nic, uint32_t entries, void **ring);
	void (*cq_free)(struct wf_nic *nic, void *ring);
	/* No lock. The completions that wf_nic_cq_poll() hands out; NULL: they
	 * are in the ring, as entries of wqe_defs.h. */
	int (*cq_poll)(struct wf_nic_cq *cq, struct wf_nic_wc *wc, int n);

	/* qp->dev belongs to the device. The rings exist already. */
	int (*qp_create)(struct wf_nic *nic, struct wf_nic_qp *qp);
	/* Completes everything it has taken, and everything in the rings, with
	 * FLUSHED; afterwards it reads neither rings nor memory of requests. */
	void (*qp_flush)(struct wf_nic *nic, struct wf_nic_qp *qp);
	/* After qp_flush. */
	void (*qp_destroy)(struct wf_nic *nic, struct wf_nic_qp *qp);

	/* ah->dev belongs to the device; it may outlive the handle. -EINVAL:
	 * this device cannot reach the address. */
	int (*ah_create)(struct wf_nic *nic, struct wf_nic_ah *ah);
	/* @memo: NULL, or kept with what the device knows of the peer. */
	void (*ah_destroy)(struct wf_nic *nic, struct wf_nic_ah *ah,
			   const struct wf_nic_memo *memo);
	bool (*ah_recall)(struct wf_nic *nic, struct wf_nic_ah *ah,
			  struct wf_nic_memo *memo);
	/* Requests end with ABORT, present ones and those that are taken from a
	 * ring before ah_renew; the first handle of a peer is renewed. */
	void (*ah_abandon)(struct wf_nic *nic, struct wf_nic_ah *ah);
	void (*ah_renew)(struct wf_nic *nic, struct wf_nic_ah *ah);
	void (*ah_query)(struct wf_nic *nic, const struct wf_nic_ah *ah,
			 struct wf_nic_path *path);

	/* See nic.h. NULL, all of them: caps.max_placed is 0. */
	int (*place)(struct wf_nic *nic, uint32_t number, void *at, void *arg);
	void (*unplace)(struct wf_nic *nic, uint32_t number);
	int (*placed)(struct wf_nic *nic, struct wf_nic_placed *out, int n);

	/* Where caps.takes_sends: no lock. A message as wf_nic_post_send() has
	 * it, behind all that is in the ring. Without WF_NIC_WR_MORE it
	 * leaves, as if a doorbell had been written. More than 0, of a run:
	 * enum wf_nic_run. -ENOMEM: it is to go by the ring; errors of the request come
	 * as completions. */
	int (*send)(struct wf_nic *nic, struct wf_nic_qp *qp, uint16_t req_id,
		    const struct wf_nic_wr *wr, const struct wf_nic_sge *sge,
		    int count);

	/* Where caps.run_head: no lock. See wf_nic_extend_run(). */
	bool (*extend)(struct wf_nic *nic, struct wf_nic_qp *qp,
		       uint16_t req_id, const struct wf_nic_wr *wr,
		       uint32_t len);

	/* A doorbell of the send queue was written. No lock; a device that
	 * sees doorbells by itself has none of these. */
	void (*kick)(struct wf_nic *nic, struct wf_nic_qp *qp);

	/* No lock. See nic.h. */
	int (*progress)(struct wf_nic *nic);
	int (*wait_fd)(struct wf_nic *nic);
	int (*wait_begin)(struct wf_nic *nic, struct wf_nic_cq *cq,
			  uint64_t *deadline_ns);
	void (*wait_end)(struct wf_nic *nic);

	/* No lock. Of devices without sockets: see wf_nic_device_way(). */
	int (*way)(bool rings, char *text, size_t room);
};

/* The device's structures for an address of its own, and for memory of no NIC,
 * begin with these. */
struct wf_nic_port {
	const struct wf_nic_ops *ops;
};

struct wf_nic_key {
	const struct wf_nic_ops *ops;
	void *desc; /* see wf_nic_key_desc() */
};

struct wf_nic_ah {
	struct wf_list link; /* bucket */
	struct wf_nic_addr addr;
	void *dev;
	uint32_t refs; /* 0: free, and link is in the list of free ones */
	uint16_t num;
};

struct wf_nic {
	const struct wf_nic_ops *ops;
	struct wf_nic_caps caps;
	struct wf_nic_addr addr;
	struct wf_addr socket; /* the same; family 0: not a socket address */
	bool dual; /* bound to all addresses of IPv6, and so of IPv4 */
	struct wf_lock lock; /* protects everything below and the device */
	void (*source)(const struct wf_addr *addr, uint8_t source[16]);
	struct wf_nic_counters *counters;
	struct wf_nic_counters *own_counters; /* if the caller gave none */
	struct wf_nic_mr_table mrs;
	struct wf_queue_ids qpns;
	struct wf_nic_qp **qps;
	bool had_qp;		 /* at some time */
	_Atomic uint32_t placed; /* that wf_nic_placed() has not told */
	struct wf_nic_ah **ahs;	 /* by number; grows */
	uint32_t ah_count;	 /* numbers that were ever given out */
	uint32_t ah_room;
	struct wf_list ah_free; /* longest free first */
	uint32_t ah_frees;
	struct wf_list ah_buckets[WF_NIC_AH_BUCKETS];
};

struct wf_nic_cq {
	struct wf_nic *nic;
	struct wf_queue_cq ring;    /* the user's side */
	struct wf_queue_cqw writer; /* the device's, under the NIC's lock */
	_Atomic uint32_t credit;    /* how far the user has read */
	uint32_t users;		    /* queue pairs */
	bool armed;		    /* under the NIC's lock */
	void (*notify)(void *arg);
	void *notify_arg;
	uint32_t watched; /* if exported: the last doorbell */
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
	bool unkicked; /* sends with MORE, of caps.takes_sends */
	bool (*hear)(void *arg, uint16_t ah, const uint8_t *bytes,
		     uint32_t len);
	void *hear_arg;
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
	void *memory; /* of both rings, if they are not the device's */
	/* For each receive: the sender, if it has no handle. The device writes
	 * it before the completion, the user reads it after the completion. */
	struct wf_nic_addr *rq_from;
	_Alignas(64) _Atomic uint32_t sq_doorbell;
	_Alignas(64) _Atomic uint32_t rq_doorbell;
};

/* -- for devices ------------------------------------------------------------ */

/* Sets the address of a device that has a socket address. */
void wf_nic_set_socket(struct wf_nic *nic, const struct wf_addr *addr);
/* The socket address of a handle, if it can be a peer of such a device;
 * otherwise -EINVAL. */
int wf_nic_ah_socket(const struct wf_nic *nic, const struct wf_nic_ah *ah,
		     struct wf_addr *to);

/* Keys of the NIC's own table (mr.h), for devices in software. */
int wf_nic_mr_soft_reg(struct wf_nic *nic, void *addr, size_t len,
		       unsigned access, struct wf_nic_mr *mr);
int wf_nic_mr_soft_dereg(struct wf_nic *nic, uint32_t lkey);

/* Initializes the part of @nic that does not belong to the device. */
int wf_nic_init(struct wf_nic *nic, const struct wf_nic_ops *ops, bool locked,
		struct wf_nic_counters *counters);
void wf_nic_fini(struct wf_nic *nic);

/* NULL: not in use. The numbers come from peers and from descriptors. */
struct wf_nic_qp *wf_nic_qp_find(struct wf_nic *nic, uint16_t num);
struct wf_nic_ah *wf_nic_ah_find(struct wf_nic *nic, uint16_t num);

/* Call it before the completion of a receive whose ah is WF_NIC_AH_UNKNOWN.
 * @req_id comes from the ring. */
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
