/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of writes, reads and atomics between two endpoints: every size and
 * number of pieces, wrong keys, memory that is taken away, and order.
 */
#include "rdm/script_test.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>

#include "op/amo.h"
#include "rdm/protocol.h"
#include "rdm/tx.h"

#define LARGEST (300u << 10)
#define KEY 7

static uint8_t from[LARGEST + 64], into[LARGEST + 64];

static struct net *begin(const struct wf_rdm_ep_attr *attr)
{
	struct net *net = net_open(attr);
	struct iovec iov = { into, LARGEST };

	assert_int_equal(wf_op_regs_add(&net->nodes[1].regs, KEY,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
					&iov, 1),
			 0);
	net_greet(net);
	return net;
}

static struct wf_remote_seg seg(size_t at, size_t len)
{
	return (struct wf_remote_seg){ (uintptr_t)into + at, len, KEY };
}

/* The same as a peer's packet names it. */
static struct wf_wire_iov wire_seg(size_t at, size_t len)
{
	return (struct wf_wire_iov){ (uintptr_t)into + at, len, KEY };
}

static struct wf_tx req_rma(enum wf_tx_kind kind, size_t len)
{
	struct wf_tx req = req_of(kind, from, len);

	req.remote->seg_count = 1;
	req.remote->segs[0] = seg(0, len);
	return req;
}

static int finish(struct net *net, const struct wf_tx *req)
{
	net_submit(net, 0, 1, req);
	return await(net, &net->nodes[0].txq).err;
}

/* In four pieces of both sides that do not meet. */
static void cut_up(struct wf_tx *req, size_t len)
{
	size_t third = len / 3, part = len / 5;

	req->iov_count = 3;
	req->iov[0] = (struct iovec){ from, part };
	req->iov[1] = (struct iovec){ from + part, 0 };
	req->iov[2] = (struct iovec){ from + part, len - part };
	req->remote->seg_count = 4;
	req->remote->segs[0] = seg(0, third);
	req->remote->segs[1] = seg(third, 0);
	req->remote->segs[2] = seg(third, third);
	req->remote->segs[3] = seg(2 * third, len - 2 * third);
}

static const size_t sizes[] = {
	0,    1,     32,    512,   513,	  1250,	  1300,
	1370, 1375,  1376,  1380,  1384,  1400,	  1401,
	5000, 65536, 65537, 80000, 90000, 100001, LARGEST,
};

static void test_sizes(void **state)
{
	(void)state;
	for (int reads = 0; reads < 2; reads++) {
		struct wf_rdm_ep_attr attr = net_attr();
		struct net *net;

		attr.reads = reads;
		net = begin(&attr);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) * 2;
		     i++) {
			size_t len = sizes[i / 2];
			struct wf_tx req = req_rma(WF_TX_WRITE, len);

			if (i & 1)
				cut_up(&req, len);
			fill(from, len, 4);
			memset(into, 0xee, len + 1);
			assert_int_equal(finish(net, &req), 0);
			assert_true(filled(into, len, 4));
			assert_int_equal(into[len], 0xee);
			fill(into, len, 5);
			memset(from, 0xdd, len + 1);
			req.kind = WF_TX_READ;
			assert_int_equal(finish(net, &req), 0);
			assert_true(filled(from, len, 5));
			assert_int_equal(from[len], 0xdd);
		}
		assert_true(stat_of(&net->nodes[0],
				    reads ? WF_RDM_STAT_longread_writes :
					    WF_RDM_STAT_longcts_writes));
		assert_true(stat_of(&net->nodes[0], WF_RDM_STAT_longcts_reads));
		assert_int_equal(
			stat_of(&net->nodes[1], WF_RDM_STAT_bad_packets), 0);
		net_idle(net);
		net_close(net);
	}
}

