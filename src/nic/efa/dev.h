/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An EFA device (SRD). Each of our queue pairs has one queue pair of the
 * hardware. Requests and completions pass in one of two ways: through the rings
 * of the hardware, which we write and read ourselves if libefa says where they
 * are, or through calls of libibverbs. Completions are written to our
 * completion queue. The NIC's lock covers all of it.
 *
 * 	hard	the device itself
 * 	port	the queue pair and its address; exists before the NIC is opened
 * 	dev	the NIC: memory, handles
 * 	work	requests and completions: the common part of both ways
 * 	calls	the way through ibv_wr_*() and ibv_start_poll()
 * 	ring	the way through the rings
 *
 * The device accesses registered memory only. A user may send from memory that
 * it registered as a whole (address 0, all bytes), which hardware does not
 * support: such bytes are copied into memory of ours.
 */
#ifndef WF_NIC_EFA_DEV_H
#define WF_NIC_EFA_DEV_H

#include "nic/efa/verbs.h"
#include "nic/soft.h"

#define WF_SRD_SENDS 1024u
#define WF_SRD_RECVS 512u
#define WF_SRD_BUCKETS 256u

/* A GID that there is a handle for. It stays until the device is closed: a
 * completion that was not polled yet may tell its number. */
struct wf_srd_host {
	struct wf_list by_ahn;
	struct wf_list by_gid;
	struct ibv_ah *ah;
	uint16_t ahn;
	uint8_t gid[16];
};

/* The device, opened once in a process: keys of memory and numbers of handles
 * are good for all queue pairs of one protection domain. */
struct wf_srd_hard {
	const struct wf_srd_verbs *verbs;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct efadv_device_attr attr;
	uint32_t max_msg;
	uint32_t refs;
	struct wf_list by_ahn[WF_SRD_BUCKETS]; /* wf_srd_host */
	struct wf_list by_gid[WF_SRD_BUCKETS];
	/* Memory that the application has registered, by its descriptors, and
	 * the hardware's keys of each, by the lower half of the descriptor. */
	struct wf_nic_mr_table lent;
	struct wf_nic_mr *lent_keys;
	uint32_t lent_count;
};

struct wf_srd_dev;
struct wf_srd_port;

/* A way to the hardware. Every caller holds the NIC's lock. */
struct wf_srd_way {
	const char *about; /* in some words, for `weft info` */
	/* Takes @ready requests off the ring of our queue pair and posts them,
	 * behind those that were posted before and not announced. */
	void (*post_sends)(struct wf_srd_dev *dev, int ready);
	void (*post_recvs)(struct wf_srd_dev *dev, int ready);
	/* Up to WF_SRD_BATCH completions. Returns how many. */
	int (*poll)(struct wf_srd_dev *dev);
	/* Requests an event for the next completion; 0 or an errno. */
	int (*arm)(struct wf_srd_port *port);
};

/* Rings of the hardware, our side of them. */
struct wf_srd_rings {
	struct wf_queue_sub sq;
	struct wf_queue_sub rq;
	struct wf_queue_cq cq;
	_Atomic uint32_t *cq_doorbell;
};

/* A port owns an address. */
struct wf_srd_port {
	struct wf_nic_port base; /* first */
	const struct wf_srd_verbs *verbs;
	struct wf_srd_hard *hard;
	struct ibv_comp_channel *channel;
	struct ibv_cq_ex *cq;
	struct efadv_cq *source; /* of completions of cq */
	struct ibv_qp *qp;	 /* NULL: it was taken down */
	struct ibv_qp_ex *wr;
	const struct wf_srd_way *way;
	struct wf_srd_rings *rings; /* NULL: the way is by calls */
	const char *why;	    /* ... for this reason */
	uint32_t events;	    /* taken from the channel */
	bool used;		    /* a NIC was opened with it */
	struct wf_addr addr;
};

