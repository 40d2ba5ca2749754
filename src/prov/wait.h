/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a queue or a counter without using the processor. One descriptor
 * reports everything: peers of all endpoints behind it, and other threads of
 * this process (op/waker.h).
 */
#ifndef WF_PROV_WAIT_H
#define WF_PROV_WAIT_H

#include <stdint.h>

#include <rdma/fi_eq.h>

#include "base/rest.h"
#include "op/waker.h"
#include "prov/eps.h"

struct wf_prov_wait {
	enum fi_wait_obj obj; /* NONE, YIELD or FD */
	struct wf_prov_eps *eps;
	struct wf_waker *waker;
	/* Begins the waker's sleep if there is nothing to read, under the lock
	 * that covers the queue. False: there is something. */
	bool (*doze)(struct wf_prov_wait *wait);
};

/* @obj is the requested kind. 0, -FI_ENOSYS for an unsupported kind, or
 * -errno. */
int wf_prov_wait_open(struct wf_prov_wait *wait, enum fi_wait_obj obj);
void wf_prov_wait_close(struct wf_prov_wait *wait);

/* fi_control(): FI_GETWAIT and FI_GETWAITOBJ. */
int wf_prov_wait_control(const struct wf_prov_wait *wait, int command,
			 void *arg);

/* fi_trywait() of one object: 0 or -FI_EAGAIN. */
int wf_prov_wait_try(struct wf_prov_wait *wait);

/* One of the waits of a blocking call: begin with wf_prov_wait_start(), then
 * as often as there is nothing to read. False when the time is over. */
struct wf_prov_waiting {
	struct wf_prov_wait *wait;
	/* Whether what is waited for came while we were about to sleep, unless
	 * wait->doze() says so itself; may be NULL. */
	bool (*ready)(const struct wf_prov_waiting *waiting);
	uint64_t begin;
	uint64_t deadline; /* UINT64_MAX: none */
	struct wf_rest rest;
};

void wf_prov_wait_start(struct wf_prov_waiting *waiting,
			struct wf_prov_wait *wait, int timeout_ms);
bool wf_prov_wait_more(struct wf_prov_waiting *waiting);

#endif