static void test_data(void **state)
{
	static const size_t lens[] = { 0, 10, 70000 };
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net = begin(&attr);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct wf_tx req = req_rma(WF_TX_WRITE, lens[i]);
		struct got got;

		req.has_data = true;
		req.data = 0xfedcba9876543210 + (uint64_t)i;
		assert_int_equal(finish(net, &req), 0);
		got = await(net, &net->nodes[1].rxcq);
		assert_int_equal(got.data, req.data);
		assert_int_equal(got.len, lens[i]);
		assert_int_equal(got.src, 0);
		assert_int_equal(got.flags,
				 FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	}
	net_idle(net);
	net_close(net);
}

/* -- memory that is not to be had ------------------------------------------- */

static void test_refused(void **state)
{
	static const enum wf_tx_kind kinds[] = { WF_TX_WRITE, WF_TX_READ };

	(void)state;
	for (int reads = 0; reads < 2; reads++) {
		struct wf_rdm_ep_attr attr = net_attr();
		struct net *net;

		attr.reads = reads;
		net = begin(&attr);
		memset(into, 0x11, LARGEST);
		for (size_t i = 1; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			for (int k = 0; k < 2; k++) {
				struct wf_tx req = req_rma(kinds[k], sizes[i]);

				req.remote->segs[0].key++;
				assert_int_equal(finish(net, &req),
						 FI_EKEYREJECTED);
				req = req_rma(kinds[k], sizes[i]);
				req.remote->segs[0].addr +=
					LARGEST - sizes[i] + 1;
				assert_int_equal(finish(net, &req),
						 FI_EKEYREJECTED);
				/* Only the last piece is wrong. */
				req = req_rma(kinds[k], sizes[i] + 1);
				req.remote->seg_count = 2;
				req.remote->segs[0].len = sizes[i];
				req.remote->segs[1] = seg(LARGEST, 1);
				assert_int_equal(finish(net, &req),
						 FI_EKEYREJECTED);
			}
		}
		for (size_t i = 0; i < LARGEST; i++)
			assert_int_equal(into[i], 0x11);
		assert_true(stat_of(&net->nodes[1], WF_RDM_STAT_keys_rejected));
		net_idle(net);
		net_close(net);
	}
}

/* Taken away in the middle: it ends with an error, and nothing is touched from
 * then on. */
static void test_unregistered(void **state)
{
	(void)state;
	for (int how = 0; how < 9; how++) {
		struct wf_rdm_ep_attr attr = net_attr();
		struct wf_tx req;
		struct net *net;
		int err;

		attr.reads = how % 3 == 0;
		net = begin(&attr);
		req = req_rma(how % 3 == 2 ? WF_TX_READ : WF_TX_WRITE, LARGEST);
		memset(into, 0x11, LARGEST);
		memset(from, 0x22, LARGEST);
		net_submit(net, 0, 1, &req);
		AWAIT(net, node_rxs(&net->nodes[1]));
		net_turn(net, how / 3);
		wf_op_regs_del(&net->nodes[1].regs, KEY);
		wf_core_unregistered(&net->nodes[1].core, KEY);
		memset(into, 0x33, LARGEST);
		err = await(net, &net->nodes[0].txq).err;
		assert_true(err == FI_EKEYREJECTED || !err);
		net_idle(net);
		for (size_t i = 0; i < LARGEST; i++)
			assert_int_equal(into[i], 0x33);
		net_close(net);
	}
}

