/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software EFA device: what the files of this folder share. The objects that
 * a program gets (contexts, queue pairs and so on) are the public structures of
 * libibverbs with ours behind them; the functions that libibverbs and libefa
 * export are defined here under their own names, without a version, so that a
 * preload of this library answers for both. Everything moves through one NIC
 * (nic/udp) of the process, which is opened when it is needed for the first
 * time.
 *
 * Locks, from the outside: poll of a CQ, sq of a queue pair, ring of a CQ, the
 * NIC's own. A program holds poll from ibv_start_poll() to ibv_end_poll() and sq
 * from ibv_wr_start() to ibv_wr_complete(), as with libefa, and posts inside of
 * the first. The functions that end in _forked make a forked child's locks and
 * lists anew.
 */
#ifndef WF_EFA_EFA_H
#define WF_EFA_EFA_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/list.h"
#include "base/lock.h"
#include "efa/efadv_defs.h"
#include "nic/nic.h"

/* Macros that lead to newer functions, where we define the older ones too. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define WF_EFA_NAME "weft0"
#define WF_EFA_PCI "0000:00:1e.0"
#define WF_EFA_VENDOR 0x1d0fu
#define WF_EFA_PART 0xefa1u /* libfabric doubts older parts */

#define WF_EFA_QUEUE_MAX 1024u
#define WF_EFA_CQE_MAX 32767u
#define WF_EFA_MSG_MAX 8192u /* RDM's packet: the same on every link */
#define WF_EFA_GRH 40u	     /* in front of what a UD queue pair receives */
#define WF_EFA_PORT 1
#define WF_EFA_AH_MAX 4096u

/* -- device.c --------------------------------------------------------------- */

/* The NIC of this process; opens it. NULL: errno says why. */
struct wf_nic *wf_efa_device_nic(void);
/* Whether objects that were made on @nic can be used: not in a child that was
 * forked since, and not after the library has ended. */
bool wf_efa_device_has(const struct wf_nic *nic);
/* The NIC's own address as a GID. 0 or an errno. */
int wf_efa_device_gid(union ibv_gid *gid);
/* Before a lock of this library is taken that a child must find free. */
void wf_efa_device_watch(void);
/* Queue pairs and completion queues, without which the NIC may be closed. */
void wf_efa_device_hold(int n);

/* Refuses: logs what is not supported, once for each @once. Returns EOPNOTSUPP
 * and sets errno to it. */
int wf_efa_refuse(bool *once, const char *what);

/* -- gid.c ------------------------------------------------------------------ */

void wf_efa_gid_of(const struct wf_addr *addr, union ibv_gid *gid);
/* -EINVAL: not a GID of such a device. */
int wf_efa_gid_addr(const union ibv_gid *gid, struct wf_addr *addr);

/* -- sysfs.c ---------------------------------------------------------------- */

/* The folder that stands for /sys; made if it is not there. NULL: errno. */
const char *wf_efa_sysfs(void);
void wf_efa_sysfs_forked(void);

/* -- context.c -------------------------------------------------------------- */

/* Fills in the functions that a program calls by pointer. */
void wf_efa_cq_table(struct verbs_context *verbs);
void wf_efa_qp_table(struct verbs_context *verbs);
void wf_efa_post_table(struct verbs_context *verbs);

/* -- pd.c ------------------------------------------------------------------- */

/* The NIC has one set of address handles, and a number means the same in every
 * protection domain. The hardware knows a sender by the handles of the domain
 * that receives, so each counts its own. */
struct wf_efa_pd {
	struct ibv_pd pd; /* first */
	_Atomic int users;
	_Atomic uint16_t ahs[WF_EFA_AH_MAX]; /* by number */
};

struct wf_efa_ah {
	struct ibv_ah ah; /* first */
	struct wf_nic *nic;
	struct wf_efa_ah *next, **prev; /* all of the process */
	uint16_t num;
};

static inline struct wf_efa_pd *wf_efa_pd_of(struct ibv_pd *pd)
{
	return (struct wf_efa_pd *)pd;
}

static inline struct wf_efa_ah *wf_efa_ah_of(struct ibv_ah *ah)
{
	return (struct wf_efa_ah *)ah;
}

/* The sender of the message that @wc reports, as @pd knows it: by a handle of
 * its own or by the address. */
void wf_efa_ah_name(struct ibv_pd *pd, struct wf_nic_wc *wc);

/* The sender's GID. False: not known. */
bool wf_efa_ah_gid(const struct wf_nic_wc *wc, union ibv_gid *gid);

