/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet side of an endpoint: its life, its operations, its progress.
 */
#include "rdm/ep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "os/memory.h"
#include "os/process.h"
#include "rdm/direct.h"
#include "rdm/in.h"
#include "rdm/peer.h"
#include "rdm/pieces.h"
#include "rdm/pkt.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/rta.h"
#include "rdm/run.h"
#include "rdm/trace.h"
#include "rdm/tx.h"

/* Requests that the device has at once. */
#define SEND_QUEUE 1024

/* Receive buffers: as many as arrive between two looks; the device leaves the
 * rest in its socket. */
#define BUFS_SMALL 256 /* packets of an Ethernet */
#define BUFS_LARGE 128 /* 1 MiB: they stay in a cache of that size */
#define LARGE_MSG 4096

/* Up to this size bytes are copied into the packet: that is cheaper than
 * registering them. Unless the device knows better. */
#define COPY_MAX 512

/* Large packets under way at once: 4 MiB. */
#define LARGE_PKTS 512

#define NAMES_MAX ((uint64_t)1 << 32)

/* Without memory or descriptors the device is tried again after so long, then
 * twice as long: an attempt costs a millisecond or so. */
#define WAKE_FIRST (5 * WF_NS_PER_MS)
#define WAKE_MOST (250 * WF_NS_PER_MS)

/* The first packet: a peer on another node knows us. If the device cannot be
 * opened, the packet stays in the socket, which is not watched until the next
 * try: it would be readable all the time, and nobody could sleep. The way stays
 * on meanwhile, so that there is a next try. */
static void on_readable(struct wf_source *source, uint32_t events, uint64_t now)
{
	struct wf_rdm_ep *ep =
		wf_container_of(source, struct wf_rdm_ep, socket_source);

	(void)events;
	(void)now;
	if (ep->awake || !wf_rdm_ep_try_wake(ep) || ep->closing)
		return;
	wf_transport_loop_remove(&ep->host->loop, &ep->socket_source);
	ep->deaf = true;
	ep->way->on = true;
	wf_transport_host_busy(ep->host);
}

void wf_rdm_ep_hear_again(struct wf_rdm_ep *ep, uint64_t now)
{
	if (!ep->deaf || now < ep->wake_at ||
	    wf_transport_loop_add(&ep->host->loop, &ep->socket_source))
		return;
	ep->deaf = false;
	wf_transport_host_look(ep->host);
}

int wf_rdm_ep_open(struct wf_rdm_ep *ep, const struct wf_rdm_ep_attr *attr,
		   struct wf_host *host, struct wf_way *way)
{
	int err;

	*ep = (struct wf_rdm_ep){
		.host = host,
		.way = way,
		.socket_source = { .fd = attr->fd, .ready = on_readable },
		.txq = host->txq,
		.rxq = host->rxq,
		.attr = *attr,
	};
	wf_base_list_init(&ep->active);
	wf_base_list_init(&ep->stalled);
	wf_base_list_init(&ep->peers);
	wf_base_list_init(&ep->leaving);
	for (int i = 0; i < WF_RDM_BUCKETS; i++)
		wf_base_list_init(&ep->by_addr[i]);
	for (int i = 0; i < WF_RDM_MSG_BUCKETS; i++)
		wf_base_list_init(&ep->by_msg[i]);
	err = wf_transport_loop_add(&host->loop, &ep->socket_source);
	if (err || !attr->port)
		return err;
	/* Without a socket nothing tells us of a first packet: the device must
	 * have receives. */
	err = wf_rdm_ep_wake(ep);
	if (err)
		wf_transport_loop_remove(&host->loop, &ep->socket_source);
	return err;
}

/* From now on the device watches the socket, and has a descriptor that reports
 * everything. */
static int watch_device(struct wf_rdm_ep *ep)
{
	struct wf_source socket = ep->socket_source;
	int err;

	ep->socket_source = (struct wf_source){
		.fd = wf_nic_wait_fd(ep->nic),
		.ready = on_readable,
	};
	if (ep->socket_source.fd == socket.fd)
		return 0;
	err = wf_transport_loop_add(&ep->host->loop, &ep->socket_source);
	if (err)
		ep->socket_source = socket;
	return err;
}

