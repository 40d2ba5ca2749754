/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: a hostile peer that has a connection. The input is a sequence of
 * packets for the engine. Most are built from numbers that the engine knows
 * (its operations, the next message, a key), so that they pass the first
 * checks; the others are sent as they are. In between the engine works, posts
 * receives, starts operations and removes the peer. Whatever arrives, nothing
 * outside of registered or posted memory is written, and each operation of ours
 * ends once.
 */
#include "target.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>

#include "core/core.h"
#include "nic/udp/dev.h"
#include "op/amo.h"
#include "rdm/ep.h"
#include "rdm/named.h"
#include "rdm/peer.h"
#include "wire/packet.h"

#define MEMORY 262144u
#define GUARD 4096u /* on both sides; never written */
#define BUFS 64u
#define BYTES 2048u
#define KEY 7
#define NAME 3
#define OUR_ID 7777u

struct wf_fuzz_stats wf_fuzz_stats;

struct world {
	struct wf_core core;
	struct wf_rdm_ep ep;
	struct wf_compq txq, rxcq;
	struct wf_rxq rxq;
	struct wf_regs regs;
	int fd;
	bool known;
	bool fixed; /* ids do not change, as on an EFA device */

	/* The peer. */
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr own, mr;
	uint16_t ah;
	uint32_t connid;
	unsigned int sent;
	unsigned int begun, ended;
	unsigned int posted, received;
	uint8_t bufs[BUFS][BYTES];
	uint8_t staging[BUFS][BYTES];
	uint8_t memory[GUARD + MEMORY + GUARD]; /* of the engine's user */
	uint8_t readable[65536];		/* of the peer */
};

/* Reads the input, a few bytes at a time. */
struct source {
	const uint8_t *at;
	size_t left;
};

static void need(bool good)
{
	if (!good)
		abort();
}

static uint64_t take(struct source *in, size_t bytes)
{
	uint64_t value = 0;

	if (bytes > in->left)
		bytes = in->left;
	memcpy(&value, in->at, bytes);
	in->at += bytes;
	in->left -= bytes;
	return value;
}

/* -- the world -------------------------------------------------------------- */

static int get_name(void *arg, uint64_t name, struct wf_addr *addr)
{
	const struct world *w = arg;

	if (name != NAME)
		return -1;
	*addr = *wf_nic_socket(w->nic);
	return 0;
}

static uint64_t find_name(void *arg, const struct wf_addr *addr)
{
	const struct world *w = arg;

	return w->known && wf_base_addr_equal(addr, wf_nic_socket(w->nic)) ?
		       NAME :
		       WF_MATCH_ANY;
}

static void give(struct world *w, uint64_t i)
{
	struct wf_nic_sge sge = { w->bufs[i], BYTES, w->own.lkey };

	need(!wf_nic_post_recv(w->qp, i, &sge, false));
}

static void open_peer(struct world *w, const struct wf_addr *any)
{
	struct wf_nic_attr udp = { .fd = -1, .addr = *any, .mtu = 1500 };
	struct wf_nic_qp_attr qp = { .sq_entries = BUFS,
				     .rq_entries = BUFS,
				     .qkey = WF_RDM_QKEY,
				     .rnr_retry = WF_NIC_RNR_FOREVER };

	need(!wf_nic_open("udp", &udp, &w->nic));
	need(!wf_nic_cq_create(w->nic, 4 * BUFS, &w->cq));
	qp.send_cq = w->cq;
	qp.recv_cq = w->cq;
	need(!wf_nic_qp_create(w->nic, &qp, &w->qp));
	need(!wf_nic_mr_reg(w->nic, NULL, SIZE_MAX, WF_NIC_LOCAL_WRITE,
			    &w->own));
	need(!wf_nic_mr_reg(w->nic, w->readable, sizeof(w->readable),
			    WF_NIC_REMOTE_READ, &w->mr));
	for (uint64_t i = 0; i < BUFS; i++)
		give(w, i);
}

/* From here on the address of the peer does not change either: an id that is not
 * known would be taken for part of the address of another one. */
