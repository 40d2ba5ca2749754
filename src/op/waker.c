/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking by an eventfd.
 */
#include "op/waker.h"

#include <stdint.h>

#include "os/file.h"
#include "os/poll.h"

int wf_op_waker_open(struct wf_waker *waker)
{
	int fd = wf_os_eventfd();

	atomic_init(&waker->asleep, false);
	waker->fd = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

void wf_op_waker_close(struct wf_waker *waker)
{
	if (waker->fd >= 0)
		wf_os_close(waker->fd);
	waker->fd = -1;
}

void wf_op_waker_wake(struct wf_waker *waker)
{
	atomic_store_explicit(&waker->asleep, false, memory_order_relaxed);
	/* Full: then it is readable, which is all that is wanted. */
	if (waker->fd >= 0)
		wf_os_eventfd_write(waker->fd, 1);
}

void wf_op_waker_still(struct wf_waker *waker)
{
	uint64_t count;

	atomic_store_explicit(&waker->asleep, false, memory_order_relaxed);
	if (waker->fd >= 0)
		wf_os_eventfd_read(waker->fd, &count);
}
