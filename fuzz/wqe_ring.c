/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: descriptors and doorbells of a program that has the rings of a
 * queue pair for itself, as libfabric's data path direct has those of the
 * software EFA device. The input is a row of steps: a send descriptor, a receive
 * descriptor, doorbells, work of the device, bytes written over a ring that the
 * device may be reading. Most descriptors get the keys, numbers and addresses
 * that a real program would use, so that they come past the first checks; the
 * rest is as it is. Whatever comes, the device must not touch memory that is not
 * registered, report success for a descriptor that is wrong, lose count of what
 * it took, or stop.
 */
#include "nic_rig.h"

#include "nic/ops.h"
#include "nic/wqe.h"

#define ENTRIES 16u
#define COMPLETIONS 1024u
#define WQES 512u /* of one input */
#define TRIES 20000

struct wf_fuzz_stats wf_fuzz_stats;

struct world {
	struct nic_rig rig; /* its own peer */
	struct wf_nic_ring sq, rq, done;
	/* By req_id, as they were written. */
	struct wf_nic_tx_wqe wqes[WQES];
	bool ended[WQES];
	uint16_t posted, received, read;
	bool exported;	/* the completion queue is ours, too */
	bool scribbled; /* what is in a ring is not what we wrote down */
	unsigned taken; /* descriptors that were reported */
};

struct input {
	const uint8_t *data;
	size_t left;
};

static void draw(struct input *in, void *to, size_t len)
{
	size_t have = len < in->left ? len : in->left;

	memset(to, 0, len);
	memcpy(to, in->data, have);
	in->data += have;
	in->left -= have;
}

static uint8_t draw_byte(struct input *in)
{
	uint8_t byte;

	draw(in, &byte, 1);
	return byte;
}

/* -- what a descriptor may ask for ------------------------------------------ */

static bool is_ours(const struct world *w, uint64_t addr, uint64_t len)
{
	uint64_t from = (uintptr_t)w->rig.memory + RIG_GUARD;

	return !len || (addr >= from && addr - from <= RIG_MEMORY &&
			len <= RIG_MEMORY - (addr - from));
}

static bool is_local(const struct world *w, const struct wf_nic_tx_sge *sge)
{
	return !sge->length ||
	       (sge->lkey == w->rig.mr.lkey &&
		is_ours(w, wf_nic_wqe_addr(sge->addr_lo, sge->addr_hi),
			sge->length));
}

/* Written again, apart from the device: whether it may succeed. */
static bool is_legal(const struct world *w, const struct wf_nic_tx_wqe *wqe)
{
	const struct wf_nic_tx_remote *remote = &wqe->rdma.remote;
	unsigned op = wqe->ctrl1 & 0x0f;
	uint64_t bytes = 0;

	if (!(wqe->ctrl1 & 0x80) || (wqe->ctrl2 & 0x0c) != 0x0c || op > 2 ||
	    wqe->ah != w->rig.ah || wqe->dest_qpn != wf_nic_qp_num(w->rig.qp) ||
	    wqe->qkey != RIG_QKEY)
		return false;
	if (op)
		return wqe->length == 1 && !(wqe->ctrl1 & 0x20) &&
		       remote->length == wqe->rdma.local.length &&
		       is_local(w, &wqe->rdma.local) &&
		       (!remote->length ||
			(remote->rkey == w->rig.mr.rkey &&
			 is_ours(w,
				 wf_nic_wqe_addr(remote->addr_lo,
						 remote->addr_hi),
				 remote->length)));
	if (wqe->ctrl1 & 0x20)
		return wqe->length <= 32;
	if (wqe->length > 2)
		return false;
	for (unsigned i = 0; i < wqe->length; i++) {
		if (!is_local(w, &wqe->sgl[i]))
			return false;
		bytes += wqe->sgl[i].length;
	}
	return bytes <= 8192;
}

/* -- completions ------------------------------------------------------------ */

static void check_one(struct world *w, const struct wf_nic_cqe *cqe)
{
	need(cqe->status < WF_NIC_STATUSES);
	if (cqe->status == WF_NIC_OK)
		wf_fuzz_stats.completed++;
	else
		wf_fuzz_stats.failed++;
	if (wf_nic_cqe_qtype(cqe) != WF_NIC_CQE_SQ)
		return;
	w->taken++;
	if (w->scribbled)
		return;
	need(cqe->req_id < w->posted && !w->ended[cqe->req_id]);
	w->ended[cqe->req_id] = true;
	need(cqe->status != WF_NIC_OK || is_legal(w, &w->wqes[cqe->req_id]));
}