static void fix(struct world *w)
{
	struct wf_rdm_peer *peer;
	int err;

	peer = wf_rdm_peer_get(&w->ep, wf_nic_socket(w->nic), false, &err);
	need(peer);
	wf_rdm_life_fix(&peer->life, OUR_ID, w->connid);
	w->ep.connid = OUR_ID;
	w->fixed = true;
}

static void open_world(struct world *w, uint8_t how)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t len = sizeof(name);
	struct iovec iov = { w->memory + GUARD, MEMORY };
	struct wf_rdm_ep_attr attr = {
		.device = "udp",
		.medium_max = 16384,
		.read_min = 16384,
		.runt_size = how & 1 ? 4000 : 0,
		.connect_timeout_ms = 5000,
		.dead_timeout_s = 60,
		.mtu = 1500,
		.reads = !(how & 2),
	};
	struct wf_host host = {
		.tx_size = 64,
		.txq = &w->txq,
		.rxq = &w->rxq,
		.regs = &w->regs,
		.names = { get_name, find_name, NULL, w },
	};
	struct wf_way *way;

	memset(w, 0, sizeof(*w));
	memset(w->memory, 0xa5, sizeof(w->memory));
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	need(!wf_base_addr_set(&host.addr, &name, len));
	open_peer(w, &host.addr);
	w->fd = socket(AF_INET, SOCK_DGRAM, 0);
	need(w->fd >= 0 &&
	     !bind(w->fd, (struct sockaddr *)&name, sizeof(name)) &&
	     !getsockname(w->fd, (struct sockaddr *)&name, &len) &&
	     !wf_base_addr_set(&host.addr, &name, len));
	attr.fd = w->fd;
	w->known = true;
	w->connid = 1000;
	need(!wf_nic_ah_create_socket(w->nic, &host.addr, &w->ah));
	need(!wf_op_compq_init(&w->txq, 64, false) &&
	     !wf_op_compq_init(&w->rxcq, 64, false) &&
	     !wf_op_regs_open(&w->regs, false));
	need(!wf_op_regs_add(&w->regs, KEY, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
			     &iov, 1));
	wf_match_rxq_init(&w->rxq, &w->rxcq);
	wf_core_init(&w->core, false);
	need(!wf_core_open(&w->core, &host));
	way = wf_core_add(&w->core, &wf_rdm_transport, &w->ep);
	need(!wf_rdm_ep_open(&w->ep, &attr, &w->core.host, way));
	need(!wf_rdm_ep_wake(&w->ep));
	/* Outgoing data lie where peers write to, and the attendant would send
	 * them meanwhile. */
	wf_nic_attend_end(&wf_udp_dev_of(w->ep.nic)->attend);
	w->ep.deny_reads = how & 4;
	if (how & 8)
		fix(w);
}

static unsigned int drain(struct wf_compq *q)
{
	unsigned int count = 0;

	for (; wf_op_compq_count(q); count++) {
		struct wf_comp *comp = &q->ring[q->tail & q->mask];

		if (comp->failure)
			wf_fuzz_stats.failed++;
		else
			wf_fuzz_stats.completed++;
		/* Writes with data complete no receive. */
		if (comp->flags & FI_RMA && comp->flags & FI_REMOTE_WRITE)
			count--;
		wf_op_compq_take_locked(q);
	}
	return count;
}

static void turn(struct world *w, unsigned int times)
{
	struct wf_nic_wc wc[16];

	while (times-- > 0) {
		int n;

		wf_nic_progress(w->nic);
		wf_core_progress(&w->core);
		while ((n = wf_nic_cq_poll(w->cq, wc, 16)) > 0) {
			for (int i = 0; i < n; i++) {
				if (wc[i].flags & WF_NIC_WC_RECV &&
				    !wc[i].status) {
					wf_fuzz_stats.replies++;
					give(w, wc[i].wr_id);
				}
			}
		}
		w->ended += drain(&w->txq);
		w->received += drain(&w->rxcq);
		need(w->ended <= w->begun && w->received <= w->posted);
	}
}

