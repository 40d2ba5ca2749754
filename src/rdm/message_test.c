/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of messages between two endpoints: every protocol, both ways,
 * every size around the thresholds, and what a user does with them.
 */
#include "rdm/net_test.h"

#include "rdm/protocol.h"
#include "rdm/tx.h"

#define LARGEST (300u << 10)

static uint8_t from[LARGEST + 64], into[LARGEST + 64];

static struct wf_rdm_ep_attr attr_of(const char *protocol)
{
	struct wf_rdm_ep_attr attr = net_attr();

	if (!strcmp(protocol, "longcts"))
		attr.reads = false;
	if (!strcmp(protocol, "runtread"))
		attr.runt_size = 20000;
	return attr;
}

/* -- sizes ------------------------------------------------------------------ */

/* One message: data, completions of both sides. */
static void carry(struct net *net, int sender, size_t len, bool tagged,
		  bool delivery, bool posted)
{
	struct node *a = &net->nodes[sender], *b = &net->nodes[!sender];
	struct wf_tx req = req_send(from, len, tagged ? 77 : 0);
	struct iovec iov = { into, len };
	struct got got;

	req.tagged = tagged;
	req.delivery = delivery;
	req.has_data = true;
	req.data = 0x123456789abcdef0;
	fill(from, len, (uint32_t)len);
	memset(into, 0xee, len + 64);
	if (posted)
		node_recv(b, tagged, req.tag, &iov, 1, into);
	net_submit(net, sender, !sender, &req);
	if (!posted) {
		AWAIT(net, b->ep.unexpected);
		node_recv(b, tagged, req.tag, &iov, 1, into);
	}
	got = await(net, &b->rxcq);
	assert_int_equal(got.err, 0);
	assert_ptr_equal(got.context, into);
	assert_int_equal(got.len, len);
	assert_int_equal(got.tag, req.tag);
	assert_int_equal(got.data, req.data);
	assert_int_equal(got.src, sender);
	assert_int_equal(got.flags, FI_RECV | FI_REMOTE_CQ_DATA |
					    (tagged ? FI_TAGGED : FI_MSG));
	assert_true(filled(into, len, (uint32_t)len));
	assert_int_equal(into[len], 0xee);
	got = await(net, &a->txq);
	assert_int_equal(got.err, 0);
	assert_ptr_equal(got.context, from);
	assert_int_equal(got.flags, FI_SEND);
}

static const size_t sizes[] = {
	0,     1,     32,    33,    512,   513,	  1024,	 1300,	1384,	1385,
	1386,  1400,  1401,  1408,  2000,  2800,  16384, 19999, 20000,	20001,
	65535, 65536, 65537, 65538, 70000, 92000, 92161, 92300, 100001, LARGEST,
};

static void every_size(const char *protocol, enum wf_rdm_stat stat)
{
	struct wf_rdm_ep_attr attr = attr_of(protocol);
	struct net *net = net_open(&attr);

	net_greet(net);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned int how = 0; how < 8; how++)
			carry(net, i & 1, sizes[i], how & 1, how & 2, how & 4);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(stat_of(&net->nodes[i], stat));
		assert_true(stat_of(&net->nodes[i], WF_RDM_STAT_sent_eager));
		assert_true(stat_of(&net->nodes[i], WF_RDM_STAT_sent_medium));
		assert_int_equal(
			stat_of(&net->nodes[i], WF_RDM_STAT_bad_packets), 0);
		/* The page has the device's counts: headers come on top of the
		 * bytes that the peer received. */
		wf_rdm_stats_flush(&net->nodes[i].ep);
		assert_true(
			stat_of(&net->nodes[i], WF_RDM_STAT_wire_out_bytes) >
			stat_of(&net->nodes[!i], WF_RDM_STAT_received_bytes));
		assert_true(
			stat_of(&net->nodes[i], WF_RDM_STAT_wire_in_bytes) >
			stat_of(&net->nodes[i], WF_RDM_STAT_received_bytes));
		assert_int_equal(
			stat_of(&net->nodes[i], WF_RDM_STAT_tls_connections),
			0);
	}
	net_idle(net);
	net_close(net);
}

static void test_sizes_longread(void **state)
{
	(void)state;
	every_size("longread", WF_RDM_STAT_sent_longread);
}

static void test_sizes_longcts(void **state)
{
	(void)state;
	every_size("longcts", WF_RDM_STAT_sent_longcts);
}

static void test_sizes_runtread(void **state)
{
	(void)state;
	every_size("runtread", WF_RDM_STAT_sent_runtread);
}

/* Large packets, and both sides before they know each other. */
static void test_strangers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct wf_rdm_ep_attr attr = net_attr();
		struct net *net;

		attr.mtu = i & 1 ? 0 : 1500;
		net = net_open(&attr);
		carry(net, 0, sizes[i], true, i & 2, i & 4);
		carry(net, 1, sizes[i], true, i & 4, i & 2);
		net_idle(net);
		net_close(net);
	}
}

