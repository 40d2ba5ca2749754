/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices in software share this: they take requests from the ring of a queue
 * pair and check them, and they write completions, none of which is ever lost
 * for lack of room. A device embeds struct wf_nic_soft as its first member.
 * Every caller holds the NIC's lock.
 */
#ifndef WF_NIC_SOFT_H
#define WF_NIC_SOFT_H

#include "nic/ops.h"

struct wf_nic_soft {
	struct wf_nic nic;    /* first */
	struct wf_list stuck; /* completions that wait for room */
	int user_fd; /* eventfd: wakes the thread that waits; -1: none */
	_Atomic uint32_t user_asleep;
	/* The device calls wf_nic_soft_tell() before it drops the lock, so that
	 * completions need not look for sleepers one by one. */
	bool tells;
	bool news; /* a completion was written since */
};

struct wf_nic_local {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

/* A request as its descriptor describes it. */
struct wf_nic_request {
	uint8_t op; /* enum wf_nic_opcode */
	bool inlined;
	bool has_imm;
	uint8_t sges;
	bool user_key; /* imm is the higher half of rkey */
	uint16_t req_id;
	uint16_t dst_qpn;
	uint16_t ah;
	uint32_t qkey;
	uint32_t imm;
	uint32_t len;
	uint32_t rkey;
	uint64_t raddr;
	struct wf_nic_local sge[WF_NIC_SGE_MAX];
	uint8_t data[WF_NIC_INLINE_MAX];
};

/* A completion that waits for room. Each request has memory for its own from
 * the beginning, so that none is lost for lack of memory. */
struct wf_nic_stuck {
	struct wf_list link;
	struct wf_nic_cq *cq; /* NULL: not in use */
	struct wf_nic_cqe cqe;
};

/* The places of @qp; first in the device's state of it. NULL: no memory. */
struct wf_nic_stuck *wf_nic_soft_places(const struct wf_nic_qp *qp);

/* Takes the next descriptor from the send ring, after the doorbell has
 * announced it. Nothing in it is trusted: a stray store of the application must
 * not become one of ours. If the result is not WF_NIC_OK, only op and req_id
 * may be used. */
enum wf_nic_status wf_nic_soft_take(struct wf_nic_soft *soft,
				    struct wf_nic_qp *qp,
				    struct wf_nic_request *req);
/* The opcode of the next descriptor, which stays in the ring. */
unsigned int wf_nic_soft_next_op(const struct wf_nic_qp *qp);

/* @places are those of wf_nic_soft_places(). */
void wf_nic_soft_complete(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
			  struct wf_nic_stuck *places,
			  const struct wf_nic_cqe *cqe);
/* Completes a request of ours. */
void wf_nic_soft_done(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
		      struct wf_nic_stuck *places, uint16_t req_id,
		      enum wf_nic_opcode op, enum wf_nic_status status);
/* Completes a run of @count messages, of which @good have arrived. */
void wf_nic_soft_done_run(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
			  struct wf_nic_stuck *places, uint16_t req_id,
			  enum wf_nic_status status, uint32_t count,
			  uint32_t good);
/* Tries again to write the completions that wait for room. */
void wf_nic_soft_unstick(struct wf_nic_soft *soft);
/* @qp is destroyed: drops its completions that wait. */
void wf_nic_soft_drop(struct wf_nic_soft *soft, struct wf_nic_qp *qp);
/* Everything that is still in the rings of @qp ends with FLUSHED. */
void wf_nic_soft_flush(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
		       struct wf_nic_stuck *places);
/* Completes a receive that was taken and is not used. */
void wf_nic_soft_flush_recv(struct wf_nic_soft *soft, struct wf_nic_qp *qp,
			    struct wf_nic_stuck *places,
			    const struct wf_nic_rx_desc *desc);
/* Wakes the thread that sleeps. */
void wf_nic_soft_wake(struct wf_nic_soft *soft);
/* Wakes the thread that sleeps, if there was a completion. */
static inline void wf_nic_soft_tell(struct wf_nic_soft *soft)
{
	if (!soft->news)
		return;
	soft->news = false;
	wf_nic_soft_wake(soft);
}

/* wait_begin() and wait_end() of ops.h. No lock. @next: when the device has
 * something to do, with the lock; 0: now. NULL: a thread of the device does it. */
int wf_nic_soft_wait_begin(struct wf_nic_soft *soft, struct wf_nic_cq *cq,
			   uint64_t (*next)(struct wf_nic *nic),
			   uint64_t *deadline_ns);
void wf_nic_soft_wait_end(struct wf_nic_soft *soft);

#endif
