/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passing descriptors over a Unix socket.
 */
#include "base/fds.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "os/file.h"
#include "os/socket.h"

/* Descriptors in one message. */
#define FDS_MAX 4

int wf_base_fds_send(int sock, const void *buf, size_t len, const int *fds,
		     size_t count)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = CMSG_SPACE(sizeof(int) * count),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	ssize_t sent;

	assert(count <= FDS_MAX);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int) * count);
	memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * count);
	sent = wf_os_sendmsg(sock, &msg, 0);
	if (sent < 0)
		return (int)sent;
	return (size_t)sent == len ? 0 : -EMSGSIZE;
}

ssize_t wf_base_fds_recv(int sock, void *buf, size_t len, int *fds,
			 size_t count, bool *cut)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct iovec iov = { buf, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	ssize_t got = wf_os_recvmsg(sock, &msg, 0);
	struct cmsghdr *cmsg;
	size_t taken = 0;

	*cut = false;
	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	if (got < 0)
		return got;
	*cut = msg.msg_flags & MSG_CTRUNC;
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		size_t passed;

		if (cmsg->cmsg_level != SOL_SOCKET ||
		    cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		passed = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < passed; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int),
			       sizeof(int));
			if (taken < count)
				fds[taken++] = fd;
			else
				wf_os_close(fd);
		}
	}
	return got;
}

void wf_base_fds_close(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0)
			wf_os_close(fds[i]);
	}
}
