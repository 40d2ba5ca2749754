/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: packets of a hostile peer, as the software NIC reads them from
 * its socket. The input is a sequence of packets. Most get the magic, the ids
 * and the checksum that a real peer would know, so that they pass the first
 * checks; the others are sent as they are. Whatever arrives, the NIC must not
 * touch memory that is not registered, lose track of its own requests, or stop.
 */
#include "nic_rig.h"

#include <sys/socket.h>
#include <unistd.h>

#include "nic/udp/dev.h"
#include "nic/udp/engine/inner.h"
#include "nic/udp/engine/sum.h"

struct wf_fuzz_stats wf_fuzz_stats;

struct world {
	struct nic_rig rig;
	struct wf_addr addr; /* of the peer: a socket that nobody reads */
	int fd;
};

static void open_world(struct world *w)
{
	struct wf_nic_attr attr = { 0 };
	struct wf_nic_qp_attr qp = { .sq_entries = 64,
				     .rq_entries = 64,
				     .rnr_retry = 2 };
	struct sockaddr_in name;
	socklen_t len = sizeof(name);

	memset(w, 0, sizeof(*w));
	nic_rig_open(&w->rig, "udp", &attr, &qp, 256);
	w->fd = socket(AF_INET, SOCK_DGRAM, 0);
	need(w->fd >= 0 &&
	     !bind(w->fd, &attr.addr.sa, sizeof(struct sockaddr_in)) &&
	     !getsockname(w->fd, (struct sockaddr *)&name, &len) &&
	     !wf_base_addr_set(&w->addr, &name, len));
	need(!wf_nic_ah_create_socket(w->rig.nic, &w->addr, &w->rig.ah));
}

static void close_world(struct world *w)
{
	nic_rig_close(&w->rig);
	close(w->fd);
}

/* Connected in both directions, as after a handshake, with requests in
 * flight. */
static void join(struct world *w)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(w->rig.nic);
	struct wf_udp_peer *peer = wf_udp_peer_find(&dev->engine, &w->addr);

	need(peer);
	wf_udp_in_open(&dev->engine, peer, 0x1234, false);
	need(!wf_udp_out_up(&dev->engine, peer, 1400, 1 << 20));
	peer->out.cid = wf_udp_peer_new_cid(&dev->engine, peer);
	peer->out.remote_cid = 0x5678;
	peer->heard_at = dev->now = wf_base_clock_ns();
	nic_rig_post(&w->rig);
}

/* Fills in what a real peer would know, as the bits of the first byte say. */
static size_t dress(struct world *w, uint8_t how, uint8_t *p, size_t len)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(w->rig.nic);
	struct wf_udp_peer *peer = wf_udp_peer_find(&dev->engine, &w->addr);
	struct wf_udp_common *c = (struct wf_udp_common *)p;
	struct wf_udp_data *d = (struct wf_udp_data *)p;
	size_t head = len;

	if (len < sizeof(*c))
		return len;
	c->magic = how & 1 || how & 2 ? WF_UDP_MAGIC : c->magic;
	c->type = 1 + c->type % (WF_UDP_TYPES - 1);
	if (how & 4 || how & 8) {
		bool to_in = c->type == WF_UDP_DATA || c->type == WF_UDP_PING ||
			     c->type == WF_UDP_PROBE;

		c->dst_cid = to_in ? peer->in.cid : peer->out.cid;
	}
	if (c->type <= WF_UDP_ACCEPT)
		len = head = sizeof(struct wf_udp_hello);
	else if (c->type == WF_UDP_ACK)
		c->kind %= WF_UDP_ACK_WORDS + 2;
	if (c->type == WF_UDP_ACK)
		len = head = sizeof(struct wf_udp_ack) + (size_t)8 * c->kind;
	else if (c->type != WF_UDP_DATA && c->type > WF_UDP_ACCEPT)
		len = head = sizeof(struct wf_udp_note);
	if (c->type == WF_UDP_DATA && len >= sizeof(*d)) {
		struct wf_udp_part *part = (struct wf_udp_part *)(d + 1);

		head = sizeof(*d);
		if (c->flags & WF_UDP_DATA_PART &&
		    len >= sizeof(*d) + sizeof(*part)) {
			head += sizeof(*part);
			part->off = (uint16_t)(part->off % 16 * 128);
		}
		c->kind %= WF_UDP_DATA_OPS + 1;
		if (how & 16) {
			d->len = (uint16_t)(len - head);
			d->seq = peer->in.base + d->seq % 70;
			d->qkey = RIG_QKEY;
			d->dst_qpn = wf_nic_qp_num(w->rig.qp);
		}
		if (how & 32 && c->kind != WF_UDP_READ_DATA) {
			d->key = w->rig.mr.rkey;
			d->addr = (uintptr_t)w->rig.memory +
				  d->addr % (RIG_MEMORY * 2);
		} else if (how & 32) {
			d->key %= 16;
			d->addr %= 4000;
			d->arg %= 20;
		}
	}
	if (c->type == WF_UDP_PROBE)
		((struct wf_udp_note *)p)->seq = (uint32_t)len;
	c->crc = wf_udp_sum_crc(0, p, 4);
	if (how & 64 || how & 128)
		c->crc = wf_udp_sum_crc(c->crc, p + 8, head - 8);
	return len;
}

static void poll_all(struct world *w)
{
	struct wf_nic_wc wc[16];
	int n;

	while ((n = wf_nic_cq_poll(w->rig.cq, wc, 16)) > 0) {
		for (int i = 0; i < n; i++)
			nic_rig_count(&w->rig, &wc[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	static _Alignas(8) uint8_t packet[2048];

	open_world(&w);
	join(&w);
	while (size >= 3) {
		uint8_t how = data[0];
		size_t len = (data[1] | data[2] << 8) % 400;

		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		memset(packet, 0, sizeof(packet));
		memcpy(packet, data, len);
		len = dress(&w, how, packet, len);
		wf_udp_engine_receive(&wf_udp_dev_of(w.rig.nic)->engine,
				      wf_udp_dev_of(w.rig.nic)->now, &w.addr,
				      &w.addr, packet, len);
		wf_fuzz_stats.slots++;
		data += len < size ? len : size;
		size -= len < size ? len : size;
	}
	nic_rig_check(&w.rig);
	wf_nic_progress(w.rig.nic);
	poll_all(&w);
	/* Each request of ours ends once, whatever the peer sent about it. */
	wf_nic_qp_flush(w.rig.qp);
	poll_all(&w);
	need(w.rig.completions == w.rig.requests);
	nic_rig_check(&w.rig);
	close_world(&w);
	return 0;
}