/* -- what the engine's user does -------------------------------------------- */

static void post(struct world *w, struct source *in)
{
	struct wf_rx *rx = wf_base_pool_get(&w->rxq.pool);
	uint64_t how = take(in, 2);

	need(rx);
	*rx = (struct wf_rx){
		.tag = how & 3,
		.src = WF_MATCH_ANY,
		.flags = FI_RECV,
		.iov_count = 1,
		.plain = true,
		.wants_comp = true,
		.tagged = how & 4,
		.len = (how >> 3) % 50000,
	};
	if (!rx->tagged)
		rx->tag = 0;
	rx->iov[0] = (struct iovec){ w->memory + GUARD, rx->len };
	w->posted++;
	wf_match_rxq_post(&w->rxq, rx);
}

static void begin(struct world *w, struct source *in)
{
	uint64_t how = take(in, 3);
	size_t len = (how >> 8) % 40000;
	struct wf_remote remote = {
		.seg_count = 1,
		.segs = { { 4096, len, 99 } },
	};
	struct wf_tx req = {
		.kind = (enum wf_tx_kind)(how & 3),
		.tagged = how & 4,
		.delivery = how & 8,
		.fence = how & 16,
		.wants_comp = true,
		.len = len,
		.iov_count = 1,
		.iov = { { w->memory + GUARD, len } },
	};

	if (req.kind != WF_TX_SEND)
		req.remote = &remote;
	if (req.kind == WF_TX_ATOMIC) {
		remote.amo_kind = (uint8_t)(how >> 5) % 2;
		remote.amo_op = FI_SUM;
		remote.amo_type = FI_UINT8;
		req.len = len % 2000;
		req.iov[0].iov_len = req.len;
		remote.segs[0].len = req.len;
		remote.result_count = remote.amo_kind;
		remote.result[0] = req.iov[0];
	}
	if (!wf_rdm_ep_submit(&w->ep, NAME, &req))
		w->begun++;
}

/* -- what the peer says ----------------------------------------------------- */

static const uint8_t types[] = {
	WF_WIRE_CTS,
	WF_WIRE_CTSDATA,
	WF_WIRE_READRSP,
	WF_WIRE_EOR,
	WF_WIRE_ATOMRSP,
	WF_WIRE_HANDSHAKE,
	WF_WIRE_RECEIPT,
	WF_WIRE_READ_NACK,
	WF_WIRE_PEER_ERROR,
	WF_WIRE_EAGER_MSGRTM,
	WF_WIRE_EAGER_TAGRTM,
	WF_WIRE_MEDIUM_MSGRTM,
	WF_WIRE_MEDIUM_TAGRTM,
	WF_WIRE_LONGCTS_MSGRTM,
	WF_WIRE_LONGCTS_TAGRTM,
	WF_WIRE_EAGER_RTW,
	WF_WIRE_LONGCTS_RTW,
	WF_WIRE_SHORT_RTR,
	WF_WIRE_LONGCTS_RTR,
	WF_WIRE_WRITE_RTA,
	WF_WIRE_FETCH_RTA,
	WF_WIRE_COMPARE_RTA,
	WF_WIRE_LONGREAD_MSGRTM,
	WF_WIRE_LONGREAD_TAGRTM,
	WF_WIRE_LONGREAD_RTW,
	WF_WIRE_DC_EAGER_MSGRTM,
	WF_WIRE_DC_EAGER_TAGRTM,
	WF_WIRE_DC_MEDIUM_MSGRTM,
	WF_WIRE_DC_MEDIUM_TAGRTM,
	WF_WIRE_DC_LONGCTS_MSGRTM,
	WF_WIRE_DC_LONGCTS_TAGRTM,
	WF_WIRE_DC_EAGER_RTW,
	WF_WIRE_DC_LONGCTS_RTW,
	WF_WIRE_DC_WRITE_RTA,
	WF_WIRE_RUNTREAD_MSGRTM,
	WF_WIRE_RUNTREAD_TAGRTM,
};

