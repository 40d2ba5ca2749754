/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A few endpoints of packets in one process, for unit tests: each with its own
 * queues, registrations and names, joined by loopback. Name i is node i.
 */
#ifndef WF_RDM_NET_TEST_H
#define WF_RDM_NET_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cmocka.h>

#include "base/clock.h"
#include "core/core.h"
#include "rdm/ep.h"
#include "rdm/peer.h"

#define NET_NODES 3
#define NET_LOST 200 /* seconds after which a test has failed */

struct node {
	struct wf_core core; /* drives: */
	struct wf_rdm_ep ep;
	struct wf_compq txq, rxcq;
	struct wf_rxq rxq;
	struct wf_regs regs;
	struct wf_addr addr;
	struct wf_addr names[NET_NODES];
	bool known[NET_NODES];
	bool open;
	int fd;
};

struct net {
	struct node nodes[NET_NODES];
};

/* A completion as it was read. */
struct got {
	void *context;
	uint64_t flags, data, tag, src;
	size_t len, olen;
	int err;
};

static inline int net_bind(struct wf_addr *addr, const char *device)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t len = sizeof(name);
	int type = wf_nic_device_socket(device);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(wf_base_addr_set(addr, &name, len), 0);
	return fd;
}

static inline int net_get(void *arg, uint64_t name, struct wf_addr *addr)
{
	const struct node *n = arg;

	if (name >= NET_NODES || !n->known[name])
		return -EINVAL;
	*addr = n->names[name];
	return 0;
}

static inline uint64_t net_find(void *arg, const struct wf_addr *addr)
{
	const struct node *n = arg;

	for (uint64_t i = 0; i < NET_NODES; i++) {
		if (n->known[i] && wf_base_addr_equal(&n->names[i], addr))
			return i;
	}
	return WF_MATCH_ANY;
}

/* Operations under way at most, of nodes that are opened from now on. */
static size_t net_tx_size;

static inline struct wf_rdm_ep_attr net_attr(void)
{
	net_tx_size = 256;
	return (struct wf_rdm_ep_attr){
		.device = "udp",
		.medium_max = 65536,
		.read_min = 65536 + 1,
		.connect_timeout_ms = 300,
		.dead_timeout_s = 1,
		.mtu = 1500,
		.reads = true,
	};
}

/* Operations of peers that are not over. */
static inline unsigned int node_rxs(const struct node *n)
{
	const struct wf_list *pos, *rx;
	unsigned int count = 0;

	for (pos = n->ep.peers.next; pos != &n->ep.peers; pos = pos->next) {
		const struct wf_rdm_peer *peer =
			wf_container_of(pos, struct wf_rdm_peer, link);

		for (rx = peer->rxs.next; rx != &peer->rxs; rx = rx->next)
			count++;
		for (rx = peer->parked.next; rx != &peer->parked; rx = rx->next)
			count++;
	}
	return count;
}

/* Opens @n at the address that it has. */
static inline void node_open(struct node *n, const struct wf_rdm_ep_attr *from)
{
	struct wf_rdm_ep_attr attr = *from;
	const struct wf_host host = {
		.addr = n->addr,
		.tx_size = net_tx_size,
		.txq = &n->txq,
		.rxq = &n->rxq,
		.regs = &n->regs,
		.names = { net_get, net_find, NULL, n },
	};
	struct wf_way *way;

	attr.fd = n->fd;
	assert_int_equal(wf_op_compq_init(&n->txq, 64, false), 0);
	assert_int_equal(wf_op_compq_init(&n->rxcq, 64, false), 0);
	assert_int_equal(wf_op_regs_open(&n->regs, false), 0);
	wf_match_rxq_init(&n->rxq, &n->rxcq);
	wf_core_init(&n->core, false);
	assert_int_equal(wf_core_open(&n->core, &host), 0);
	way = wf_core_add(&n->core, &wf_rdm_transport, &n->ep);
	assert_int_equal(wf_rdm_ep_open(&n->ep, &attr, &n->core.host, way), 0);
	n->open = true;
}

static inline void node_close(struct node *n)
{
	if (!n->open)
		return;
	n->open = false;
	wf_core_close(&n->core);
	wf_match_rxq_fini(&n->rxq);
	wf_op_regs_close(&n->regs);
	wf_op_compq_fini(&n->txq);
	wf_op_compq_fini(&n->rxcq);
}

static inline struct net *net_open(const struct wf_rdm_ep_attr *attr)
{
	struct net *net = calloc(1, sizeof(*net));

	assert_non_null(net);
	for (int i = 0; i < NET_NODES; i++)
		net->nodes[i].fd = net_bind(&net->nodes[i].addr, attr->device);
	for (int i = 0; i < NET_NODES; i++) {
		for (int j = 0; j < NET_NODES; j++) {
			net->nodes[i].names[j] = net->nodes[j].addr;
			net->nodes[i].known[j] = true;
		}
	}
	for (int i = 0; i < 2; i++) {
		node_open(&net->nodes[i], attr);
		assert_int_equal(wf_rdm_ep_wake(&net->nodes[i].ep), 0);
	}
	return net;
}

static inline void net_close(struct net *net)
{
	for (int i = 0; i < NET_NODES; i++) {
		node_close(&net->nodes[i]);
		if (net->nodes[i].fd >= 0)
			close(net->nodes[i].fd);
	}
	free(net);
}

static inline void net_progress(struct net *net)
{
	for (int i = 0; i < NET_NODES; i++) {
		if (net->nodes[i].open)
			wf_core_progress(&net->nodes[i].core);
	}
}

