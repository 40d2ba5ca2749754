/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking by an eventfd.
 */
#include "op/waker.h"

#include <stdint.h>

#include "os/file.h"
#include "os/poll.h"

int wf_op_waker_open(struct wf_waker *waker, bool threads)
{
	int fd = wf_os_eventfd();

	*waker = (struct wf_waker){ .fd = fd < 0 ? -1 : fd };
	wf_base_lock_init(&waker->lock, threads);
	return fd < 0 ? fd : 0;
}

void wf_op_waker_close(struct wf_waker *waker)
{
	if (waker->fd >= 0)
		wf_os_close(waker->fd);
	waker->fd = -1;
}

void wf_op_waker_forked(struct wf_waker *waker)
{
	wf_base_lock_init(&waker->lock, waker->lock.real);
	waker->sleepers = 0;
	waker->rung = 0;
}

void wf_op_waker_wake(struct wf_waker *waker)
{
	if (waker->fd < 0)
		return;
	wf_base_lock_take(&waker->lock);
	atomic_store_explicit(&waker->asleep, false, memory_order_relaxed);
	waker->rings++;
	waker->rung = waker->sleepers;
	/* This fails if the counter is full; the descriptor is readable then as
	 * well. */
	wf_os_eventfd_write(waker->fd, 1);
	wf_base_lock_drop(&waker->lock);
}

/* Sleepers for whom nobody has rung yet need a ring. */
static void still_locked(struct wf_waker *waker)
{
	uint64_t count;

	if (!waker->sleepers)
		atomic_store_explicit(&waker->asleep, false,
				      memory_order_relaxed);
	if (!waker->rung && waker->fd >= 0)
		wf_os_eventfd_read(waker->fd, &count);
}

void wf_op_waker_still(struct wf_waker *waker)
{
	wf_base_lock_take(&waker->lock);
	still_locked(waker);
	wf_base_lock_drop(&waker->lock);
}

uint32_t wf_op_waker_enter(struct wf_waker *waker)
{
	uint32_t entered;

	wf_base_lock_take(&waker->lock);
	still_locked(waker);
	waker->sleepers++;
	entered = waker->rings;
	wf_base_lock_drop(&waker->lock);
	return entered;
}

void wf_op_waker_leave(struct wf_waker *waker, uint32_t entered)
{
	wf_base_lock_take(&waker->lock);
	waker->sleepers--;
	if (entered != waker->rings)
		waker->rung--;
	wf_base_lock_drop(&waker->lock);
}
