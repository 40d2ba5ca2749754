/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of Linux.
 */
#include "os/socket.h"

#include <errno.h>
#include <stdio.h>

int wf_os_socket(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	return fd < 0 ? -errno : fd;
}

int wf_os_accept(int fd, struct sockaddr *name, socklen_t *len)
{
	int got = accept4(fd, name, len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	return got < 0 ? -errno : got;
}

int wf_os_bind(int fd, const struct sockaddr *name, socklen_t len)
{
	return bind(fd, name, len) ? -errno : 0;
}

int wf_os_connect(int fd, const struct sockaddr *name, socklen_t len)
{
	return connect(fd, name, len) ? -errno : 0;
}

int wf_os_connect_file(int fd, int file)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	/* Not /proc/self: the first thread may have ended. */
	snprintf(un.sun_path, sizeof(un.sun_path), "/proc/thread-self/fd/%d",
		 file);
	return wf_os_connect(fd, (struct sockaddr *)&un, sizeof(un));
}

int wf_os_listen(int fd, int backlog)
{
	return listen(fd, backlog) ? -errno : 0;
}

int wf_os_shutdown(int fd, int how)
{
	return shutdown(fd, how) ? -errno : 0;
}

int wf_os_getsockname(int fd, struct sockaddr *name, socklen_t *len)
{
	return getsockname(fd, name, len) ? -errno : 0;
}

int wf_os_getpeername(int fd, struct sockaddr *name, socklen_t *len)
{
	return getpeername(fd, name, len) ? -errno : 0;
}

int wf_os_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return getsockopt(fd, level, name, value, len) ? -errno : 0;
}

int wf_os_setsockopt(int fd, int level, int name, const void *value,
		     socklen_t len)
{
	return setsockopt(fd, level, name, value, len) ? -errno : 0;
}

ssize_t wf_os_send(int fd, const void *bytes, size_t len, int flags)
{
	ssize_t sent = send(fd, bytes, len, flags | MSG_NOSIGNAL);

	return sent < 0 ? -errno : sent;
}

ssize_t wf_os_recv(int fd, void *bytes, size_t len, int flags)
{
	ssize_t got = recv(fd, bytes, len, flags);

	return got < 0 ? -errno : got;
}

ssize_t wf_os_sendmsg(int fd, const struct msghdr *head, int flags)
{
	ssize_t sent = sendmsg(fd, head, flags | MSG_NOSIGNAL);

	return sent < 0 ? -errno : sent;
}

ssize_t wf_os_recvmsg(int fd, struct msghdr *head, int flags)
{
	ssize_t got = recvmsg(fd, head, flags | MSG_CMSG_CLOEXEC);

	return got < 0 ? -errno : got;
}

int wf_os_sendmmsg(int fd, struct mmsghdr *heads, unsigned int count, int flags)
{
	int sent = sendmmsg(fd, heads, count, flags | MSG_NOSIGNAL);

	return sent < 0 ? -errno : sent;
}

int wf_os_recvmmsg(int fd, struct mmsghdr *heads, unsigned int count, int flags)
{
	int got = recvmmsg(fd, heads, count, flags | MSG_CMSG_CLOEXEC, NULL);

	return got < 0 ? -errno : got;
}