/* Socket and device were both watched meanwhile: stops to watch one of them. */
static void stop_watching(struct wf_rdm_ep *ep, bool device)
{
	struct wf_source socket = { .fd = ep->attr.fd, .ready = on_readable };
	struct wf_source other = device ? ep->socket_source : socket;

	if (ep->socket_source.fd != socket.fd)
		wf_transport_loop_remove(&ep->host->loop, &other);
	if (device)
		ep->socket_source = socket;
}

/* Bytes of the longest message that goes to a place: as the device advises, and
 * not where the user has said that messages are to be sent otherwise. */
static uint32_t placed_most(const struct wf_rdm_ep *ep,
			    const struct wf_nic_caps *caps)
{
	size_t most = caps->max_placed > WF_WIRE_HEADER_MAX ?
			      caps->max_placed - WF_WIRE_HEADER_MAX :
			      0;

	if (!ep->attr.medium_advised && most > ep->attr.medium_max)
		most = ep->attr.medium_max;
	if (!ep->attr.read_advised && most >= ep->attr.read_min)
		most = ep->attr.read_min ? ep->attr.read_min - 1 : 0;
	return (uint32_t)most;
}

static void set_limits(struct wf_rdm_ep *ep)
{
	const struct wf_nic_caps *caps = wf_nic_caps(ep->nic);

	ep->max_msg = caps->max_msg;
	ep->max_recv = caps->max_recv;
	ep->peer_limit = caps->max_ah;
	ep->inline_max = caps->takes_sends ? 0 : caps->inline_max;
	ep->hard =
		ep->attr.hard_keys && (caps->hard_reads || caps->hard_writes);
	ep->direct = caps->user_keys || ep->hard;
	ep->copy_max = caps->copy_max ? caps->copy_max : COPY_MAX;
	ep->connid = wf_base_addr_is_efa(&ep->host->addr) ?
			     ep->host->addr.efa.qkey :
			     0;
	if (!caps->max_rdma)
		ep->attr.reads = false;
	if (ep->attr.medium_advised)
		ep->attr.medium_max = caps->push_max;
	if (ep->attr.read_advised)
		ep->attr.read_min = caps->push_max + 1;
	ep->max_placed = placed_most(ep, caps);
	ep->run_head = caps->run_head;
	ep->buf_count = caps->recvs		? caps->recvs :
			ep->max_msg > LARGE_MSG ? BUFS_LARGE :
						  BUFS_SMALL;
}

/* The queue pair comes last: from then on the device accepts connections, and a
 * peer that sends over one that is closed again loses what it sent. */
static int make_queues(struct wf_rdm_ep *ep)
{
	struct wf_nic_qp_attr qp = {
		.sq_entries = SEND_QUEUE,
		.rq_entries = ep->buf_count,
		.qkey = WF_RDM_QKEY,
		.rnr_retry = WF_NIC_RNR_FOREVER,
		.hear = wf_rdm_in_hear,
		.hear_arg = ep,
	};
	int err = wf_nic_mr_reg(ep->nic, NULL, SIZE_MAX, WF_NIC_LOCAL_WRITE,
				&ep->own);

	if (err)
		return err;
	err = wf_nic_cq_create(ep->nic, SEND_QUEUE + ep->buf_count, &ep->cq);
	if (err)
		return err;
	err = wf_rdm_in_open(ep);
	if (err)
		goto err_cq;
	err = watch_device(ep);
	if (err)
		goto err_in;
	qp.send_cq = ep->cq;
	qp.recv_cq = ep->cq;
	err = wf_nic_qp_create(ep->nic, &qp, &ep->qp);
	stop_watching(ep, err);
	if (!err)
		return 0;
err_in:
	wf_rdm_in_close(ep);
err_cq:
	wf_nic_cq_destroy(ep->cq);
	return err;
}

static int open_device(struct wf_rdm_ep *ep)
{
	const struct wf_nic_attr attr = {
		.fd = ep->attr.fd,
		.port = ep->attr.port,
		.addr = ep->host->addr,
		.more = ep->attr.more,
		.more_count = ep->attr.more_count,
		.thread = ep->attr.thread,
		.attend = !ep->attr.thread,
		.places = true,
		.runs = true,
		.mtu = ep->attr.mtu,
		.max_peers = ep->attr.max_peers,
		.connect_ns = ep->attr.connect_timeout_ms * WF_NS_PER_MS,
		.dead_ns = ep->attr.dead_timeout_s * WF_NS_PER_S,
		.find = ep->attr.reads ? wf_rdm_direct_find : NULL,
		.find_arg = ep,
		.key_file = ep->attr.key_file,
		.no_ktls = ep->attr.no_ktls,
		.fault = ep->attr.fault,
	};
	int err = wf_nic_open(ep->attr.device, &attr, &ep->nic);

	if (err)
		return err;
	ep->deaths = &wf_nic_counters(ep->nic)->peer_deaths;
	set_limits(ep);
	err = make_queues(ep);
	if (!err)
		return 0;
	wf_nic_close(ep->nic);
	ep->nic = NULL;
	return err;
}

