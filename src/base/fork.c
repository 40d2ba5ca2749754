/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pthread_atfork() registration for the whole library. The lock is held
 * across fork() so that the child finds a whole list.
 */
#include "base/fork.h"

#include <pthread.h>

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static struct wf_list watches = { &watches, &watches };

static void before_fork(void)
{
	pthread_mutex_lock(&watch_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&watch_lock);
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
	pthread_mutex_unlock(&watch_lock);
}

static void register_handlers(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

void wf_base_fork_hold(void)
{
	pthread_once(&watch_once, register_handlers);
	pthread_mutex_lock(&watch_lock);
}

void wf_base_fork_release(void)
{
	pthread_mutex_unlock(&watch_lock);
}

void wf_base_fork_watch(struct wf_fork_watch *watch)
{
	pthread_once(&watch_once, register_handlers);
	pthread_mutex_lock(&watch_lock);
	wf_base_list_add_tail(&watches, &watch->link);
	pthread_mutex_unlock(&watch_lock);
}

void wf_base_fork_unwatch(struct wf_fork_watch *watch)
{
	pthread_mutex_lock(&watch_lock);
	wf_base_list_del(&watch->link);
	pthread_mutex_unlock(&watch_lock);
}
