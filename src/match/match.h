/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The matcher: posted receives on one side, unexpected messages on the other.
 * There is one for tagged and one for plain messages (tag 0, nothing ignored),
 * each fed by every transport, since a wildcard receive may be met by any.
 *
 * Receives with an exact tag hang in a hash by tag and source, the others in
 * one list; each list is in posting order, and the oldest of the candidates
 * wins. Unexpected messages hang in arrival order and in a hash by tag.
 * Lookups touch one bucket whatever the depth.
 *
 * Owns no memory but its buckets. The endpoint's lock covers it.
 */
#ifndef WF_MATCH_MATCH_H
#define WF_MATCH_MATCH_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/list.h"
#include "op/rx.h"

#define WF_MATCH_BUCKETS 256
#define WF_MATCH_ANY UINT64_MAX /* FI_ADDR_UNSPEC and FI_ADDR_NOTAVAIL */

struct wf_cntr;
struct wf_compq;
struct wf_rxq;
struct wf_ux;

/* What a transport does with its unexpected messages. All are called under the
 * endpoint's lock, once per message, after it left the matcher. */
struct wf_ux_ops {
	/* Moves the message into @rx and reports it; owns both from now on. */
	void (*deliver)(struct wf_ux *ux, struct wf_rx *rx);
	/* The application does not want the data; tells the sender so. */
	void (*discard)(struct wf_ux *ux);
};

struct wf_ux {
	struct wf_list order;
	struct wf_list bucket;
	const struct wf_ux_ops *ops;
	struct wf_rxq *rxq; /* that will receive it */
	/* Of the endpoint it arrived at: where its receive is reported. */
	struct wf_compq *compq;
	struct wf_cntr *cntr;
	const void *owner;
	bool tells_all;
	uint64_t tag;
	uint64_t data;
	uint64_t src;
	uint64_t flags; /* FI_REMOTE_CQ_DATA */
	size_t len;
};

struct wf_match {
	uint64_t next_seq;
	uint32_t exact_any; /* receives by class, to skip empty classes */
	uint32_t exact_directed;
	uint32_t wild;
	uint32_t unexpected;
	uint32_t unexpected_max; /* so far */
	struct wf_list wild_list;
	struct wf_list ux_order;
	struct wf_list exact[WF_MATCH_BUCKETS];
	struct wf_list ux_bucket[WF_MATCH_BUCKETS];
};

void wf_match_init(struct wf_match *m);

/* The oldest receive that takes (tag, src), still posted; or NULL. */
struct wf_rx *wf_match_find_slow(struct wf_match *m, uint64_t tag,
				 uint64_t src);

void wf_match_park(struct wf_match *m, struct wf_ux *ux);
void wf_match_unpark(struct wf_match *m, struct wf_ux *ux);

/* The oldest unexpected message that (tag, ignore, src) takes, or NULL. */
struct wf_ux *wf_match_find_ux(struct wf_match *m, uint64_t tag,
			       uint64_t ignore, uint64_t src);

/* The first posted receive with this context, or NULL. */
struct wf_rx *wf_match_find_context(struct wf_match *m, const void *context);

/* Any posted receive, any unexpected message: for closing. */
struct wf_rx *wf_match_first(struct wf_match *m);

static inline uint32_t wf_match_hash(uint64_t tag, uint64_t src)
{
	/* Fibonacci hashing: tags differ in few bits, anywhere. */
	return (uint32_t)(((tag ^ (src << 32)) * 0x9e3779b97f4a7c15u) >> 56);
}

static_assert(WF_MATCH_BUCKETS == 1 << 8, "wf_match_hash() gives 8 bits");

static inline uint32_t *wf_match_class(struct wf_match *m,
				       const struct wf_rx *rx)
{
	if (wf_unlikely(rx->ignore))
		return &m->wild;
	return wf_likely(rx->src == WF_MATCH_ANY) ? &m->exact_any :
						    &m->exact_directed;
}

/* Adds a receive. The caller has looked for unexpected messages before. */
static inline void wf_match_post(struct wf_match *m, struct wf_rx *rx)
{
	struct wf_list *list = &m->wild_list;

	if (wf_likely(!rx->ignore))
		list = &m->exact[wf_match_hash(rx->tag, rx->src)];
	rx->seq = m->next_seq++;
	++*wf_match_class(m, rx);
	wf_base_list_add_tail(list, &rx->link);
}

static inline void wf_match_unpost(struct wf_match *m, struct wf_rx *rx)
{
	--*wf_match_class(m, rx);
	wf_base_list_unlink(&rx->link);
}

/* The oldest receive for (tag, src), no longer posted, when it is plain and
 * holds @len bytes; else NULL, and nothing has changed. Most programs post
 * exact receives from anyone: there the class need not be found again. */
static inline struct wf_rx *
wf_match_take_plain(struct wf_match *m, uint64_t tag, uint64_t src, size_t len)
{
	struct wf_list *head = &m->exact[wf_match_hash(tag, WF_MATCH_ANY)];
	struct wf_rx *rx = wf_container_of(head->next, struct wf_rx, link);

	if (wf_likely(!(m->exact_directed | m->wild) && head->next != head &&
		      rx->tag == tag)) {
		if (wf_unlikely(!rx->plain || len > rx->len))
			return NULL;
		m->exact_any--;
		wf_base_list_unlink(&rx->link);
		return rx;
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

	if (wf_unlikely(m->exact_directed | m->wild))
		return wf_match_find_slow(m, tag, src);
	head = &m->exact[wf_match_hash(tag, WF_MATCH_ANY)];
	first = head->next;
	if (first == head)
		return NULL;
	rx = wf_container_of(first, struct wf_rx, link);
	if (wf_likely(rx->tag == tag))
		return rx;
	return wf_match_find_slow(m, tag, src);
}

#endif
