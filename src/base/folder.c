/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judges folders. Makes and removes nothing.
 */
#include "base/folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "os/file.h"
#include "os/process.h"

bool wf_base_folder_judge(const char *path, char *why, size_t room)
{
	struct wf_os_folder folder;
	uid_t own = wf_os_geteuid();
	int err;

	*why = '\0';
	if (path[0] != '/') {
		snprintf(why, room, "not a path that begins with /");
		return false;
	}
	if (strlen(path) > WF_BASE_FOLDER_LEN) {
		snprintf(why, room, "longer than %d bytes", WF_BASE_FOLDER_LEN);
		return false;
	}
	err = wf_os_folder(path, &folder);
	if (err == -ENOTDIR) {
		snprintf(why, room, "not a folder (a symbolic link is none)");
		return false;
	}
	if (err) {
		snprintf(why, room, "cannot be used: %s", strerror(-err));
		return false;
	}
	/* Its owner can replace whatever is in it. */
	if (folder.uid && folder.uid != own) {
		snprintf(why, room,
			 "it belongs to user %u; it must belong to root or to "
			 "user %u",
			 (unsigned int)folder.uid, (unsigned int)own);
		return false;
	}
	/* So could whoever may write to it. */
	if (folder.is_shared && !folder.is_sticky) {
		snprintf(why, room,
			 "other users can write to it and remove what is "
			 "there: `chmod +t` it, or let its owner alone write");
		return false;
	}
	if (!folder.is_writable) {
		snprintf(why, room, "user %u cannot write to it",
			 (unsigned int)own);
		return false;
	}
	return true;
}
