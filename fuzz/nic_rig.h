/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fuzz targets of software NICs share this: a device with a queue pair, and
 * registered memory between two guards that nobody may write to. A target adds
 * its peer.
 */
#ifndef WF_FUZZ_NIC_RIG_H
#define WF_FUZZ_NIC_RIG_H

#include <stdlib.h>
#include <string.h>

#include "nic/open.h"
#include "target.h"

#define RIG_MEMORY 65536u
#define RIG_GUARD 4096u /* on both sides */
#define RIG_QKEY 7u
#define RIG_RECEIVES 16
#define RIG_REQUESTS 8

struct nic_rig {
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr mr;
	uint16_t ah; /* of the peer */
	unsigned requests;
	unsigned completions; /* of requests */
	uint8_t memory[RIG_GUARD + RIG_MEMORY + RIG_GUARD];
};

/* Also in builds without asserts. */
static inline void need(bool good)
{
	if (!good)
		abort();
}

/* The part of the memory that is registered. */
static inline uint8_t *nic_rig_memory(struct nic_rig *rig)
{
	return rig->memory + RIG_GUARD;
}

static inline void nic_rig_check(const struct nic_rig *rig)
{
	for (unsigned i = 0; i < RIG_GUARD; i++)
		need(rig->memory[i] == 0xa5 &&
		     rig->memory[RIG_GUARD + RIG_MEMORY + i] == 0xa5);
}

/* Opens the device on loopback. @attr and @qp are the target's but for address,
 * queues and key. */
static inline void nic_rig_open(struct nic_rig *rig, const char *device,
				struct wf_nic_attr *attr,
				struct wf_nic_qp_attr *qp, uint32_t completions)
{
	memset(rig, 0, sizeof(*rig));
	memset(rig->memory, 0xa5, sizeof(rig->memory));
	attr->fd = -1;
	attr->addr.in.sin_family = AF_INET;
	attr->addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	need(!wf_nic_open(device, attr, &rig->nic));
	need(!wf_nic_cq_create(rig->nic, completions, &rig->cq));
	qp->qkey = RIG_QKEY;
	qp->send_cq = rig->cq;
	qp->recv_cq = rig->cq;
	need(!wf_nic_qp_create(rig->nic, qp, &rig->qp));
	need(!wf_nic_mr_reg(rig->nic, nic_rig_memory(rig), RIG_MEMORY,
			    WF_NIC_LOCAL_WRITE | WF_NIC_REMOTE_READ |
				    WF_NIC_REMOTE_WRITE,
			    &rig->mr));
}

static inline void nic_rig_close(struct nic_rig *rig)
{
	wf_nic_qp_destroy(rig->qp);
	need(!wf_nic_cq_destroy(rig->cq));
	wf_nic_close(rig->nic);
}

/* Posts receives, and requests of each kind to the peer. */
static inline void nic_rig_post(struct nic_rig *rig)
{
	struct wf_nic_wr wr = { .ah = rig->ah, .qpn = 1, .qkey = RIG_QKEY };
	struct wf_nic_sge sge = { nic_rig_memory(rig), 3000, rig->mr.lkey };
	struct wf_nic_remote there = { .addr = 4096, .rkey = 99 };

	for (int i = 0; i < RIG_RECEIVES; i++)
		need(!wf_nic_post_recv(rig->qp, 1, &sge, false));
	for (int i = 0; i < RIG_REQUESTS; i++) {
		if (i % 3 == 0)
			need(!wf_nic_post_send(rig->qp, &wr, &sge, 1));
		else if (i % 3 == 1)
			need(!wf_nic_post_read(rig->qp, &wr, &there, &sge));
		else
			need(!wf_nic_post_write(rig->qp, &wr, &there, &sge));
		rig->requests++;
	}
}

static inline void nic_rig_count(struct nic_rig *rig,
				 const struct wf_nic_wc *wc)
{
	if (!(wc->flags & WF_NIC_WC_RECV))
		rig->completions++;
	if (wc->status == WF_NIC_OK)
		wf_fuzz_stats.completed++;
	else
		wf_fuzz_stats.failed++;
}

#endif