/* A send has failed because a peer was given up: later ones try again. The
 * hardware knows no peers that stay lost. */
void wf_efa_ah_renew_all(void);
void wf_efa_ah_forked(void);

/* -- channel.c -------------------------------------------------------------- */

struct wf_efa_channel {
	struct ibv_comp_channel channel; /* first; fd: the end that is read */
	int from;			 /* that end again; does not block */
	int to;				 /* the end that is written */
	pthread_mutex_t lock; /* of the thread that takes events out */
};

struct wf_efa_cq;

/* As notify of wf_nic_cq_notify(). */
void wf_efa_channel_event(void *cq);
/* Removes events that nobody has read, and waits for acknowledgements of the
 * others. */
void wf_efa_channel_leave(struct wf_efa_cq *cq);

/* -- cq.c ------------------------------------------------------------------- */

struct wf_efa_cq {
	union { /* first */
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct wf_efadv_cq dv;
	struct wf_nic *nic;
	struct wf_nic_cq *ring;
	struct wf_lock poll_lock;
	struct wf_lock ring_lock; /* and of the ids of its queue pairs */
	struct wf_nic_wc wc;	  /* the current one, under poll_lock */
	bool grh;		  /* it is of a UD queue pair's receive */
	_Atomic uint32_t events;  /* written to the channel */
	struct wf_list watched;	  /* of ring.c; not linked: NULL */
};

static inline struct wf_efa_cq *wf_efa_cq_of(struct ibv_cq *cq)
{
	return (struct wf_efa_cq *)cq;
}

/* -- qp.c ------------------------------------------------------------------- */

/* A request between ibv_wr_start() and ibv_wr_complete(). */
struct wf_efa_staged {
	struct wf_nic_wr wr;
	struct wf_nic_remote remote;
	struct wf_nic_sge sge[WF_NIC_SGE_MAX];
	uint8_t op; /* enum wf_nic_opcode */
	uint8_t sges;
	bool inlined;
	uint8_t inline_len;
	uint8_t data[WF_NIC_INLINE_MAX];
};

/* A receive of a UD queue pair: the header goes in front of the payload. */
struct wf_efa_receive {
	uint64_t wr_id;
	uint8_t *at;
	uint32_t next; /* free ones */
};

struct wf_efa_qp {
	union { /* first */
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	};
	struct wf_efadv_qp dv;
	struct wf_nic *nic;
	struct wf_nic_qp *ring;
	struct ibv_qp_cap cap;
	bool ud;
	bool sig_all;
	struct wf_list watched; /* of ring.c; not linked: NULL */
	bool ended;		/* flushed: it does not come back */
	uint32_t qkey;
	uint8_t rnr_retry;
	uint8_t port;
	uint16_t pkey_index;
	uint32_t sq_psn;
	/* UD: receives that are posted; the NIC's wr_id is the index. Under the
	 * ring_lock of recv_cq, as is what the NIC has for receives. */
	struct wf_efa_receive *receives;
	uint32_t receive_free; /* WF_EFA_QUEUE_MAX: none is */
	/* From ibv_wr_start() to ibv_wr_complete(). */
	struct wf_lock sq_lock;
	struct wf_efa_staged *staged;
	uint32_t count;
	uint32_t room;
	int error;
};

static inline struct wf_efa_qp *wf_efa_qp_of(struct ibv_qp *qp)
{
	return (struct wf_efa_qp *)qp;
}

/* Of a queue pair that lives and reports to @cq. NULL: none. Under the CQ's
 * ring_lock. */
struct wf_efa_qp *wf_efa_qp_find(uint16_t num);

/* Translates the NIC's completion of @qp for a program: a receive of a UD queue
 * pair gets its header. True: it has one. Under the CQ's ring_lock. */
bool wf_efa_qp_settle(struct wf_efa_qp *qp, struct wf_nic_wc *wc);

/* -- ring.c ----------------------------------------------------------------- */

void wf_efa_ring_forget_qp(struct wf_efa_qp *qp);
void wf_efa_ring_forget_cq(struct wf_efa_cq *cq);
/* No ring is looked at any more, and the NIC is left alone. */
void wf_efa_ring_stop(void);
void wf_efa_ring_forked(void);

/* -- post.c ----------------------------------------------------------------- */

/* Fills in the functions of ibv_wr_*. */
void wf_efa_post_fill(struct ibv_qp_ex *ex, uint64_t send_ops);

#endif
