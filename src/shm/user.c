/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which users an endpoint deals with.
 */
#include "shm/user.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define OVERFLOW_UID 65534 /* where the kernel does not say */

static bool uid_listed(const char *list, uid_t uid)
{
	while (*list) {
		char *end;
		unsigned long id = strtoul(list, &end, 10);

		if (end == list)
			return false;
		if (id == uid)
			return true;
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

static uid_t read_overflow_uid(void)
{
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned int uid = OVERFLOW_UID;

	if (!file)
		return uid;
	if (fscanf(file, "%u", &uid) != 1)
		uid = OVERFLOW_UID;
	fclose(file);
	return uid;
}

/* Read once: it is asked for at every connect. */
static uid_t overflow_uid(void)
{
	static _Atomic int64_t known = -1;
	int64_t uid = atomic_load_explicit(&known, memory_order_relaxed);

	if (uid < 0) {
		uid = read_overflow_uid();
		atomic_store_explicit(&known, uid, memory_order_relaxed);
	}
	return (uid_t)uid;
}

/* Whether this user namespace has a number for every user: then nobody is shown
 * as the overflow user but that user. */
static bool all_are_mapped(void)
{
	FILE *file = fopen("/proc/self/uid_map", "re");
	unsigned int inside, outside, count;
	bool all = false;

	if (!file)
		return false;
	if (fscanf(file, "%u %u %u", &inside, &outside, &count) == 3)
		all = !inside && !outside && count == UINT32_MAX;
	fclose(file);
	return all;
}

bool wf_shm_user_is_known(uid_t uid)
{
	return uid != overflow_uid() || all_are_mapped();
}

bool wf_shm_user_is_ours(uid_t uid)
{
	return uid == geteuid() && wf_shm_user_is_known(uid);
}

int wf_shm_user_check(const char *allow, int fd, struct ucred *cred)
{
	socklen_t len = sizeof(*cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &len))
		return -errno;
	if ((allow && !strcmp(allow, "any")) ||
	    (allow && uid_listed(allow, cred->uid)) ||
	    wf_shm_user_is_ours(cred->uid))
		return 0;
	if (cred->uid == geteuid())
		wf_warn("process %d is refused: in this user namespace user %u "
			"is everybody without a number. FI_WEFT_ALLOW_UID=%u "
			"lets all of them connect",
			(int)cred->pid, (unsigned int)cred->uid,
			(unsigned int)cred->uid);
	else
		wf_warn("user %u (process %d) is not allowed here, see "
			"FI_WEFT_ALLOW_UID",
			(unsigned int)cred->uid, (int)cred->pid);
	return -EACCES;
}
