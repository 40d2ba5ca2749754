/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of RMA that the device does by itself: the target's side of the
 * endpoint is never asked, unless it wants to hear of accesses.
 */
#include "rdm/net_test.h"

#include "core/core.h"
#include "rdm/tx.h"

#define LARGEST (3u << 20)
#define KEY 0x5000000000000007u /* more than 32 bits of it count */

static uint8_t from[LARGEST + 64], into[LARGEST + 64];

static struct net *begin(uint32_t flags, size_t pieces)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct iovec iov[2] = { { into, LARGEST / pieces },
				{ into + LARGEST / pieces,
				  LARGEST - LARGEST / pieces } };
	struct net *net;

	attr.device = "tcp";
	net = net_open(&attr);
	assert_int_equal(wf_op_regs_add(&net->nodes[1].regs, KEY,
					FI_REMOTE_READ | FI_REMOTE_WRITE, flags,
					iov, pieces),
			 0);
	net_greet(net);
	return net;
}

static struct wf_tx rma(enum wf_tx_kind kind, uint64_t addr, size_t len)
{
	struct wf_tx req = req_of(kind, from, len);

	req.remote->seg_count = 1;
	req.remote->segs[0] = (struct wf_remote_seg){ addr, len, KEY };
	return req;
}

/* @asked: the target makes progress, too. */
static int finish(struct net *net, const struct wf_tx *req, bool asked)
{
	uint64_t end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct got got;

	/* The attendant touches the target's memory, and TSan does not see
	 * what orders it: bytes in sockets. */
	wf_nic_sync(net->nodes[1].ep.nic);
	net_submit(net, 0, 1, req);
	while (!pop(&net->nodes[0].txq, &got)) {
		wf_core_progress(&net->nodes[0].core);
		if (asked)
			wf_core_progress(&net->nodes[1].core);
		assert_true(wf_base_clock_ns() < end);
	}
	wf_nic_sync(net->nodes[1].ep.nic);
	return got.err;
}

static void cut_up(struct wf_tx *req, uint64_t addr, size_t len)
{
	size_t third = len / 3, part = len / 5;

	req->iov_count = 3;
	req->iov[0] = (struct iovec){ from, part };
	req->iov[1] = (struct iovec){ from + part, 0 };
	req->iov[2] = (struct iovec){ from + part, len - part };
	req->remote->seg_count = 3;
	req->remote->segs[0] = (struct wf_remote_seg){ addr, third, KEY };
	req->remote->segs[1] = (struct wf_remote_seg){ addr + third, 0, KEY };
	req->remote->segs[2] =
		(struct wf_remote_seg){ addr + third, len - third, KEY };
}

/* The target makes no call, whatever the addresses of its memory count from. */
static void test_unasked(void **state)
{
	static const size_t sizes[] = {
		1, 32, 512, 513, 17000, 40000, LARGEST
	};

	(void)state;
	for (unsigned int offsets = 0; offsets < 2; offsets++) {
		struct net *net = begin(offsets ? WF_REG_OFFSETS : 0, 1);
		uint64_t addr = offsets ? 0 : (uintptr_t)into, count = 0;

		for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]);
		     i++) {
			size_t len = sizes[i / 2];
			struct wf_tx req = rma(WF_TX_WRITE, addr, len);

			if (i & 1)
				cut_up(&req, addr, len);
			else
				req.inject = len <= 512;
			req.wants_comp = true;
			fill(from, len, 4);
			memset(into, 0xee, len + 1);
			assert_int_equal(finish(net, &req, false), 0);
			assert_true(filled(into, len, 4));
			assert_int_equal(into[len], 0xee);
			fill(into, len, 5);
			memset(from, 0xdd, len + 1);
			req.kind = WF_TX_READ;
			req.inject = false;
			assert_int_equal(finish(net, &req, false), 0);
			assert_true(filled(from, len, 5));
			assert_int_equal(from[len], 0xdd);
			count++;
		}
		assert_int_equal(
			stat_of(&net->nodes[0], WF_RDM_STAT_direct_writes),
			count);
		assert_int_equal(
			stat_of(&net->nodes[0], WF_RDM_STAT_direct_reads),
			count);
		net_idle(net);
		net_close(net);
	}
}

