/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filling up quotas. A rate that is not limited is kept full, so that workers
 * look at both in the same way.
 */
#include "devd/quota.h"

#include "base/clock.h"

/* More than a second can do. */
#define PLENTY (INT64_MAX / 4)

static int64_t most_of(uint64_t rate)
{
	return rate && rate < PLENTY ? (int64_t)rate : PLENTY;
}

static void limit(_Atomic int64_t *left, int64_t most)
{
	int64_t now = atomic_load(left);

	while (now > most && !atomic_compare_exchange_weak(left, &now, most))
		;
}

void wf_devd_quota_set(struct wf_devd_quota *quota,
		       const struct wf_devd_rates *rates)
{
	bool limited = rates->jobs || rates->bytes;

	if (rates->jobs == quota->rates.jobs &&
	    rates->bytes == quota->rates.bytes)
		return;
	quota->rates = *rates;
	/* A debt from before the rates changed is forgiven. */
	atomic_store(&quota->jobs, most_of(rates->jobs));
	atomic_store(&quota->bytes, most_of(rates->bytes));
	atomic_store(&quota->limited, limited);
}

static void fill(_Atomic int64_t *left, double *part, uint64_t rate,
		 uint64_t ns)
{
	int64_t more;

	if (!rate) {
		atomic_store(left, PLENTY);
		return;
	}
	*part += (double)rate * (double)ns / (double)WF_NS_PER_S;
	if (*part > (double)PLENTY)
		*part = (double)PLENTY;
	more = (int64_t)*part;
	*part -= (double)more;
	atomic_fetch_add(left, more);
	limit(left, most_of(rate));
}

bool wf_devd_quota_refill(struct wf_devd_quota *quota, uint64_t ns)
{
	if (atomic_load(&quota->limited)) {
		fill(&quota->jobs, &quota->jobs_part, quota->rates.jobs, ns);
		fill(&quota->bytes, &quota->bytes_part, quota->rates.bytes, ns);
		if (atomic_load(&quota->jobs) <= 0 ||
		    atomic_load(&quota->bytes) <= 0)
			return false;
	}
	/* Pairs with the exchange of a worker that found nothing left: it either
	 * sees what was added, or is seen here, now or the next time. */
	return atomic_exchange(&quota->wanted, false);
}
