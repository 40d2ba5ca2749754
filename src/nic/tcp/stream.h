/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a connection: as they are, or by TLS where the device has a key.
 * All that connections read and write goes through here.
 */
#ifndef WF_NIC_TCP_STREAM_H
#define WF_NIC_TCP_STREAM_H

#include <errno.h>

#include "base/cpu.h"
#include "nic/tcp/dev.h"
#include "nic/tcp/tls.h"
#include "os/socket.h"

static inline bool wf_tcp_stream_is_busy(ssize_t n)
{
	return n == -EAGAIN || n == -EINTR || n == -ENOBUFS || n == -ENOMEM;
}

/* Bytes that were taken, 0 if there was no room, or -errno. *@full: there is no
 * more room; an event tells when there is. */
static inline ssize_t wf_tcp_stream_send(struct wf_tcp_conn *conn,
					 const struct iovec *iov,
					 unsigned int count, size_t bytes,
					 bool *full)
{
	struct msghdr head = { .msg_iov = (struct iovec *)iov,
			       .msg_iovlen = count };
	ssize_t n;

	if (wf_unlikely(conn->tls))
		return wf_tcp_tls_send(conn->tls, iov, count, full);
	n = count == 1 ?
		    wf_os_send(conn->fd, iov[0].iov_base, iov[0].iov_len, 0) :
		    wf_os_sendmsg(conn->fd, &head, 0);
	if (wf_tcp_stream_is_busy(n))
		n = 0;
	*full = n >= 0 && (size_t)n < bytes;
	return n;
}

/* Bytes were taken that have not left yet. */
static inline bool wf_tcp_stream_holds(const struct wf_tcp_conn *conn)
{
	return wf_unlikely(conn->tls) && wf_tcp_tls_holds(conn->tls);
}

/* Bytes, 0 at the end, or -errno. @room: of the vector; by TLS a stage at least.
 * *@drained: there is no more for now. */
static inline ssize_t wf_tcp_stream_recv(struct wf_tcp_conn *conn,
					 const struct iovec *iov,
					 unsigned int count, size_t room,
					 bool *drained)
{
	struct msghdr head = { .msg_iov = (struct iovec *)iov,
			       .msg_iovlen = count };
	ssize_t n;

	if (wf_unlikely(conn->tls))
		return wf_tcp_tls_recv(conn->tls, iov, count, drained);
	n = count == 1 ?
		    wf_os_recv(conn->fd, iov[0].iov_base, iov[0].iov_len, 0) :
		    wf_os_recvmsg(conn->fd, &head, 0);
	*drained = n < 0 || (size_t)n < room;
	return n;
}

/* The same of a greeting: not a byte more. */
static inline ssize_t wf_tcp_stream_take(struct wf_tcp_conn *conn, void *bytes,
					 size_t len)
{
	return conn->tls ? wf_tcp_tls_take(conn->tls, bytes, len) :
			   wf_os_recv(conn->fd, bytes, len, 0);
}

#endif
