/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A channel of a driver with the jobs that are on it. What a driver says is
 * checked here, once for all of them: a job that it does not have, lengths that
 * cannot be, and a job that does not come back in time end the channel, and the
 * driver is not asked again. The time of a job begins when those submitted before
 * it are back; time in which nobody looks counts for an eighth of it at most. Each job that was taken ends exactly once.
 *
 * Any number of threads may use one queue: whoever polls gives every job that is
 * done to its owner.
 */
#ifndef WF_ALG_QUEUE_H
#define WF_ALG_QUEUE_H

#include <stdbool.h>

#include "alg/registry.h"

struct wf_alg_queue;

/* In wd_comp_job.owner, or NULL there: then ->done alone says it. */
struct wf_alg_owner {
	/* The job is over, and ->result says how. Runs with the queue locked. */
	void (*done)(struct wf_alg_owner *owner);
};

/* Whether the driver's limits allow it. */
bool wf_alg_queue_fits(const struct wd_alg_comp *driver,
		       const struct wd_comp_job *job);

/*
 * A queue of this thread's own: one that was put back, or a new one; *@fresh
 * says which. NULL if the driver has no channel. The slot is referenced by it.
 */
struct wf_alg_queue *wf_alg_queue_get(struct wf_alg_slot *slot,
				      unsigned int can, bool *fresh);
void wf_alg_queue_put(struct wf_alg_queue *q);

/* The queue on an application's channel: made at the first use, closed by
 * wd_release_channel(). NULL if the driver does not take the channel, or has it
 * for the other direction. */
struct wf_alg_queue *wf_alg_queue_of(struct wf_alg_slot *slot,
				     struct wd_chan *ch, unsigned int can);

/* For whoever uses it longer than a call: wd_release_channel() ends the queue, the
 * last reference frees it. */
void wf_alg_queue_ref(struct wf_alg_queue *q);
void wf_alg_queue_unref(struct wf_alg_queue *q);

/* Submits, and waits until it is done. Its result; -ENODEV when the channel is
 * over. */
int wf_alg_queue_run(struct wf_alg_queue *q, struct wd_comp_job *job);

/* How many of @jobs were taken, 0 if it is full; -ENODEV. The owners of those
 * that ended at once have been told. */
int wf_alg_queue_submit(struct wf_alg_queue *q, struct wd_comp_job *const *jobs,
			unsigned int n);

/* Tells owners of what is done. How many; -ENODEV when the channel is over and
 * everybody has been told. */
int wf_alg_queue_poll(struct wf_alg_queue *q);

/* Sleeps until there may be something to poll. */
void wf_alg_queue_wait(struct wf_alg_queue *q, int timeout_ms);

/* Closes what was put back and belongs to this driver. */
void wf_alg_queue_close_idle(const struct wf_alg_slot *slot);

#endif
