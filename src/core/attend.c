/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that makes progress for endpoints whose owner makes no calls. It
 * exists, with its two descriptors, while there are such endpoints: the call
 * that closes the last one waits until the thread has ended.
 *
 * Order of locks: the list's, an endpoint's.
 */
#include "core/attend.h"

#include <errno.h>

#include "base/fork.h"
#include "base/log.h"
#include "base/rest.h"
#include "os/file.h"
#include "os/inline.h"
#include "os/poll.h"
#include "os/thread.h"

/* How soon after its owner stopped polling the thread serves an endpoint; in
 * ms, as epoll counts. */
#define TICK_MS 1
/* Rounds of progress for one endpoint before the others are served, and before
 * an owner that waits for the lock gets it. */
#define ROUNDS 16
/* Endpoints that one look can report; the others are ready in the next. */
#define EVENTS 64

WF_PER_PROCESS static struct wf_os_mutex lock = WF_OS_MUTEX_INIT;
WF_PER_PROCESS static struct wf_list all = { &all, &all };
/* The thread; it has begun and is not joined; it has not ended. */
WF_PER_PROCESS static struct wf_os_thread thread;
WF_PER_PROCESS static bool started;
WF_PER_PROCESS static bool running;
WF_PER_PROCESS static struct wf_os_cond ended = WF_OS_COND_INIT;
WF_PER_PROCESS static int epoll_fd = -1; /* the loops of all endpoints */
WF_PER_PROCESS static int wake_fd = -1;	 /* and this, for a new one */
WF_PER_PROCESS static struct wf_os_once once = WF_OS_ONCE_INIT;

/* -- one endpoint ----------------------------------------------------------- */

static bool has_polled(struct wf_attended *a)
{
	const struct wf_host *host = &a->core->host;
	bool polled = host->polls != a->polls || host->now != a->now;

	a->polls = host->polls;
	a->now = host->now;
	return polled;
}

/* Asks once for a wake-up when the endpoint has work: while its owner polls, its loop
 * may be ready all the time. */
static bool arm(struct wf_attended *a)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLONESHOT,
		.data.ptr = a,
	};

	if (!a->armed)
		a->armed =
			!wf_os_epoll_ctl(epoll_fd, EPOLL_CTL_MOD,
					 a->core->host.loop.epoll_fd, &event);
	return a->armed;
}

/* True: the endpoint sleeps, and its loop wakes us when it has work. */
static bool drive(struct wf_attended *a)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (a->turn)
			a->turn(a);
		wf_core_progress(a->core);
		if (i && wf_core_sleep(a->core))
			return true;
	}
	return false;
}

enum found {
	FOUND_QUIET, /* a wake-up comes when it has work */
	FOUND_OWNER, /* its owner polls: look again in a while */
	FOUND_BUSY,  /* look again at once */
	FOUND_STIRS, /* the same, and something came lately */
};

static enum found look_at(struct wf_attended *a)
{
	enum found found = FOUND_QUIET;
	bool fired;

	/* The holder may linger in fi_close(): nobody else waits for that. */
	if (!wf_base_lock_try(a->core->lock))
		return FOUND_OWNER;
	fired = a->fired;
	a->fired = false;
	if (a->core->host.forked)
		goto drop;
	if (has_polled(a)) {
		found = FOUND_OWNER;
		goto drop;
	}
	/* An owner that sleeps there is woken by the loop, not by us: only what
	 * has arrived is a reason to make progress. */
	if (fired || !a->core->host.asleep) {
		if (!drive(a))
			found = wf_core_is_quiet(a->core) ? FOUND_BUSY :
							    FOUND_STIRS;
		has_polled(a); /* these were our own */
	}
	if (found == FOUND_QUIET && !arm(a))
		found = FOUND_OWNER;
drop:
	wf_core_leave(a->core);
	return found;
}

/* -- the thread ------------------------------------------------------------- */

/* An event may name an endpoint that no longer exists: only those in the list
 * are touched. */
static void note_fired(const struct epoll_event *events, int count)
{
	struct wf_list *pos, *tmp;

	if (count <= 0)
		return;
	wf_list_for_each (pos, tmp, &all) {
		struct wf_attended *a =
			wf_container_of(pos, struct wf_attended, link);

		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr != a)
				continue;
			a->armed = false;
			a->fired = true;
		}
	}
}

static enum found look_at_all(void)
{
	enum found most = FOUND_QUIET;
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &all) {
		enum found found =
			look_at(wf_container_of(pos, struct wf_attended, link));

		most = found > most ? found : most;
	}
	return most;
}

