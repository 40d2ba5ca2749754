/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes the socket that a service manager passed. It needs no library of
 * systemd: the protocol is two variables and descriptor 3.
 */
#include "tools/wd/passed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST 3 /* SD_LISTEN_FDS_START */

static long number_in(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	long value;

	if (!text)
		return 0;
	value = strtol(text, &end, 10);
	return end != text && !*end ? value : 0;
}

static int option_of(int fd, int name)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) ? -1 : value;
}

int wf_tools_passed_socket(char *path, size_t path_len, char *why,
			   size_t why_len)
{
	struct sockaddr_un un = { 0 };
	socklen_t len = sizeof(un);
	long count = number_in("LISTEN_FDS");

	if (number_in("LISTEN_PID") != getpid() || count < 1)
		return 0;
	/* Programs that this process starts must not see the variables. */
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (count > 1) {
		snprintf(why, why_len, "%ld sockets were passed, not one",
			 count);
		return -EINVAL;
	}
	if (getsockname(FIRST, (struct sockaddr *)&un, &len) ||
	    un.sun_family != AF_UNIX || un.sun_path[0] != '/' ||
	    option_of(FIRST, SO_TYPE) != SOCK_SEQPACKET ||
	    option_of(FIRST, SO_ACCEPTCONN) != 1) {
		snprintf(why, why_len,
			 "the socket that was passed does not listen for "
			 "packets at a path (ListenSequentialPacket=)");
		return -EINVAL;
	}
	fcntl(FIRST, F_SETFD, FD_CLOEXEC);
	snprintf(path, path_len, "%.*s", (int)sizeof(un.sun_path), un.sun_path);
	return FIRST;
}
