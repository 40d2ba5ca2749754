/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers and lists of users. A malformed list allows the users before the
 * error, and nobody else.
 */
#include "base/users.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "os/inline.h"

#define OVERFLOW_UID 65534 /* where the kernel does not say */

bool wf_base_users_have(const char *list, uid_t uid)
{
	if (list && !strcmp(list, "any"))
		return true;
	while (list && *list) {
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
	unsigned int uid;
	char text[64];

	if (wf_os_read_text("/proc/sys/kernel/overflowuid", text,
			    sizeof(text)) < 0 ||
	    sscanf(text, "%u", &uid) != 1)
		return OVERFLOW_UID;
	return uid;
}

/* Read once: it is asked for at every connect. */
static uid_t overflow_uid(void)
{
	WF_PER_PROCESS static _Atomic int64_t known = -1;
	int64_t uid = atomic_load_explicit(&known, memory_order_relaxed);

	if (uid < 0) {
		uid = read_overflow_uid();
		atomic_store_explicit(&known, uid, memory_order_relaxed);
	}
	return (uid_t)uid;
}

/* Whether this user namespace has a number for every user: then only the
 * overflow user is shown as such. */
static bool all_are_mapped(void)
{
	unsigned int inside, outside, count;
	char text[64]; /* the first line is shorter */

	return wf_os_read_text("/proc/self/uid_map", text, sizeof(text)) > 0 &&
	       sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 &&
	       !inside && !outside && count == UINT32_MAX;
}

bool wf_base_users_is_known(uid_t uid)
{
	return uid != overflow_uid() || all_are_mapped();
}