static void close_device(struct wf_rdm_ep *ep)
{
	wf_nic_qp_destroy(ep->qp);
	wf_nic_cq_destroy(ep->cq);
	wf_rdm_in_close(ep);
	wf_nic_close(ep->nic);
	ep->nic = NULL;
}

int wf_rdm_ep_try_wake(struct wf_rdm_ep *ep)
{
	uint64_t now = wf_base_clock_ns();
	int err;

	if (now < ep->wake_at)
		return ep->wake_err;
	err = wf_rdm_ep_wake(ep);
	if (!err)
		return 0;
	ep->wake_wait = ep->wake_wait ? ep->wake_wait * 2 : WAKE_FIRST;
	if (ep->wake_wait > WAKE_MOST)
		ep->wake_wait = WAKE_MOST;
	ep->wake_at = now + ep->wake_wait;
	ep->wake_err = err;
	return err;
}

/* From memory that the device sends from without a copy, if it would make one
 * otherwise. Pages of their own: a child of fork() may lose them. */
static void make_large_pkts(struct wf_rdm_ep *ep)
{
	struct wf_pool *pool = &ep->large_pkts;
	void *memory = NULL;
	struct wf_nic_mr mr;

	wf_base_pool_init(pool, sizeof(struct wf_rdm_pkt) + ep->max_msg, 8,
			  LARGE_PKTS);
	ep->pkt_lkeys[false] = ep->own.lkey;
	ep->pkt_lkeys[true] = ep->own.lkey;
	ep->pkt_bytes = pool->size * LARGE_PKTS;
	if (!wf_nic_caps(ep->nic)->copies_all ||
	    wf_os_mmap(&memory, ep->pkt_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1))
		return;
	if (wf_nic_mr_reg(ep->nic, memory, ep->pkt_bytes, 0, &mr)) {
		wf_os_munmap(memory, ep->pkt_bytes);
		return;
	}
	wf_base_pool_feed(pool, memory, ep->pkt_bytes);
	ep->pkt_memory = memory;
	ep->pkt_lkeys[true] = mr.lkey;
}

int wf_rdm_ep_wake(struct wf_rdm_ep *ep)
{
	char text[WF_ADDR_STR_LEN];
	int err;

	if (ep->awake)
		return 0;
	if (ep->host->forked || ep->closing)
		return -EOPNOTSUPP;
	wf_rdm_ep_hear_again(ep, UINT64_MAX);
	if (ep->deaf)
		return -ENOMEM;
	wf_rdm_protocol_init();
	wf_base_addr_str(&ep->host->addr, text, sizeof(text));
	err = wf_base_stats_open(&ep->stats, "packets", text,
				 wf_rdm_stats_names, WF_RDM_STAT_COUNT);
	if (err)
		return err;
	err = open_device(ep);
	if (err) {
		wf_base_stats_close(&ep->stats);
		if (!ep->warned)
			wf_warn("cannot use packets at %s: %s", text,
				strerror(-err));
		ep->warned = true;
		return err;
	}
	wf_rdm_in_begin(ep);
	wf_base_pool_init(&ep->tx_pool, sizeof(struct wf_rdm_tx), 32,
			  ep->host->tx_size);
	wf_base_pool_init(&ep->small_pkts,
			  sizeof(struct wf_rdm_pkt) + WF_RDM_PKT_SMALL, 32, 0);
	make_large_pkts(ep);
	wf_rdm_run_open(ep);
	if (wf_os_random(&ep->next_life, sizeof(ep->next_life), true))
		ep->next_life =
			(uint32_t)wf_base_clock_ns() ^ (uint32_t)wf_os_getpid();
	ep->next_name = ep->next_life >> 16;
	ep->awake = true;
	ep->now = wf_base_clock_ns();
	ep->probe_at = ep->now + WF_RDM_PROBE_EVERY;
	ep->way->on = true;
	wf_transport_host_busy(ep->host);
	/* A sleeper does not yet watch for this. */
	wf_transport_host_wake(ep->host);
	wf_rdm_ep_ring(ep);
	return 0;
}

