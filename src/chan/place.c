/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of device processes in the file system.
 */
#include "chan/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "devd.sock"
#define ROOTS "/run/weft/" NAME

/* False: there is none that could be used. */
static bool in_runtime_folder(char *socket)
{
	const char *folder = secure_getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int len;

	if (!folder || folder[0] != '/' || stat(folder, &st) ||
	    !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
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
	if (S_ISDIR(st.st_mode) && (!st.st_uid || st.st_uid == geteuid()) &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return -EPERM;
}

int wf_chan_place_list(char sockets[WF_CHAN_PLACES][WF_CHAN_PLACE_SIZE])
{
	int n = 0;

	if (geteuid()) {
		n += in_runtime_folder(sockets[n]) &&
		     !wf_chan_place_check(sockets[n]);
		/* Its device may have been started without the variable. */
		in_tmp(sockets[n]);
		n += !wf_chan_place_check(sockets[n]);
	}
	strcpy(sockets[n], ROOTS);
	n += !wf_chan_place_check(sockets[n]);
	return n;
}
