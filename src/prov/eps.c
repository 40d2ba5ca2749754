/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoints behind a queue or counter.
 */
#include "prov/eps.h"

#include <errno.h>
#include <stdlib.h>

#include "os/poll.h"
#include "prov/ep.h"
#include "prov/provider.h"

static struct wf_prov_ep *ep_at(const struct wf_list *link)
{
	return wf_container_of(link, struct wf_prov_eps_link, link)->ep;
}

static int epoll_of(const struct wf_prov_ep *ep)
{
	return ep->core.common.host.loop.epoll_fd;
}

void wf_prov_eps_init(struct wf_prov_eps *eps, bool locked)
{
	*eps = (struct wf_prov_eps){ .epoll_fd = -1 };
	wf_base_lock_init(&eps->lock, locked);
	wf_base_list_init(&eps->list);
}

/* A thread that does not exist here may have held it. */
void wf_prov_eps_forked(struct wf_prov_eps *eps)
{
	wf_base_lock_init(&eps->lock, eps->lock.real);
}

static void find_only_locked(struct wf_prov_eps *eps)
{
	struct wf_list *first = eps->list.next;
	bool one = first != &eps->list && first->next == &eps->list;

	/* With a shared context there is more to do than to poll. */
	eps->only = one && !ep_at(first)->srx ? &ep_at(first)->core : NULL;
}

/* False: epoll_fd does not report this endpoint, because there is no memory. A
 * caller that wants to sleep tries again, and stays awake until it succeeds. */
static bool watch_locked(struct wf_prov_eps *eps, struct wf_prov_eps_link *link)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (eps->epoll_fd >= 0 && !link->watched)
		link->watched = !wf_os_epoll_ctl(eps->epoll_fd, EPOLL_CTL_ADD,
						 epoll_of(link->ep), &event);
	return eps->epoll_fd < 0 || link->watched;
}

static struct wf_prov_eps_link *find_locked(const struct wf_prov_eps *eps,
					    const struct wf_prov_ep *ep)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &eps->list) {
		if (ep_at(pos) == ep)
			return wf_container_of(pos, struct wf_prov_eps_link,
					       link);
	}
	return NULL;
}

bool wf_prov_eps_attach(struct wf_prov_eps *eps, struct wf_prov_eps_link *link,
			struct wf_prov_ep *ep)
{
	bool found;

	wf_base_lock_take(&eps->lock);
	found = find_locked(eps, ep);
	if (!found) {
		link->ep = ep;
		link->eps = eps;
		wf_base_list_add_tail(&eps->list, &link->link);
		find_only_locked(eps);
		link->watched = false;
		link->row = 0;
		watch_locked(eps, link);
	}
	wf_base_lock_drop(&eps->lock);
	return !found;
}

void wf_prov_eps_detach(struct wf_prov_eps_link *link)
{
	struct wf_prov_eps *eps = link->eps;

	if (!eps)
		return;
	wf_base_lock_take(&eps->lock);
	if (eps->epoll_fd >= 0 && epoll_of(link->ep) >= 0)
		wf_os_epoll_ctl(eps->epoll_fd, EPOLL_CTL_DEL,
				epoll_of(link->ep), NULL);
	wf_base_list_del(&link->link);
	find_only_locked(eps);
	wf_base_lock_drop(&eps->lock);
	link->eps = NULL;
}

int wf_prov_eps_add(struct wf_prov_eps *eps, struct wf_prov_ep *ep)
{
	struct wf_prov_eps_link *link = calloc(1, sizeof(*link));

	if (!link)
		return -ENOMEM;
	link->added = true;
	if (!wf_prov_eps_attach(eps, link, ep))
		free(link);
	return 0;
}

void wf_prov_eps_remove(struct wf_prov_eps *eps, const struct wf_prov_ep *ep)
{
	struct wf_prov_eps_link *link;

	wf_base_lock_take(&eps->lock);
	link = find_locked(eps, ep);
	wf_base_lock_drop(&eps->lock);
	if (!link || !link->added)
		return;
	wf_prov_eps_detach(link);
	free(link);
}

void wf_prov_eps_progress(struct wf_prov_eps *eps)
{
	enum wf_core_rest rest = WF_CORE_REST_NO;
	struct wf_list *pos, *tmp;

	wf_base_lock_take(&eps->lock);
	wf_list_for_each (pos, tmp, &eps->list) {
		struct wf_prov_eps_link *link =
			wf_container_of(pos, struct wf_prov_eps_link, link);
		enum wf_core_rest due =
			wf_prov_ep_progress(link->ep, &link->row);

		rest = due > rest ? due : rest;
	}
	wf_base_lock_drop(&eps->lock);
	if (wf_likely(!rest))
		return;
	if (rest == WF_CORE_REST_ANEW)
		wf_base_rest_begin(&eps->rest);
	wf_base_rest(&eps->rest);
}

bool wf_prov_eps_sleep(struct wf_prov_eps *eps)
{
	struct wf_list *pos, *tmp;
	bool all = true;

	wf_base_lock_take(&eps->lock);
	wf_list_for_each (pos, tmp, &eps->list) {
		struct wf_prov_ep *ep = ep_at(pos);

		all = watch_locked(
			eps,
			wf_container_of(pos, struct wf_prov_eps_link, link));
		if (!all)
			break;
		wf_core_enter(&ep->core.common);
		all = wf_core_sleep(&ep->core.common);
		wf_core_leave(&ep->core.common);
		if (!all)
			break;
	}
	wf_base_lock_drop(&eps->lock);
	return all;
}
