/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoints behind a queue or counter: reading it makes their progress, and
 * a caller that waits sleeps until one of them has work.
 *
 * Order of locks: this list, an endpoint, a queue's ring.
 */
#ifndef WF_PROV_EPS_H
#define WF_PROV_EPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/rest.h"

struct wf_core_ep;
struct wf_prov_ep;

struct wf_prov_eps {
	struct wf_core_ep *only; /* of the endpoint, when there is just one */
	struct wf_lock lock;
	struct wf_list list; /* wf_prov_eps_link */
	int epoll_fd;	     /* looks at all of them; -1: nobody waits */
	struct wf_rest rest; /* of whoever polls them, without a lock */
};

/* An endpoint's place in the list. */
struct wf_prov_eps_link {
	struct wf_list link;
	struct wf_prov_ep *ep;
	struct wf_prov_eps *eps; /* NULL: in none */
	bool added;		 /* by wf_prov_eps_add() */
	bool watched;		 /* by epoll_fd of the list */
	uint32_t row;		 /* of its sleeps that the list has begun */
};

void wf_prov_eps_init(struct wf_prov_eps *eps, bool locked);
void wf_prov_eps_forked(struct wf_prov_eps *eps);

/* An endpoint that was enabled, or is being closed. False: @link stays
 * unused, because the list has @ep by another one. */
bool wf_prov_eps_attach(struct wf_prov_eps *eps, struct wf_prov_eps_link *link,
			struct wf_prov_ep *ep);
void wf_prov_eps_detach(struct wf_prov_eps_link *link);

/* The same with a place allocated here, unless @ep is in the list: for objects
 * that depend on all endpoints of a domain. 0 or -ENOMEM. */
int wf_prov_eps_add(struct wf_prov_eps *eps, struct wf_prov_ep *ep);
void wf_prov_eps_remove(struct wf_prov_eps *eps, const struct wf_prov_ep *ep);

/* Drives every one of them. */
void wf_prov_eps_progress(struct wf_prov_eps *eps);

/* True: all of them sleep, and epoll_fd is readable when one has work. */
bool wf_prov_eps_sleep(struct wf_prov_eps *eps);

#endif
