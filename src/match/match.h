/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The matcher: posted receives on one side, unexpected messages on the other.
 * There is one for tagged and one for plain messages (tag 0, nothing ignored),
 * each fed by every transport, since a wildcard receive may be met by any.
 *
 * Receives. The key of a receive is (tag & ~ignore, source), its source being a
 * peer or anyone. Receives that ignore nothing hang in a hash table by key, each
 * chain in posting order. Those that ignore bits (masked; under MPI all are,
 * with two to four masks in use) hang in a list in posting order. Only the first
 * WF_MATCH_FRONT of that list are searched one by one, so a masked receive that
 * has more before it when it is posted hangs in the hash table as well, and its
 * mask has a lane: a count of such receives from anyone and from one peer. A
 * message is looked for
 *
 *	in the table, under its tag from anyone and from its source,
 *	then among the first of the list,
 *	then in the table once or twice for each lane,
 *
 * and the oldest receive found wins. Without a free lane, a receive hangs in the
 * list only ("stray"), and while there is one all of the list is searched. The
 * table grows when a search meets a long chain; if there is no memory, the old
 * one serves.
 *
 * Unexpected messages: unexpected.c.
 *
 * The endpoint's lock covers all of it.
 */
#ifndef WF_MATCH_MATCH_H
#define WF_MATCH_MATCH_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/list.h"
#include "op/rx.h"

#define WF_MATCH_CHAINS 256 /* of the first table */
#define WF_MATCH_FRONT 8
#define WF_MATCH_LANES 8
#define WF_MATCH_NO_LANE WF_MATCH_LANES /* wf_rx.lane in the front */
#define WF_MATCH_UX_LANES 4
#define WF_MATCH_ANY UINT64_MAX /* FI_ADDR_UNSPEC and FI_ADDR_NOTAVAIL */

struct wf_cntr;
struct wf_compq;
struct wf_rxq;
struct wf_ux;

/* A transport handles its unexpected messages by these. All are called under
 * the endpoint's lock, once per message, after it left the matcher. */
struct wf_ux_ops {
	/* Moves the message into @rx and reports it; owns both from now on. */
	void (*deliver)(struct wf_ux *ux, struct wf_rx *rx);
	/* The application discards the data; the sender is notified. */
	void (*discard)(struct wf_ux *ux);
};

struct wf_ux {
	/* Searches read these: one cache line. */
	struct wf_list order;
	uint64_t tag;
	uint64_t src;
	uint64_t data;
	size_t len;
	const struct wf_ux_ops *ops;
	struct wf_rxq *rxq; /* that will receive it */
	/* Where its receive is reported: queues of the endpoint that it reached. */
	struct wf_compq *compq;
	struct wf_cntr *cntr;
	const void *owner;
	bool reports_all;
	uint64_t flags;				 /* FI_REMOTE_CQ_DATA */
	struct wf_list lanes[WF_MATCH_UX_LANES]; /* links; of those in use */
};

/* A hash table. */
struct wf_chains {
	struct wf_list *heads;
	uint32_t shift; /* 64 - log2 of the number of heads */
};

/* Receives with one mask that hang in the table. */
struct wf_match_lane {
	uint64_t ignore;
	uint32_t any;	   /* from anyone */
	uint32_t directed; /* from one peer */
};

/* A hash table of all unexpected messages, for receives with one mask. */
struct wf_ux_lane {
	uint64_t ignore;
	bool directed; /* by tag and source, else by tag */
	uint32_t used; /* search that used it last */
	struct wf_chains chains;
};

struct wf_match {
	uint64_t next_seq;
	struct wf_chains posted;
	uint32_t exact_any; /* receives: ignore nothing, take from anyone */
	uint32_t special;   /* all others */
	uint32_t masked;    /* of them, those that ignore bits */
	uint32_t strays;    /* masked, not in the front, in no lane */
	uint32_t lane_count;
	uint32_t unexpected;
	uint32_t unexpected_max; /* so far */
	uint32_t ux_lane_count;
	uint32_t ux_searches; /* by lane */
	uint64_t ux_walked;   /* messages passed for want of a lane */
	struct wf_list masked_list;
	struct wf_list ux_order;
	struct wf_match_lane lanes[WF_MATCH_LANES];
	struct wf_ux_lane ux_lanes[WF_MATCH_UX_LANES];
	struct wf_list first_chains[WF_MATCH_CHAINS];
};

void wf_match_init(struct wf_match *m);

/* Frees the tables, not what hangs in them. */
void wf_match_fini(struct wf_match *m);

/* The oldest receive that takes (tag, src), still posted; or NULL. */
struct wf_rx *wf_match_find_slow(struct wf_match *m, uint64_t tag,
				 uint64_t src);

