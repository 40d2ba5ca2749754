/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file decides which connections are accepted: those of a device with a
 * key begin with the handshake of TLS, those of others without. A connection of
 * the other kind, or with another key, is refused with a message that both
 * kinds understand, and the user is told what to check.
 */
#include <errno.h>

#include <string.h>

#include "base/log.h"
#include "nic/tcp/stream.h"

#define CHECK                                                                  \
	"is FI_WEFT_KEY_FILE set, and the same file, for all processes of "    \
	"the job?"
#define CHECK_WAY                                                              \
	"with FI_WEFT_KEY_FILE nothing may change addresses on the way (NAT, " \
	"a proxy)"

/* Reasons for a refusal. Each is reported to the user once: every peer of a job
 * may be refused for the same reason, and another reason may follow. */
enum reason {
	STRANGER = 0, /* not weft: the log has it, the user is not told */
	WANTS_TLS = 1,
	WITHOUT_TLS = 2,
	OTHER_KEY = 4,
	ASTRAY = 8,
};

static void tell(struct wf_tcp_dev *dev, const struct wf_tcp_conn *conn,
		 enum reason reason, const char *why)
{
	struct wf_addr from, to;
	char text[WF_ADDR_STR_LEN] = "a peer";

	wf_tcp_count(dev, tls_refused, 1);
	if (conn->chan)
		conn->chan->peer->is_refused = true;
	if (conn->chan)
		wf_base_addr_str(&conn->chan->peer->addr, text, sizeof(text));
	else if (!wf_tcp_sock_names(conn->fd, &from, &to))
		wf_base_addr_str(&from, text, sizeof(text));
	if (reason == STRANGER || dev->warned_key & reason) {
		wf_info("no connection with %s: %s", text, why);
		return;
	}
	dev->warned_key |= (uint8_t)reason;
	wf_tell("no connection with %s: %s; %s", text, why,
		reason == ASTRAY ? CHECK_WAY : CHECK);
}

void wf_tcp_secure_unexpected(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	tell(dev, conn, WANTS_TLS,
	     "it requires TLS, and this process has no key");
	wf_tcp_secure_refuse(conn->fd);
}

void wf_tcp_secure_denied(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	tell(dev, conn, WANTS_TLS,
	     "it requires TLS, and this process has no key");
}

void wf_tcp_secure_refuse(int fd)
{
	/* A fatal alert of TLS: unknown_psk_identity. */
	static const uint8_t alert[] = { WF_TCP_TLS_ALERT, 3, 3, 0, 2, 2, 115 };
	uint8_t bytes[2048];

	/* Unread data would make the kernel discard our answer. */
	(void)!wf_os_recv(fd, bytes, sizeof(bytes), 0);
	(void)!wf_os_send(fd, alert, sizeof(alert), 0);
}

/* Whether a guest begins with TLS. 1, 0: nothing has arrived yet, or -errno. */
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
	tell(dev, conn,
	     first == (WF_TCP_HELLO_MAGIC & 0xff) ? WITHOUT_TLS : STRANGER,
	     "it does not use TLS, and this process has a key");
	wf_tcp_secure_refuse(conn->fd);
	return -EKEYREJECTED;
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
	if (ret == -EKEYREJECTED)
		tell(dev, conn,
		     conn->mine || wf_tcp_tls_is_other(conn->tls) ? OTHER_KEY :
								    STRANGER,
		     wf_tcp_tls_reason(conn->tls));
	if (ret > 0) {
		wf_tcp_count(dev, tls_handshakes, 1);
		conn->shaking = false;
	}
	return ret;
}

/* -- who is meant ------------------------------------------------------------ */

/* All processes of a job prove the same: that they know its key. So the two
 * sides compare the addresses that each of them sees. If they differ, an
 * attacker has changed where the connection leads to or where it seems to come
 * from, and data for one peer would reach another. */
int wf_tcp_secure_name(const struct wf_tcp_dev *dev,
		       const struct wf_tcp_conn *conn,
		       struct wf_tcp_hello *hello)
{
	struct wf_addr there, here;
	int err = wf_tcp_sock_names(conn->fd, &there, &here);

	if (err)
		return err;
	/* A socket that connects has a port of its own, not that of the device. */
	wf_base_addr_set_port(&here, dev->port);
	wf_tcp_rail_write(&here, &hello->from);
	wf_tcp_rail_write(&there, &hello->to);
	return 0;
}

static bool is_at(const struct wf_tcp_rail *said, const struct wf_addr *addr)
{
	struct wf_tcp_rail seen;

	/* Without the scope of IPv6, which each host numbers for itself. */
	memset(&seen, 0, sizeof(seen));
	wf_tcp_rail_write(addr, &seen);
	return !memcmp(&seen, said, sizeof(seen));
}

bool wf_tcp_secure_is_meant(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
			    const struct wf_tcp_hello *hello,
			    const struct wf_addr *from,
			    const struct wf_addr *to)
{
	struct wf_addr peer = *from;
	struct wf_tcp_hello answer = {
		.magic = WF_TCP_HELLO_MAGIC,
		.version = WF_TCP_VERSION,
		.word = WF_TCP_ASTRAY,
		.channel = hello->channel,
		.life = hello->life,
		.number = hello->number,
		.port = dev->port,
	};
	struct iovec iov = { &answer, sizeof(answer) };
	bool full;

	wf_base_addr_set_port(&peer, hello->port);
	if (is_at(&hello->from, &peer) && is_at(&hello->to, to))
		return true;
	tell(dev, conn, ASTRAY,
	     is_at(&hello->from, &peer) ?
		     "it meant another address than ours" :
		     "it does not come from the address that it has");
	(void)!wf_tcp_stream_send(conn, &iov, 1, sizeof(answer), &full);
	return false;
}

void wf_tcp_secure_astray(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	tell(dev, conn, ASTRAY,
	     "who answers there has, or sees us at, another address");
}
