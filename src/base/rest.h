/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Yields the processor for a moment in a loop that waits for another process,
 * which may need this very processor.
 */
#ifndef WF_BASE_REST_H
#define WF_BASE_REST_H

#include <stdatomic.h>

/* State of one loop that waits; zero at first. Threads may share it. */
struct wf_rest {
	atomic_uint naps; /* of 50 us each, to be taken before the next yield */
	atomic_uint nap;  /* how long the last one was, ns */
	atomic_uint woke_us; /* when the last one ended */
};

void wf_base_rest(struct wf_rest *rest);

/* Something has happened, and a new wait begins: its first sleeps are short. */
void wf_base_rest_begin(struct wf_rest *rest);

#endif
