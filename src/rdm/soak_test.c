/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random operations both ways over a network that loses, doubles and reorders
 * packets, checked against what was asked for: every byte, every completion,
 * once. The same seed in every run, or the one on the command line.
 */
#include "rdm/net_test.h"

#include <rdma/fi_atomic.h>

#include "op/amo.h"

#define SLOTS 24
#define SLOT_BYTES (128u << 10)
#define KEY 7

static struct wf_nic_fault fault = {
	.seed = 7, .loss = 20000, .duplicate = 10000, .reorder = 100000
};

struct slot {
	struct got tx, rx;
	enum wf_tx_kind kind;
	size_t len;
	uint32_t seed;
	bool busy, sent, wants_rx, posted, got_rx;
	uint64_t tag;
	uint64_t result;
	uint8_t *src, *dst; /* at the initiator, at the target */
};

struct side {
	struct slot slots[SLOTS];
	uint8_t *memory; /* SLOTS sources, then SLOTS targets of the other */
	uint64_t sum, expected_sum;
	unsigned int done;
};

struct soak {
	struct net *net;
	struct side sides[2];
	uint64_t random;
	uint64_t next_tag;
};

static uint64_t roll(struct soak *s, uint64_t below)
{
	uint64_t z = s->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

static size_t some_length(struct soak *s)
{
	static const size_t most[] = { 1, 64, 2000, 20000, 70000, SLOT_BYTES };

	return roll(s, most[roll(s, 6)] + 1);
}

static void post(struct soak *s, int from, struct slot *slot)
{
	struct iovec iov[2] = { { slot->dst, slot->len / 3 },
				{ slot->dst + slot->len / 3,
				  slot->len - slot->len / 3 } };
	bool whole = slot->seed & 1;

	if (whole)
		iov[0].iov_len = slot->len;
	node_recv(&s->net->nodes[!from], true, slot->tag, iov, whole ? 1 : 2,
		  slot);
	slot->posted = true;
}

static void fill_slot(struct soak *s, struct slot *slot, struct wf_tx *req)
{
	fill(slot->kind == WF_TX_READ ? slot->dst : slot->src, slot->len,
	     slot->seed);
	if (slot->kind == WF_TX_SEND) {
		req->tagged = true;
		req->tag = slot->tag;
		req->has_data = roll(s, 2);
		req->data = slot->tag * 3;
		req->inject = !roll(s, 4);
		return;
	}
	req->remote->seg_count = 1;
	req->remote->segs[0] =
		(struct wf_remote_seg){ (uintptr_t)slot->dst, slot->len, KEY };
	if (slot->kind != WF_TX_ATOMIC)
		return;
	req->len = slot->len = 8;
	req->remote->amo_kind = (uint8_t)roll(s, 2);
	req->remote->amo_op = FI_SUM;
	req->remote->amo_type = FI_UINT64;
	memcpy(slot->src, &slot->tag, 8);
	req->iov[0].iov_len = 8;
	req->remote->segs[0].len = 8;
	req->remote->result_count = req->remote->amo_kind;
	req->remote->result[0] = (struct iovec){ &slot->result, 8 };
}

static void begin(struct soak *s, int from, struct slot *slot)
{
	struct side *there = &s->sides[!from];
	struct wf_tx req;

	slot->kind = (enum wf_tx_kind)(roll(s, 2) ? 0 : roll(s, 4));
	slot->len = some_length(s);
	slot->seed = (uint32_t)roll(s, 1u << 30);
	slot->tag = s->next_tag++;
	req = req_of(slot->kind, slot->src, slot->len);
	req.context = slot;
	req.delivery = roll(s, 2);
	req.fence = !roll(s, 10);
	fill_slot(s, slot, &req);
	if (slot->kind == WF_TX_ATOMIC) {
		req.remote->segs[0].addr = (uintptr_t)&there->sum;
		req.remote->segs[0].key = KEY + 1;
		there->expected_sum += slot->tag;
	} else if (slot->len && roll(s, 2)) {
		req.iov_count = 2;
		req.iov[1].iov_len = slot->len / 2;
		req.iov[0].iov_len = slot->len - slot->len / 2;
		req.iov[1].iov_base = slot->src + req.iov[0].iov_len;
	}
	if (slot->kind == WF_TX_SEND && roll(s, 2))
		post(s, from, slot);
	assert_int_equal(wf_rdm_ep_submit(&s->net->nodes[from].ep,
					  (uint64_t)!from, &req),
			 0);
	if (req.inject)
		memset(slot->src, 0, slot->len);
	slot->busy = true;
	slot->sent = false;
	slot->wants_rx = slot->kind == WF_TX_SEND;
	slot->got_rx = false;
	slot->posted &= slot->wants_rx;
}

static void check(struct soak *s, int from, struct slot *slot)
{
	uint8_t *where = slot->kind == WF_TX_READ ? slot->src : slot->dst;

	assert_int_equal(slot->tx.err, 0);
	if (slot->kind == WF_TX_SEND) {
		assert_int_equal(slot->rx.err, 0);
		assert_int_equal(slot->rx.len, slot->len);
		assert_int_equal(slot->rx.tag, slot->tag);
		if (slot->rx.flags & FI_REMOTE_CQ_DATA)
			assert_int_equal(slot->rx.data, slot->tag * 3);
		assert_int_equal(slot->rx.src, from);
	}
	if (slot->kind != WF_TX_ATOMIC)
		assert_true(filled(where, slot->len, slot->seed));
	memset(slot->dst, 0, slot->len);
	slot->busy = false;
	slot->posted = false;
	s->sides[from].done++;
}

static void take(struct soak *s, int from)
{
	struct slot *slot;
	struct got got;

	while (pop(&s->net->nodes[from].txq, &got)) {
		slot = got.context;
		assert_true(slot->busy && !slot->sent);
		slot->sent = true;
		slot->tx = got;
	}
	while (pop(&s->net->nodes[!from].rxcq, &got)) {
		slot = got.context;
		assert_true(slot->busy && slot->posted && !slot->got_rx);
		slot->got_rx = true;
		slot->rx = got;
	}
	for (int i = 0; i < SLOTS; i++) {
		slot = &s->sides[from].slots[i];
		if (slot->busy && slot->sent &&
		    (!slot->wants_rx || slot->got_rx))
			check(s, from, slot);
	}
}

static void soak_open(struct soak *s, const struct wf_rdm_ep_attr *attr)
{
	memset(s, 0, sizeof(*s));
	s->random = fault.seed;
	s->next_tag = 1;
	s->net = net_open(attr);
	for (int i = 0; i < 2; i++) {
		struct side *side = &s->sides[i];

		side->memory = calloc(2 * SLOTS, SLOT_BYTES);
		assert_non_null(side->memory);
	}
	for (int i = 0; i < 2; i++) {
		struct wf_regs *regs = &s->net->nodes[i].regs;
		struct iovec all = { s->sides[i].memory,
				     (size_t)2 * SLOTS * SLOT_BYTES };
		struct iovec sum = { &s->sides[i].sum, 8 };
		uint64_t both = FI_REMOTE_READ | FI_REMOTE_WRITE;

		assert_int_equal(wf_op_regs_add(regs, KEY, both, 0, &all, 1),
				 0);
		assert_int_equal(
			wf_op_regs_add(regs, KEY + 1, both, 0, &sum, 1), 0);
		for (size_t j = 0; j < SLOTS; j++) {
			struct slot *slot = &s->sides[i].slots[j];

			slot->src = s->sides[i].memory + j * SLOT_BYTES;
			slot->dst =
				s->sides[!i].memory + (SLOTS + j) * SLOT_BYTES;
		}
	}
}

static bool busy(const struct soak *s)
{
	for (int i = 0; i < 2 * SLOTS; i++) {
		if (s->sides[i / SLOTS].slots[i % SLOTS].busy)
			return true;
	}
	return false;
}

static bool has_room(const struct soak *s, int i)
{
	const struct wf_pool *pool = &s->net->nodes[i].ep.tx_pool;

	return pool->in_use < pool->limit;
}

static void soak_run(const struct wf_rdm_ep_attr *attr, unsigned int ops)
{
	uint64_t end = wf_base_clock_ns() + 60 * WF_NS_PER_S;
	unsigned int begun = 0;
	struct soak s;

	soak_open(&s, attr);
	while (begun < ops || busy(&s)) {
		for (int i = 0; i < 2; i++) {
			struct slot *slot = &s.sides[i].slots[roll(&s, SLOTS)];

			if (!slot->busy && begun < ops && has_room(&s, i)) {
				begin(&s, i, slot);
				begun++;
			} else if (slot->busy && slot->wants_rx &&
				   !slot->posted) {
				post(&s, i, slot);
			}
		}
		net_progress(s.net);
		take(&s, 0);
		take(&s, 1);
		assert_true(wf_base_clock_ns() < end);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(s.sides[i].sum, s.sides[i].expected_sum);
		assert_int_equal(
			stat_of(&s.net->nodes[i], WF_RDM_STAT_bad_packets), 0);
		assert_int_equal(
			stat_of(&s.net->nodes[i], WF_RDM_STAT_peers_lost), 0);
	}
	assert_int_equal(s.sides[0].done + s.sides[1].done, ops);
	net_idle(s.net);
	net_close(s.net);
	free(s.sides[0].memory);
	free(s.sides[1].memory);
}

static struct wf_rdm_ep_attr rough(void)
{
	struct wf_rdm_ep_attr attr = net_attr();

	attr.fault = &fault;
	attr.dead_timeout_s = 60;
	net_tx_size = 16; /* now and then full */
	return attr;
}

static void test_longread(void **state)
{
	struct wf_rdm_ep_attr attr = rough();

	(void)state;
	soak_run(&attr, 400);
}

static void test_longcts(void **state)
{
	struct wf_rdm_ep_attr attr = rough();

	(void)state;
	attr.reads = false;
	attr.medium_max = 4096;
	soak_run(&attr, 400);
}

static void test_runtread(void **state)
{
	struct wf_rdm_ep_attr attr = rough();

	(void)state;
	attr.runt_size = 15000;
	attr.read_min = 16000;
	attr.medium_max = 8000;
	soak_run(&attr, 400);
}

/* Large packets, and a device with a thread of its own. */
static void test_thread(void **state)
{
	struct wf_rdm_ep_attr attr = rough();

	(void)state;
	attr.mtu = 0;
	attr.thread = true;
	soak_run(&attr, 400);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longread),
		cmocka_unit_test(test_longcts),
		cmocka_unit_test(test_runtread),
		cmocka_unit_test(test_thread),
	};

	if (argc > 1)
		fault.seed = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
