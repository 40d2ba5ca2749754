/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attendant: one thread of the process that steps in for devices whose
 * owner has not called for a while, because he computes. Peers get their
 * acknowledgements, what was lost is sent again, reads of our memory are
 * served. As long as the owner calls, a look at his counter is all it does.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/fork.h"
#include "nic/udp/dev.h"

/* How soon an owner who stopped calling is stepped in for, how long to wait
 * after something was done for him, and how long at most. */
#define TICK (2 * WF_NS_PER_MS)
#define TICK_BUSY (100 * WF_NS_PER_US)
#define TICK_IDLE (64 * WF_NS_PER_MS)
/* Passes in a row for one device. */
#define PASSES 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_list devices = { &devices, &devices };
static bool running;

/* Whether the owner has called since the last look. */
static bool is_attended(struct wf_udp_dev *dev)
{
	uint32_t calls =
		atomic_load_explicit(&dev->calls, memory_order_relaxed);
	bool attended = calls != dev->calls_seen;

	dev->calls_seen = calls;
	return attended;
}

static bool step_in(struct wf_udp_dev *dev)
{
	bool did = false;

	for (int i = 0; i < PASSES; i++) {
		int more;

		wf_base_lock_take(&dev->nic.lock);
		more = wf_udp_pass(dev);
		wf_base_lock_drop(&dev->nic.lock);
		if (!more)
			break;
		did = true;
	}
	return did;
}

static void nap(uint64_t ns)
{
	const struct timespec ts = { .tv_nsec = (long)ns };

	nanosleep(&ts, NULL);
}

static void *attend(void *arg)
{
	uint64_t tick = TICK;

	(void)arg;
	for (;;) {
		struct wf_list *pos, *tmp;
		bool called = false, did = false;

		nap(tick);
		pthread_mutex_lock(&lock);
		if (wf_base_list_empty(&devices)) {
			running = false;
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		wf_list_for_each (pos, tmp, &devices) {
			struct wf_udp_dev *dev =
				wf_container_of(pos, struct wf_udp_dev, attend);

			if (is_attended(dev))
				called = true;
			else
				did |= step_in(dev);
		}
		pthread_mutex_unlock(&lock);
		if (did)
			tick = TICK_BUSY;
		else if (called || tick < TICK)
			tick = TICK;
		else
			tick = tick * 2 < TICK_IDLE ? tick * 2 : TICK_IDLE;
	}
}

/* The thread is not there in a child, and the devices are not its. */
static void in_child(struct wf_fork_watch *unused)
{
	(void)unused;
	pthread_mutex_init(&lock, NULL);
	wf_base_list_init(&devices);
	running = false;
}

static int start_locked(void)
{
	static struct wf_fork_watch watch = { .in_child = in_child };
	static bool watched;
	pthread_t thread;
	sigset_t all, old;
	int ret;

	if (running)
		return 0;
	if (!watched)
		wf_base_fork_watch(&watch);
	watched = true;
	/* Signals are for the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&thread, NULL, attend, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return ret;
	pthread_detach(thread);
	running = true;
	return 0;
}

int wf_udp_attend_begin(struct wf_udp_dev *dev)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = start_locked();
	if (!ret)
		wf_base_list_add_tail(&devices, &dev->attend);
	pthread_mutex_unlock(&lock);
	return ret;
}

void wf_udp_attend_end(struct wf_udp_dev *dev)
{
	pthread_mutex_lock(&lock);
	wf_base_list_del(&dev->attend);
	pthread_mutex_unlock(&lock);
}
