/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the instructions of one call in a traced child: exact, and also where
 * valgrind does not know the instructions (AVX-512).
 */
#ifndef WF_BENCH_WQE_STEP_H
#define WF_BENCH_WQE_STEP_H

#include "wqe_variants.h"

struct wqe_steps {
	long instructions; /* from the first of the function to its return */
	long calls;	   /* made by it and below it */
	long stack;	   /* bytes below the return address */
};

/* -ENOTSUP where it cannot be done. */
int wqe_step_count(wqe_post_fn post, struct wqe_queue *q, bool ring,
		   struct wqe_steps *steps);

#endif