/* A handle of ours points to this (ah->dev). */
struct wf_srd_peer {
	struct wf_list link; /* in dev->peers, by ahn and qpn */
	const struct wf_srd_host *host;
	struct wf_srd_memo *memo; /* room for when it leaves */
	uint32_t qkey;
	uint16_t qpn;
	uint16_t num; /* of the handle */
};

/* Memory as the hardware knows it. */
struct wf_srd_mr {
	struct ibv_mr *own; /* NULL: the application's, or none */
	uint32_t lkey;
	bool known;
};

/* The memo of a peer that has no handle now. */
struct wf_srd_memo {
	struct wf_list link;
	struct wf_list age;
	struct wf_nic_addr addr;
	struct wf_nic_memo memo;
};

struct wf_srd_dev {
	struct wf_nic_soft soft; /* first */
	struct wf_srd_port *port;
	struct wf_nic_qp *qp; /* the only one; NULL: none */
	struct wf_nic_stuck *stuck;
	struct wf_srd_mr *mrs; /* by the lower half of our lkey */
	/* A piece for each request that is copied. */
	uint8_t *copies;
	struct ibv_mr *copies_mr;
	size_t copies_bytes;
	uint32_t copy_stride;
	/* What the device has, by index of its id: the id, of sends with the
	 * operation above it, or FREE. */
	uint32_t sends[WF_SRD_SENDS];
	uint32_t recvs[WF_SRD_RECVS];
	struct wf_list peers[WF_SRD_BUCKETS];
	struct wf_list memos[WF_SRD_BUCKETS];
	struct wf_list memo_ages; /* the oldest first */
	uint32_t memo_count;
};

#define WF_SRD_FREE UINT32_MAX
#define WF_SRD_OP_SHIFT 16 /* in sends */
#define WF_SRD_BATCH 64	   /* posted by one call, taken by one poll */

static inline struct wf_srd_dev *wf_srd_dev_of(struct wf_nic *nic)
{
	return (struct wf_srd_dev *)nic;
}

/* -- hard.c -- */

#define WF_SRD_PORT 1 /* of the hardware: there is no other */

/* EFADV_DEVICE_ATTR_CAPS_RDMA_WRITE, which rdma-core has since v46; an older one
 * never sets it. */
#define WF_SRD_CAPS_RDMA_WRITE (1u << 3)

static inline bool wf_srd_hard_reads(const struct wf_srd_hard *hard)
{
	return hard->attr.device_caps & EFADV_DEVICE_ATTR_CAPS_RDMA_READ;
}

/* Returns the flags to ask ibv_reg_mr() for. Peers read what is sent, where
 * there is a lot of it and the device can. */
static inline int wf_srd_hard_flags(const struct wf_srd_hard *hard,
				    unsigned access)
{
	int flags = access & WF_NIC_LOCAL_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0;

	if (access & WF_NIC_REMOTE_READ && wf_srd_hard_reads(hard))
		flags |= IBV_ACCESS_REMOTE_READ;
	return flags;
}

static inline bool wf_srd_hard_writes(const struct wf_srd_hard *hard)
{
	return hard->attr.device_caps & WF_SRD_CAPS_RDMA_WRITE;
}

/* Opens it, or counts another user. NULL: there is none, or it fails (then *@err
 * says why). */
struct wf_srd_hard *wf_srd_hard_get(int *err);
void wf_srd_hard_put(struct wf_srd_hard *hard);
/* The GID of the device, as an address without a queue pair. */
int wf_srd_hard_gid(const struct wf_srd_hard *hard, struct wf_addr *addr);

/* The host of a GID, with a handle; 0 or -errno. */
int wf_srd_hard_host(struct wf_srd_hard *hard, const uint8_t gid[16],
		     const struct wf_srd_host **host);
/* The host whose handle has this number. NULL: none. */
const struct wf_srd_host *wf_srd_hard_ahn(struct wf_srd_hard *hard,
					  uint16_t ahn);

