/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of an endpoint that receives from a scripted peer: each protocol's
 * packets in any order, what they are answered with, and packets that break the
 * rules.
 */
#include "rdm/script_test.h"

#include <rdma/fi_atomic.h>

#define BYTES 200000u

static uint8_t from[BYTES], into[BYTES];

static struct script *begin(void)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct script *s = script_open(&attr);

	fill(from, BYTES, 1);
	memset(into, 0xee, BYTES);
	return s;
}

/* Sends something that is to be dropped, and waits until it is. */
static void rejected(struct script *s, struct wf_wire_packet wire, size_t len)
{
	uint64_t before = script_bad(s);

	script_send(s, wire, from, len);
	SCRIPT_AWAIT(s, script_bad(s) > before);
	assert_int_equal(script_bad(s), before + 1);
}

/* -- handshakes ------------------------------------------------------------- */

static void test_handshake_once(void **state)
{
	struct script *s = begin();
	struct wf_wire_packet ask = { .type = WF_WIRE_EAGER_RTW }, got;

	(void)state;
	/* To ask for it disturbs nothing. */
	script_send(s, ask, NULL, 0);
	got = script_next(s);
	assert_int_equal(got.type, WF_WIRE_HANDSHAKE);
	assert_true(got.flags & WF_WIRE_CONNID);
	assert_true(got.extra[0] & WF_WIRE_FEATURE_RDMA_READ);
	script_send(s, ask, NULL, 0);
	node_recv_buf(script_node(s), 5, into, 100);
	script_send(s, eager(0, 5), from, 100);
	assert_int_equal(received(s).len, 100);
	for (int i = 0; i < 200; i++)
		assert_false(script_turn(s, &got));
	assert_int_equal(script_bad(s), 0);
	script_idle(s);
	script_close(s);
}

/* -- order ------------------------------------------------------------------ */

static void test_any_order(void **state)
{
	static const uint32_t ids[] = { 3, 1, 6, 0, 5, 2, 4 };
	struct script *s = begin();

	(void)state;
	for (uint32_t i = 0; i < 7; i++)
		node_recv_buf(script_node(s), 5, into + i * 100, 100);
	for (int i = 0; i < 7; i++)
		script_send(s, eager(ids[i], 5), from, ids[i]);
	for (uint32_t i = 0; i < 7; i++) {
		struct got got = received(s);

		assert_int_equal(got.len, i);
		assert_ptr_equal(got.context, into + i * 100);
	}
	/* Too far ahead: dropped, and nothing stops. */
	rejected(s, eager(7 + WF_RDM_HELD_MAX + 1, 5), 10);
	node_recv_buf(script_node(s), 5, into, 100);
	script_send(s, eager(7, 5), from, 9);
	assert_int_equal(received(s).len, 9);
	script_idle(s);
	script_close(s);
}

/* Bug: a sender that died before the message whose turn it is had come was never
 * missed, and what came early was kept for ever. It is asked whether it lives. */
static void test_early_is_asked_for(void **state)
{
	struct script *s = begin();

	(void)state;
	script_greet(s);
	script_send(s, eager(1, 5), from, 10);
	SCRIPT_AWAIT(s, script_peer(s)->order.held);
	script_expect(s, WF_WIRE_EAGER_RTW);
	script_close(s);
}

/* A number that was used by something wrong does not stop those behind it. */
static void test_wrong_numbers(void **state)
{
	struct wf_wire_packet bad = { .type = WF_WIRE_LONGREAD_TAGRTM,
				      .msg_id = 0,
				      .msg_length = 5 };
	struct script *s = begin();

	(void)state;
	node_recv_buf(script_node(s), 5, into, 100);
	rejected(s, bad, 0);
	script_send(s, eager(2, 5), from, 9);
	bad.msg_id = 1;
	rejected(s, bad, 0);
	assert_int_equal(received(s).len, 9);
	script_idle(s);
	script_close(s);
}

static uint64_t target;

/* A packet whose number had its turn: a peer that repeats a message must not be
 * able to deliver it twice, nor to run an atomic twice. Bug: eager messages and
 * atomics took any number that was not ahead. */