static void read_completions(struct world *w)
{
	struct wf_nic_wc wc[16];

	while (!w->exported && wf_nic_cq_poll(w->rig.cq, wc, 16) > 0)
		;
	while (w->exported) {
		uint32_t phase = !(w->read / w->done.entries & 1);
		struct wf_nic_cqe cqe;

		memcpy(&cqe,
		       (uint8_t *)w->done.at +
			       (size_t)(w->read % w->done.entries) *
				       sizeof(cqe),
		       sizeof(cqe));
		if ((cqe.flags & WF_NIC_CQE_PHASE) != phase)
			return;
		w->read++;
		check_one(w, &cqe);
	}
}

static void work(struct world *w)
{
	wf_nic_qp_watch(w->rig.qp);
	wf_nic_cq_watch(w->rig.cq);
	wf_nic_progress(w->rig.nic);
	read_completions(w);
}

/* -- steps ------------------------------------------------------------------ */

static void ring(struct wf_nic_ring *ring, uint32_t value)
{
	atomic_store_explicit(ring->doorbell, value, memory_order_release);
}

static void write_wqe(struct world *w, struct wf_nic_tx_wqe *wqe)
{
	if (w->posted == WQES)
		return;
	wqe->req_id = w->posted;
	w->wqes[w->posted] = *wqe;
	memcpy((uint8_t *)w->sq.at + (size_t)(w->posted % ENTRIES) * 64, wqe,
	       64);
	w->posted++;
	wf_fuzz_stats.slots++;
}

static void put_addr(const struct world *w, uint32_t *lo, uint32_t *hi,
		     uint32_t *len, uint8_t how)
{
	uint64_t addr = (uintptr_t)w->rig.memory + RIG_GUARD;

	/* Now and then at the edges, and over them. */
	addr += how & 1 ? *lo % (RIG_MEMORY + RIG_GUARD) :
			  *lo % (RIG_MEMORY / 2);
	*lo = (uint32_t)addr;
	*hi = (uint32_t)(addr >> 32);
	*len %= how & 2 ? 10000 : 300;
}

static void step_send(struct world *w, struct input *in)
{
	/* Most of the fields are put right. */
	uint8_t how = draw_byte(in) | draw_byte(in), more = draw_byte(in);
	struct wf_nic_tx_wqe wqe;
	struct wf_nic_tx_sge *sge = wqe.sgl;

	draw(in, &wqe, sizeof(wqe));
	if (how & 1) {
		wqe.ctrl1 = (uint8_t)(WF_NIC_TX_META | (wqe.ctrl1 & 0x30) |
				      wqe.ctrl1 % 3);
		wqe.ctrl2 =
			WF_NIC_TX_FIRST | WF_NIC_TX_LAST | WF_NIC_TX_COMP_REQ;
		wqe.ctrl2 |= w->posted / ENTRIES & 1;
		wqe.length %= wqe.ctrl1 & WF_NIC_TX_INLINE ? 35 : 4;
		wqe.soft = 0;
	}
	if (how & 2)
		wqe.ah = w->rig.ah;
	if (how & 4)
		wqe.dest_qpn = wf_nic_qp_num(w->rig.qp);
	if (how & 8)
		wqe.qkey = RIG_QKEY;
	for (unsigned i = 0; how & 16 && i < 2; i++)
		put_addr(w, &sge[i].addr_lo, &sge[i].addr_hi, &sge[i].length,
			 more);
	for (unsigned i = 0; how & 32 && i < 2; i++)
		sge[i].lkey = w->rig.mr.lkey;
	if (how & 64 && wqe.ctrl1 & WF_NIC_TX_OP_MASK) {
		wqe.length = 1;
		wqe.ctrl1 &= (uint8_t)~WF_NIC_TX_INLINE;
		wqe.rdma.remote.rkey = w->rig.mr.rkey;
		if (more & 12)
			wqe.rdma.remote.length = wqe.rdma.local.length;
	}
	write_wqe(w, &wqe);
	if (how & 128)
		ring(&w->sq, w->posted);
}

static void write_receive(struct world *w, const struct wf_nic_rx_desc *desc)
{
	memcpy((uint8_t *)w->rq.at + (size_t)(w->received % ENTRIES) * 16, desc,
	       16);
	w->received++;
}

