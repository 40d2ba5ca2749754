/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet side of an endpoint: the device behind it, its peers, and their
 * progress. Asleep until the first peer elsewhere is in play: then it is no
 * more than a few words, and the socket is looked at by others. One lock, the
 * endpoint's, covers all of it and is held by every caller.
 */
#ifndef WF_RDM_EP_H
#define WF_RDM_EP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/cpu.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/stats.h"
#include "base/table.h"
#include "match/rxq.h"
#include "nic/nic.h"
#include "nic/open.h"
#include "op/compq.h"
#include "op/names.h"
#include "op/reg.h"
#include "rdm/req.h"
#include "rdm/stats.h"

struct wf_rdm_buf;
struct wf_rdm_peer;

/* What every endpoint of ours knows; it keeps out strays, not attackers. */
#define WF_RDM_QKEY 0x77656674u

/* PEER_ERROR: what op_id is. */
#define WF_RDM_REF_OP 0u /* a number that the receiver gave */

#define WF_RDM_BUCKETS 256
/* Of messages that come in several packets. A peer has at most WF_RDM_AHEAD / 2
 * of them under way, with numbers that follow each other: four to a bucket. */
#define WF_RDM_MSG_BUCKETS 256

struct wf_rdm_ep_attr {
	const char *device; /* of the NIC; NULL: the default */
	int fd; /* the socket that owns our address; stays the caller's */
	struct wf_addr addr;
	size_t tx_size;
	size_t medium_max; /* longer messages do not go unasked */
	size_t read_min;   /* the receiver reads those from here on */
	size_t runt_size;  /* bytes that go before they are read; 0: none */
	uint64_t order;	   /* FI_ORDER_* that were asked for */
	uint64_t connect_timeout_ms;
	uint64_t warn_ms;   /* silence that is told of; 0: 2 s */
	uint64_t idle_ms;   /* after which strangers are forgotten; 0: 10 s */
	uint32_t max_peers; /* 0: the device's choice */
	uint64_t dead_timeout_s;
	uint32_t mtu;			  /* 0: ask the interface */
	bool thread;			  /* the device works by itself */
	bool reads;			  /* may messages be read at all */
	const struct wf_nic_fault *fault; /* NULL: none */
	struct wf_names names;
	struct wf_regs *regs;
	struct wf_cntr *remote_writes; /* count accesses of peers; or NULL */
	struct wf_cntr *remote_reads;
};

struct wf_rdm_ep {
	bool awake;
	bool forked;
	bool closing;
	bool warned;	 /* that the device cannot be opened */
	bool dozing;	 /* wf_rdm_ep_sleep() said yes */
	bool unrung;	 /* something was posted and not rung for */
	bool aging;	 /* time to look for peers that are not in use */
	bool crowded;	 /* too many peers: some are to be let go */
	bool shut;	 /* strangers are refused */
	bool told_full;	 /* that nobody can be let go */
	bool blocked;	 /* the last look at active peers could post nothing */
	bool deny_reads; /* tests: as if there were no memory for it */
	uint16_t next_turn;
	uint32_t inline_max;
	uint32_t max_msg;  /* bytes of a packet */
	uint32_t max_recv; /* bytes of a peer's */
	uint32_t outstanding;
	uint32_t posts; /* requests given to the device so far */
	uint32_t reading;
	uint32_t unexpected;
	uint32_t next_name;
	uint32_t epoch;	  /* random; part of our ids */
	uint64_t runting; /* bytes sent before they are read, not yet done */
	struct wf_compq *txq;
	struct wf_rxq *rxq;
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr own;	/* all memory, for our own packets */
	struct wf_list active;	/* wf_rdm_peer that have something to post */
	struct wf_list stalled; /* wf_rdm_buf that could not be taken in */
	struct wf_rdm_buf *bufs;
	uint8_t *buf_memory;
	size_t buf_bytes;
	uint32_t buf_count;

	struct wf_rdm_peer **by_name;
	size_t name_count;
	struct wf_rdm_peer **by_ah;
	size_t ah_count;
	struct wf_list by_addr[WF_RDM_BUCKETS];
	struct wf_list
		by_msg[WF_RDM_MSG_BUCKETS]; /* wf_rdm_rx: wf_rdm_rx_find() */
	struct wf_list peers;
	struct wf_list leaving; /* of them, whose handle was given back */
	uint32_t peer_count;
	uint32_t peer_limit; /* handles that the device has */
	uint64_t full_since; /* nobody can be let go; 0: not so */
	uint32_t crowd_wait; /* looks until the next try to let some go */
	uint64_t now;	     /* when the clock was last looked at */
	uint64_t names_seen; /* of attr.names.changes */
	uint64_t due;	     /* when to look at peers and statistics */
	uint64_t resets;     /* of peers, as the device counts them */
	uint64_t probe_at;   /* when to ask silent peers */
	uint32_t polls;	     /* since the clock was looked at */
	struct wf_table names;
	struct wf_pool tx_pool;
	struct wf_pool small_pkts;
	struct wf_pool large_pkts;
	struct wf_stats stats;
	struct wf_rdm_ep_attr attr;
};

/* Costs nothing yet. */
void wf_rdm_ep_open(struct wf_rdm_ep *ep, const struct wf_rdm_ep_attr *attr,
		    struct wf_compq *txq, struct wf_rxq *rxq);

/* Opens the device. 0 or -errno, then everything is as before. */
int wf_rdm_ep_wake(struct wf_rdm_ep *ep);

/* What was injected, and what peers are owed, gets a moment to leave; other
 * operations are forgotten. */
void wf_rdm_ep_close(struct wf_rdm_ep *ep);

/* In a forked child: nothing of it is ours. Async-signal-safe. */
void wf_rdm_ep_forked(struct wf_rdm_ep *ep);

/* Sends @req off to @dst; @req is settled on the way. 0, -EAGAIN, or -errno when there is no way. */
int wf_rdm_ep_submit(struct wf_rdm_ep *ep, uint64_t dst,
		     struct wf_rdm_req *req);

/* False: there was nothing to do. */
bool wf_rdm_ep_progress(struct wf_rdm_ep *ep);

/* Whether nothing is to be done before the device's descriptor is readable or
 * @deadline_ns (of the monotonic clock; UINT64_MAX: none) has come. */
bool wf_rdm_ep_sleep(struct wf_rdm_ep *ep, uint64_t *deadline_ns);

/* The AV changed. */
void wf_rdm_ep_inserted(struct wf_rdm_ep *ep, uint64_t name,
			const struct wf_addr *addr);
void wf_rdm_ep_removed(struct wf_rdm_ep *ep, uint64_t name);

/* The registration with @key goes away: nobody reads into it any more. */
void wf_rdm_ep_unregistered(struct wf_rdm_ep *ep, uint64_t key);

/* The device's doorbell, for everything posted since the last. */
void wf_rdm_ep_ring(struct wf_rdm_ep *ep);

static inline bool wf_rdm_ep_has_room(const struct wf_rdm_ep *ep)
{
	return wf_nic_qp_send_room(ep->qp) > 0;
}

static inline void wf_rdm_stat_add(struct wf_rdm_ep *ep, enum wf_rdm_stat item,
				   uint64_t more)
{
	wf_base_stats_add(&ep->stats, item, more);
}

static inline void wf_rdm_stat_most(struct wf_rdm_ep *ep, enum wf_rdm_stat item,
				    uint64_t value)
{
	if (value > wf_base_stats_get(&ep->stats, item))
		wf_base_stats_set(&ep->stats, item, value);
}

#endif
