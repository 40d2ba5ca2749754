/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking by an eventfd.
 */
#include "op/waker.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int wf_op_waker_open(struct wf_waker *waker)
{
	atomic_init(&waker->asleep, false);
	waker->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return waker->fd < 0 ? -errno : 0;
}

void wf_op_waker_close(struct wf_waker *waker)
{
	if (waker->fd >= 0)
		close(waker->fd);
	waker->fd = -1;
}

void wf_op_waker_wake(struct wf_waker *waker)
{
	const uint64_t one = 1;

	atomic_store_explicit(&waker->asleep, false, memory_order_relaxed);
	/* Full: then it is readable, which is all that is wanted. */
	if (waker->fd >= 0)
		(void)!write(waker->fd, &one, sizeof(one));
}

void wf_op_waker_still(struct wf_waker *waker)
{
	uint64_t count;

	atomic_store_explicit(&waker->asleep, false, memory_order_relaxed);
	if (waker->fd >= 0)
		(void)!read(waker->fd, &count, sizeof(count));
}