static void step_receive(struct world *w, struct input *in)
{
	uint8_t how = draw_byte(in);
	struct wf_nic_rx_desc desc;
	uint32_t len;

	draw(in, &desc, sizeof(desc));
	len = desc.length;
	if (how & 3)
		put_addr(w, &desc.addr_lo, &desc.addr_hi, &len, how >> 4);
	if (how & 12)
		desc.lkey_ctrl =
			w->rig.mr.lkey | WF_NIC_RX_FIRST | WF_NIC_RX_LAST;
	desc.length = (uint16_t)len;
	write_receive(w, &desc);
	if (how & 128)
		ring(&w->rq, w->received);
}

static void step_bells(struct world *w, struct input *in)
{
	uint8_t how = draw_byte(in);
	uint32_t value;

	draw(in, &value, sizeof(value));
	ring(&w->sq, how & 7 ? w->posted : value);
	ring(&w->rq, how & 56 ? w->received : value);
	if (how & 64)
		ring(&w->done, value);
}

/* Bytes that the device may already have counted on. */
static void step_scribble(struct world *w, struct input *in)
{
	uint8_t where = draw_byte(in);

	w->scribbled = true;
	if (where & 1)
		draw(in, (uint8_t *)w->rq.at + (size_t)(where >> 4) * 16, 16);
	else
		draw(in, (uint8_t *)w->sq.at + (size_t)(where >> 4) * 64, 64);
}

/* -- the world -------------------------------------------------------------- */

/* The endpoint is connected to itself by a first message, so that what follows
 * is not spent on waiting for a connection. */
static void join(struct world *w)
{
	struct wf_nic_rx_desc desc;
	struct wf_nic_tx_wqe wqe;

	memset(&wqe, 0, sizeof(wqe));
	wf_nic_rx_fill(&desc, 0, (uintptr_t)w->rig.memory + RIG_GUARD, 64,
		       w->rig.mr.lkey);
	wf_nic_wqe_meta(&wqe,
			&(struct wf_nic_wqe_head){
				.ctrl1 = WF_NIC_OP_SEND | WF_NIC_TX_INLINE,
				.dest_qpn = wf_nic_qp_num(w->rig.qp),
				.length = 8,
				.ah = w->rig.ah,
				.qkey = RIG_QKEY });
	write_receive(w, &desc);
	write_wqe(w, &wqe);
	ring(&w->rq, w->received);
	ring(&w->sq, w->posted);
	for (int i = 0; i < TRIES && !w->taken; i++)
		work(w);
	need(w->taken == 1 && w->read);
}

static void open_world(struct world *w, uint8_t how)
{
	struct wf_nic_attr attr = { .whole = true };
	struct wf_nic_qp_attr qp = { .sq_entries = ENTRIES,
				     .rq_entries = ENTRIES,
				     .rnr_retry = how & 3,
				     .unsolicited = how & 4 };

	memset(w, 0, sizeof(*w));
	/* Few places: completions wait for room. */
	nic_rig_open(&w->rig, "udp", &attr, &qp, how & 8 ? 4 : COMPLETIONS);
	need(!wf_nic_ah_create_socket(w->rig.nic, wf_nic_socket(w->rig.nic),
				      &w->rig.ah));
	wf_nic_qp_export(w->rig.qp, &w->sq, &w->rq);
	w->exported = !(how & 8);
	if (w->exported) {
		wf_nic_cq_export(w->rig.cq, &w->done);
		join(w);
	} else {
		w->done =
			(struct wf_nic_ring){ .doorbell = &w->rig.cq->credit };
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const steps[8])(struct world * w, struct input * in) = {
		step_send,    step_send,    step_send,	step_send,
		step_receive, step_receive, step_bells, step_scribble,
	};
	struct input in = { data, size };
	static struct world w;
	uint8_t how = draw_byte(&in);
	/* An input without scribbles, half of the time. */
	unsigned kinds = how & 16 ? 7 : 8;

	open_world(&w, how);
	while (in.left) {
		uint8_t step = draw_byte(&in);

		steps[(step & 15) % kinds](&w, &in);
		if (step & 16)
			work(&w);
	}
	for (int i = 0; i < 4; i++)
		work(&w);
	nic_rig_check(&w.rig);
	wf_nic_qp_flush(w.rig.qp);
	read_completions(&w);
	/* Each that was taken ended, once. */
	need(!w.exported || w.taken == w.rig.qp->sq_work.taken);
	nic_rig_check(&w.rig);
	nic_rig_close(&w.rig);
	return 0;
}