/* The receiver cannot register memory: the same message goes by CTS. */
static void nacked(const char *protocol)
{
	struct wf_rdm_ep_attr attr = attr_of(protocol);
	struct net *net = net_open(&attr);

	net_greet(net);
	net->nodes[1].ep.deny_reads = true;
	for (unsigned int how = 0; how < 8; how++)
		carry(net, 0, 150000, how & 1, how & 2, how & 4);
	assert_int_equal(stat_of(&net->nodes[0], WF_RDM_STAT_read_nacks), 8);
	assert_int_equal(stat_of(&net->nodes[0], WF_RDM_STAT_bad_packets), 0);
	assert_int_equal(stat_of(&net->nodes[1], WF_RDM_STAT_bad_packets), 0);
	net_idle(net);
	net_close(net);
}

static void test_nack(void **state)
{
	(void)state;
	nacked("longread");
	nacked("runtread");
}

/* -- buffers ---------------------------------------------------------------- */

static void split(struct iovec *iov, uint8_t *base, size_t len, size_t first)
{
	size_t parts[4] = { first, len / 3, 0, 0 };

	if (parts[0] > len)
		parts[0] = len;
	if (parts[1] > len - parts[0])
		parts[1] = len - parts[0];
	parts[3] = len - parts[0] - parts[1];
	for (int i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ base, parts[i] };
		base += parts[i];
	}
}

static void test_many_buffers(void **state)
{
	static const char *const protocols[] = { "longread", "longcts",
						 "runtread" };

	(void)state;
	for (int p = 0; p < 3; p++) {
		struct wf_rdm_ep_attr attr = attr_of(protocols[p]);
		struct net *net = net_open(&attr);

		net_greet(net);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			size_t len = sizes[i];
			struct wf_tx req = req_send(from, len, 5);
			struct iovec iov[4];

			fill(from, len, 9);
			memset(into, 0, len + 1);
			req.iov_count = 4;
			split(req.iov, from, len, 1001);
			split(iov, into, len, 17);
			if (i & 1)
				node_recv(&net->nodes[1], true, 5, iov, 4,
					  into);
			net_submit(net, 0, 1, &req);
			if (!(i & 1)) {
				AWAIT(net, net->nodes[1].ep.unexpected);
				node_recv(&net->nodes[1], true, 5, iov, 4,
					  into);
			}
			assert_int_equal(await(net, &net->nodes[1].rxcq).err,
					 0);
			assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
			assert_true(filled(into, len, 9));
			assert_int_equal(into[len], 0);
		}
		net_idle(net);
		net_close(net);
	}
}

/* The receive is too short: the sender does not mind. */
static void cut_short(const char *protocol, size_t len, size_t room, bool early,
		      bool deny)
{
	struct wf_rdm_ep_attr attr = attr_of(protocol);
	struct net *net = net_open(&attr);
	struct wf_tx req = req_send(from, len, 5);
	struct got got;

	net_greet(net);
	net->nodes[1].ep.deny_reads = deny;
	fill(from, len, 3);
	memset(into, 0xcc, sizeof(into));
	if (early)
		node_recv_buf(&net->nodes[1], 5, into, room);
	net_submit(net, 0, 1, &req);
	if (!early) {
		AWAIT(net, net->nodes[1].ep.unexpected);
		node_recv_buf(&net->nodes[1], 5, into, room);
	}
	got = await(net, &net->nodes[1].rxcq);
	assert_int_equal(got.err, FI_ETRUNC);
	assert_int_equal(got.len, room);
	assert_int_equal(got.olen, len - room);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	assert_true(filled(into, room, 3));
	for (size_t i = room; i < sizeof(into); i++)
		assert_int_equal(into[i], 0xcc);
	net_idle(net);
	net_close(net);
}

static void test_truncation(void **state)
{
	static const size_t rooms[] = { 0, 1, 1500, 19999, 20000, 20001 };

	(void)state;
	for (int early = 0; early < 2; early++) {
		cut_short("longread", 100, 10, early, false);
		cut_short("longread", 100, 0, early, false);
		cut_short("longread", 30000, 5000, early, false);
		for (int i = 0; i < 6; i++) {
			cut_short("longcts", 100000, rooms[i], early, false);
			cut_short("longread", 100000, rooms[i], early, false);
			cut_short("runtread", 100000, rooms[i], early, false);
			cut_short("longread", 100000, rooms[i], early, true);
			cut_short("runtread", 100000, rooms[i], early, true);
		}
	}
}

/* Nobody wants it: the sender is told all the same, nothing is kept. */
static void test_discard(void **state)
{
	static const char *const protocols[] = { "longread", "longcts",
						 "runtread" };
	static const size_t lens[] = { 10, 30000, 100000 };

	(void)state;
	for (int p = 0; p < 9; p++) {
		struct wf_rdm_ep_attr attr = attr_of(protocols[p % 3]);
		struct net *net = net_open(&attr);
		struct wf_tx req = req_send(from, lens[p / 3], 5);
		struct node *b = &net->nodes[1];
		struct wf_ux *ux;

		net_greet(net);
		req.delivery = true;
		net_submit(net, 0, 1, &req);
		AWAIT(net, b->ep.unexpected);
		ux = wf_match_find_ux(&b->rxq.tagged, 5, 0, WF_MATCH_ANY);
		assert_non_null(ux);
		assert_int_equal(ux->len, lens[p / 3]);
		wf_match_unpark(&b->rxq.tagged, ux);
		ux->ops->discard(ux);
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
		net_idle(net);
		net_close(net);
	}
}

