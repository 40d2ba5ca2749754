/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pthread_atfork() registration for the whole library. fork() runs with the
 * lock held, so that the child finds a consistent list.
 */
#include "base/fork.h"

#include "os/inline.h"
#include "os/thread.h"

WF_PER_PROCESS static struct wf_os_mutex watch_lock = WF_OS_MUTEX_INIT;
WF_PER_PROCESS static struct wf_os_once watch_once = WF_OS_ONCE_INIT;
WF_PER_PROCESS static struct wf_list watches = { &watches, &watches };

static void before_fork(void)
{
	wf_os_mutex_lock(&watch_lock);
}

static void in_parent(void)
{
	wf_os_mutex_unlock(&watch_lock);
}

static void in_child(void)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &watches) {
		struct wf_fork_watch *watch =
			wf_container_of(pos, struct wf_fork_watch, link);

		wf_base_list_del(pos);
		watch->in_child(watch);
	}
	wf_os_mutex_unlock(&watch_lock);
}

static void register_handlers(void)
{
	wf_os_atfork(before_fork, in_parent, in_child);
}

void wf_base_fork_hold(void)
{
	wf_os_once(&watch_once, register_handlers);
	wf_os_mutex_lock(&watch_lock);
}

void wf_base_fork_release(void)
{
	wf_os_mutex_unlock(&watch_lock);
}

void wf_base_fork_watch(struct wf_fork_watch *watch)
{
	wf_os_once(&watch_once, register_handlers);
	wf_os_mutex_lock(&watch_lock);
	wf_base_list_add_tail(&watches, &watch->link);
	wf_os_mutex_unlock(&watch_lock);
}

void wf_base_fork_watch_once(struct wf_fork_watch *watch, atomic_bool *watched)
{
	wf_base_fork_hold();
	if (!atomic_load_explicit(watched, memory_order_relaxed)) {
		wf_base_list_add_tail(&watches, &watch->link);
		atomic_store_explicit(watched, true, memory_order_release);
	}
	wf_base_fork_release();
}

void wf_base_fork_unwatch(struct wf_fork_watch *watch)
{
	wf_os_mutex_lock(&watch_lock);
	wf_base_list_del(&watch->link);
	wf_os_mutex_unlock(&watch_lock);
}
