/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attendant: one thread of the process that serves devices whose owner has
 * not called for a while, because it computes. It acknowledges, retransmits,
 * and serves reads of our memory. While the owner calls, the thread only checks
 * the owner's counter every 2 ms. When the owner stops calling, the thread
 * sleeps until the socket is readable or the next timer expires. The thread and
 * its descriptor exist while there are devices: closing the last one waits
 * until the thread has ended.
 */
#include "nic/attend.h"

#include <errno.h>

#include "base/clock.h"
#include "base/fork.h"
#include "os/file.h"
#include "os/inline.h"
#include "os/poll.h"
#include "os/thread.h"
#include "queue/wake.h"

/* How soon after its owner stopped calling a device is served, and how long to
 * sleep at most: if the owner sleeps at the socket and does not read after all,
 * nobody wakes us for it. */
#define TICK (2 * WF_NS_PER_MS)
#define TICK_IDLE (64 * WF_NS_PER_MS)
/* Sockets to sleep at; devices beyond are looked at every tick. */
#define SOCKETS 64

WF_PER_PROCESS static struct wf_os_mutex lock = WF_OS_MUTEX_INIT;
WF_PER_PROCESS static struct wf_list devices = { &devices, &devices };
/* The thread; it has begun and is not joined; it has not ended. */
WF_PER_PROCESS static struct wf_os_thread thread;
WF_PER_PROCESS static bool started;
WF_PER_PROCESS static bool running;
WF_PER_PROCESS static bool watched; /* for forks */
/* The thread sleeps at the sockets that it saw in its last look. */
WF_PER_PROCESS static bool resting;
WF_PER_PROCESS static uint64_t rests; /* that are over */
WF_PER_PROCESS static struct wf_os_cond rested = WF_OS_COND_INIT;
WF_PER_PROCESS static int wake_fd = -1;
/* The thread sleeps, and an owner's call must wake it. */
WF_PER_PROCESS static _Atomic uint32_t asleep;

/* The result of a look at all devices. */
struct look {
	bool called;  /* some owner has */
	bool crowded; /* some socket has no place in fds */
	uint64_t due; /* the first timer of those that are stepped in for */
	unsigned int count;
	struct pollfd fds[1 + SOCKETS]; /* the first: wake_fd */
};

static uint32_t calls_of(const struct wf_nic_attend *dev)
{
	return atomic_load_explicit(&dev->calls, memory_order_relaxed);
}

/* Whether the owner has called since the last look. */
static bool is_attended(struct wf_nic_attend *dev)
{
	uint32_t calls = calls_of(dev);
	bool attended = calls != dev->calls_seen;

	dev->calls_seen = calls;
	return attended;
}

static void look_at(struct wf_nic_attend *dev, struct look *look)
{
	uint64_t due;

	if (is_attended(dev)) {
		look->called = true;
		dev->watched = false;
		return;
	}
	due = dev->step_in(dev, dev->watched);
	look->due = due < look->due ? due : look->due;
	/* The socket wakes an owner that sleeps at it. */
	dev->watched = !atomic_load_explicit(dev->owner_asleep,
					     memory_order_relaxed) &&
		       !dev->blind && look->count <= SOCKETS;
	if (dev->watched)
		look->fds[look->count++] =
			(struct pollfd){ .fd = dev->fd, .events = POLLIN };
	else
		look->crowded |= dev->blind || look->count > SOCKETS;
}

/* Before a sleep that is not short: from now on a call wakes us, one that came
 * before is seen here. */
static void arm(struct look *look)
{
	struct wf_list *pos, *tmp;

	wf_queue_wake_arm(&asleep);
	wf_list_for_each (pos, tmp, &devices) {
		struct wf_nic_attend *dev =
			wf_container_of(pos, struct wf_nic_attend, link);

		look->called |= calls_of(dev) != dev->calls_seen;
	}
	if (look->called)
		wf_queue_wake_disarm(&asleep);
}

static void rest(struct look *look)
{
	uint64_t now = wf_base_clock_ns();
	uint64_t most = look->called || look->crowded ? TICK : TICK_IDLE;
	uint64_t wait = look->due > now ? look->due - now : 0;

	wf_os_poll(look->fds, look->count, wait < most ? wait : most);
	wf_queue_wake_disarm(&asleep);
}

