/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users of the device: what all clients of one user have together, and the
 * limits for that. For the owner of the device process and for root, only the
 * limits of a client and of the device apply. Used by the manager thread.
 */
#ifndef WF_DEVD_USER_H
#define WF_DEVD_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "devd/quota.h"
#include "devd/stats.h"

struct wf_devd;

struct wf_devd_user {
	struct wf_list link;
	uid_t uid;
	bool own;    /* no limits */
	bool barred; /* it blocked a worker on purpose, and is not served */
	unsigned int clients;
	unsigned int chans;
	unsigned int n_kept; /* see kept.h; each counts as a channel */
	uint64_t memory;
	struct wf_devd_quota quota;
	/* What its clients had and did, those that are gone too. The page is
	 * open once it has had a channel. */
	uint64_t opened, turned_away;
	uint64_t counted[WF_DEVD_STAT_COUNTED];
	struct wf_devd_account account;
	struct wf_stats stats;
};

/* Whether @uid is the owner of the device process, or root. */
bool wf_devd_user_is_own(uid_t uid);

/* Adds a client to the user @uid. 0; -EACCES: the user is barred; -EBUSY: it has as
 * many clients as it may; -ENOMEM. */
int wf_devd_user_get(struct wf_devd *devd, uid_t uid,
		     struct wf_devd_user **user);
/* Removes a client from its user. The counters of a user without clients are kept
 * for some time, for `weft stat`. */
void wf_devd_user_put(struct wf_devd *devd, struct wf_devd_user *user);

/* Call it when memory that a client had kept is gone. */
void wf_devd_user_left(struct wf_devd *devd, struct wf_devd_user *user);

/* Whether it may have one more channel, so many more bytes. */
bool wf_devd_user_may_open(const struct wf_devd *devd,
			   const struct wf_devd_user *user);
bool wf_devd_user_may_reserve(const struct wf_devd *devd,
			      const struct wf_devd_user *user, uint64_t size);

/* The rates of the configuration are others now. */
void wf_devd_user_change(struct wf_devd *devd);
/* Adds to what users may have done, for the time since the last call. True if
 * workers have left jobs of some user alone, which can be done now. *@waits: jobs
 * of some user still wait. */
bool wf_devd_user_refill(struct wf_devd *devd, uint64_t now, bool *waits);

/* Frees all users, also those that were barred. */
void wf_devd_user_free_all(struct wf_devd *devd);

#endif
