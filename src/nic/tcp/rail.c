/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rails: further addresses of this host, over which bulk is spread. Both sides
 * send theirs in the hello of SMALL; bulk channel BULK + n then connects
 * address n of one list with address n of the other. A connection over a rail
 * is identified by the lives of both sides, which only they know, and not by
 * its source address. A rail that cannot be connected, or stops answering,
 * costs only its own bandwidth: its channel continues between the first
 * addresses.
 */
#include <string.h>

#include "base/log.h"
#include "nic/tcp/dev.h"
#include "os/file.h"

/* Tries to connect by the rail before the first address is taken. */
#define TRIES 2u

/* -- our own ---------------------------------------------------------------- */

int wf_tcp_rail_watch(struct wf_tcp_dev *dev)
{
	for (unsigned int i = 0; i < dev->rails; i++) {
		int err = wf_tcp_sock_watch(dev, dev->rail_fds[i],
					    &dev->rail_fds[i], false);

		/* All or none: a retry begins with the first. */
		while (err && i--)
			(void)!wf_tcp_sock_unwatch(dev, dev->rail_fds[i]);
		if (err)
			return err;
	}
	return 0;
}

void wf_tcp_rail_unwatch(struct wf_tcp_dev *dev)
{
	for (unsigned int i = 0; i < dev->rails; i++)
		(void)!wf_tcp_sock_unwatch(dev, dev->rail_fds[i]);
}

int wf_tcp_rail_open(struct wf_tcp_dev *dev, const struct wf_addr *more,
		     unsigned int count)
{
	char text[WF_ADDR_STR_LEN];

	for (unsigned int i = 0; i < count && i < WF_TCP_RAILS_MOST - 1; i++) {
		struct wf_addr *addr = &dev->rail_addrs[i];
		int fd;

		*addr = more[i];
		/* Another process may have our port there. */
		wf_base_addr_set_port(addr, 0);
		fd = wf_tcp_sock_listen(addr);
		if (fd < 0) {
			*strrchr(wf_base_addr_str(addr, text, sizeof(text)),
				 ':') = '\0';
			wf_warn("FI_WEFT_IFACE: large transfers do not use %s: "
				"%s",
				text, strerror(-fd));
			break;
		}
		wf_tcp_sock_begin(dev, fd);
		dev->rail_fds[dev->rails++] = fd;
	}
	return wf_tcp_rail_watch(dev);
}

void wf_tcp_rail_close(struct wf_tcp_dev *dev)
{
	for (unsigned int i = 0; i < dev->rails; i++)
		wf_os_close(dev->rail_fds[i]);
}

/* -- the peer's ------------------------------------------------------------- */

void wf_tcp_rail_write(const struct wf_addr *addr, struct wf_tcp_rail *rail)
{
	rail->port = wf_base_addr_port(addr);
	if (addr->sa.sa_family == AF_INET) {
		rail->family = 4;
		memcpy(rail->addr, &addr->in.sin_addr,
		       sizeof(addr->in.sin_addr));
	} else {
		rail->family = 6;
		memcpy(rail->addr, &addr->in6.sin6_addr,
		       sizeof(addr->in6.sin6_addr));
	}
}

static struct wf_addr read_rail(const struct wf_tcp_rail *rail)
{
	struct wf_addr addr;

	memset(&addr, 0, sizeof(addr));
	if (rail->family == 4) {
		addr.in.sin_family = AF_INET;
		memcpy(&addr.in.sin_addr, rail->addr, sizeof(addr.in.sin_addr));
	} else {
		addr.in6.sin6_family = AF_INET6;
		memcpy(&addr.in6.sin6_addr, rail->addr,
		       sizeof(addr.in6.sin6_addr));
	}
	wf_base_addr_set_port(&addr, rail->port);
	return addr;
}

void wf_tcp_rail_fill(const struct wf_tcp_dev *dev, struct wf_tcp_hello *hello)
{
	hello->rails = (uint16_t)dev->rails;
	for (unsigned int i = 0; i < dev->rails; i++)
		wf_tcp_rail_write(&dev->rail_addrs[i], &hello->rail[i]);
}