/* -- closing --------------------------------------------------------------- */

/* Buffers of the application may be gone: operations of which we have no copy
 * are given up. */
static void keep_copies(struct wf_rdm_ep *ep, struct wf_list *head)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		struct wf_rdm_tx *tx =
			wf_container_of(pos, struct wf_rdm_tx, link);

		if (tx->registered || (!tx->bounce && !tx->constructed))
			wf_rdm_tx_quit(ep, tx);
	}
}

static bool is_idle(const struct wf_rdm_ep *ep)
{
	return !ep->outstanding && wf_base_list_empty(&ep->active);
}

bool wf_rdm_ep_drain(struct wf_rdm_ep *ep)
{
	struct wf_list *pos, *tmp;

	if (!ep->closing) {
		ep->closing = true;
		wf_list_for_each (pos, tmp, &ep->peers) {
			struct wf_rdm_peer *peer =
				wf_container_of(pos, struct wf_rdm_peer, link);

			keep_copies(ep, &peer->queue);
			keep_copies(ep, &peer->flight);
		}
	}
	wf_rdm_ep_progress(ep);
	return !is_idle(ep);
}

void wf_rdm_ep_close(struct wf_rdm_ep *ep)
{
	struct wf_list *pos, *tmp;

	ep->closing = true;
	if (!ep->host->forked)
		wf_transport_loop_remove(&ep->host->loop, &ep->socket_source);
	if (!ep->awake) {
		ep->way->on = false;
		return;
	}
	if (!ep->host->forked) {
		if (!is_idle(ep))
			wf_info("closed before the peer took all messages");
		close_device(ep);
	}
	ep->awake = false;
	ep->way->on = false;
	wf_match_rxq_forget(ep->rxq, ep);
	wf_list_for_each (pos, tmp, &ep->peers)
		wf_rdm_peer_free(
			wf_container_of(pos, struct wf_rdm_peer, link));
	wf_base_stats_close(&ep->stats);
	wf_base_table_fini(&ep->names);
	wf_base_pool_fini(&ep->tx_pool);
	wf_base_pool_fini(&ep->small_pkts);
	wf_base_pool_fini(&ep->large_pkts);
	/* A device may keep it from children, where others have its place. */
	if (ep->pkt_memory && !ep->host->forked)
		wf_os_munmap(ep->pkt_memory, ep->pkt_bytes);
	ep->pkt_memory = NULL;
	wf_base_pool_fini(&ep->runs);
	free(ep->by_name);
	free(ep->by_ah);
}

/* -- names ----------------------------------------------------------------- */

static int make_room_for(struct wf_rdm_ep *ep, uint64_t name)
{
	size_t count = ep->name_count ? ep->name_count : 16;
	struct wf_rdm_peer **all;

	if (name < ep->name_count)
		return 0;
	if (name >= NAMES_MAX)
		return -EINVAL;
	while (count <= name)
		count *= 2;
	all = realloc(ep->by_name, count * sizeof(struct wf_rdm_peer *));
	if (!all)
		return -ENOMEM;
	memset(all + ep->name_count, 0,
	       (count - ep->name_count) * sizeof(struct wf_rdm_peer *));
	ep->by_name = all;
	ep->name_count = count;
	return 0;
}

static struct wf_rdm_peer *peer_of(struct wf_rdm_ep *ep, uint64_t dst, int *err)
{
	struct wf_rdm_peer *peer;
	struct wf_addr addr;

	if (wf_likely(dst < ep->name_count && ep->by_name[dst]))
		return ep->by_name[dst];
	*err = ep->host->names.get(ep->host->names.arg, dst, &addr);
	if (!*err)
		*err = make_room_for(ep, dst);
	if (*err)
		return NULL;
	peer = wf_rdm_peer_get(ep, &addr, false, err);
	if (!peer)
		return NULL;
	if (peer->name == WF_MATCH_ANY)
		wf_rdm_peer_rename(peer, dst);
	ep->by_name[dst] = peer;
	peer->named_by++;
	return peer;
}