/* Before the device has even been asked to read. */
static void test_unregistered_early(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net = begin(&attr);
	struct wf_rdm_peer *peer =
		wf_rdm_peer_find(&net->nodes[1].ep, &net->nodes[0].addr);
	struct wf_nic_mr mr;
	struct wf_wire_packet wire = {
		.type = WF_WIRE_LONGREAD_RTW,
		.flags = WF_WIRE_CONNID,
		.msg_length = 70000,
		.rma_iov_count = 1,
		.rma_iov = { wire_seg(0, 70000) },
		.read_iov_count = 1,
	};

	(void)state;
	assert_int_equal(wf_nic_mr_reg(net->nodes[0].ep.nic, from, 70000,
				       WF_NIC_REMOTE_READ, &mr),
			 0);
	memset(from, 0x22, LARGEST);
	wire.read_iov[0] =
		(struct wf_wire_iov){ (uintptr_t)from, 70000, mr.rkey };
	assert_int_equal(wf_rdm_protocol_longread_write.receive(peer, &wire),
			 0);
	wf_op_regs_del(&net->nodes[1].regs, KEY);
	wf_core_unregistered(&net->nodes[1].core, KEY);
	memset(into, 0x33, LARGEST);
	net_idle(net);
	for (size_t i = 0; i < LARGEST; i++)
		assert_int_equal(into[i], 0x33);
	net_close(net);
}

/* -- atomics ---------------------------------------------------------------- */

static struct wf_tx req_amo(enum wf_op_amo_kind kind, int op, size_t count)
{
	struct wf_tx req = req_rma(WF_TX_ATOMIC, count * 8);

	req.remote->amo_kind = (uint8_t)kind;
	req.remote->amo_op = (uint8_t)op;
	req.remote->amo_type = FI_UINT64;
	if (op == FI_ATOMIC_READ)
		req.iov_count = 0;
	return req;
}

static void test_atomics(void **state)
{
	static const size_t counts[] = { 1, 3, 60, 80, 81, 82, 200, 1000 };
	static uint64_t before[1000], compare[1000];
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net = begin(&attr);
	uint64_t *target = (uint64_t *)(void *)into;
	uint64_t *operand = (uint64_t *)(void *)from;

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) * 2; i++) {
		size_t count = counts[i / 2];
		struct wf_tx req = req_amo(WF_OP_AMO_WRITE, FI_SUM, count);

		for (size_t j = 0; j < count; j++) {
			target[j] = 1000 + j;
			operand[j] = j * j;
			compare[j] = 1000 + j + j * j + (j & 1);
		}
		if (i & 1 && count > 2) { /* pieces of memory */
			req.remote->seg_count = 3;
			req.remote->segs[0] = seg(0, 8);
			req.remote->segs[1] = seg(8, (count - 2) * 8);
			req.remote->segs[2] = seg((count - 1) * 8, 8);
			req.fence = true;
		}
		assert_int_equal(finish(net, &req), 0);
		req.remote->amo_kind = WF_OP_AMO_FETCH;
		req.remote->result_count = 2;
		req.remote->result[0] = (struct iovec){ before, 8 };
		req.remote->result[1] =
			(struct iovec){ before + 1, (count - 1) * 8 };
		req.remote->amo_op = FI_ATOMIC_READ;
		req.iov_count = 0;
		assert_int_equal(finish(net, &req), 0);
		for (size_t j = 0; j < count; j++)
			assert_int_equal(before[j], 1000 + j + j * j);
		/* Every second one is what it is compared with. */
		req.remote->amo_kind = WF_OP_AMO_COMPARE;
		req.remote->amo_op = FI_CSWAP;
		req.iov_count = 1;
		req.remote->compare_count = 1;
		req.remote->compare[0] = (struct iovec){ compare, count * 8 };
		memset(before, 0, sizeof(before));
		assert_int_equal(finish(net, &req), 0);
		for (size_t j = 0; j < count; j++) {
			assert_int_equal(before[j], 1000 + j + j * j);
			assert_int_equal(target[j],
					 j & 1 ? before[j] : operand[j]);
		}
		req.remote->segs[0].key++;
		assert_int_equal(finish(net, &req), FI_EKEYREJECTED);
	}
	net_idle(net);
	net_close(net);
}

/* Numbers that are no operations, lengths that do not fit: dropped, and those
 * behind have their turn. */