bool wf_tcp_rail_valid(const struct wf_tcp_hello *hello)
{
	if (hello->rails > WF_TCP_RAILS_MOST - 1 ||
	    (hello->rails && hello->channel != WF_TCP_SMALL))
		return false;
	for (unsigned int i = 0; i < hello->rails; i++) {
		const struct wf_tcp_rail *rail = &hello->rail[i];

		if ((rail->family != 4 && rail->family != 6) || !rail->port)
			return false;
	}
	return true;
}

void wf_tcp_rail_learn(const struct wf_tcp_dev *dev, struct wf_tcp_peer *peer,
		       const struct wf_tcp_hello *hello)
{
	unsigned int count = 0;

	if (hello->channel != WF_TCP_SMALL)
		return;
	while (count < hello->rails && count < dev->rails) {
		const struct wf_addr *ours = &dev->rail_addrs[count];
		struct wf_addr its = read_rail(&hello->rail[count]);

		/* The lists go together address by address. */
		if (its.sa.sa_family != ours->sa.sa_family)
			break;
		/* So a link-local address is on the link of ours. */
		if (its.sa.sa_family == AF_INET6 &&
		    IN6_IS_ADDR_LINKLOCAL(&its.in6.sin6_addr))
			its.in6.sin6_scope_id = ours->in6.sin6_scope_id;
		peer->rail_addrs[count++] = its;
	}
	/* Channels that are in use stay: counts go on in them. */
	if (count > peer->rails)
		peer->rails = (uint8_t)count;
}

struct wf_tcp_peer *wf_tcp_rail_peer(struct wf_tcp_dev *dev,
				     const struct wf_tcp_hello *hello)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->peers) {
		struct wf_tcp_peer *peer =
			wf_container_of(pos, struct wf_tcp_peer, link);

		if (peer->our_life == hello->known &&
		    peer->life == hello->life &&
		    hello->channel < WF_TCP_BULK + 1u + peer->rails)
			return peer;
	}
	return NULL;
}

/* -- channels --------------------------------------------------------------- */

bool wf_tcp_rail_is_on(const struct wf_tcp_chan *chan)
{
	return chan->index > WF_TCP_BULK && !chan->by_first;
}

void wf_tcp_rail_ends(const struct wf_tcp_dev *dev,
		      const struct wf_tcp_chan *chan, struct wf_addr *from,
		      struct wf_addr *to)
{
	unsigned int rail = chan->index - WF_TCP_BULK - 1u;

	*from = dev->rail_addrs[rail];
	*to = chan->peer->rail_addrs[rail];
}

void wf_tcp_rail_leave(struct wf_tcp_chan *chan, int err)
{
	char text[WF_ADDR_STR_LEN];

	chan->by_first = true;
	chan->tries = 0;
	wf_warn("FI_WEFT_IFACE: large transfers do not reach %s by interface %u "
		"of the list (%s); they use the first",
		wf_base_addr_str(&chan->peer->addr, text, sizeof(text)),
		chan->index - WF_TCP_BULK + 1u, strerror(err));
}

void wf_tcp_rail_failed(struct wf_tcp_chan *chan, int err)
{
	/* Each try has its own time. */
	chan->asked_from = 0;
	if (++chan->tries >= TRIES)
		wf_tcp_rail_leave(chan, err);
}

struct wf_tcp_chan *wf_tcp_rail_choose(struct wf_tcp_peer *peer)
{
	unsigned int count = peer->rails + 1u, at = peer->next_rail;
	struct wf_tcp_chan *bulk = &peer->chans[WF_TCP_BULK];

	/* A slow one has something to do while others have nothing. */
	for (unsigned int i = 0; i < count; i++) {
		if (wf_base_list_empty(&bulk[(at + i) % count].todo)) {
			at = (at + i) % count;
			break;
		}
	}
	peer->next_rail = (uint8_t)((at + 1) % count);
	return &bulk[at];
}
