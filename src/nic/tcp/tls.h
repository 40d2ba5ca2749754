/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS 1.3 between a connection and its socket. Both sides know a job's secret
 * and nothing else of each other: there are no certificates, tickets or early
 * data, and a peer that does not know it is refused before the rest of the
 * device sees any of its bytes. The device uses it through stream.h.
 *
 * tls: of a device, the key, and memory that all connections share. session: of
 * a connection.
 */
#ifndef WF_NIC_TCP_TLS_H
#define WF_NIC_TCP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/types.h"

struct wf_tcp_tls;
struct wf_tcp_session;

/* The first byte of a TLS connection, and of a refusal (alert). */
#define WF_TCP_TLS_HANDSHAKE 0x16u
#define WF_TCP_TLS_ALERT 0x15u

/* @by_kernel: the kernel encrypts and decrypts where it can. 0, or -errno and in
 * @why what is wrong and what to do. */
int wf_tcp_tls_open(const char *key_file, bool by_kernel,
		    struct wf_tcp_tls **tls, char *why, size_t room);
void wf_tcp_tls_close(struct wf_tcp_tls *tls);
/* For tests: the key of a direction is changed after so many bytes. */
void wf_tcp_tls_rekey_after(struct wf_tcp_tls *tls, uint64_t bytes);
/* For tests: the kernel does no other directions (WF_TCP_KTLS_) of connections
 * that begin from now on. */
void wf_tcp_tls_limit_kernel(struct wf_tcp_tls *tls, unsigned int directions);
/* Describes in @text what encrypts, in some words. */
void wf_tcp_tls_about(char *text, size_t room);

/* The TLS of a connection over @fd. NULL: no memory. */
struct wf_tcp_session *wf_tcp_tls_begin(struct wf_tcp_tls *tls, int fd,
					bool mine);
/* Says nothing to the other side. */
void wf_tcp_tls_end(struct wf_tcp_session *session);

/* Continues the handshake. 1: both sides have proved that they know the key; 0:
 * it is the other side's turn; -EKEYREJECTED: it does not know the key, or says
 * that we do not; another -errno: the connection is over. */
int wf_tcp_tls_shake(struct wf_tcp_session *session);
/* Which directions the kernel does, after the handshake. */
unsigned int wf_tcp_tls_by_kernel(const struct wf_tcp_session *session);
/* Returns the reason for -EKEYREJECTED. */
const char *wf_tcp_tls_reason(const struct wf_tcp_session *session);
/* Whether the other side named a key, and not ours. */
bool wf_tcp_tls_is_other(const struct wf_tcp_session *session);

/* Bytes of the vector that were taken, as many as there is room for now, or
 * -errno. *@full: the socket has no more room; bytes that were taken and did
 * not leave go with the next call, which may have nothing else to send. */
ssize_t wf_tcp_tls_send(struct wf_tcp_session *session, const struct iovec *iov,
			unsigned int count, bool *full);
/* Whether something of that waits. */
bool wf_tcp_tls_holds(const struct wf_tcp_session *session);
/* Bytes, or 0 at the end of the stream, or -errno; -EAGAIN: no whole record is
 * there. Nothing that was read stays behind where no event tells of it. The
 * vector has room for a stage at least. *@drained: the socket is empty. */
ssize_t wf_tcp_tls_recv(struct wf_tcp_session *session, const struct iovec *iov,
			unsigned int count, bool *drained);
/* Reads no further than @len bytes, during the greeting. */
ssize_t wf_tcp_tls_take(struct wf_tcp_session *session, void *bytes,
			size_t len);

#endif