/* -- receives --------------------------------------------------------------- */

static void test_cancel(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net = net_open(&attr);
	struct node *b = &net->nodes[1];
	struct wf_tx req = req_send(from, 100, 5);

	(void)state;
	node_recv_buf(b, 5, into, 100);
	node_recv_buf(b, 5, into + 1000, 100);
	assert_int_equal(wf_match_rxq_cancel(&b->rxq, into), 0);
	assert_int_equal(await(net, &b->rxcq).err, FI_ECANCELED);
	net_submit(net, 0, 1, &req);
	assert_ptr_equal(await(net, &b->rxcq).context, into + 1000);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	/* One that is being filled is not to be had back. */
	req = req_send(from, 200000, 6);
	node_recv_buf(b, 6, into, 200000);
	net_submit(net, 0, 1, &req);
	AWAIT(net, node_rxs(b));
	assert_int_equal(wf_match_rxq_cancel(&b->rxq, into), -ENOENT);
	assert_int_equal(await(net, &b->rxcq).err, 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	net_idle(net);
	net_close(net);
}

static void test_multi_recv(void **state)
{
	struct wf_rdm_ep_attr attr = attr_of("longread");
	struct net *net = net_open(&attr);
	struct node *b = &net->nodes[1];
	static const size_t lens[] = { 100, 30000, 70000, 0, 1, 30000, 100000 };
	struct wf_rx *rx;
	size_t at = 0;

	(void)state;
	net_greet(net);
	rx = wf_base_pool_get(&b->rxq.pool);
	*rx = (struct wf_rx){
		.src = WF_MATCH_ANY,
		.context = into,
		.flags = FI_RECV | FI_MSG,
		.len = 232000,
		.iov_count = 1,
		.iov[0] = { into, 232000 },
		.wants_comp = true,
		.multi = true,
	};
	b->rxq.min_multi = 2000;
	fill(from, sizeof(from), 1);
	for (int i = 0; i < 7; i++) {
		struct wf_tx req = req_send(from, lens[i], 0);

		req.tagged = false;
		net_submit(net, 0, 1, &req);
		if (i == 3) /* some before, some after */
			wf_match_rxq_post(&b->rxq, rx);
	}
	for (int i = 0, last = 0; i < 7; i++) {
		struct got got = await(net, &b->rxcq);

		assert_int_equal(got.err, 0);
		assert_false(last);
		last = !!(got.flags & FI_MULTI_RECV);
		assert_int_equal(last, i == 6);
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	}
	for (int i = 0; i < 7; i++) {
		assert_true(filled(into + at, lens[i], 1));
		at += lens[i];
	}
	net_idle(net);
	net_close(net);
}

/* Receives are met in the order of sending, whatever protocol carries. */
static void test_order_of_messages(void **state)
{
	static const size_t lens[] = { 100000, 8, 30000, 0, 70000, 1400 };
	static uint8_t many[60][100000];
	struct wf_rdm_ep_attr attr = attr_of("runtread");
	struct net *net = net_open(&attr);

	(void)state;
	net_greet(net);
	for (int i = 0; i < 60; i++) {
		struct wf_tx req = req_send(from, lens[i % 6], 5);

		req.data = (uint64_t)i;
		req.has_data = true;
		net_submit(net, 0, 1, &req);
	}
	for (int i = 0; i < 60; i++)
		node_recv_buf(&net->nodes[1], 5, many[i], sizeof(many[i]));
	for (int i = 0; i < 60; i++) {
		struct got got = await(net, &net->nodes[1].rxcq);

		assert_int_equal(got.err, 0);
		assert_in_range(got.data, 0, 59);
		assert_ptr_equal(got.context, many[got.data]);
		assert_int_equal(got.len, lens[got.data % 6]);
		await(net, &net->nodes[0].txq);
	}
	net_idle(net);
	net_close(net);
}

/* Injected: the buffer is free at once, nothing is reported. */
static void test_inject(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net = net_open(&attr);

	(void)state;
	for (size_t len = 0; len < 6000; len += 499) {
		struct wf_tx req = req_send(from, len, 5);

		req.inject = true;
		req.wants_comp = false;
		fill(from, len, 8);
		node_recv_buf(&net->nodes[1], 5, into, LARGEST);
		net_submit(net, 0, 1, &req);
		memset(from, 0, len);
		assert_int_equal(await(net, &net->nodes[1].rxcq).len, len);
		assert_true(filled(into, len, 8));
	}
	net_idle(net);
	net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_longread),
		cmocka_unit_test(test_sizes_longcts),
		cmocka_unit_test(test_sizes_runtread),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_nack),
		cmocka_unit_test(test_many_buffers),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_discard),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_multi_recv),
		cmocka_unit_test(test_order_of_messages),
		cmocka_unit_test(test_inject),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