static inline void net_turn(struct net *net, int times)
{
	while (times-- > 0)
		net_progress(net);
}

static inline bool pop(struct wf_compq *q, struct got *got)
{
	struct wf_comp *comp = &q->ring[q->tail & q->mask];

	if (!wf_op_compq_count(q))
		return false;
	*got = (struct got){
		.context = comp->context,
		.flags = comp->flags,
		.data = comp->data,
		.tag = comp->tag,
		.src = comp->src,
		.len = comp->len,
		.olen = wf_op_comp_olen(comp),
		.err = wf_op_comp_err(comp),
	};
	wf_op_compq_take_locked(q);
	return true;
}

/* The test fails when none comes. */
static inline struct got await(struct net *net, struct wf_compq *q)
{
	uint64_t end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct got got;

	while (!pop(q, &got)) {
		net_progress(net);
		assert_true(wf_base_clock_ns() < end);
	}
	return got;
}

#define AWAIT(net, condition)                                                  \
	do {                                                                   \
		uint64_t end_ = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;   \
		while (!(condition)) {                                         \
			net_progress(net);                                     \
			assert_true(wf_base_clock_ns() < end_);                \
		}                                                              \
	} while (0)

static inline void node_recv(struct node *n, bool tagged, uint64_t tag,
			     const struct iovec *iov, uint32_t count, void *ctx)
{
	struct wf_rx *rx = wf_base_pool_get(&n->rxq.pool);

	assert_non_null(rx);
	*rx = (struct wf_rx){
		.tag = tag,
		.src = WF_MATCH_ANY,
		.context = ctx,
		.flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG),
		.iov_count = count,
		.plain = count == 1,
		.wants_comp = true,
		.tagged = tagged,
	};
	for (uint32_t i = 0; i < count; i++) {
		rx->iov[i] = iov[i];
		rx->len += iov[i].iov_len;
	}
	wf_match_rxq_post(&n->rxq, rx);
}

static inline void node_recv_buf(struct node *n, uint64_t tag, void *buf,
				 size_t len)
{
	struct iovec iov = { buf, len };

	node_recv(n, true, tag, &iov, 1, buf);
}

/* Those on memory have an empty wf_remote to fill in, good until eight more were
 * made. Their completions say that the peer has them. */
static inline struct wf_tx req_of(enum wf_tx_kind kind, const void *buf,
				  size_t len)
{
	static struct wf_remote remotes[8];
	static unsigned int turn;
	struct wf_remote *remote = &remotes[turn++ % 8];

	*remote = (struct wf_remote){ 0 };
	return (struct wf_tx){
		.kind = kind,
		.tagged = kind == WF_TX_SEND,
		.wants_comp = true,
		.transmit = true,
		.comp_flags = FI_SEND,
		.context = (void *)(uintptr_t)buf,
		.len = len,
		.remote = kind == WF_TX_SEND ? NULL : remote,
		.iov_count = 1,
		.iov = { { (void *)(uintptr_t)buf, len } },
	};
}

static inline struct wf_tx req_send(const void *buf, size_t len, uint64_t tag)
{
	struct wf_tx req = req_of(WF_TX_SEND, buf, len);

	req.tag = tag;
	return req;
}

/* Submits; -EAGAIN is waited out. */
static inline void net_submit(struct net *net, int from, int to,
			      const struct wf_tx *req)
{
	uint64_t end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	int err;

	do {
		err = wf_rdm_ep_submit(&net->nodes[from].ep, (uint64_t)to, req);
		if (err)
			net_progress(net);
		assert_true(wf_base_clock_ns() < end);
	} while (err == -EAGAIN);
	assert_int_equal(err, 0);
}

static inline void fill(uint8_t *bytes, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 7);
}

static inline bool filled(const uint8_t *bytes, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] !=
		    (uint8_t)((i * 2654435761u + seed * 40503u) >> 7))
			return false;
	}
	return true;
}

static inline uint64_t stat_of(const struct node *n, enum wf_rdm_stat item)
{
	return wf_base_stats_get(&n->ep.stats, item);
}

/* After this both know what the other can do. */
static inline void net_greet(struct net *net)
{
	uint8_t byte = 1, got[2];
	struct wf_tx req = req_send(&byte, 1, 0xfeed);

	for (int i = 0; i < 2; i++) {
		node_recv_buf(&net->nodes[!i], 0xfeed, &got[i], 1);
		net_submit(net, i, !i, &req);
		await(net, &net->nodes[!i].rxcq);
		await(net, &net->nodes[i].txq);
	}
	for (int i = 0; i < 2; i++)
		AWAIT(net,
		      wf_rdm_peer_find(&net->nodes[i].ep, &net->nodes[!i].addr)
			      ->greeted_us);
}

/* Nothing is left of what was done. */
static inline void net_idle(struct net *net)
{
	for (int i = 0; i < 2; i++) {
		struct node *n = &net->nodes[i];

		if (!n->open)
			continue;
		AWAIT(net, !n->ep.tx_pool.in_use && !node_rxs(n) &&
				   !n->ep.outstanding);
		assert_int_equal(n->ep.small_pkts.in_use, 0);
		assert_int_equal(n->ep.large_pkts.in_use, 0);
		assert_int_equal(n->ep.runs.in_use, 0);
		assert_int_equal(n->ep.run_more, 0);
		assert_int_equal(n->ep.names.count, 0);
		assert_int_equal(n->ep.runting, 0);
		assert_int_equal(n->ep.reading, 0);
		assert_int_equal(wf_op_compq_count(&n->txq), 0);
		assert_int_equal(wf_op_compq_count(&n->rxcq), 0);
	}
}

#endif
