/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client without the library: what a hostile one would send.
 */
#ifndef WF_DEVD_RAW_TEST_H
#define WF_DEVD_RAW_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "chan/broker_defs.h"

/* A connection, or -1. */
static inline int raw_connect(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(un.sun_path, path);
	if (!connect(fd, (struct sockaddr *)&un, sizeof(un)))
		return fd;
	close(fd);
	return -1;
}

/* One request with @n descriptors. */
static inline int raw_send(int sock, struct wf_broker_request request,
			   const int *fds, size_t n)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(64 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { &request, sizeof(request) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	request.magic = WF_BROKER_MAGIC;
	request.version = WF_BROKER_VERSION;
	if (n) {
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == sizeof(request) ? 0 : -1;
}

/* The reply, and up to @n descriptors. False: the device hung up. */
static inline bool raw_take(int sock, struct wf_broker_reply *reply, int *fds,
			    size_t n)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(WF_BROKER_FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { reply, sizeof(*reply) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0,
	};
	struct cmsghdr *cmsg;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != sizeof(*reply))
		return false;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && n)
		memcpy(fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	return true;
}

/* Its status, 1 if the device hung up. */
static inline int raw_ask(int sock, struct wf_broker_request request)
{
	struct wf_broker_reply reply;

	if (raw_send(sock, request, NULL, 0) ||
	    !raw_take(sock, &reply, NULL, 0))
		return 1;
	return reply.status;
}

#endif