/* Mostly small, sometimes anything. */
static uint64_t number(struct source *in)
{
	uint64_t how = take(in, 1);

	if (how < 200)
		return take(in, 2) % 30000;
	return how < 250 ? take(in, 1) : take(in, 8);
}

/* Usually a number that the engine has assigned. */
static uint32_t an_id(struct world *w, struct source *in)
{
	uint32_t which = (uint32_t)take(in, 1);
	const struct wf_table *names = &w->ep.names;

	if (which >= 250 || !names->count)
		return (uint32_t)take(in, 4);
	for (uint32_t i = 0; i < names->room; i++) {
		struct wf_rdm_named *named =
			wf_base_table_get(names, (which + i) % names->room);

		if (named)
			return named->id;
	}
	return 0;
}

static uint32_t some_iovs(struct world *w, struct source *in,
			  struct wf_wire_iov *iov, bool ours, uint64_t *total)
{
	uint32_t count = (uint32_t)take(in, 1) % (WF_WIRE_IOV_MAX + 1);
	uint8_t *base = ours ? w->memory + GUARD : w->readable;
	uint64_t room = ours ? MEMORY : sizeof(w->readable);

	*total = 0;
	for (uint32_t i = 0; i < count; i++) {
		iov[i] = (struct wf_wire_iov){
			.addr = (uintptr_t)base + number(in) % (2 * room),
			.len = number(in),
			.key = ours ? KEY : w->mr.rkey,
		};
		if (!(take(in, 1) & 15))
			iov[i].key++;
		*total += iov[i].len;
	}
	return count;
}

static void dress(struct world *w, struct source *in,
		  struct wf_wire_packet *wire, size_t *len)
{
	const struct wf_rdm_peer *peer =
		wf_rdm_peer_find(&w->ep, wf_nic_socket(w->nic));
	unsigned int kind = wf_wire_packet_kind(wire->type);
	uint64_t total = number(in);

	if (kind & WF_WIRE_KIND_RTM)
		wire->flags |= WF_WIRE_MSG;
	if (kind & WF_WIRE_KIND_TAGGED)
		wire->flags |= WF_WIRE_TAGGED;
	if (kind & WF_WIRE_KIND_RTA)
		wire->flags |= WF_WIRE_ATOMIC;
	wire->connid = w->connid;
	wire->msg_id = (peer ? peer->order.expected : 0) +
		       (uint32_t)(take(in, 1) % 8) - 3;
	wire->send_id = an_id(w, in);
	wire->recv_id = an_id(w, in);
	wire->op_id = wire->send_id;
	wire->ref_kind = (uint32_t)take(in, 1) % 4;
	if (wire->ref_kind)
		wire->op_id = wire->msg_id;
	wire->tag = take(in, 1) & 3;
	wire->recv_length = number(in);
	wire->seg_offset = take(in, 1) & 1 ? 0 : number(in);
	wire->datatype = (uint32_t)take(in, 1) % 22;
	wire->op = (uint32_t)take(in, 1) % 22;
	wire->prov_errno = (uint32_t)number(in);
	if (kind & (WF_WIRE_KIND_RTW | WF_WIRE_KIND_RTR | WF_WIRE_KIND_RTA))
		wire->rma_iov_count =
			some_iovs(w, in, wire->rma_iov, true, &total);
	if (wire->type == WF_WIRE_LONGREAD_RTW)
		wire->read_iov_count = wire->rma_iov_count;
	for (uint32_t i = 0; i < wire->read_iov_count; i++)
		wire->read_iov[i] = (struct wf_wire_iov){
			(uintptr_t)w->readable, wire->rma_iov[i].len, w->mr.rkey
		};
	if (wire->type == WF_WIRE_LONGREAD_MSGRTM ||
	    wire->type == WF_WIRE_LONGREAD_TAGRTM ||
	    wire->type == WF_WIRE_RUNTREAD_MSGRTM ||
	    wire->type == WF_WIRE_RUNTREAD_TAGRTM)
		wire->read_iov_count =
			some_iovs(w, in, wire->read_iov, false, &total);
	wire->msg_length = total;
	wire->runt_length = number(in) % 5000;
	wire->extra_count = 1;
	wire->extra[0] = number(in);
	*len = number(in) % 1000;
	if (take(in, 1) & 1 && total < 1000)
		*len = total;
	if (take(in, 1) & 1 && wire->recv_length > total)
		wire->recv_length = total;
}

