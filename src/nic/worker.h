/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of a device in software that does nothing but its work: it makes
 * passes while there is something to do, then sleeps until its descriptor is
 * readable, a time comes, or a doorbell is written. If several devices share
 * one thread that only helps out, see attend.h.
 */
#ifndef WF_NIC_WORKER_H
#define WF_NIC_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "os/poll.h"
#include "os/thread.h"
#include "queue/wake.h"

struct wf_nic_worker {
	/* The device's, set before wf_nic_worker_start(): */
	struct wf_lock *lock;
	int fd; /* readable when there is something to do */
	/* One pass of the device's work, with the lock. Returns when there is
	 * something to do next, by the monotonic clock: 0: now, UINT64_MAX:
	 * never. */
	uint64_t (*pass)(struct wf_nic_worker *worker);
	/* Set by pass(): the descriptor is readable because of something that
	 * has to wait. */
	bool blind;
	bool on;
	/* The thread: */
	bool stop;
	int wake_fd;
	struct wf_os_thread thread;
	_Atomic uint32_t asleep;
	_Atomic uint32_t dirty; /* some doorbell was written */
};

static inline void wf_nic_worker_init(struct wf_nic_worker *worker)
{
	worker->wake_fd = -1;
}

/* 0 or -errno. No lock. */
int wf_nic_worker_start(struct wf_nic_worker *worker);
/* Waits until it has ended, if it was started. No lock. */
void wf_nic_worker_stop(struct wf_nic_worker *worker);
void wf_nic_worker_close(struct wf_nic_worker *worker);

/* A doorbell was written. No lock. */
static inline void wf_nic_worker_kick(struct wf_nic_worker *worker)
{
	atomic_store_explicit(&worker->dirty, 1, memory_order_release);
	if (wf_queue_wake_needed(&worker->asleep))
		wf_os_eventfd_write(worker->wake_fd, 1);
}

/* Whether one was, since the last time. */
static inline bool wf_nic_worker_is_kicked(struct wf_nic_worker *worker)
{
	return atomic_exchange_explicit(&worker->dirty, 0,
					memory_order_acquire);
}

#endif