static void *attend(void *arg)
{
	(void)arg;
	for (;;) {
		struct look look = { .due = UINT64_MAX, .count = 1 };
		struct wf_list *pos, *tmp;
		uint64_t value;

		wf_os_mutex_lock(&lock);
		resting = false;
		rests++;
		wf_os_cond_broadcast(&rested);
		wf_os_eventfd_read(wake_fd, &value);
		if (wf_base_list_empty(&devices)) {
			running = false;
			wf_os_mutex_unlock(&lock);
			return NULL;
		}
		look.fds[0] =
			(struct pollfd){ .fd = wake_fd, .events = POLLIN };
		wf_list_for_each (pos, tmp, &devices)
			look_at(wf_container_of(pos, struct wf_nic_attend,
						link),
				&look);
		if (!look.called)
			arm(&look);
		resting = true;
		wf_os_mutex_unlock(&lock);
		rest(&look);
	}
}

bool wf_nic_attend_enter(struct wf_nic_attend *attend, struct wf_lock *its_lock)
{
	/* The thread that has the lock handles what the descriptor reports. */
	attend->blind = its_lock->real && !wf_base_lock_try(its_lock);
	return !attend->blind;
}

void wf_nic_attend_wake(void)
{
	if (wf_queue_wake_needed(&asleep))
		wf_os_eventfd_write(wake_fd, 1);
}

/* The thread is not there in a child, and the devices are not its. */
static void in_child(struct wf_fork_watch *unused)
{
	(void)unused;
	wf_os_mutex_init(&lock);
	wf_os_cond_init(&rested);
	wf_base_list_init(&devices);
	watched = false;
	started = false;
	running = false;
	resting = false;
	/* The parent reads it. */
	if (wake_fd >= 0)
		wf_os_close(wake_fd);
	wake_fd = -1;
	asleep = 0;
}

/* For a thread that has ended its loop: it does not take the lock again, so we
 * may wait for it with the lock held. */
static void join_locked(void)
{
	if (started)
		wf_os_thread_join(thread);
	started = false;
}

static int start_locked(void)
{
	WF_PER_PROCESS static struct wf_fork_watch watch = { .in_child =
								     in_child };
	int ret;

	if (wake_fd < 0)
		wake_fd = wf_os_eventfd();
	if (wake_fd < 0)
		return wake_fd;
	/* A thread that was about to end continues. */
	if (running)
		return 0;
	join_locked();
	if (!watched)
		wf_base_fork_watch(&watch);
	watched = true;
	ret = wf_os_thread_start(&thread, attend, NULL);
	started = !ret;
	running = !ret;
	return ret;
}

/* The thread is not needed any more, unless another device is added
 * meanwhile. */
static void stop_locked(void)
{
	if (running)
		wf_os_eventfd_write(wake_fd, 1);
	while (running && wf_base_list_empty(&devices))
		wf_os_cond_wait(&rested, &lock);
	if (!wf_base_list_empty(&devices))
		return;
	join_locked();
	if (wake_fd >= 0)
		wf_os_close(wake_fd);
	wake_fd = -1;
}

int wf_nic_attend_begin(struct wf_nic_attend *dev)
{
	int ret;

	wf_os_mutex_lock(&lock);
	ret = start_locked();
	if (!ret)
		wf_base_list_add_tail(&devices, &dev->link);
	else if (wf_base_list_empty(&devices))
		stop_locked();
	dev->on = !ret;
	wf_os_mutex_unlock(&lock);
	return ret;
}

void wf_nic_attend_end(struct wf_nic_attend *dev)
{
	uint64_t before;

	wf_os_mutex_lock(&lock);
	wf_base_list_del(&dev->link);
	dev->on = false;
	/* While the thread sleeps at the socket, the kernel keeps the port, and
	 * a process that closes an endpoint and binds its address again is
	 * refused. */
	before = rests;
	if (resting && dev->watched)
		wf_os_eventfd_write(wake_fd, 1);
	while (resting && dev->watched && rests == before)
		wf_os_cond_wait(&rested, &lock);
	if (wf_base_list_empty(&devices))
		stop_locked();
	wf_os_mutex_unlock(&lock);
}