static void say(struct world *w, struct source *in)
{
	uint8_t *to = w->staging[w->sent++ % BUFS];
	struct wf_wire_packet wire = { .flags = WF_WIRE_CONNID };
	struct wf_nic_wr wr = { .qkey = WF_RDM_QKEY,
				.ah = w->ah,
				.qpn = WF_NIC_QPN_FIRST };
	struct wf_nic_sge sge = { to, 0, w->own.lkey };
	size_t header, len;

	wire.type = types[take(in, 1) % sizeof(types)];
	if (take(in, 1) < 16)
		wire.flags |= (uint16_t)take(in, 2) & 0xa0a2u;
	dress(w, in, &wire, &len);
	if (!(wf_wire_packet_kind(wire.type) & WF_WIRE_KIND_DATA) &&
	    wire.type != WF_WIRE_CTSDATA && wire.type != WF_WIRE_READRSP &&
	    wire.type != WF_WIRE_ATOMRSP)
		len = 0;
	wire.seg_length = len;
	header = wf_wire_packet_encode(&wire, to, BYTES - len);
	need(header);
	memset(to + header, 0x5c, len);
	/* Sometimes anything. */
	if (!(take(in, 1) & 15) && !w->fixed)
		to[4 + take(in, 1) % 60] = (uint8_t)take(in, 1);
	sge.len = (uint32_t)(header + len);
	if (sge.len > 1400)
		sge.len = 1400;
	if (!wf_nic_qp_send_room(w->qp))
		turn(w, 20);
	if (!wf_nic_post_send(w->qp, &wr, &sge, 1))
		wf_fuzz_stats.slots++;
}

static void forget(struct world *w)
{
	w->known = false;
	wf_rdm_ep_removed(&w->ep, NAME);
	w->known = true;
	wf_fuzz_stats.broken_sender++;
}

/* -- one input -------------------------------------------------------------- */

static void act(struct world *w, struct source *in)
{
	uint64_t what = take(in, 1);

	if (what < 160)
		say(w, in);
	else if (what < 190)
		post(w, in);
	else if (what < 220)
		begin(w, in);
	else if (what < 222)
		w->connid += !w->fixed;
	else if (what == 222)
		forget(w);
	else if (what == 223)
		wf_core_unregistered(&w->core, KEY);
	else
		turn(w, 1 + what % 4);
}

static void check_guard(const struct world *w)
{
	for (unsigned int i = 0; i < GUARD; i++)
		need(w->memory[i] == 0xa5 &&
		     w->memory[GUARD + MEMORY + i] == 0xa5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	struct source in = { data, size };

	open_world(&w, (uint8_t)take(&in, 1));
	while (in.left)
		act(&w, &in);
	turn(&w, 10);
	/* Whatever was sent, everything ends when the peer is removed. */
	forget(&w);
	for (int i = 0; w.ended < w.begun && i < 10000; i++)
		turn(&w, 1);
	need(w.ended == w.begun);
	for (int i = 0; (w.ep.tx_pool.in_use || w.ep.outstanding) && i < 10000;
	     i++)
		turn(&w, 1);
	need(!w.ep.tx_pool.in_use);
	check_guard(&w);
	wf_core_close(&w.core);
	wf_match_rxq_fini(&w.rxq);
	wf_op_regs_close(&w.regs);
	wf_op_compq_fini(&w.txq);
	wf_op_compq_fini(&w.rxcq);
	close(w.fd);
	wf_nic_qp_destroy(w.qp);
	need(!wf_nic_cq_destroy(w.cq));
	wf_nic_close(w.nic);
	check_guard(&w);
	return 0;
}
