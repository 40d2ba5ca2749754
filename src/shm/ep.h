/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory side of an endpoint: its channels, and their progress. One
 * lock, the endpoint's, covers all of it; it is held by every caller except of
 * the open and close functions.
 */
#ifndef WF_SHM_EP_H
#define WF_SHM_EP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/rest.h"
#include "match/rxq.h"
#include "op/compq.h"
#include "op/names.h"
#include "op/reg.h"
#include "shm/board.h"
#include "shm/in.h"
#include "shm/out.h"
#include "shm/stats.h"
#include "shm/watch.h"

/* What else makes an endpoint's progress and wakes it: a transport for peers
 * elsewhere. */
struct wf_shm_beside {
	int fd; /* readable: something stirs there; -1: there is none */
	void (*stirred)(void *arg);
	/* Called by progress from wf_shm_ep_beside_on() on. False: idle. */
	bool (*poll)(void *arg);
	void *arg;
};

struct wf_shm_ep_attr {
	struct wf_addr addr; /* what peers call us */
	bool any_addr;	     /* reachable by every address of the node */
	int name_fd; /* of wf_shm_name_bind(), -1: none; ours on success */
	size_t tx_size;
	size_t eager_max; /* without CMA */
	size_t cma_min;	  /* with it: above WF_SHM_PUT_MAX, parked from here */
	size_t share_min;
	size_t chunk;
	uint64_t connect_timeout_ms;
	uint64_t dead_timeout_s;
	uint8_t slots_log2;
	uint8_t lines_log2;
	bool cma;
	bool threads;	       /* several may wait for us at once */
	const char *allow_uid; /* NULL, "any" or a list; outlives us */
	bool refuses;	       /* peers are told to go elsewhere */
	struct wf_shm_beside beside;
	struct wf_names names;
	struct wf_regs *regs;	       /* of the domain */
	struct wf_cntr *remote_writes; /* count accesses of peers; or NULL */
	struct wf_cntr *remote_reads;
};

struct wf_shm_ep {
	/* Sending: the channel of each fi_addr_t, NULL where none is open. */
	struct wf_shm_out **outs;
	size_t out_count;
	struct wf_compq *txq;

	/* Receiving. The short way to poll: the only ring, as long as there is
	 * nothing else to do; NULL asks for the long way. */
	struct wf_shm_in *only_in;
	uint32_t polls;	      /* since the clock was looked at */
	uint32_t quiet_mark;  /* slots of the hot channel at the last of ... */
	uint32_t quiet_ticks; /* ... so many looks at the clock */
	struct wf_rest rest;
	struct wf_rxq *rxq;
	struct wf_shm_watch watch; /* all rings that we read */
	struct wf_shm_board_map board;
	struct wf_list busy_ins; /* have pulls that go on, kept replies */

	uint32_t busy_pulls;
	bool reap;	 /* a channel died */
	bool draining;	 /* the peer of a ring is gone, messages are left */
	bool beside_on;	 /* attr.beside has to be polled */
	bool forked;	 /* we are a child: touch nothing */
	bool asleep;	 /* peers were told so; the next progress wakes us */
	bool joined;	 /* barriers reach us ... */
	bool all_joined; /* ... and every peer */
	uint32_t connecting;
	uint64_t names_seen;	     /* of attr.names.changes */
	struct wf_list pending_outs; /* have messages that wait for room */
	struct wf_list waiting_outs; /* have messages that wait for a reply */

	uint64_t sockets_due; /* when to look at the sockets again, ns */
	int epoll_fd;
	struct wf_shm_sock listener;
	struct wf_list guests;
	struct wf_shm_sock beside;
	struct wf_shm_sock timer; /* while asleep with something to retry */
	struct wf_list all_outs;
	struct wf_pool tx_pool;
	struct wf_pool remote_pool; /* wf_remote */
	struct wf_regs *regs;
	struct wf_cntr *remote_writes;
	struct wf_cntr *remote_reads;
	struct wf_stats stats;
	struct wf_shm_ep_attr attr;
};

int wf_shm_ep_open(struct wf_shm_ep *ep, const struct wf_shm_ep_attr *attr,
		   struct wf_compq *txq, struct wf_rxq *rxq);

/* Closes every channel; operations in flight are forgotten. */
void wf_shm_ep_close(struct wf_shm_ep *ep);

/* In a forked child: closes the copies of descriptors, lets go of the rings.
 * Async-signal-safe. */
void wf_shm_ep_forked(struct wf_shm_ep *ep);

/* Everything that did not take the fast path (put.h). 0, -EAGAIN, or -errno
 * when there is no way to @dst. */
int wf_shm_ep_send(struct wf_shm_ep *ep, uint64_t dst, const struct wf_tx *tx);

/* attr.beside is polled from now on; @fd is readable when it stirs. */
int wf_shm_ep_beside_on(struct wf_shm_ep *ep, int fd);

/* Everything that progress may have to do. */
void wf_shm_ep_progress_slow(struct wf_shm_ep *ep);

/* The AV changed. */
void wf_shm_ep_inserted(struct wf_shm_ep *ep, uint64_t name,
			const struct wf_addr *addr);
void wf_shm_ep_removed(struct wf_shm_ep *ep, uint64_t name);

/* A peer connected: from now on its ring is polled. -ENOMEM. */
int wf_shm_ep_add_in(struct wf_shm_ep *ep, struct wf_shm_in *in);

/* Takes it out again. */
void wf_shm_ep_drop_in(struct wf_shm_ep *ep, struct wf_shm_in *in);

/* Polls between two looks at the clock: a look costs as much as ten polls. */
#define WF_SHM_EP_POLLS_PER_CLOCK 32

/* There is more to do than to look at one ring: a channel came or died, a
 * message waits for room or for a reply, a pull goes on. Progress finds out
 * itself when it is over. */
static inline void wf_shm_ep_busy(struct wf_shm_ep *ep)
{
	ep->only_in = NULL;
}

/* An idle poll of an endpoint with one peer is a handful of loads. */
static inline void wf_shm_ep_progress(struct wf_shm_ep *ep)
{
	struct wf_shm_in *in = ep->only_in;

	if (wf_unlikely(!in || ++ep->polls >= WF_SHM_EP_POLLS_PER_CLOCK))
		wf_shm_ep_progress_slow(ep);
	else if (wf_shm_in_ready(in))
		wf_shm_in_poll(in, WF_SHM_IN_BUDGET);
	else
		wf_shm_in_prefetch(in);
}

/* The open channel to @dst, or NULL: take the slow path. */
static inline struct wf_shm_out *wf_shm_ep_out(const struct wf_shm_ep *ep,
					       uint64_t dst)
{
	return wf_likely(dst < ep->out_count) ? ep->outs[dst] : NULL;
}

#endif
