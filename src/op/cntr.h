/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values behind a counter of libfabric: successes and failures, counted by
 * any thread. Sequentially consistent: a thread that counts sees a sleeper that
 * did not see the count.
 */
#ifndef WF_OP_CNTR_H
#define WF_OP_CNTR_H

#include <stdint.h>

#include "op/waker.h"

struct wf_cntr {
	_Atomic uint64_t value;
	_Atomic uint64_t errors;
	struct wf_waker waker;
};

/* @cntr may be NULL: nothing is bound for that event. */
static inline void wf_op_cntr_add(struct wf_cntr *cntr, uint64_t more)
{
	if (!cntr)
		return;
	atomic_fetch_add(&cntr->value, more);
	wf_op_waker_ring(&cntr->waker);
}

static inline void wf_op_cntr_fail(struct wf_cntr *cntr, uint64_t more)
{
	if (!cntr)
		return;
	atomic_fetch_add(&cntr->errors, more);
	wf_op_waker_ring(&cntr->waker);
}

#endif