static void test_old_numbers(void **state)
{
	struct wf_wire_packet add = { .type = WF_WIRE_WRITE_RTA,
				      .msg_id = 1,
				      .rma_iov_count = 1,
				      .datatype = FI_UINT64,
				      .op = FI_SUM };
	struct script *s = begin();
	struct node *n = script_node(s);
	const struct iovec where = { &target, sizeof(target) };
	uint64_t one = 1, before;

	(void)state;
	target = 0;
	assert_int_equal(
		wf_op_regs_add(&n->regs, 7, FI_REMOTE_WRITE, 0, &where, 1), 0);
	add.rma_iov[0] =
		(struct wf_wire_iov){ (uintptr_t)&target, sizeof(target), 7 };
	node_recv_buf(n, 5, into, 100);
	node_recv_buf(n, 5, into + 100, 100);
	script_send(s, eager(0, 5), from, 10);
	assert_int_equal(received(s).len, 10);
	rejected(s, eager(0, 5), 10);
	assert_int_equal(wf_op_compq_count(&n->rxcq), 0);
	script_send(s, add, &one, sizeof(one));
	SCRIPT_AWAIT(s, target == 1);
	before = script_bad(s);
	script_send(s, add, &one, sizeof(one));
	SCRIPT_AWAIT(s, script_bad(s) > before || target != 1);
	assert_int_equal(target, 1);
	rejected(s, eager(1, 5), 10);
	script_send(s, eager(2, 5), from, 11);
	assert_int_equal(received(s).len, 11);
	script_idle(s);
	script_close(s);
}

/* -- messages --------------------------------------------------------------- */

/* Bug: a medium packet with bytes that says that its message has none took a
 * receive, which never completed. */
static void test_medium_of_nothing(void **state)
{
	struct wf_wire_packet wire = { .type = WF_WIRE_MEDIUM_TAGRTM,
				       .tag = 5,
				       .msg_length = 0 };
	struct script *s = begin();

	(void)state;
	node_recv_buf(script_node(s), 5, into, 100);
	rejected(s, wire, 10);
	assert_int_equal(node_rxs(script_node(s)), 0);
	script_send(s, eager(1, 5), from, 11);
	assert_int_equal(received(s).len, 11);
	script_idle(s);
	script_close(s);
}

/* Bug: to begin a message of several packets looked at every message of the
 * peer that was not complete. */
static void test_medium_index(void **state)
{
	struct wf_wire_packet wire = { .type = WF_WIRE_MEDIUM_TAGRTM,
				       .tag = 5,
				       .msg_length = 2000 };
	const uint32_t count = 4 * WF_RDM_MSG_BUCKETS;
	struct script *s = begin();
	struct wf_wire_packet got;
	struct wf_rdm_ep *ep = &script_node(s)->ep;

	(void)state;
	for (wire.msg_id = 0; wire.msg_id < count; wire.msg_id++) {
		script_send(s, wire, from, 1000);
		while (ep->unexpected <= wire.msg_id)
			script_turn(s, &got);
	}
	for (uint32_t i = 0; i < WF_RDM_MSG_BUCKETS; i++) {
		uint32_t chain = 0;

		for (const struct wf_list *pos = ep->by_msg[i].next;
		     pos != &ep->by_msg[i]; pos = pos->next)
			chain++;
		assert_int_equal(chain, 4);
	}
	wire.seg_offset = 1000;
	for (uint32_t i = 0; i < count; i++) {
		wire.msg_id = (i * 37 + 5) % count;
		script_send(s, wire, from + 1000, 1000);
		for (int turns = 0; turns < 3; turns++)
			script_turn(s, &got);
	}
	for (uint32_t i = 0; i < count; i++) {
		node_recv_buf(script_node(s), 5, into, 2000);
		assert_int_equal(received(s).len, 2000);
		assert_true(filled(into, 2000, 1));
	}
	for (uint32_t i = 0; i < WF_RDM_MSG_BUCKETS; i++)
		assert_true(wf_base_list_empty(&ep->by_msg[i]));
	script_idle(s);
	script_close(s);
}

static void test_medium_backwards(void **state)
{
	struct wf_wire_packet wire = { .type = WF_WIRE_DC_MEDIUM_TAGRTM,
				       .send_id = 77,
				       .tag = 5,
				       .msg_length = 5000 };
	struct script *s = begin();
	struct got got;

	(void)state;
	node_recv_buf(script_node(s), 5, into, 5000);
	for (int at = 4000; at >= 0; at -= 1000) {
		wire.seg_offset = (uint64_t)at;
		script_send(s, wire, from + at, 1000);
	}
	got = received(s);
	assert_int_equal(got.len, 5000);
	assert_true(filled(into, 5000, 1));
	assert_int_equal(script_expect(s, WF_WIRE_RECEIPT).send_id, 77);
	/* No more of it, and no other of that number. */
	rejected(s, wire, 1000);
	wire.msg_id = 1;
	wire.msg_length = 0;
	script_send(s, wire, from, 10);
	script_send(s, eager(2, 6), from, 3);
	SCRIPT_AWAIT(s, script_node(s)->ep.unexpected);
	script_close(s);
}

