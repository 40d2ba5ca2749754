/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of device processes in the file system.
 */
#include "chan/place.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/users.h"

#define NAME "devd.sock"
#define ROOTS "/run/weft/" NAME

/* All users without a number in this user namespace are shown as one, which may
 * be ours, too. */
static bool is_ours(uid_t uid)
{
	return uid == geteuid() && wf_base_users_is_known(uid);
}

/* False: there is none that could be used. */
static bool in_runtime_folder(char *socket)
{
	const char *folder = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int len;

	if (!folder || folder[0] != '/' || stat(folder, &st) ||
	    !S_ISDIR(st.st_mode) || !is_ours(st.st_uid))
		return false;
	/* Room for what is put behind it: the lock (devd/listen.c). */
	len = snprintf(socket, WF_CHAN_PLACE_SIZE, "%s/weft/" NAME, folder);
	return len < WF_CHAN_PLACE_SIZE;
}

static void in_tmp(char *socket)
{
	snprintf(socket, WF_CHAN_PLACE_SIZE, "/tmp/weft-%u/" NAME,
		 (unsigned int)geteuid());
}

void wf_chan_place_own(char socket[WF_CHAN_PLACE_SIZE])
{
	if (!geteuid())
		strcpy(socket, ROOTS);
	else if (!in_runtime_folder(socket))
		in_tmp(socket);
}

void wf_chan_place_folder(const char *socket, char folder[WF_CHAN_PLACE_SIZE])
{
	char *slash;

	snprintf(folder, WF_CHAN_PLACE_SIZE, "%s", socket);
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
}

int wf_chan_place_check(const char *socket)
{
	char folder[WF_CHAN_PLACE_SIZE];
	struct stat st;

	wf_chan_place_folder(socket, folder);
	/* Not stat(): in /tmp anybody can make a link of that name. */
	if (lstat(folder, &st))
		return errno == ENOENT ? -ENOENT : -EPERM;
	if (S_ISDIR(st.st_mode) && (!st.st_uid || is_ours(st.st_uid)) &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return -EPERM;
}

/* A device that this process will not talk to: one line for all. */
static void report_unsafe(const char *socket)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	char folder[WF_CHAN_PLACE_SIZE];
	bool known = true;
	struct stat st;

	if (lstat(socket, &st) || !S_ISSOCK(st.st_mode) ||
	    atomic_flag_test_and_set(&reported))
		return;
	wf_chan_place_folder(socket, folder);
	if (!lstat(folder, &st))
		known = wf_base_users_is_known(st.st_uid);
	wf_warn("%s: not used: %s must be a folder that root or user %u owns and "
		"nobody else can write to%s",
		socket, folder, (unsigned int)geteuid(),
		known ? "" :
			"; its owner has no number in the user namespace of "
			"this process (/proc/self/uid_map)");
}

static bool is_safe(const char *socket)
{
	int err = wf_chan_place_check(socket);

	if (err == -EPERM)
		report_unsafe(socket);
	return !err;
}

int wf_chan_place_list(char sockets[WF_CHAN_PLACES][WF_CHAN_PLACE_SIZE])
{
	int n = 0;

	if (geteuid()) {
		n += in_runtime_folder(sockets[n]) && is_safe(sockets[n]);
		/* Its device may have been started without the variable. */
		in_tmp(sockets[n]);
		n += is_safe(sockets[n]);
	}
	strcpy(sockets[n], ROOTS);
	n += is_safe(sockets[n]);
	return n;
}
