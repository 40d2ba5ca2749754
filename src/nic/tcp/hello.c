/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which connection a channel uses. Both sides may connect at the same
 * time, and one side may believe that a connection is over while the other
 * still uses it. The side that connected sends no frame before the other side
 * has answered WELCOME, so no decision here can lose a frame. Both sides come
 * to the same decision by these rules:
 *
 *   A connection that we welcomed gives way to a later one of the same side:
 *   that side knows that the earlier one is over.
 *   A connection of ours that was welcomed gives way only to a connection whose
 *   hello names ours as over. Any other hello was sent before the WELCOME, and
 *   is ignored.
 *   A connection of ours over which we have not sent a hello gives way: the
 *   other side cannot have seen it.
 *   While our hello waits for its answer, the side with the smaller address
 *   keeps its own connection. The other side waits for that connection for a
 *   while, then insists. A side that insists keeps its own connection until it
 *   is answered, because the other side accepts it whenever it arrives; hellos
 *   that the other side sent before are out of date.
 */
#include <string.h>

#include "nic/tcp/dev.h"

void wf_tcp_hello_fill(const struct wf_tcp_dev *dev,
		       const struct wf_tcp_chan *chan, enum wf_tcp_word word,
		       struct wf_tcp_hello *hello)
{
	*hello = (struct wf_tcp_hello){
		.magic = WF_TCP_HELLO_MAGIC,
		.version = WF_TCP_VERSION,
		.word = (uint8_t)word,
		.channel = chan->index,
		.insists = chan->insists,
		.life = chan->peer->our_life,
		.known = chan->peer->life,
		.number = word == WF_TCP_HELLO ? chan->number : chan->welcome,
		.replaces = chan->welcome,
		.taken = chan->taken,
		.port = dev->port,
	};
	if (chan->index == WF_TCP_SMALL)
		wf_tcp_rail_fill(dev, hello);
}

bool wf_tcp_hello_valid(const struct wf_tcp_hello *hello)
{
	return hello->magic == WF_TCP_HELLO_MAGIC &&
	       hello->version == WF_TCP_VERSION &&
	       hello->word >= WF_TCP_HELLO && hello->word <= WF_TCP_ASTRAY &&
	       hello->channel < WF_TCP_CHANNELS && hello->insists <= 1 &&
	       hello->life && hello->number && hello->port &&
	       wf_tcp_rail_valid(hello);
}

/* Whether it was said before its sender welcomed a connection of ours. The sender
 * has given up its own connection for that, and may have taken frames since: the
 * count in the hello is too low. */
static bool is_outdated(const struct wf_tcp_chan *chan,
			const struct wf_tcp_hello *hello)
{
	const struct wf_tcp_peer *peer = chan->peer;

	return chan->welcomed && hello->life == peer->life &&
	       (hello->known != peer->our_life ||
		(int32_t)(hello->replaces - chan->welcomed) < 0);
}

enum wf_tcp_verdict wf_tcp_hello_decide(const struct wf_tcp_chan *chan,
					const struct wf_tcp_hello *hello,
					bool below)
{
	const struct wf_tcp_conn *conn = chan->conn;

	if (hello->word != WF_TCP_HELLO)
		return WF_TCP_REFUSE;
	/* One that came late: a later one of the same life was here. */
	if (hello->life == chan->peer->life && chan->welcome &&
	    (int32_t)(hello->number - chan->welcome) <= 0)
		return WF_TCP_REFUSE;
	if (is_outdated(chan, hello))
		return WF_TCP_REFUSE;
	/* Another process, or one that has forgotten us. */
	if (hello->life != chan->peer->life && chan->peer->life)
		return WF_TCP_TAKE;
	if (!conn || !conn->mine || chan->state == WF_TCP_CONNECT ||
	    hello->replaces == conn->number)
		return WF_TCP_TAKE;
	/* Then it was said before the other side welcomed ours. */
	if (chan->state == WF_TCP_UP)
		return WF_TCP_LEAVE;
	if (hello->insists != chan->insists)
		return hello->insists ? WF_TCP_TAKE : WF_TCP_LEAVE;
	return below ? WF_TCP_LEAVE : WF_TCP_TAKE;
}

bool wf_tcp_hello_below(const struct wf_addr *ours, const struct wf_addr *its)
{
	size_t len = ours->sa.sa_family == AF_INET ?
			     sizeof(ours->in.sin_addr) :
			     sizeof(ours->in6.sin6_addr);
	const void *a = ours->sa.sa_family == AF_INET ?
				(const void *)&ours->in.sin_addr :
				(const void *)&ours->in6.sin6_addr;
	const void *b = ours->sa.sa_family == AF_INET ?
				(const void *)&its->in.sin_addr :
				(const void *)&its->in6.sin6_addr;
	int order = memcmp(a, b, len);

	/* Not the scope of IPv6, which each host numbers for itself. */
	if (order)
		return order < 0;
	return wf_base_addr_port(ours) < wf_base_addr_port(its);
}