/* A parked message is reported when it has its receive, not before. */
static void test_receipt_when_delivered(void **state)
{
	struct wf_wire_packet wire = { .type = WF_WIRE_DC_EAGER_TAGRTM,
				       .send_id = 77,
				       .tag = 5 };
	struct script *s = begin();
	struct wf_wire_packet got;

	(void)state;
	script_greet(s);
	script_send(s, wire, from, 10);
	SCRIPT_AWAIT(s, script_node(s)->ep.unexpected);
	script_quiet(s);
	node_recv_buf(script_node(s), 5, into, 10);
	received(s);
	got = script_expect(s, WF_WIRE_RECEIPT);
	assert_int_equal(got.send_id, 77);
	assert_int_equal(got.msg_id, 0);
	script_idle(s);
	script_close(s);
}

static void test_longcts(void **state)
{
	struct wf_wire_packet wire = { .type = WF_WIRE_DC_LONGCTS_TAGRTM,
				       .send_id = 77,
				       .tag = 5,
				       .msg_length = 150000 };
	struct wf_wire_packet data = { .type = WF_WIRE_CTSDATA }, cts;
	struct script *s = begin();
	uint64_t granted = 1000;
	uint64_t at = 1000;

	(void)state;
	script_send(s, wire, from, 1000);
	SCRIPT_AWAIT(s, script_node(s)->ep.unexpected);
	node_recv_buf(script_node(s), 5, into, BYTES);
	while (at < 150000) {
		if (at == granted) {
			cts = script_expect(s, WF_WIRE_CTS);
			assert_int_equal(cts.send_id, 77);
			granted += cts.recv_length;
			data.recv_id = cts.recv_id;
			assert_in_range(granted, at + 1, 150000);
			/* Beyond what was granted, nothing, somebody else. */
			data.seg_offset = granted - 500;
			rejected(s, data, 501);
			data.seg_offset = UINT64_MAX;
			rejected(s, data, 1);
			data.seg_offset = at;
			rejected(s, data, 0);
			data.recv_id++;
			rejected(s, data, 1);
			data.recv_id--;
		}
		data.seg_offset = at;
		script_send(s, data, from + at,
			    granted - at < 1300 ? granted - at : 1300);
		at += granted - at < 1300 ? granted - at : 1300;
		/* It asks for more before all of it is there. */
		if (granted < 150000 && granted - at < 10000) {
			cts = script_expect(s, WF_WIRE_CTS);
			granted += cts.recv_length;
		}
		for (int i = 0; i < 3; i++) {
			wf_nic_progress(s->nic);
			net_progress(s->net);
		}
	}
	assert_int_equal(received(s).len, 150000);
	assert_true(filled(into, 150000, 1));
	assert_int_equal(script_expect(s, WF_WIRE_RECEIPT).send_id, 77);
	rejected(s, data, 1);
	script_idle(s);
	script_close(s);
}

static struct wf_wire_packet readable(struct script *s, uint8_t type,
				      uint64_t len)
{
	return (struct wf_wire_packet){
		.type = type,
		.send_id = 77,
		.tag = 5,
		.msg_length = len,
		.read_iov_count = 2,
		.read_iov = { { (uintptr_t)s->memory, 40000, s->mr.rkey },
			      { (uintptr_t)s->memory + 40000, len - 40000,
				s->mr.rkey } },
	};
}

static void test_longread(void **state)
{
	struct script *s = begin();
	struct wf_wire_packet wire =
		readable(s, WF_WIRE_LONGREAD_TAGRTM, BYTES);

	(void)state;
	memcpy(s->memory, from, BYTES);
	node_recv_buf(script_node(s), 5, into, BYTES);
	script_send(s, wire, NULL, 0);
	assert_int_equal(received(s).len, BYTES);
	assert_true(filled(into, BYTES, 1));
	assert_int_equal(script_expect(s, WF_WIRE_EOR).send_id, 77);
	/* Lengths that do not add up. */
	wire.msg_id = 1;
	wire.read_iov[1].len++;
	rejected(s, wire, 0);
	wire.msg_id = 2;
	wire.read_iov[0].len = UINT64_MAX;
	rejected(s, wire, 0);
	/* Memory that it does not have: the receive fails, the peer is told. */
	wire = readable(s, WF_WIRE_LONGREAD_TAGRTM, BYTES);
	wire.msg_id = 3;
	wire.read_iov[1].key++;
	node_recv_buf(script_node(s), 5, into, BYTES);
	script_send(s, wire, NULL, 0);
	assert_int_equal(received(s).err, FI_EKEYREJECTED);
	assert_int_equal(script_expect(s, WF_WIRE_PEER_ERROR).op_id, 77);
	script_idle(s);
	script_close(s);
}

