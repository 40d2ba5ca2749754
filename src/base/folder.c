/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks folders. It creates and removes nothing.
 */
#include "base/folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/users.h"
#include "os/file.h"
#include "os/process.h"

/* Whether nobody else can replace an entry of @path, which is a parent of the
 * folder that is checked. A user without a number here counts as root: a user
 * namespace shows the root of the host like that. */
static bool check_parent(const char *path, uid_t own, char *why, size_t room)
{
	struct wf_os_folder parent;
	int err = wf_os_folder(path, &parent);

	if (err == -ENOTDIR)
		snprintf(why, room,
			 "%s is a symbolic link: name what it leads to", path);
	else if (err)
		snprintf(why, room, "%s cannot be looked at: %s", path,
			 strerror(-err));
	else if (parent.uid && parent.uid != own &&
		 wf_base_users_is_known(parent.uid))
		snprintf(why, room,
			 "%s belongs to user %u, who could replace the folder",
			 path, (unsigned int)parent.uid);
	else if (parent.is_shared && !parent.is_sticky)
		snprintf(why, room,
			 "other users can write to %s and replace the folder: "
			 "`chmod +t %s`, or take another folder",
			 path, path);
	else
		return true;
	return false;
}

static bool check_parents(const char *path, uid_t own, char *why, size_t room)
{
	char parent[WF_BASE_FOLDER_LEN + 1];
	const char *end = path;

	/* "/", and each prefix that ends before another "/". */
	do {
		size_t len = end == path ? 1 : (size_t)(end - path);

		snprintf(parent, sizeof(parent), "%.*s", (int)len, path);
		if (!check_parent(parent, own, why, room))
			return false;
		end = strchr(end + 1, '/');
	} while (end);
	return true;
}

bool wf_base_folder_check(const char *path, char *why, size_t room)
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
	/* The owner can replace everything in it. */
	if (folder.uid && folder.uid != own) {
		snprintf(why, room,
			 "it belongs to user %u; it must belong to root or to "
			 "user %u",
			 (unsigned int)folder.uid, (unsigned int)own);
		return false;
	}
	/* So can everybody who may write to it. */
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
	return check_parents(path, own, why, room);
}
