/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls on sockets of all kinds.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "real.h"
#include "wrap.h"

/* The file if it supports the call, otherwise NULL and errno. */
#define FILE_WITH(fd, member)                                                  \
	({                                                                     \
		struct sim_file *file_ = sim_file_get(fd);                     \
                                                                               \
		errno = file_ ? EOPNOTSUPP : EBADF;                            \
		file_ && file_->ops->member ? file_ : NULL;                    \
	})

int __wrap_socket(int family, int type, int protocol)
{
	bool nonblocking = type & SOCK_NONBLOCK;
	struct sim_file *file = NULL;

	(void)protocol;
	sim_enter("socket");
	type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (family == AF_UNIX && type == SOCK_SEQPACKET)
		file = sim_unix_socket(nonblocking);
	else if (family == AF_INET && type == SOCK_STREAM)
		file = sim_stream_socket(nonblocking);
	else if ((family == AF_INET || family == AF_INET6) &&
		 type == SOCK_DGRAM)
		file = sim_inet_socket(nonblocking);
	if (!file)
		sim_fail("the simulator has no socket(%d, %d)", family, type);
	return SIM_RET(sim_file_install(file));
}

int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct sim_file *file;

	sim_enter("bind");
	file = FILE_WITH(fd, bind);
	return file ? SIM_RET(file->ops->bind(file, sa, len)) : -1;
}

int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct sim_file *file;

	sim_enter("connect");
	file = FILE_WITH(fd, connect);
	return file ? SIM_RET(file->ops->connect(file, sa, len)) : -1;
}

int __wrap_listen(int fd, int backlog)
{
	struct sim_file *file;

	sim_enter("listen");
	file = FILE_WITH(fd, listen);
	return file ? SIM_RET(file->ops->listen(file, backlog)) : -1;
}

int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags)
{
	struct sim_file *file, *got;
	int err = 0, room;

	(void)sa;
	(void)len;
	(void)flags;
	sim_enter("accept4");
	file = FILE_WITH(fd, accept);
	if (!file)
		return -1;
	/* Without a free descriptor the connection stays in the queue. */
	room = sim_file_room();
	if (room < 0)
		return SIM_RET(room);
	got = file->ops->accept(file, &err);
	if (!got)
		return SIM_RET(err);
	sim_file_use(room, got);
	return room;
}

int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct sim_file *file;

	sim_enter("getsockname");
	file = FILE_WITH(fd, getname);
	return file ? SIM_RET(file->ops->getname(file, sa, len)) : -1;
}

int __wrap_getpeername(int fd, struct sockaddr *sa, socklen_t *len)
{
	struct sim_file *file;

	sim_enter("getpeername");
	file = FILE_WITH(fd, peername);
	return file ? SIM_RET(file->ops->peername(file, sa, len)) : -1;
}

int __wrap_shutdown(int fd, int how)
{
	struct sim_file *file;

	sim_enter("shutdown");
	file = FILE_WITH(fd, shutdown);
	return file ? SIM_RET(file->ops->shutdown(file, how)) : -1;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct sim_file *file;

	sim_enter("getsockopt");
	file = FILE_WITH(fd, getopt);
	return file ? SIM_RET(file->ops->getopt(file, level, name, value,
						len)) :
		      -1;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value,
		      socklen_t len)
{
	struct sim_file *file;

	sim_enter("setsockopt");
	file = FILE_WITH(fd, setopt);
	return file ? SIM_RET(file->ops->setopt(file, level, name, value,
						len)) :
		      -1;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct sim_file *file;

	sim_enter("sendmsg");
	file = FILE_WITH(fd, sendmsg);
	return file ? SIM_RET(file->ops->sendmsg(file, msg, flags)) : -1;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct sim_file *file;

	sim_enter("recvmsg");
	file = FILE_WITH(fd, recvmsg);
	return file ? SIM_RET(file->ops->recvmsg(file, msg, flags)) : -1;
}

ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	const struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return __wrap_sendmsg(fd, &msg, flags);
}

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return __wrap_recvmsg(fd, &msg, flags);
}

int __wrap_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int count, int flags)
{
	unsigned int done;

	for (done = 0; done < count; done++) {
		ssize_t len = __wrap_sendmsg(fd, &msgs[done].msg_hdr, flags);

		if (len < 0)
			break;
		msgs[done].msg_len = (unsigned int)len;
	}
	return done ? (int)done : -1;
}

int __wrap_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int count, int flags,
		    struct timespec *timeout)
{
	unsigned int done;

	(void)timeout;
	for (done = 0; done < count; done++) {
		ssize_t len = __wrap_recvmsg(fd, &msgs[done].msg_hdr, flags);

		if (len < 0)
			break;
		msgs[done].msg_len = (unsigned int)len;
	}
	return done ? (int)done : -1;
}
