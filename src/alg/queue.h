/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A channel of a driver with its jobs. The results of all drivers are checked
 * here: a job that the driver does not have, impossible lengths, and a job that
 * does not return in time end the channel, and the driver is not used again.
 * The time of a job begins when those submitted before it are back; time in
 * which nobody polls counts for at most an eighth of it. Each job that was
 * taken ends exactly once.
 *
 * Any number of threads may use one queue: a thread that polls passes every job
 * that is done to its owner.
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

/* For users that keep it longer than a call: wd_release_channel() ends the
 * queue, the last reference frees it. */
void wf_alg_queue_ref(struct wf_alg_queue *q);
void wf_alg_queue_unref(struct wf_alg_queue *q);

/* Submits, and waits until it is done. Its result; -ENODEV when the channel is
 * over. @q is of wf_alg_queue_of(), or nobody else uses it between
 * wf_alg_queue_get() and wf_alg_queue_put(): then it takes no lock. */
int wf_alg_queue_run(struct wf_alg_queue *q, struct wd_comp_job *job);

/* How many of @jobs were taken, 0 if it is full; -ENODEV. The owners of those
 * that ended at once have been notified. */
int wf_alg_queue_submit(struct wf_alg_queue *q, struct wd_comp_job *const *jobs,
			unsigned int n);

/* Counts for `weft stat` that the queue was full for a job; call it once a job. */
void wf_alg_queue_was_full(struct wf_alg_queue *q);

/* Notifies the owners of jobs that are done. How many; -ENODEV when the channel
 * is over and all have been notified. */
int wf_alg_queue_poll(struct wf_alg_queue *q);

/* Sleeps until there may be something to poll. */
void wf_alg_queue_wait(struct wf_alg_queue *q, int timeout_ms);

/* Closes the idle queues of this driver. */
void wf_alg_queue_close_idle(const struct wf_alg_slot *slot);

#endif
