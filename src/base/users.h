/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users: what the number of one stands for, and lists of them as people write
 * them: FI_WEFT_ALLOW_UID, `weft devd --allow-uid`.
 */
#ifndef WF_BASE_USERS_H
#define WF_BASE_USERS_H

#include <stdbool.h>

#include "os/types.h"

/* Whether @list allows @uid: "any", or numbers with commas between them. NULL
 * allows nobody. */
bool wf_base_users_have(const char *list, uid_t uid);

/* Whether @uid stands for one user. In a user namespace, all users that have
 * no number there are shown as the overflow user. */
bool wf_base_users_is_known(uid_t uid);

#endif
