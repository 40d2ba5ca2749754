/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the memory of a sender.
 */
#include "rdm/pull.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "op/iov.h"
#include "rdm/ep.h"
#include "rdm/peer.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"

/* One request: a longer one would delay others of the same peer. */
#define READ_MAX ((uint64_t)1 << 20)

struct wf_rdm_pull {
	uint64_t at;  /* next byte to ask for */
	uint64_t end; /* of what is wanted */
	uint32_t count;
	uint32_t registered;
	struct iovec iov[WF_OP_IOV_PARTS_MAX];
	struct wf_nic_mr mrs[WF_OP_IOV_PARTS_MAX];
};

void wf_rdm_pull_end(struct wf_rdm_rx *rx)
{
	struct wf_rdm_pull *pull = rx->pull;

	if (!pull)
		return;
	for (uint32_t i = 0; i < pull->registered; i++) {
		if (pull->iov[i].iov_len && rx->ep->nic)
			wf_nic_mr_dereg(rx->ep->nic, pull->mrs[i].lkey);
	}
	free(pull);
	rx->pull = NULL;
}

bool wf_rdm_pull_is_lent(const struct wf_rdm_rx *rx)
{
	const struct wf_rdm_pull *pull = rx->pull;

	for (uint32_t i = 0; pull && i < pull->registered; i++) {
		if (pull->iov[i].iov_len && pull->mrs[i].lent)
			return true;
	}
	return false;
}

bool wf_rdm_pull_uses(const struct wf_rdm_rx *rx, uint64_t key)
{
	for (uint32_t i = 0; rx->pull && i < rx->seg_count; i++) {
		if (rx->segs[i].key == key)
			return true;
	}
	return false;
}

/* @desc: of the parts, or NULL. */
static int enlist(struct wf_rdm_rx *rx, struct wf_rdm_pull *pull,
		  void *const *desc)
{
	while (pull->registered < pull->count) {
		uint32_t i = pull->registered;
		int err;

		err = pull->iov[i].iov_len ?
			      wf_nic_mr_use(rx->ep->nic, desc ? desc[i] : NULL,
					    pull->iov[i].iov_base,
					    pull->iov[i].iov_len,
					    WF_NIC_LOCAL_WRITE, &pull->mrs[i]) :
			      0;
		if (err)
			return err;
		pull->registered++;
	}
	return 0;
}

int wf_rdm_pull_begin(struct wf_rdm_rx *rx, const struct iovec *iov,
		      void *const *desc, uint32_t count, uint64_t end)
{
	struct wf_rdm_pull *pull = malloc(sizeof(*pull));
	int err;

	if (!pull)
		return -ENOMEM;
	pull->at = rx->read_from;
	pull->end = end > rx->read_from ? end : rx->read_from;
	pull->count = count;
	pull->registered = 0;
	for (uint32_t i = 0; i < count; i++)
		pull->iov[i] = iov[i];
	rx->pull = pull;
	err = rx->ep->deny_reads ? -ENOSPC : enlist(rx, pull, desc);
	if (err) {
		wf_rdm_pull_end(rx);
		return err;
	}
	wf_rdm_rx_owe(rx, WF_RDM_OWES_READ);
	return 0;
}

void wf_rdm_pull_message(struct wf_rdm_rx *rx)
{
	uint64_t end = rx->env.len;

	if (rx->dropping) {
		rx->protocol->pulled(rx);
		return;
	}
	if (end > rx->rx->len)
		end = rx->rx->len;
	if (!wf_rdm_pull_begin(rx, rx->rx->iov,
			       rx->rx->described ? rx->rx->desc : NULL,
			       rx->rx->iov_count, end))
		return;
	rx->nacked = true;
	rx->read_count = 0;
	wf_rdm_rx_owe(rx, WF_RDM_OWES_NACK);
}

/* Where byte @at of the whole is on one side, and how many bytes follow it. */
static uint64_t locate(const struct wf_rdm_pull *pull, uint64_t at,
		       uint32_t *part)
{
	for (*part = 0; at >= pull->iov[*part].iov_len; ++*part)
		at -= pull->iov[*part].iov_len;
	return at;
}

static uint64_t locate_remote(const struct wf_rdm_rx *rx, uint64_t at,
			      uint32_t *part)
{
	for (*part = 0; at >= rx->reads[*part].len; ++*part)
		at -= rx->reads[*part].len;
	return at;
}

static void read_done(struct wf_rdm_ep *ep, struct wf_rdm_pkt *pkt, int err)
{
	struct wf_rdm_rx *rx = pkt->owner;

	rx->outstanding--;
	ep->reading--;
	if (!rx->over && err)
		wf_rdm_rx_fail(rx, err, true);
	else if (!rx->over && !rx->outstanding && !rx->err &&
		 !(rx->owes & WF_RDM_OWES_READ))
		rx->protocol->pulled(rx);
	else
		wf_rdm_rx_settle(rx);
}

static struct wf_rdm_pkt *next_read(struct wf_rdm_rx *rx,
				    struct wf_nic_remote *from,
				    struct wf_nic_sge *to)
{
	struct wf_rdm_pull *pull = rx->pull;
	struct wf_rdm_pkt *pkt = wf_rdm_pkt_get(rx->ep, rx->named.peer, 0);
	uint64_t len = pull->end - pull->at, here, there;
	uint32_t part, remote;

	if (!pkt)
		return NULL;
	here = locate(pull, pull->at, &part);
	there = locate_remote(rx, pull->at, &remote);
	if (len > pull->iov[part].iov_len - here)
		len = pull->iov[part].iov_len - here;
	if (len > rx->reads[remote].len - there)
		len = rx->reads[remote].len - there;
	if (len > READ_MAX)
		len = READ_MAX;
	*from = (struct wf_nic_remote){
		.addr = rx->reads[remote].addr + there,
		.rkey = (uint32_t)rx->reads[remote].key,
	};
	*to = (struct wf_nic_sge){
		.addr = (char *)pull->iov[part].iov_base + here,
		.len = (uint32_t)len,
		.lkey = pull->mrs[part].lkey,
	};
	pkt->completed = read_done;
	pkt->owner = rx;
	pkt->payload = (uint32_t)len;
	return pkt;
}

bool wf_rdm_pull_pump(struct wf_rdm_rx *rx)
{
	struct wf_rdm_pull *pull = rx->pull;
	struct wf_nic_remote from;
	struct wf_nic_sge to;

	while (pull->at < pull->end) {
		struct wf_rdm_pkt *pkt;

		if (!wf_rdm_ep_has_room(rx->ep))
			return false;
		pkt = next_read(rx, &from, &to);
		if (!pkt)
			return false;
		pull->at += to.len;
		rx->outstanding++;
		rx->ep->reading++;
		wf_rdm_pkt_post_read(rx->ep, pkt, &from, &to);
	}
	rx->owes &= (uint8_t)~WF_RDM_OWES_READ;
	/* Nothing to read: a receive that holds no more. */
	if (!rx->outstanding)
		rx->protocol->pulled(rx);
	return true;
}