/* A forbidden access is refused, and the target makes no call for that,
 * either. */
static void test_refused(void **state)
{
	static const enum wf_tx_kind kinds[] = { WF_TX_WRITE, WF_TX_READ };
	uint64_t addr = (uintptr_t)into;
	struct net *net = begin(0, 1);

	(void)state;
	memset(into, 0x11, LARGEST);
	for (int k = 0; k < 2; k++) {
		struct wf_tx req = rma(kinds[k], addr, 5000);

		/* Another key with the same lower half. */
		req.remote->segs[0].key = (uint32_t)KEY;
		assert_int_equal(finish(net, &req, false), FI_EKEYREJECTED);
		/* One byte too many; nothing at all is written. */
		req = rma(kinds[k], addr + 1, LARGEST);
		assert_int_equal(finish(net, &req, false), FI_EKEYREJECTED);
		req = rma(kinds[k], addr - 1, 1);
		assert_int_equal(finish(net, &req, false), FI_EKEYREJECTED);
	}
	for (size_t i = 0; i < LARGEST; i++)
		assert_int_equal(into[i], 0x11);
	/* Memory that was taken back. */
	wf_op_regs_del(&net->nodes[1].regs, KEY);
	wf_core_unregistered(&net->nodes[1].core, KEY);
	for (int k = 0; k < 2; k++) {
		struct wf_tx req = rma(kinds[k], addr, 8);

		assert_int_equal(finish(net, &req, false), FI_EKEYREJECTED);
	}
	net_idle(net);
	net_close(net);
}

/* A target that wants to hear of accesses does, also of injected ones; the next
 * operations go by packets at once. */
static void test_counted(void **state)
{
	struct net *net = begin(0, 1);
	struct node *a = &net->nodes[0], *b = &net->nodes[1];
	struct wf_cntr writes, reads;
	const struct wf_reg_watch watch = { .reads = &reads,
					    .writes = &writes };

	(void)state;
	memset(&writes, 0, sizeof(writes));
	memset(&reads, 0, sizeof(reads));
	assert_int_equal(wf_op_regs_watch(&b->regs, KEY, &watch), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		struct wf_tx req = rma(WF_TX_WRITE, (uintptr_t)into, 200);

		req.inject = true;
		req.wants_comp = true;
		fill(from, 200, (uint32_t)i);
		assert_int_equal(finish(net, &req, true), 0);
		assert_true(filled(into, 200, (uint32_t)i));
		assert_int_equal(atomic_load(&writes.value), i);
		req = rma(WF_TX_READ, (uintptr_t)into, 70000);
		assert_int_equal(finish(net, &req, true), 0);
		assert_true(!memcmp(from, into, 70000));
		assert_int_equal(atomic_load(&reads.value), i);
	}
	assert_int_equal(stat_of(a, WF_RDM_STAT_direct_writes), 1);
	assert_int_equal(stat_of(a, WF_RDM_STAT_eager_writes), 2);
	assert_int_equal(stat_of(a, WF_RDM_STAT_direct_reads), 0);
	net_idle(net);
	net_close(net);
}

/* A region of several pieces is the application's, too; and of a vector of which
 * one part is refused nothing is written. */
static void test_pieces(void **state)
{
	struct net *net = begin(WF_REG_OFFSETS, 2);
	struct wf_tx req = rma(WF_TX_WRITE, LARGEST / 2 - 10, 20000);

	(void)state;
	fill(from, 20000, 8);
	assert_int_equal(finish(net, &req, true), 0);
	assert_true(filled(into + LARGEST / 2 - 10, 20000, 8));
	req = rma(WF_TX_READ, LARGEST / 2 - 10, 20000);
	memset(from, 0, 20000);
	assert_int_equal(finish(net, &req, true), 0);
	assert_true(filled(from, 20000, 8));
	memset(into, 0x22, 200);
	req = rma(WF_TX_WRITE, 0, 200);
	req.remote->seg_count = 2;
	req.remote->segs[0].len = 100;
	req.remote->segs[1] = (struct wf_remote_seg){ LARGEST, 100, KEY };
	assert_int_equal(finish(net, &req, true), FI_EKEYREJECTED);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(into[i], 0x22);
	net_idle(net);
	net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unasked),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