int wf_srd_hard_find(char *name, size_t room, struct wf_addr *addr);
int wf_srd_hard_key_open(void *addr, size_t len, unsigned access,
			 struct wf_nic_key **key, uint32_t *rkey);
void wf_srd_hard_key_close(struct wf_nic_key *key);
/* The hardware's keys of memory inside a registration of the application. -ENOENT:
 * it is not. */
int wf_srd_hard_use(struct wf_srd_hard *hard, const void *desc, void *addr,
		    size_t len, unsigned access, struct wf_nic_mr *mr);
/* Returns the errno that a call of libibverbs left, negative. */
int wf_srd_hard_failed(void);

/* -- port.c -- */

int wf_srd_port_open(bool rings, struct wf_nic_port **port,
		     struct wf_addr *addr, int *fd);
void wf_srd_port_close(struct wf_nic_port *port);
void wf_srd_port_forked(struct wf_nic_port *port);
/* See wf_nic_device_way(). */
int wf_srd_port_way(bool rings, char *text, size_t room);

/* -- dev.c -- */

struct wf_srd_peer *wf_srd_dev_peer(struct wf_srd_dev *dev, uint16_t ahn,
				    uint16_t qpn);

/* -- work.c -- */

/* Posts what is in the rings. Returns how much. */
int wf_srd_work_post(struct wf_srd_dev *dev);
/* Takes completions. Returns how many. */
int wf_srd_work_poll(struct wf_srd_dev *dev);
/* Ends everything; the hardware's queue pair is gone. */
void wf_srd_work_flush(struct wf_srd_dev *dev);

/* For the two ways. */

/* The hardware has this request from now on. */
static inline void wf_srd_work_note(struct wf_srd_dev *dev, uint16_t req_id,
				    unsigned int op)
{
	uint32_t at = wf_queue_ids_index(&dev->qp->sq_ids, req_id);

	dev->sends[at % WF_SRD_SENDS] = req_id | op << WF_SRD_OP_SHIFT;
}

/* A request, with what was found wrong with it, or the next one of our ring. The
 * hardware has it from now on. False: it is not one for the hardware, and is
 * completed. */
bool wf_srd_work_accept(struct wf_srd_dev *dev,
			const struct wf_nic_request *req,
			enum wf_nic_status status);
bool wf_srd_work_take(struct wf_srd_dev *dev, struct wf_nic_request *req);
bool wf_srd_work_take_recv(struct wf_srd_dev *dev, struct wf_nic_rx_desc *desc,
			   uint32_t *lkey);
/* The hardware does not take it after all. */
void wf_srd_work_refuse(struct wf_srd_dev *dev, uint16_t req_id);
void wf_srd_work_refuse_recv(struct wf_srd_dev *dev, uint16_t req_id);
/* The pieces as the hardware is to see them; those in memory that it does not
 * know are copied. Returns how many. */
int wf_srd_work_pieces(struct wf_srd_dev *dev, const struct wf_nic_request *req,
		       struct ibv_sge *to);
/* A completion of the hardware. False: there is no such request. */
bool wf_srd_work_sent(struct wf_srd_dev *dev, uint16_t req_id,
		      enum wf_nic_status status);
/* @cqe: as the hardware's; @gid: of a sender whose number is
 * WF_NIC_AH_UNKNOWN. */
bool wf_srd_work_received(struct wf_srd_dev *dev, struct wf_nic_cqe *cqe,
			  const uint8_t *gid);

/* -- calls.c, ring.c -- */

extern const struct wf_srd_way wf_srd_by_calls;
extern const struct wf_srd_way wf_srd_by_rings;

/* Finds the rings. NULL, or the reason why they are not used. */
const char *wf_srd_ring_open(struct wf_srd_port *port);
void wf_srd_ring_close(struct wf_srd_port *port);
/* A message as ops.h has it. */
int wf_srd_ring_send(struct wf_nic *nic, struct wf_nic_qp *qp, uint16_t req_id,
		     const struct wf_nic_wr *wr, const struct wf_nic_sge *sge,
		     int count);

#endif
