/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that do not answer.
 */
#include "rdm/silent.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/file.h"
#include "os/net.h"
#include "os/process.h"
#include "os/socket.h"
#include "rdm/ep.h"
#include "rdm/peer.h"

#define WARN_MS 2000
/* Peers that are named, of those that are silent at the same time: there may be a
 * thousand on a host that is down, or not started yet. */
#define LINES 4

/* The address that the kernel sends from when it sends to @to. */
static bool source_of(const struct wf_rdm_ep *ep, const struct wf_addr *to,
		      struct wf_addr *from)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int fd = wf_os_socket(to->sa.sa_family, SOCK_DGRAM, 0);
	bool found;

	*from = *wf_nic_socket(ep->nic);
	if (!wf_base_addr_is_any(from) &&
	    from->sa.sa_family == to->sa.sa_family) {
		if (fd >= 0)
			wf_os_close(fd);
		return true;
	}
	found = fd >= 0 && !wf_os_connect(fd, &to->sa, wf_base_addr_len(to)) &&
		!wf_os_getsockname(fd, (struct sockaddr *)&name, &len) &&
		!wf_base_addr_set(from, &name, len);
	if (fd >= 0)
		wf_os_close(fd);
	wf_base_addr_set_port(from, wf_base_addr_port(wf_nic_socket(ep->nic)));
	return found;
}

static void interface_of(const struct wf_addr *addr, char *name, size_t room)
{
	struct wf_os_iface *all;
	int count = wf_os_ifaces(&all);

	snprintf(name, room, "unknown");
	if (count < 0)
		return;
	for (int i = 0; i < count; i++) {
		struct wf_addr have;

		if (all[i].addr.sa.sa_family != addr->sa.sa_family ||
		    wf_base_addr_set(&have, &all[i].addr, sizeof(have)))
			continue;
		wf_base_addr_set_port(&have, wf_base_addr_port(addr));
		if (!wf_base_addr_equal(&have, addr))
			continue;
		snprintf(name, room, "%s", all[i].name);
		break;
	}
	free(all);
}

/* Counts a line. The last one says that there are more. */
static bool is_named(struct wf_rdm_ep *ep)
{
	if (ep->silent_lines == LINES)
		wf_tell("no answer by packets from more peers, which are not "
			"named here: `weft why %d` lists them",
			(int)wf_os_getpid());
	if (ep->silent_lines > LINES)
		return false;
	return ep->silent_lines++ < LINES;
}

/* Once for each peer, until it answers. If the peer has refused us, the device has
 * reported the reason, and to guess at firewalls would contradict it. */
static void warn(struct wf_rdm_peer *peer)
{
	char to[WF_ADDR_STR_LEN], from[WF_ADDR_STR_LEN], name[64] = "unknown";
	struct wf_nic_path path;
	struct wf_addr source;

	peer->warned = true;
	if (!wf_nic_ah_query(peer->ep->nic, peer->ah, &path) && path.refused)
		return;
	if (!is_named(peer->ep))
		return;
	if (source_of(peer->ep, &peer->addr, &source))
		interface_of(&source, name, sizeof(name));
	wf_tell("no answer from %s by packets for %.1f s (%s from %s, "
		"interface %s): is the process there, does a firewall drop "
		"packets, is FI_WEFT_IFACE the right interface, are "
		"FI_WEFT_NIC and FI_WEFT_SHM the same for all processes?",
		wf_base_addr_str(&peer->addr, to, sizeof(to)),
		(double)peer->asked_ns / 1e9, wf_nic_name(peer->ep->nic),
		wf_base_addr_str(&source, from, sizeof(from)), name);
}

/* An operation waits for it, and the device is not connected. A handshake that
 * we owe to a peer that has left does not count: nobody waits for it. */
static bool is_awaited(const struct wf_rdm_peer *peer, struct wf_nic_path *path)
{
	return (!wf_base_list_empty(&peer->queue) ||
		!wf_base_list_empty(&peer->flight) ||
		!wf_base_list_empty(&peer->rxs)) &&
	       !wf_nic_ah_query(peer->ep->nic, peer->ah, path) && !path->up;
}

void wf_rdm_silent_check(struct wf_rdm_ep *ep)
{
	uint64_t limit = ep->attr.warn_ms ? ep->attr.warn_ms : WARN_MS;
	struct wf_list *pos, *tmp;
	uint64_t silent = 0;

	wf_list_for_each (pos, tmp, &ep->peers) {
		struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);
		struct wf_nic_path path;

		if (!is_awaited(peer, &path)) {
			peer->asked_ns = 0;
			continue;
		}
		/* The device may have given it up, which it will report
		 * soon. */
		if (path.asking_ns)
			peer->asked_ns = path.asking_ns;
		if (peer->asked_ns < limit * WF_NS_PER_MS)
			continue;
		silent++;
		if (!peer->warned)
			warn(peer);
	}
	if (!silent)
		ep->silent_lines = 0;
	wf_base_stats_set(&ep->stats, WF_RDM_STAT_unanswered, silent);
}

void wf_rdm_silent_failed(struct wf_rdm_peer *peer)
{
	if (peer->asked_ns && !peer->warned)
		warn(peer);
	/* The next attempt has the full time again. */
	peer->asked_ns = 0;
}
