/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets. The rules of os/file.h hold. Layouts of addresses, messages and
 * options are those of the system.
 */
#ifndef WF_OS_SOCKET_H
#define WF_OS_SOCKET_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>

/* Always with SOCK_CLOEXEC. @type may have SOCK_NONBLOCK. */
int wf_os_socket(int family, int type, int protocol);
/* As accept4(2), always with SOCK_CLOEXEC and SOCK_NONBLOCK. @name and @len may
 * be NULL. */
int wf_os_accept(int fd, struct sockaddr *name, socklen_t *len);

int wf_os_bind(int fd, const struct sockaddr *name, socklen_t len);
int wf_os_connect(int fd, const struct sockaddr *name, socklen_t len);
/* Connects the Unix socket @fd to the one that listens in the file @file, of
 * wf_os_socket_file(), whatever the name of the file leads to by now. -ENOENT
 * where /proc does not show this process. */
int wf_os_connect_file(int fd, int file);
int wf_os_listen(int fd, int backlog);
int wf_os_shutdown(int fd, int how);
int wf_os_getsockname(int fd, struct sockaddr *name, socklen_t *len);
int wf_os_getpeername(int fd, struct sockaddr *name, socklen_t *len);
int wf_os_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int wf_os_setsockopt(int fd, int level, int name, const void *value,
		     socklen_t len);

/* Bytes, or -errno. None of the sending calls raises SIGPIPE. */
ssize_t wf_os_send(int fd, const void *bytes, size_t len, int flags);
ssize_t wf_os_recv(int fd, void *bytes, size_t len, int flags);
ssize_t wf_os_sendmsg(int fd, const struct msghdr *head, int flags);
/* Descriptors that are received are closed by exec. */
ssize_t wf_os_recvmsg(int fd, struct msghdr *head, int flags);

/* Messages, or -errno. */
struct mmsghdr;
int wf_os_sendmmsg(int fd, struct mmsghdr *heads, unsigned int count,
		   int flags);
int wf_os_recvmmsg(int fd, struct mmsghdr *heads, unsigned int count,
		   int flags);

#endif
