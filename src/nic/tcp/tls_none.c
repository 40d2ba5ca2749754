/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces tls.c if weft is built without OpenSSL: no device has a key, and no
 * connection uses TLS.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "nic/tcp/tls.h"

#define WHY "this weft was built without OpenSSL"

int wf_tcp_tls_open(const char *key_file, bool by_kernel,
		    struct wf_tcp_tls **tls, char *why, size_t room)
{
	(void)key_file;
	(void)by_kernel;
	(void)tls;
	snprintf(why, room, WHY);
	return -ENOSYS;
}

void wf_tcp_tls_close(struct wf_tcp_tls *tls)
{
	(void)tls;
}

void wf_tcp_tls_about(char *text, size_t room)
{
	snprintf(text, room, WHY);
}

void wf_tcp_tls_rekey_after(struct wf_tcp_tls *tls, uint64_t bytes)
{
	(void)tls;
	(void)bytes;
}

void wf_tcp_tls_limit_kernel(struct wf_tcp_tls *tls, unsigned int directions)
{
	(void)tls;
	(void)directions;
}

struct wf_tcp_session *wf_tcp_tls_begin(struct wf_tcp_tls *tls, int fd,
					bool mine)
{
	(void)tls;
	(void)fd;
	(void)mine;
	return NULL;
}

void wf_tcp_tls_end(struct wf_tcp_session *session)
{
	(void)session;
}

int wf_tcp_tls_shake(struct wf_tcp_session *session)
{
	(void)session;
	return -ENOSYS;
}

unsigned int wf_tcp_tls_by_kernel(const struct wf_tcp_session *session)
{
	(void)session;
	return 0;
}

const char *wf_tcp_tls_reason(const struct wf_tcp_session *session)
{
	(void)session;
	return WHY;
}

bool wf_tcp_tls_is_other(const struct wf_tcp_session *session)
{
	(void)session;
	return false;
}

ssize_t wf_tcp_tls_send(struct wf_tcp_session *session, const struct iovec *iov,
			unsigned int count, bool *full)
{
	(void)session;
	(void)iov;
	(void)count;
	(void)full;
	return -ENOSYS;
}

bool wf_tcp_tls_holds(const struct wf_tcp_session *session)
{
	(void)session;
	return false;
}

ssize_t wf_tcp_tls_recv(struct wf_tcp_session *session, const struct iovec *iov,
			unsigned int count, bool *drained)
{
	(void)session;
	(void)iov;
	(void)count;
	(void)drained;
	return -ENOSYS;
}

ssize_t wf_tcp_tls_take(struct wf_tcp_session *session, void *bytes, size_t len)
{
	(void)session;
	(void)bytes;
	(void)len;
	return -ENOSYS;
}
