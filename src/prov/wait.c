/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a queue or a counter.
 */
#include "prov/wait.h"

#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "os/file.h"
#include "os/poll.h"
#include "prov/provider.h"

/* A message that comes this soon is worth more than the sleep: going to sleep
 * and being woken takes about as long. */
#define SPIN_NS (20 * WF_NS_PER_US)

/* Rounds of progress that find all there is to find. */
#define ROUNDS 2

static int open_fd(struct wf_prov_wait *wait)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	err = wf_op_waker_open(wait->waker, wait->eps->lock.real);
	if (err)
		return err;
	err = wf_os_epoll_create();
	wait->eps->epoll_fd = err < 0 ? -1 : err;
	if (err >= 0)
		err = wf_os_epoll_ctl(wait->eps->epoll_fd, EPOLL_CTL_ADD,
				      wait->waker->fd, &event);
	if (err)
		wf_prov_wait_close(wait);
	return err;
}

int wf_prov_wait_open(struct wf_prov_wait *wait, enum fi_wait_obj obj)
{
	wait->waker->fd = -1;
	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_YIELD:
		wait->obj = obj;
		return 0;
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		wait->obj = FI_WAIT_FD;
		return open_fd(wait);
	default:
		/* Another process cannot signal a mutex and a condition;
		 * libfabric has removed wait sets. */
		WF_FI_INFO(FI_LOG_CQ,
			   "wait object %d is not supported: use FI_WAIT_FD or "
			   "FI_WAIT_UNSPEC\n",
			   (int)obj);
		return -FI_ENOSYS;
	}
}

void wf_prov_wait_close(struct wf_prov_wait *wait)
{
	if (wait->eps->epoll_fd >= 0)
		wf_os_close(wait->eps->epoll_fd);
	wait->eps->epoll_fd = -1;
	wf_op_waker_close(wait->waker);
}

int wf_prov_wait_control(const struct wf_prov_wait *wait, int command,
			 void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (wait->obj != FI_WAIT_FD)
			return -FI_ENODATA;
		memcpy(arg, &wait->eps->epoll_fd, sizeof(int));
		return 0;
	case FI_GETWAITOBJ:
		memcpy(arg, &wait->obj, sizeof(wait->obj));
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static void look(struct wf_prov_wait *wait)
{
	for (int i = 0; i < ROUNDS; i++)
		wf_prov_eps_progress(wait->eps);
}

/* In this order: an endpoint that sleeps brings nothing new by itself, and what
 * other threads bring rings the waker. */
static bool can_sleep(struct wf_prov_wait *wait)
{
	return wf_prov_eps_sleep(wait->eps) && wait->doze(wait);
}

int wf_prov_wait_try(struct wf_prov_wait *wait)
{
	if (wait->obj != FI_WAIT_FD)
		return -FI_EINVAL;
	look(wait);
	wf_op_waker_still(wait->waker);
	return can_sleep(wait) ? 0 : -FI_EAGAIN;
}

void wf_prov_wait_start(struct wf_prov_waiting *waiting,
			struct wf_prov_wait *wait, int timeout_ms)
{
	waiting->wait = wait;
	waiting->ready = NULL;
	waiting->rest = (struct wf_rest){ 0 };
	waiting->begin = wf_base_clock_ns();
	waiting->deadline = UINT64_MAX;
	if (timeout_ms >= 0)
		waiting->deadline =
			waiting->begin + (uint64_t)timeout_ms * WF_NS_PER_MS;
}

static int ms_until(uint64_t now, uint64_t deadline)
{
	uint64_t ms;

	if (deadline == UINT64_MAX)
		return -1;
	ms = (deadline - now + WF_NS_PER_MS - 1) / WF_NS_PER_MS;
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

bool wf_prov_wait_more(struct wf_prov_waiting *waiting)
{
	struct wf_prov_wait *wait = waiting->wait;
	uint64_t now = wf_base_clock_ns();
	struct epoll_event event;
	uint32_t entered;

	if (now >= waiting->deadline)
		return false;
	if (wait->obj != FI_WAIT_FD) {
		wf_base_rest(&waiting->rest);
		return true;
	}
	if (now - waiting->begin < SPIN_NS)
		return true;
	look(wait);
	entered = wf_op_waker_enter(wait->waker);
	/* Woken for nothing, or by a signal: the caller looks and comes
	 * back. */
	if (can_sleep(wait) && !(waiting->ready && waiting->ready(waiting)))
		wf_os_epoll_wait(wait->eps->epoll_fd, &event, 1,
				 ms_until(now, waiting->deadline));
	wf_op_waker_leave(wait->waker, entered);
	return true;
}
