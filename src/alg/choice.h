/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header decides which driver gets a job where cost may decide: the first
 * driver by priority has channels, and the caller has named neither it nor a
 * channel. The candidates are then all drivers with channels that come before
 * the first library, and that library.
 */
#ifndef WF_ALG_CHOICE_H
#define WF_ALG_CHOICE_H

#include "alg/registry.h"

/* Whether cost decides, if this driver is the first. */
bool wf_alg_choice_is_open(const struct wd_alg_comp *driver,
			   const struct wf_alg_want *want);

/* For a job whose caller waits: @first or the next one. Takes the reference of
 * @first, and returns one. *@measured: the job's time is needed. */
struct wf_alg_slot *wf_alg_choice_now(struct wf_alg_slot *first,
				      const struct wf_alg_want *want,
				      const struct wd_comp_job *job,
				      bool *measured);

struct wf_alg_choice {
	bool found; /* there is a driver */
	/* One with channels, as a reference; NULL: the first library that is not
	 * excluded, and not in ->passed, in a thread of the caller's. */
	struct wf_alg_slot *slot;
	uint32_t passed;	 /* bits of drivers that come before it */
	struct wf_alg_cost *own; /* where its times go, ... */
	struct wf_alg_cost
		*cost; /* ... if cost decides and the job is measured */
};

/* For a job that overlaps with others: where it ends soonest, by measured times
 * and rates and by what each driver has to do now. */
void wf_alg_choice_later(const struct wf_alg_want *want,
			 const struct wd_comp_job *job,
			 struct wf_alg_choice *choice);

#endif
