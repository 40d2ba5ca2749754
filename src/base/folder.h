/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder in which processes of different network namespaces find each other
 * (FI_WEFT_DIR): which one is used, and which are refused.
 */
#ifndef WF_BASE_FOLDER_H
#define WF_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* The default, if it exists and can be used. */
#define WF_BASE_FOLDER_DEFAULT "/run/weft"

/* The longest path: the path of a socket must have room for the name of any
 * endpoint behind it. */
#define WF_BASE_FOLDER_LEN 40

/* Whether endpoints of this process may use @path. Otherwise @why, of @room
 * bytes, says why not, without a full stop. */
bool wf_base_folder_check(const char *path, char *why, size_t room);

#endif
