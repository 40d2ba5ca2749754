/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory side of an endpoint: a transport (transport/transport.h).
 * This is its state; transport.c drives it, channels.c finds its channels and
 * frees dead ones, doze.c tells peers that it sleeps. The endpoint's lock
 * protects all of it.
 */
#ifndef WF_SHM_EP_H
#define WF_SHM_EP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pool.h"
#include "match/rxq.h"
#include "op/compq.h"
#include "op/reg.h"
#include "shm/board.h"
#include "shm/folder.h"
#include "shm/in.h"
#include "shm/out.h"
#include "shm/stats.h"
#include "shm/watch.h"
#include "transport/host.h"
#include "transport/transport.h"

struct wf_shm_ep_attr {
	bool any_addr; /* reachable by every address of the node */
	struct wf_shm_home home;
	int name_fd;	  /* of wf_shm_name_bind(), -1: none; ours on success */
	size_t eager_max; /* without CMA */
	size_t cma_min;	  /* with it: above WF_SHM_PUT_MAX, parked from here */
	bool learns;	  /* ... unless a receiver says otherwise (pace.h) */
	size_t share_min;
	size_t chunk;
	uint64_t connect_timeout_ms;
	uint64_t dead_timeout_s;
	uint8_t slots_log2;
	uint8_t lines_log2;
	bool cma;
	const char *allow_uid; /* NULL, "any" or a list; outlives us */
	bool refuses;	       /* refuse peers: they must use packets */
};

struct wf_shm_ep {
	/* Sending: the channel of each fi_addr_t, NULL where none is open. */
	struct wf_shm_out **outs;
	size_t out_count;
	struct wf_compq *txq;

	struct wf_host *host;
	struct wf_rxq *rxq;
	struct wf_shm_watch watch; /* all rings that we read */
	struct wf_shm_board_map board;
	struct wf_list busy_ins; /* have unfinished pulls, or kept replies */
	uint32_t quiet_mark;	 /* slots of the hot channel at the last tick */
	uint32_t trace_polls;	 /* while events are recorded */

	uint32_t busy_pulls;
	bool reap;     /* a channel died */
	bool starved;  /* a ring lacks memory for a message that waits */
	bool draining; /* the peer of a ring has ended, messages are left */
	bool slept;    /* was asleep before this doze */
	bool unwoken;  /* a peer sleeps, and could not be woken (link.h) */
	bool closing;  /* at most our copies of messages are left to send */
	bool settling; /* an out is shut, and there is no room for its replies */
	uint32_t last_number; /* last number given to a channel that we read */
	uint32_t connecting;
	uint32_t silent_lines; /* shm/silence.c */
	bool short_told;       /* ... of too few descriptors */
	uint64_t short_since;  /* since when there are too few, ns; 0: enough */
	uint64_t short_last;   /* when that was last noticed */
	uint64_t tend_at;      /* when one of them is due, ns; 0: not known */
	uint32_t open_outs;
	uint32_t stats_at;	     /* the ring whose counts are added next */
	struct wf_list pending_outs; /* have messages that wait for room */
	struct wf_list waiting_outs; /* have messages that wait for a reply */

	struct wf_source listener;
	struct wf_source door;	/* the same in the folder; -1: none */
	struct wf_list letters; /* of peers, not delivered (letter.h) ... */
	uint32_t letter_count;	/* ... and how many */
	struct wf_list letters_parked; /* in the matcher */
	bool *met;	       /* of each fi_addr_t: it was sent a letter */
	uint64_t lively_until; /* letters go to and fro: look often, ns */
	uint64_t deaf_until;   /* no peer is accepted until then; 0: all */
	uint64_t scarce_until; /* few descriptors may be passed until then */
	bool populates;	       /* the kernel takes pages of a mapping */
	bool addr_is_local;    /* host->addr is that of an interface here */
	struct wf_list guests;
	struct wf_list all_outs;
	struct wf_pool tx_pool;
	struct wf_pool remote_pool; /* wf_remote */
	struct wf_regs *regs;
	struct wf_cntr *remote_writes;
	struct wf_cntr *remote_reads;
	struct wf_stats stats;
	struct wf_shm_ep_attr attr;
};

extern const struct wf_transport wf_shm_transport;

/* Listens as host->addr. 0 or -errno. */
int wf_shm_ep_open(struct wf_shm_ep *ep, const struct wf_shm_ep_attr *attr,
		   struct wf_host *host, struct wf_way *way);

/* There is more to do than to poll one ring. */
static inline void wf_shm_ep_busy(struct wf_shm_ep *ep)
{
	wf_transport_host_busy(ep->host);
}

/* The open channel to @dst, or NULL: take the slow path. */
static inline struct wf_shm_out *wf_shm_ep_out(const struct wf_shm_ep *ep,
					       uint64_t dst)
{
	return wf_likely(dst < ep->out_count) ? ep->outs[dst] : NULL;
}

#endif