static void test_runtread(void **state)
{
	struct script *s = begin();
	struct wf_wire_packet wire =
		readable(s, WF_WIRE_RUNTREAD_TAGRTM, BYTES);

	(void)state;
	wire.runt_length = 5000;
	memcpy(s->memory + 5000, from + 5000, BYTES - 5000);
	node_recv_buf(script_node(s), 5, into, BYTES);
	for (int at = 4000; at >= 1000; at -= 1000) {
		wire.seg_offset = (uint64_t)at;
		script_send(s, wire, from + at, 1000);
	}
	/* The message that is read may be there first. */
	assert_int_equal(script_expect(s, WF_WIRE_EOR).send_id, 77);
	assert_int_equal(wf_op_compq_count(&script_node(s)->rxcq), 0);
	wire.seg_offset = 4500;
	rejected(s, wire, 1000);
	wire.seg_offset = 0;
	script_send(s, wire, from, 1000);
	assert_int_equal(received(s).len, BYTES);
	assert_true(filled(into, BYTES, 1));
	script_idle(s);
	script_close(s);
}

/* It could not be read: the packet that follows has no bytes and touches
 * nothing but what it names. */
static void test_nacked(void **state)
{
	struct script *s = begin();
	struct wf_wire_packet wire =
		readable(s, WF_WIRE_LONGREAD_TAGRTM, 41000);
	struct wf_wire_packet data = { .type = WF_WIRE_CTSDATA }, cts;
	uint32_t expected;

	(void)state;
	script_node(s)->ep.deny_reads = true;
	node_recv_buf(script_node(s), 5, into, BYTES);
	script_send(s, wire, NULL, 0);
	assert_int_equal(script_expect(s, WF_WIRE_READ_NACK).send_id, 77);
	expected = script_peer(s)->order.expected;
	wire = (struct wf_wire_packet){ .type = WF_WIRE_LONGCTS_TAGRTM,
					.flags = WF_WIRE_NACKED,
					.msg_length = 41000,
					.send_id = 78,
					.tag = 5 };
	wire.msg_id = 1; /* not known */
	rejected(s, wire, 0);
	wire.msg_id = 0;
	rejected(s, wire, 100);
	wire.msg_length++;
	rejected(s, wire, 0);
	wire.msg_length--;
	script_send(s, wire, NULL, 0);
	cts = script_expect(s, WF_WIRE_CTS);
	assert_int_equal(cts.send_id, 78);
	assert_int_equal(cts.recv_length, 41000);
	assert_int_equal(script_peer(s)->order.expected, expected);
	rejected(s, wire, 0); /* once is enough */
	data.recv_id = cts.recv_id;
	for (unsigned int at = 0; at < 41000; at += 1000) {
		data.seg_offset = at;
		script_send(s, data, from + at, 1000);
	}
	assert_int_equal(received(s).len, 41000);
	assert_true(filled(into, 41000, 1));
	script_idle(s);
	script_close(s);
}

/* Closing in the middle of reading from a sender that does not answer. */
static void test_close_while_reading(void **state)
{
	struct script *s = begin();
	struct wf_wire_packet wire =
		readable(s, WF_WIRE_LONGREAD_TAGRTM, BYTES);
	struct node *n = script_node(s);

	(void)state;
	node_recv_buf(n, 5, into, BYTES);
	script_send(s, wire, NULL, 0);
	while (!n->ep.reading) {
		if (!node_rxs(n))
			wf_nic_progress(s->nic);
		wf_core_progress(&n->core);
	}
	node_close(n);
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(into[i], 0xee);
	script_close(s);
}

/* -- lives ------------------------------------------------------------------ */

/* It restarts: a message that was being received fails, and a complete one
 * stays, nobody is told of what he does not know. */
