/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header limits how many jobs and bytes a second the clients of one user
 * may have done. The manager adds to what is left, up to what a second brings;
 * workers take away what they have done, and leave the channels of the user
 * alone while nothing is left. A turn may take more than there is, which is
 * then owed.
 */
#ifndef WF_DEVD_QUOTA_H
#define WF_DEVD_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A second; 0: as many as there are. */
struct wf_devd_rates {
	uint64_t jobs;
	uint64_t bytes; /* taken and made by jobs */
};

struct wf_devd_quota {
	/* Only the manager uses these: */
	struct wf_devd_rates rates;
	double jobs_part, bytes_part; /* of one that is not yet whole */
	/* Manager and workers use these: */
	atomic_bool limited;
	atomic_bool wanted;	     /* a worker has left jobs alone */
	_Atomic int64_t jobs, bytes; /* left; below 0: owed */
};

/* @rates hold from now on. */
void wf_devd_quota_set(struct wf_devd_quota *quota,
		       const struct wf_devd_rates *rates);
/* @ns have passed. True if workers have left jobs alone that can be done now. */
bool wf_devd_quota_refill(struct wf_devd_quota *quota, uint64_t ns);

/* Worker: whether jobs may be done. *@first: they may not, and nobody has said so
 * since the last refill, so that the manager has to be told. */
static inline bool wf_devd_quota_allows(struct wf_devd_quota *quota,
					bool *first)
{
	*first = false;
	if (!atomic_load_explicit(&quota->limited, memory_order_relaxed) ||
	    (atomic_load_explicit(&quota->jobs, memory_order_relaxed) > 0 &&
	     atomic_load_explicit(&quota->bytes, memory_order_relaxed) > 0))
		return true;
	*first = !atomic_exchange(&quota->wanted, true);
	return false;
}

static inline void wf_devd_quota_take(struct wf_devd_quota *quota,
				      uint64_t jobs, uint64_t bytes)
{
	if (!atomic_load_explicit(&quota->limited, memory_order_relaxed))
		return;
	atomic_fetch_sub(&quota->jobs, (int64_t)jobs);
	atomic_fetch_sub(&quota->bytes, (int64_t)bytes);
}

#endif