/* -- operations ------------------------------------------------------------ */

static void count(struct wf_rdm_ep *ep, const struct wf_rdm_tx *tx)
{
	unsigned int index = wf_rdm_protocol_index(tx->protocol);

	wf_base_stats_add(&ep->stats, WF_RDM_STAT_sent_eager + index, 1);
	wf_base_stats_add(&ep->stats, WF_RDM_STAT_sent_eager_bytes + index,
			  tx->req.len);
}

int wf_rdm_ep_enqueue(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer,
		      struct wf_rdm_tx *tx)
{
	int err = wf_rdm_protocol_select(ep, tx);

	if (err) {
		wf_rdm_tx_free(ep, tx);
		return err;
	}
	if (tx->ordered)
		tx->msg_id = peer->next_msg_id++;
	if (wf_unlikely(ep->host->trace))
		wf_rdm_trace_post(ep, tx);
	wf_base_list_add_tail(&peer->queue, &tx->link);
	if (wf_unlikely(!wf_rdm_post_at_once(peer, tx)) &&
	    wf_rdm_post_pump(peer, WF_RDM_PEER_BUDGET))
		wf_rdm_post_activate(peer);
	if (wf_unlikely(tx->req.inject && !tx->constructed) &&
	    wf_rdm_tx_keep_copy(tx)) {
		peer->next_msg_id -= tx->ordered;
		wf_rdm_tx_free(ep, tx);
		return -EAGAIN;
	}
	count(ep, tx);
	return 0;
}

/* If the application wants to know that a write is done, it also wants to know
 * that it was refused: only a receipt, or its absence, tells. */
static bool wants_receipt(const struct wf_tx *req)
{
	bool told = !req->inject || req->wants_comp || req->cntr;

	/* Nothing waits for an injected message that reports nothing. */
	if (!told)
		return false;
	return req->delivery || req->kind == WF_TX_WRITE ||
	       (req->kind == WF_TX_ATOMIC &&
		req->remote->amo_kind == WF_OP_AMO_WRITE);
}

int wf_rdm_ep_submit(struct wf_rdm_ep *ep, uint64_t dst,
		     const struct wf_tx *req)
{
	struct wf_rdm_peer *peer;
	struct wf_rdm_tx *tx;
	int err;

	if (ep->host->forked)
		return -EOPNOTSUPP;
	if (wf_unlikely(!ep->awake)) {
		/* An error is determined anew each time: the caller may have
		 * removed its cause. */
		err = ep->wake_err == -ENOMEM ? wf_rdm_ep_try_wake(ep) :
						wf_rdm_ep_wake(ep);
		if (err)
			return err;
	}
	/* The process that is there now is not the previous one. */
	if (wf_unlikely(wf_rdm_ep_has_resets(ep)))
		wf_rdm_ep_progress(ep);
	peer = peer_of(ep, dst, &err);
	if (!peer)
		return err;
	peer->used = ep->now;
	if (wf_unlikely(wf_rdm_ep_has_resets(ep)) && wf_rdm_peer_is_reset(peer))
		return -EAGAIN;
	if (wf_unlikely(peer->stuck) &&
	    (req->kind == WF_TX_SEND || req->kind == WF_TX_ATOMIC))
		return -ECONNRESET;
	if (wf_rdm_run_fits(peer, req)) {
		err = wf_rdm_run_send(peer, req);
		if (wf_likely(err <= 0)) {
			if (!req->more || err)
				wf_rdm_ep_ring(ep);
			return err;
		}
	}
	if (req->kind == WF_TX_ATOMIC && req->len > wf_rdm_rta_room(peer)) {
		err = wf_rdm_pieces_submit(ep, peer, req, wants_receipt(req),
					   wf_rdm_rta_room(peer));
	} else {
		err = wf_rdm_tx_new(ep, peer, req, &tx);
		if (!err) {
			tx->req.delivery = wants_receipt(req);
			ep->alone = !req->more;
			err = wf_rdm_ep_enqueue(ep, peer, tx);
			ep->alone = false;
		}
	}
	if (!req->more || err)
		wf_rdm_ep_ring(ep);
	return err;
}

void wf_rdm_ep_ring(struct wf_rdm_ep *ep)
{
	if (!ep->unrung)
		return;
	ep->unrung = false;
	wf_nic_qp_ring(ep->qp);
}