static void test_hostile_atomics(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct script *s = script_open(&attr);
	struct iovec iov = { into, LARGEST };
	struct wf_wire_packet wire = { .type = WF_WIRE_FETCH_RTA,
				       .recv_id = 77,
				       .datatype = FI_UINT64,
				       .op = FI_SUM,
				       .rma_iov_count = 2,
				       .rma_iov = { wire_seg(0, 8),
						    wire_seg(16, 8) } };
	struct wf_wire_packet bad, got;
	uint64_t *target = (uint64_t *)(void *)into;

	(void)state;
	assert_int_equal(wf_op_regs_add(&script_node(s)->regs, KEY,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
					&iov, 1),
			 0);
	memset(into, 0, LARGEST);
	memset(from, 1, LARGEST);
	for (int i = 0; i < 9; i++) {
		uint64_t before = script_bad(s);

		bad = wire;
		bad.msg_id = (uint32_t)i;
		bad.op = i == 0 ? 255 : i == 1 ? UINT32_MAX : FI_SUM;
		bad.datatype = i == 2 ? 255 : i == 3 ? UINT32_MAX : FI_UINT64;
		bad.rma_iov_count = i == 4 ? 0 : 2;
		bad.rma_iov[1].len = i == 5 ? UINT64_MAX : i == 6 ? 7 : 8;
		bad.type = i == 7 ? WF_WIRE_COMPARE_RTA : WF_WIRE_FETCH_RTA;
		script_send(s, bad, from, i == 8 ? 15 : 16);
		SCRIPT_AWAIT(s, script_bad(s) > before);
	}
	wire.msg_id = 9;
	script_send(s, wire, from, 16);
	got = script_expect(s, WF_WIRE_ATOMRSP);
	assert_int_equal(got.recv_id, 77);
	assert_int_equal(got.data_len, 16);
	assert_int_equal(target[0], 0x0101010101010101);
	assert_int_equal(target[1], 0);
	assert_int_equal(target[2], 0x0101010101010101);
	/* Operands of the second piece begin behind those of the first. */
	wire = (struct wf_wire_packet){ .type = WF_WIRE_COMPARE_RTA,
					.msg_id = 10,
					.recv_id = 78,
					.datatype = FI_UINT64,
					.op = FI_CSWAP,
					.rma_iov_count = 2,
					.rma_iov = { wire_seg(0, 8),
						     wire_seg(16, 8) } };
	((uint64_t *)(void *)from)[0] = 21;
	((uint64_t *)(void *)from)[1] = 22;
	script_send(s, wire, from, 32);
	got = script_expect(s, WF_WIRE_ATOMRSP);
	assert_int_equal(target[0], 21);
	assert_int_equal(target[2], 22);
	script_idle(s);
	script_close(s);
}

/* -- order ------------------------------------------------------------------ */

/* With FI_ORDER_SAW a message is not seen before the write that went before it;
 * with a fence nothing is. */
static void test_order(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		struct wf_rdm_ep_attr attr = net_attr();
		const struct wf_nic_fault fault = { .seed = 3,
						    .loss = 50000,
						    .reorder = 200000 };
		struct wf_tx write, send;
		struct net *net;
		uint8_t byte;

		attr.order = how & 1 ? FI_ORDER_SAW : 0;
		attr.reads = how & 2;
		attr.fault = &fault;
		net = begin(&attr);
		for (uint32_t i = 0; i < 12; i++) {
			size_t len = i % 3 == 0 ? 100 :
				     i % 3 == 1 ? 20000 :
						  90000;

			write = req_rma(WF_TX_WRITE, len);
			fill(from, len, i);
			node_recv_buf(&net->nodes[1], 5, &byte, 1);
			send = req_send(from, 1, 5);
			send.fence = !(how & 1);
			net_submit(net, 0, 1, &write);
			net_submit(net, 0, 1, &send);
			await(net, &net->nodes[1].rxcq);
			assert_true(filled(into, len, i));
			await(net, &net->nodes[0].txq);
			await(net, &net->nodes[0].txq);
		}
		net_idle(net);
		net_close(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unregistered),
		cmocka_unit_test(test_unregistered_early),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_hostile_atomics),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
