/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The users that an endpoint accepts.
 */
#include "shm/user.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "base/users.h"
#include "os/inline.h"
#include "os/process.h"
#include "os/socket.h"

/* Refused users that are reported. */
#define TOLD_MAX 16

bool wf_shm_user_is_ours(uid_t uid)
{
	return uid == wf_os_geteuid() && wf_base_users_is_known(uid);
}

/* Whether nothing was reported about @uid yet. Anybody can connect again and
 * again, so each user gets one line, and only some of them. */
static bool is_news(uid_t uid)
{
	WF_PER_PROCESS static _Atomic int64_t
		told[TOLD_MAX]; /* the number plus 1; 0: free */
	int64_t number = (int64_t)uid + 1;

	for (int i = 0; i < TOLD_MAX; i++) {
		int64_t free = 0;

		if (atomic_compare_exchange_strong(&told[i], &free, number))
			return true;
		if (free == number)
			return false;
	}
	return false;
}

/* "process 4711"; the kernel says 0 of one that is not in our PID namespace. */
static const char *name_of(const struct ucred *cred, char text[48])
{
	if (cred->pid)
		snprintf(text, 48, "process %d", (int)cred->pid);
	else
		snprintf(text, 48, "a process of another PID namespace");
	return text;
}

int wf_shm_user_check(const char *allow, int fd, struct ucred *cred, bool *ours)
{
	socklen_t len = sizeof(*cred);
	char text[48];
	int err;

	*ours = false;
	err = wf_os_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &len);
	if (err)
		return err;
	*ours = wf_shm_user_is_ours(cred->uid);
	if (*ours || wf_base_users_have(allow, cred->uid))
		return 0;
	if (!is_news(cred->uid))
		return -EACCES;
	if (cred->uid == wf_os_geteuid())
		wf_tell("%s is refused: in this user namespace user %u "
			"is everybody without a number. FI_WEFT_ALLOW_UID=%u "
			"lets all of them connect",
			name_of(cred, text), (unsigned int)cred->uid,
			(unsigned int)cred->uid);
	else
		wf_tell("%s is refused, because it is of user %u and "
			"we are user %u. If the two may exchange messages, set "
			"FI_WEFT_ALLOW_UID=%u here and FI_WEFT_ALLOW_UID=%u "
			"for that process",
			name_of(cred, text), (unsigned int)cred->uid,
			(unsigned int)wf_os_geteuid(), (unsigned int)cred->uid,
			(unsigned int)wf_os_geteuid());
	return -EACCES;
}

void wf_shm_user_refused(const struct ucred *cred)
{
	char text[48];

	if (is_news(cred->uid))
		wf_tell("%s, of user %u, refuses us, because it does not "
			"allow our user: set FI_WEFT_ALLOW_UID=%u for that "
			"process",
			name_of(cred, text), (unsigned int)cred->uid,
			(unsigned int)wf_os_geteuid());
}