static void *attend(void *arg)
{
	struct epoll_event events[EVENTS];
	struct wf_rest rest = { 0 };
	int count = 0;

	(void)arg;
	for (;;) {
		enum found found;
		uint64_t value;

		wf_os_mutex_lock(&lock);
		wf_os_eventfd_read(wake_fd, &value);
		if (wf_base_list_empty(&all)) {
			running = false;
			wf_os_cond_broadcast(&ended);
			wf_os_mutex_unlock(&lock);
			return NULL;
		}
		note_fired(events, count);
		found = look_at_all();
		wf_os_mutex_unlock(&lock);
		count = wf_os_epoll_wait(epoll_fd, events, EVENTS,
					 found >= FOUND_BUSY  ? 0 :
					 found == FOUND_OWNER ? TICK_MS :
								-1);
		if (found != FOUND_BUSY)
			wf_base_rest_begin(&rest);
		if (found >= FOUND_BUSY)
			wf_base_rest(&rest);
	}
}

/* -- what the thread needs -------------------------------------------------- */

static void close_fds(void)
{
	if (epoll_fd < 0)
		return;
	wf_os_close(epoll_fd);
	wf_os_close(wake_fd);
	epoll_fd = -1;
	wake_fd = -1;
}

static int open_fds(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	if (epoll_fd >= 0)
		return 0;
	wake_fd = wf_os_eventfd();
	if (wake_fd < 0)
		return wake_fd;
	epoll_fd = wf_os_epoll_create();
	err = epoll_fd;
	if (err >= 0)
		err = wf_os_epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event);
	if (err >= 0)
		return 0;
	if (epoll_fd >= 0)
		wf_os_close(epoll_fd);
	wf_os_close(wake_fd);
	epoll_fd = -1;
	wake_fd = -1;
	return err;
}

/* Once the thread has ended it does not take the lock any more. */
static void join(void)
{
	if (started)
		wf_os_thread_join(thread);
	started = false;
}

static int start(void)
{
	int err;

	if (running)
		return 0;
	join();
	err = wf_os_thread_start(&thread, attend, NULL);
	started = !err;
	running = !err;
	return err;
}

/* The thread is not needed any more, unless another endpoint is added
 * meanwhile. */
static void stop(void)
{
	while (running && wf_base_list_empty(&all))
		wf_os_cond_wait(&ended, &lock);
	if (!wf_base_list_empty(&all))
		return;
	join();
	close_fds();
}

/* -- forks ------------------------------------------------------------------ */

/* fork() waits while the thread is in an endpoint. */
static void before_fork(void)
{
	wf_os_mutex_lock(&lock);
}

static void in_parent(void)
{
	wf_os_mutex_unlock(&lock);
}

/* The thread does not exist here, and the endpoints are the parent's. */
static void in_child(void)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &all)
		wf_base_list_del(pos);
	started = false;
	running = false;
	wf_os_cond_init(&ended);
	close_fds();
	wf_os_mutex_unlock(&lock);
}

/* After those of base/fork.c: the last to be registered takes its lock first. */
static void register_handlers(void)
{
	wf_base_fork_hold();
	wf_base_fork_release();
	wf_os_atfork(before_fork, in_parent, in_child);
}

/* -- the list --------------------------------------------------------------- */

static int add(struct wf_attended *a)
{
	struct epoll_event event = { .data.ptr = a };
	int loop_fd = a->core->host.loop.epoll_fd;
	int err = open_fds();

	/* Without a timer it could not sleep, and the thread would never rest. */
	if (!err && !wf_transport_loop_set(&a->core->host.loop, 0))
		err = -EMFILE;
	if (!err)
		err = wf_os_epoll_ctl(epoll_fd, EPOLL_CTL_ADD, loop_fd, &event);
	if (err)
		return err;
	a->armed = false;
	a->fired = false;
	wf_base_list_add_tail(&all, &a->link);
	err = start();
	if (err) {
		wf_base_list_del(&a->link);
		wf_os_epoll_ctl(epoll_fd, EPOLL_CTL_DEL, loop_fd, NULL);
		return err;
	}
	wf_os_eventfd_write(wake_fd, 1);
	return 0;
}

int wf_core_attend_add(struct wf_attended *a)
{
	int err;

	wf_base_list_init(&a->link);
	wf_os_once(&once, register_handlers);
	wf_os_mutex_lock(&lock);
	err = add(a);
	if (err && wf_base_list_empty(&all))
		stop();
	wf_os_mutex_unlock(&lock);
	a->added = !err;
	if (err)
		wf_warn("no thread for automatic progress: error %d", -err);
	return err;
}

void wf_core_attend_remove(struct wf_attended *a)
{
	if (!a->added)
		return;
	a->added = false;
	wf_os_mutex_lock(&lock);
	/* A forked child has left it out: a descriptor of the child may have
	 * the number of the parent's. */
	if (!wf_base_list_empty(&a->link)) {
		wf_base_list_del(&a->link);
		wf_os_epoll_ctl(epoll_fd, EPOLL_CTL_DEL,
				a->core->host.loop.epoll_fd, NULL);
		wf_os_eventfd_write(wake_fd, 1);
		if (wf_base_list_empty(&all))
			stop();
	}
	wf_os_mutex_unlock(&lock);
}
