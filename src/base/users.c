/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading lists of users. A list that is not well formed allows the users before
 * the fault, and nobody else.
 */
#include "base/users.h"

#include <stdlib.h>
#include <string.h>

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
