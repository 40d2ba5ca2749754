/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worker threads: each serves the queues of some channels, in turns, a few jobs
 * at a time, so that no client waits for another. A worker polls for work for a
 * while, then announces to its channels that it sleeps.
 */
#ifndef WF_DEVD_WORKER_H
#define WF_DEVD_WORKER_H

#include "devd/job.h"
#include "devd/server.h"

struct wf_devd_worker {
	struct wf_devd *devd;
	pthread_t thread;
	unsigned int load; /* manager: channels given */
	int cpu;	   /* -1: any */
	int epoll_fd;
	int wake_fd;
	pthread_mutex_t lock;
	struct wf_list incoming; /* under lock */
	atomic_bool changed, stop;
	struct wf_list chans;
	struct wf_devd_scratch scratch;
	/* When it began to interrupt a client: a hostile one may have made its
	 * eventfd block. 0: it does not. */
	_Atomic uint64_t signalling;
	_Atomic uint64_t jobs, refused, faults;
};

int wf_devd_worker_start(struct wf_devd_worker *worker, struct wf_devd *devd,
			 int cpu);
void wf_devd_worker_end(struct wf_devd_worker *worker);

/* A channel's turn; how many jobs it got done. The worker's own, and the fuzz
 * target's. */
unsigned int wf_devd_worker_turn(struct wf_devd_worker *worker,
				 struct wf_devd_chan *chan);

/* Manager: hand a channel over; ask for it back (it comes to the inbox). */
void wf_devd_worker_give(struct wf_devd_worker *worker,
			 struct wf_devd_chan *chan);
void wf_devd_worker_recall(struct wf_devd_chan *chan);

/* Manager: look at all channels again. */
void wf_devd_worker_wake(struct wf_devd_worker *worker);

/* Manager, now and then: frees a worker that a client holds up. */
void wf_devd_worker_watch(struct wf_devd_worker *worker, uint64_t now);

#endif
