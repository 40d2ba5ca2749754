/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users of the device, in a list: there are few.
 */
#include "devd/user.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/users.h"
#include "devd/server.h"

/* Users without a client whose accounts are kept: a page and a descriptor each. */
#define KEPT 64

bool wf_devd_user_is_own(uid_t uid)
{
	/* All users without a number in this user namespace are shown as one,
	 * which may be ours, too. */
	return !uid || (uid == geteuid() && wf_base_users_is_known(uid));
}

static struct wf_devd_user *find(struct wf_devd *devd, uid_t uid)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &devd->users) {
		struct wf_devd_user *user =
			wf_container_of(pos, struct wf_devd_user, link);

		if (user->uid == uid)
			return user;
	}
	return NULL;
}

int wf_devd_user_get(struct wf_devd *devd, uid_t uid,
		     struct wf_devd_user **found)
{
	struct wf_devd_user *user = find(devd, uid);

	if (user && user->barred)
		return -EACCES;
	if (user && !user->own && user->clients >= devd->config.user_clients)
		return -EBUSY;
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return -ENOMEM;
		user->uid = uid;
		user->own = wf_devd_user_is_own(uid);
		if (!user->own)
			wf_devd_quota_set(&user->quota,
					  &devd->config.user_rates);
		wf_base_list_add_tail(&devd->users, &user->link);
	}
	user->clients++;
	*found = user;
	return 0;
}

static void forget(struct wf_devd_user *user)
{
	wf_base_stats_close(&user->stats);
	wf_base_list_del(&user->link);
	free(user);
}

/* The one that has been without a client for longest is the first such. */
static void forget_some(struct wf_devd *devd)
{
	struct wf_devd_user *oldest = NULL;
	struct wf_list *pos, *tmp;
	unsigned int idle = 0;

	wf_list_for_each (pos, tmp, &devd->users) {
		struct wf_devd_user *user =
			wf_container_of(pos, struct wf_devd_user, link);

		if (user->clients || user->n_kept || user->barred)
			continue;
		idle++;
		oldest = oldest ? oldest : user;
	}
	if (idle > KEPT)
		forget(oldest);
}

void wf_devd_user_put(struct wf_devd *devd, struct wf_devd_user *user)
{
	user->clients--;
	wf_devd_user_left(devd, user);
}

void wf_devd_user_left(struct wf_devd *devd, struct wf_devd_user *user)
{
	if (user->clients || user->n_kept || user->barred)
		return;
	if (!user->stats.page) {
		forget(user);
		return;
	}
	wf_base_list_del(&user->link);
	wf_base_list_add_tail(&devd->users, &user->link);
	forget_some(devd);
}

bool wf_devd_user_may_open(const struct wf_devd *devd,
			   const struct wf_devd_user *user)
{
	return user->own ||
	       user->chans + user->n_kept < devd->config.user_channels;
}

bool wf_devd_user_may_reserve(const struct wf_devd *devd,
			      const struct wf_devd_user *user, uint64_t size)
{
	uint64_t limit = devd->config.user_memory;

	return user->own || (size <= limit && user->memory <= limit - size);
}

void wf_devd_user_change(struct wf_devd *devd)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &devd->users) {
		struct wf_devd_user *user =
			wf_container_of(pos, struct wf_devd_user, link);

		if (!user->own)
			wf_devd_quota_set(&user->quota,
					  &devd->config.user_rates);
	}
}

bool wf_devd_user_refill(struct wf_devd *devd, uint64_t now, bool *waits)
{
	uint64_t passed = now - devd->refilled_at;
	struct wf_list *pos, *tmp;
	bool go = false;

	devd->refilled_at = now;
	*waits = false;
	wf_list_for_each (pos, tmp, &devd->users) {
		struct wf_devd_user *user =
			wf_container_of(pos, struct wf_devd_user, link);

		go |= wf_devd_quota_refill(&user->quota, passed);
		*waits |= atomic_load(&user->quota.wanted);
	}
	return go;
}

void wf_devd_user_free_all(struct wf_devd *devd)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &devd->users)
		forget(wf_container_of(pos, struct wf_devd_user, link));
}