void wf_match_park(struct wf_match *m, struct wf_ux *ux);
void wf_match_unpark(struct wf_match *m, struct wf_ux *ux);

/* The oldest unexpected message that (tag, ignore, src) takes, or NULL. */
struct wf_ux *wf_match_find_ux(struct wf_match *m, uint64_t tag,
			       uint64_t ignore, uint64_t src);

/* Call this before the next search if the source of unexpected messages has
 * changed. */
void wf_match_ux_renamed(struct wf_match *m);

/* The first posted receive with this context, or NULL. */
struct wf_rx *wf_match_find_context(struct wf_match *m, const void *context);

/* Any posted receive, any unexpected message: for closing. */
struct wf_rx *wf_match_first(struct wf_match *m);

/* Fibonacci hashing: tags differ in few bits, anywhere. The upper bits count. */
static inline uint64_t wf_match_hash(uint64_t tag, uint64_t src)
{
	return (tag ^ (src << 32)) * 0x9e3779b97f4a7c15u;
}

static inline struct wf_list *wf_match_chain(const struct wf_chains *chains,
					     uint64_t tag, uint64_t src)
{
	return &chains->heads[wf_match_hash(tag, src) >> chains->shift];
}

/* Assign a lane to a masked receive that is not in the front, and release
 * it. */
void wf_match_enter_lane(struct wf_match *m, struct wf_rx *rx);
void wf_match_leave_lane(struct wf_match *m, struct wf_rx *rx);

/* Adds a receive. The caller has looked for unexpected messages before. */
static inline void wf_match_post(struct wf_match *m, struct wf_rx *rx)
{
	struct wf_list *list = &m->masked_list, *link = &rx->masked_link;

	rx->seq = m->next_seq++;
	if (wf_likely(!rx->ignore)) {
		link = &rx->link;
		if (wf_likely(rx->src == WF_MATCH_ANY)) {
			m->exact_any++;
			list = wf_match_chain(&m->posted, rx->tag,
					      WF_MATCH_ANY);
		} else {
			m->special++;
			list = wf_match_chain(&m->posted, rx->tag, rx->src);
		}
	} else {
		m->special++;
		/* Its place in the list only moves forward, so it needs no lane
		 * later. */
		rx->lane = WF_MATCH_NO_LANE;
		if (wf_unlikely(m->masked++ >= WF_MATCH_FRONT))
			wf_match_enter_lane(m, rx);
	}
	wf_base_list_add_tail(list, link);
}

static inline void wf_match_unpost(struct wf_match *m, struct wf_rx *rx)
{
	if (wf_likely(!rx->ignore)) {
		--*(wf_likely(rx->src == WF_MATCH_ANY) ? &m->exact_any :
							 &m->special);
		wf_base_list_unlink(&rx->link);
		return;
	}
	m->special--;
	m->masked--;
	wf_base_list_unlink(&rx->masked_link);
	if (wf_unlikely(rx->lane != WF_MATCH_NO_LANE))
		wf_match_leave_lane(m, rx);
}

/* The oldest receive for (tag, src), no longer posted, when it is plain and
 * holds @len bytes; else NULL, and nothing has changed. Most programs post
 * exact receives from anyone: there the class need not be found again. */
static inline struct wf_rx *
wf_match_take_plain(struct wf_match *m, uint64_t tag, uint64_t src, size_t len)
{
	struct wf_list *head;
	struct wf_rx *rx;

	if (wf_likely(!m->special)) {
		head = wf_match_chain(&m->posted, tag, WF_MATCH_ANY);
		rx = wf_container_of(head->next, struct wf_rx, link);
		if (wf_likely(head->next != head && rx->tag == tag)) {
			if (wf_unlikely(!rx->plain || len > rx->len))
				return NULL;
			m->exact_any--;
			wf_base_list_unlink(&rx->link);
			return rx;
		}
	}
	rx = wf_match_find_slow(m, tag, src);
	if (!rx || !rx->plain || len > rx->len)
		return NULL;
	wf_match_unpost(m, rx);
	return rx;
}

/* Most programs post exact receives from anyone: first look there. */
static inline struct wf_rx *wf_match_find(struct wf_match *m, uint64_t tag,
					  uint64_t src)
{
	struct wf_list *head, *first;
	struct wf_rx *rx;

	if (wf_unlikely(m->special))
		return wf_match_find_slow(m, tag, src);
	head = wf_match_chain(&m->posted, tag, WF_MATCH_ANY);
	first = head->next;
	if (first == head)
		return NULL;
	rx = wf_container_of(first, struct wf_rx, link);
	if (wf_likely(rx->tag == tag))
		return rx;
	return wf_match_find_slow(m, tag, src);
}

#endif
