/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues that asynchronous jobs share: one for each driver, kind of job and
 * channel of the application's. A lane is there while jobs are on it.
 */
#ifndef WF_ALG_LANE_H
#define WF_ALG_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "alg/queue.h"

struct wf_alg_lane;

/*
 * Puts @job on a queue of the driver, which has queues and whose limits allow
 * it; on the application's channel if @ch is one. The owner of the job is then
 * notified once, maybe before this returns, and calls wf_alg_lane_left(*@lane).
 * -EAGAIN: it is full; -ENODEV: it is gone.
 */
int wf_alg_lane_submit(struct wf_alg_slot *slot, struct wd_comp_job *job,
		       struct wd_chan *ch, struct wf_alg_lane **lane);
/* By the owner of a job that is done. */
void wf_alg_lane_left(struct wf_alg_lane *lane);

/* Whether any job is on a queue. */
bool wf_alg_lane_busy(void);
/* Notifies the owners of jobs that are done, and returns how many. */
int wf_alg_lane_poll(void);
/* Sleeps until there may be something to poll; of several lanes one is looked at,
 * so that @timeout_ms is to be short. */
void wf_alg_lane_wait(int timeout_ms);

#endif