static void test_new_life(void **state)
{
	struct wf_wire_packet half = { .type = WF_WIRE_MEDIUM_TAGRTM,
				       .msg_id = 1,
				       .tag = 6,
				       .msg_length = 2000 };
	struct wf_wire_packet whole = { .type = WF_WIRE_DC_EAGER_TAGRTM,
					.send_id = 77,
					.tag = 5 };
	struct script *s = begin();

	(void)state;
	script_greet(s);
	script_send(s, whole, from, 10);
	node_recv_buf(script_node(s), 6, into, 2000);
	script_send(s, half, from, 1000);
	script_send(s, eager(9, 5), from, 3); /* waits for others */
	SCRIPT_AWAIT(s, script_peer(s)->order.held);
	s->connid++;
	script_send(s, eager(0, 7), from, 4);
	assert_int_equal(received(s).err, FI_ECONNRESET);
	script_expect(s, WF_WIRE_HANDSHAKE);
	assert_int_equal(script_peer(s)->order.held, 0);
	node_recv_buf(script_node(s), 7, into, 100);
	assert_int_equal(received(s).len, 4);
	node_recv_buf(script_node(s), 5, into, 100);
	assert_int_equal(received(s).len, 10);
	/* It was acknowledged, so its sender takes it for delivered. */
	node_recv_buf(script_node(s), 5, into, 100);
	assert_int_equal(received(s).len, 3);
	script_quiet(s);
	/* Late packets of the old life. */
	whole.connid = s->connid - 1;
	script_send(s, whole, from, 10);
	SCRIPT_AWAIT(s, stat_of(script_node(s), WF_RDM_STAT_stale_packets));
	assert_int_equal(script_node(s)->ep.unexpected, 0);
	assert_int_equal(stat_of(script_node(s), WF_RDM_STAT_peers_lost), 1);
	script_idle(s);
	script_close(s);
}

/* Bug: an endpoint that lost its connection to a peer twice before the peer
 * heard of it passed over what was still to come in that life. The peer's
 * connection to us was as good as before: a message that we acknowledged was
 * dropped. */
static void test_lost_twice(void **state)
{
	struct wf_wire_packet half = { .type = WF_WIRE_MEDIUM_TAGRTM,
				       .msg_id = 1,
				       .tag = 5,
				       .msg_length = 2000 };
	struct script *s = begin();

	(void)state;
	script_greet(s);
	script_send(s, half, from, 1000);
	script_send(s, eager(2, 5), from, 3);
	SCRIPT_AWAIT(s, script_peer(s)->order.held == 2);
	script_send(s, eager(0, 5), from, 10);
	node_recv_buf(script_node(s), 5, into, 100);
	assert_int_equal(received(s).len, 10);
	script_send(s, eager(4, 5), from, 4);
	SCRIPT_AWAIT(s, script_peer(s)->order.held);
	for (int i = 0; i < 2; i++)
		wf_rdm_peer_fail(script_peer(s), FI_ECONNRESET);
	half.seg_offset = 1000;
	script_send(s, half, from + 1000, 1000);
	script_send(s, eager(3, 5), from, 5);
	for (size_t i = 0; i < 4; i++) {
		static const size_t lens[] = { 2000, 3, 5, 4 };

		node_recv_buf(script_node(s), 5, into, 2000);
		assert_int_equal(received(s).len, lens[i]);
	}
	assert_int_equal(script_bad(s), 0);
	script_close(s);
}

/* Bytes that are no packets, and packets without an id. */
static void test_garbage(void **state)
{
	struct script *s = begin();
	uint64_t before;

	(void)state;
	script_greet(s);
	for (unsigned int i = 0; i < 200; i++) {
		before = script_bad(s);
		fill(s->staging[s->sent % SCRIPT_BUFS], 100, i + 1);
		s->staging[s->sent % SCRIPT_BUFS][1] = i & 1 ? 4 : 3;
		s->staging[s->sent % SCRIPT_BUFS][3] &= 0x7f;
		script_bytes(s, i % 100);
		SCRIPT_AWAIT(s, script_bad(s) > before);
	}
	node_recv_buf(script_node(s), 5, into, 100);
	script_send(s, eager(0, 5), from, 9);
	assert_int_equal(received(s).len, 9);
	script_idle(s);
	script_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handshake_once),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_early_is_asked_for),
		cmocka_unit_test(test_wrong_numbers),
		cmocka_unit_test(test_old_numbers),
		cmocka_unit_test(test_medium_of_nothing),
		cmocka_unit_test(test_medium_index),
		cmocka_unit_test(test_medium_backwards),
		cmocka_unit_test(test_receipt_when_delivered),
		cmocka_unit_test(test_longcts),
		cmocka_unit_test(test_longread),
		cmocka_unit_test(test_runtread),
		cmocka_unit_test(test_nacked),
		cmocka_unit_test(test_close_while_reading),
		cmocka_unit_test(test_new_life),
		cmocka_unit_test(test_lost_twice),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
