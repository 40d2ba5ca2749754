/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The users that an endpoint accepts: its own, and those of FI_WEFT_ALLOW_UID.
 */
#ifndef WF_SHM_USER_H
#define WF_SHM_USER_H

#include <stdbool.h>

#include "os/types.h"

/* Which process of which user is at the other end of the socket @fd. 0, or
 * -EACCES unless that is our user or one of @allow: NULL, "any" or numbers with
 * commas between them. *@ours: it is our own user. A refusal is reported once for
 * each user. */
int wf_shm_user_check(const char *allow, int fd, struct ucred *cred,
		      bool *ours);

/* Reports, once for each user, that a process that we allow does not allow
 * us. */
void wf_shm_user_refused(const struct ucred *cred);

/* Whether @uid is our own user. */
bool wf_shm_user_is_ours(uid_t uid);

#endif
