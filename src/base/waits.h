/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's side of a page of waits (waits_defs.h). One writer at a time (the
 * endpoint's lock). Without a descriptor or memory to spare there is no page,
 * and all functions do nothing: an endpoint must not fail because nobody can watch it.
 *
 * A process that may open the file may also write to it, because that is how readers
 * ask for events (trace_defs.h). The owner therefore keeps every number that it uses
 * in this structure, and reads none from the page.
 */
#ifndef WF_BASE_WAITS_H
#define WF_BASE_WAITS_H

#include "base/addr.h"
#include "base/waits_defs.h"

struct wf_waits {
	struct wf_waits_page *page; /* NULL: none */
	struct wf_waits_bank *bank; /* that is being filled in */
	uint32_t current;	    /* bank that readers see */
	uint32_t count;		    /* waits in the one being filled in */
	uint32_t limit;		    /* and how many it may hold for now */
	int fd;			    /* keeps the page findable; -1: none */
};

/* For the endpoint that peers call @addr. */
void wf_base_waits_open(struct wf_waits *waits, const struct wf_addr *addr,
			uint64_t now);
void wf_base_waits_close(struct wf_waits *waits);

/* In a forked child: the page is the parent's. Async-signal-safe. */
void wf_base_waits_forked(struct wf_waits *waits);

/* Begins a new bank that holds up to @limit waits until somebody sets another
 * one; false: there is no page. */
bool wf_base_waits_begin(struct wf_waits *waits, uint32_t limit, uint64_t now);

/* The next wait, zeroed but for these; NULL: there is no room for more. */
struct wf_wait *wf_base_waits_add(struct wf_waits *waits,
				  enum wf_wait_kind kind,
				  enum wf_wait_step step, uint64_t since);

/* Fills in the peer of a wait. */
void wf_base_waits_peer(struct wf_wait *wait, const struct wf_addr *addr);

/* Readers see the bank from now on. */
void wf_base_waits_publish(struct wf_waits *waits);

/* Progress looked at the clock. */
static inline void wf_base_waits_polled(struct wf_waits *waits, uint64_t now)
{
	if (waits->page)
		atomic_store_explicit(&waits->page->polled, now,
				      memory_order_relaxed);
}

/* The endpoint sleeps since @since; 0: it is awake. */
static inline void wf_base_waits_asleep(struct wf_waits *waits, uint64_t since)
{
	if (waits->page)
		atomic_store_explicit(&waits->page->asleep, since,
				      memory_order_relaxed);
}

#endif
