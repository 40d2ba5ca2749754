/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of a device in software.
 */
#include "nic/worker.h"

#include "base/clock.h"
#include "os/file.h"

static void sleep_until(struct wf_nic_worker *worker, uint64_t at)
{
	struct pollfd fds[2] = {
		{ .fd = worker->blind ? -1 : worker->fd, .events = POLLIN },
		{ .fd = worker->wake_fd, .events = POLLIN },
	};
	uint64_t now = wf_base_clock_ns(), count;

	if (at <= now)
		return;
	wf_os_poll(fds, 2, at == UINT64_MAX ? WF_OS_FOREVER : at - now);
	if (fds[1].revents)
		wf_os_eventfd_read(worker->wake_fd, &count);
}

static void *work(void *arg)
{
	struct wf_nic_worker *worker = arg;

	for (;;) {
		uint64_t at;
		bool stop;

		wf_base_lock_take(worker->lock);
		worker->blind = false;
		at = worker->pass(worker);
		stop = worker->stop;
		wf_base_lock_drop(worker->lock);
		if (stop)
			return NULL;
		if (!at)
			continue;
		/* Pairs with wf_queue_wake_needed() in
		 * wf_nic_worker_kick(). */
		wf_queue_wake_arm(&worker->asleep);
		if (!atomic_load_explicit(&worker->dirty, memory_order_relaxed))
			sleep_until(worker, at);
		wf_queue_wake_disarm(&worker->asleep);
	}
}

int wf_nic_worker_start(struct wf_nic_worker *worker)
{
	int ret;

	worker->wake_fd = wf_os_eventfd();
	if (worker->wake_fd < 0)
		return worker->wake_fd;
	worker->on = true; /* before it looks */
	ret = wf_os_thread_start(&worker->thread, work, worker);
	if (ret)
		worker->on = false;
	return ret;
}

void wf_nic_worker_stop(struct wf_nic_worker *worker)
{
	if (!worker->on)
		return;
	wf_base_lock_take(worker->lock);
	worker->stop = true;
	wf_base_lock_drop(worker->lock);
	wf_os_eventfd_write(worker->wake_fd, 1);
	wf_os_thread_join(worker->thread);
}

void wf_nic_worker_close(struct wf_nic_worker *worker)
{
	if (worker->wake_fd >= 0)
		wf_os_close(worker->wake_fd);
	worker->wake_fd = -1;
}
