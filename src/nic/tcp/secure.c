/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may come in: connections of a device with a key begin with the handshake
 * of TLS, those of others without. Whoever comes the other way, or with another
 * key, is refused with a word that both kinds understand, and the user is told
 * what to check.
 */
#include <errno.h>

#include "base/log.h"
#include "nic/tcp/stream.h"

#define CHECK                                                                  \
	"is FI_WEFT_KEY_FILE set, and the same file, for all processes of "    \
	"the job?"

/* Once aloud: every peer of a job may be refused for the same reason. */
static void tell(struct wf_tcp_dev *dev, const struct wf_tcp_conn *conn,
		 const char *why)
{
	struct wf_addr from, to;
	char text[WF_ADDR_STR_LEN] = "a peer";

	wf_tcp_count(dev, tls_refused, 1);
	if (conn->chan)
		wf_base_addr_str(&conn->chan->peer->addr, text, sizeof(text));
	else if (!wf_tcp_sock_names(conn->fd, &from, &to))
		wf_base_addr_str(&from, text, sizeof(text));
	if (dev->told_key) {
		wf_info("no connection with %s: %s", text, why);
		return;
	}
	dev->told_key = true;
	wf_tell("no connection with %s: %s; " CHECK, text, why);
}

void wf_tcp_secure_unexpected(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	tell(dev, conn, "it wants TLS, and we have no key");
	wf_tcp_secure_refuse(conn->fd);
}

void wf_tcp_secure_denied(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	tell(dev, conn, "it wants TLS, and we have no key");
}

void wf_tcp_secure_refuse(int fd)
{
	/* A fatal alert of TLS: unknown_psk_identity. */
	static const uint8_t alert[] = { WF_TCP_TLS_ALERT, 3, 3, 0, 2, 2, 115 };
	uint8_t bytes[2048];

	/* What is left unread would make the kernel forget our words. */
	(void)!wf_os_recv(fd, bytes, sizeof(bytes), 0);
	(void)!wf_os_send(fd, alert, sizeof(alert), 0);
}

/* Whether a guest begins as one does who knows TLS. 1, 0: nothing is here yet,
 * or -errno. */
static int look(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	uint8_t first;
	ssize_t got = wf_os_recv(conn->fd, &first, 1, MSG_PEEK);

	if (got == -EAGAIN || got == -EINTR)
		return 0;
	if (got <= 0)
		return got ? (int)got : -ECONNRESET;
	if (first == WF_TCP_TLS_HANDSHAKE)
		return 1;
	tell(dev, conn, "it comes without TLS, and we have a key");
	wf_tcp_secure_refuse(conn->fd);
	return -EACCES;
}

int wf_tcp_secure_shake(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	int ret = 1;

	if (!conn->tls) {
		if (!conn->mine)
			ret = look(dev, conn);
		if (ret <= 0)
			return ret;
		conn->tls = wf_tcp_tls_begin(dev->tls, conn->fd, conn->mine);
		if (!conn->tls)
			return -ENOMEM;
		conn->shaking = true;
	}
	ret = wf_tcp_tls_shake(conn->tls);
	if (ret == -EACCES)
		tell(dev, conn, wf_tcp_tls_reason(conn->tls));
	if (ret > 0) {
		wf_tcp_count(dev, tls_handshakes, 1);
		conn->shaking = false;
	}
	return ret;
}
