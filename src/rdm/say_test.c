/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of an endpoint that sends to a scripted peer: what stands in its
 * packets, when operations end, and answers that break the rules.
 */
#include "rdm/script_test.h"

#include "rdm/control.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/tx.h"

#define BYTES 300000u

static uint8_t from[BYTES];

static struct script *begin(bool greet)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct script *s = script_open(&attr);

	fill(from, BYTES, 1);
	if (greet)
		script_greet(s);
	return s;
}

static void submit(struct script *s, struct wf_tx req)
{
	net_submit(s->net, 0, SCRIPT_NAME, &req);
}

static bool done(struct script *s, struct got *got)
{
	return pop(&script_node(s)->txq, got);
}

static int result(struct script *s)
{
	struct got got = { .err = -1 };

	SCRIPT_AWAIT(s, done(s, &got));
	return got.err;
}

static void rejected(struct script *s, struct wf_wire_packet wire, size_t len)
{
	uint64_t before = script_bad(s);

	script_send(s, wire, from, len);
	SCRIPT_AWAIT(s, script_bad(s) > before);
	assert_int_equal(script_bad(s), before + 1);
}

static struct wf_wire_packet note(uint8_t type, uint32_t id)
{
	return (struct wf_wire_packet){ .type = type,
					.send_id = id,
					.recv_id = id,
					.op_id = id,
					.recv_length = 1 };
}

static struct wf_rdm_tx *first_tx(struct script *s)
{
	struct wf_list *head = &script_peer(s)->flight;

	assert_false(wf_base_list_empty(head));
	return wf_container_of(head->next, struct wf_rdm_tx, link);
}

/* -- what packets say ------------------------------------------------------- */

static void test_headers(void **state)
{
	struct script *s = begin(false);
	struct wf_wire_packet got;
	uint32_t connid;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		submit(s, req_send(from, 10 + i, 5 + i));
		got = script_expect(s, WF_WIRE_EAGER_TAGRTM);
		assert_int_equal(got.msg_id, i);
		assert_int_equal(got.tag, 5 + i);
		assert_int_equal(got.data_len, 10 + i);
		assert_true(filled(got.data, 10 + i, 1));
		assert_true(got.flags & WF_WIRE_CONNID);
		if (i)
			assert_int_equal(got.connid, connid);
		connid = got.connid;
		/* Its address, until it has heard of us. */
		assert_int_equal(!!(got.flags & WF_WIRE_RAW_ADDR), i < 2);
		assert_int_equal(result(s), 0);
		if (i < 2)
			assert_memory_equal(got.raw_addr, &script_node(s)->addr,
					    got.raw_addr_len);
		if (i == 1)
			script_greet(s);
	}
	script_idle(s);
	script_close(s);
}

/* Packets of about one size, all of the message, done with the last. */
static void test_medium(void **state)
{
	struct script *s = begin(true);
	struct wf_tx req = req_send(from, 16384, 5);
	uint64_t have = 0;
	uint32_t id = 0;

	(void)state;
	req.has_data = true;
	req.data = UINT64_MAX - 1;
	submit(s, req);
	for (int i = 0; have < 16384; i++) {
		struct wf_wire_packet got =
			script_expect(s, WF_WIRE_MEDIUM_TAGRTM);

		id = i ? id : got.msg_id;
		assert_int_equal(got.msg_id, id);
		assert_int_equal(got.msg_length, 16384);
		assert_int_equal(got.cq_data, UINT64_MAX - 1);
		assert_memory_equal(got.data, from + got.seg_offset,
				    got.data_len);
		assert_true(got.data_len > 1000 ||
			    have + got.data_len == 16384);
		have += got.data_len;
	}
	assert_int_equal(have, 16384);
	assert_int_equal(result(s), 0);
	script_idle(s);
	script_close(s);
}

static void test_longread(void **state)
{
	struct script *s = begin(true);
	struct wf_tx req = req_send(from, BYTES, 5);
	struct wf_wire_packet got, eor;

	(void)state;
	req.iov_count = 3;
	req.iov[0].iov_len = 100;
	req.iov[1] = (struct iovec){ from + 100, 0 };
	req.iov[2] = (struct iovec){ from + 100, BYTES - 100 };
	submit(s, req);
	got = script_expect(s, WF_WIRE_LONGREAD_TAGRTM);
	assert_int_equal(got.msg_length, BYTES);
	assert_int_equal(got.data_len, 0);
	assert_int_equal(got.read_iov_count, 2);
	assert_int_equal(got.read_iov[0].len, 100);
	assert_int_equal(got.read_iov[0].addr, (uintptr_t)from);
	assert_int_equal(got.read_iov[1].len, BYTES - 100);
	script_quiet(s);
	assert_int_equal(wf_op_compq_count(&script_node(s)->txq), 0);
	eor = note(WF_WIRE_EOR, got.send_id);
	script_send(s, eor, NULL, 0);
	assert_int_equal(result(s), 0);
	rejected(s, eor, 0); /* once */
	script_idle(s);
	script_close(s);
}

/* -- long messages ---------------------------------------------------------- */

static void test_longcts(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_wire_packet rtm, cts, got;
	struct script *s;
	uint64_t have;

	(void)state;
	attr.reads = false;
	s = script_open(&attr);
	fill(from, BYTES, 1);
	script_greet(s);
	submit(s, req_send(from, BYTES, 5));
	rtm = script_expect(s, WF_WIRE_LONGCTS_TAGRTM);
	assert_int_equal(rtm.msg_length, BYTES);
	assert_true(rtm.credit_request);
	have = rtm.data_len;
	assert_true(have > 1000);
	script_quiet(s); /* nothing unasked */
	cts = note(WF_WIRE_CTS, rtm.send_id);
	cts.recv_id = 99;
	cts.recv_length = BYTES - have + 1;
	rejected(s, cts, 0); /* more than there is */
	cts.recv_length = UINT64_MAX;
	rejected(s, cts, 0);
	cts.flags = WF_WIRE_FOR_READ;
	cts.recv_length = 1;
	rejected(s, cts, 0);
	cts.flags = 0;
	while (have < BYTES) {
		uint64_t end;

		cts.recv_length = BYTES - have < 77777 ? BYTES - have : 77777;
		end = have + cts.recv_length;
		script_send(s, cts, NULL, 0);
		while (have < end) {
			got = script_expect(s, WF_WIRE_CTSDATA);
			assert_int_equal(got.recv_id, 99);
			assert_memory_equal(got.data, from + got.seg_offset,
					    got.data_len);
			have += got.data_len;
		}
		assert_int_equal(have, end);
	}
	assert_int_equal(result(s), 0);
	script_idle(s);
	script_close(s);
}

static void test_nack(void **state)
{
	struct script *s = begin(true);
	struct wf_tx req = req_send(from, BYTES, 5);
	struct wf_wire_packet rtm, got, cts;
	uint64_t have = 0;

	(void)state;
	req.delivery = true;
	submit(s, req);
	rtm = script_expect(s, WF_WIRE_LONGREAD_TAGRTM);
	script_send(s, note(WF_WIRE_READ_NACK, rtm.send_id), NULL, 0);
	got = script_expect(s, WF_WIRE_DC_LONGCTS_TAGRTM);
	assert_true(got.flags & WF_WIRE_NACKED);
	assert_int_equal(got.msg_id, rtm.msg_id);
	assert_int_equal(got.data_len, 0);
	rejected(s, note(WF_WIRE_READ_NACK, got.send_id), 0);
	rejected(s, note(WF_WIRE_EOR, got.send_id), 0);
	cts = note(WF_WIRE_CTS, got.send_id);
	cts.recv_length = BYTES;
	script_send(s, cts, NULL, 0);
	while (have < BYTES) {
		got = script_expect(s, WF_WIRE_CTSDATA);
		assert_memory_equal(got.data, from + got.seg_offset,
				    got.data_len);
		have += got.data_len;
	}
	script_send(s, note(WF_WIRE_RECEIPT, rtm.send_id), NULL, 0);
	assert_int_equal(result(s), 0);
	/* The number that follows is the next. */
	submit(s, req_send(from, 1, 6));
	got = script_expect(s, WF_WIRE_EAGER_TAGRTM);
	assert_int_equal(got.msg_id, rtm.msg_id + 1);
	assert_int_equal(result(s), 0);
	script_idle(s);
	script_close(s);
}

/* -- ends ------------------------------------------------------------------- */

/* A receipt before and after the device is done: one completion, and the entry
 * goes with the later of the two. */
static void receipt_first(size_t len)
{
	struct script *s = begin(true);
	struct wf_tx req = req_send(from, len, 5);
	struct wf_wire_packet receipt;
	struct got got;

	req.delivery = true;
	submit(s, req);
	receipt = note(WF_WIRE_RECEIPT, first_tx(s)->named.id);
	assert_true(first_tx(s)->outstanding);
	assert_int_equal(wf_rdm_control_receive(script_peer(s), &receipt), 0);
	assert_true(done(s, &got));
	assert_int_equal(got.err, 0);
	assert_int_equal(script_node(s)->ep.tx_pool.in_use, 1);
	SCRIPT_AWAIT(s, !script_node(s)->ep.tx_pool.in_use);
	assert_false(done(s, &got));
	assert_int_equal(wf_rdm_control_receive(script_peer(s), &receipt),
			 -EPROTO);
	script_idle(s);
	script_close(s);
}

static void receipt_last(size_t len)
{
	struct script *s = begin(true);
	struct wf_tx req = req_send(from, len, 5);
	struct wf_wire_packet receipt;
	struct got got;

	req.delivery = true;
	submit(s, req);
	receipt = note(WF_WIRE_RECEIPT, first_tx(s)->named.id);
	SCRIPT_AWAIT(s, !first_tx(s)->outstanding);
	assert_false(done(s, &got));
	script_send(s, receipt, NULL, 0);
	assert_int_equal(result(s), 0);
	script_idle(s);
	script_close(s);
}

static void test_receipts(void **state)
{
	(void)state;
	receipt_first(10);
	receipt_first(20000);
	receipt_last(10);
	receipt_last(20000);
}

/* A fence behind something that was answered but is still with the device. */
static void test_fence(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 100000, 5);
	struct wf_wire_packet rtm, cts, receipt;
	struct script *s;

	(void)state;
	attr.reads = false;
	s = script_open(&attr);
	script_greet(s);
	req.delivery = true;
	submit(s, req);
	rtm = script_expect(s, WF_WIRE_DC_LONGCTS_TAGRTM);
	req = req_send(from, 1, 6);
	req.fence = true;
	submit(s, req);
	script_quiet(s);
	cts = note(WF_WIRE_CTS, rtm.send_id);
	cts.recv_length = 2000;
	assert_int_equal(wf_rdm_control_receive(script_peer(s), &cts), 0);
	wf_rdm_post_pump(script_peer(s), 64);
	assert_true(first_tx(s)->outstanding);
	receipt = note(WF_WIRE_RECEIPT, rtm.send_id);
	assert_int_equal(wf_rdm_control_receive(script_peer(s), &receipt), 0);
	assert_int_equal(result(s), 0);
	/* The memory of the first is given back: its bytes may not have left. */
	do {
		rtm = script_next(s);
	} while (rtm.type != WF_WIRE_EAGER_TAGRTM);
	assert_int_equal(result(s), 0);
	script_idle(s);
	script_close(s);
}

static void test_peer_error(void **state)
{
	static const struct {
		uint32_t said;
		int reported;
	} errors[] = { { FI_EKEYREJECTED, FI_EKEYREJECTED },
		       { 0, FI_EIO },
		       { 1u << 16, FI_EIO },
		       { UINT32_MAX, FI_EIO } };
	struct script *s = begin(true);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct wf_wire_packet rtm, error;

		submit(s, req_send(from, BYTES, 5));
		rtm = script_expect(s, WF_WIRE_LONGREAD_TAGRTM);
		error = note(WF_WIRE_PEER_ERROR, rtm.send_id);
		error.prov_errno = errors[i].said;
		script_send(s, error, NULL, 0);
		assert_int_equal(result(s), errors[i].reported);
		rejected(s, error, 0);
		error.ref_kind = 1;
		rejected(s, error, 0);
	}
	script_idle(s);
	script_close(s);
}

/* Numbers that mean nothing, or an operation to somebody else. */
static void test_strange_ids(void **state)
{
	static const uint8_t types[] = {
		WF_WIRE_CTS,	   WF_WIRE_CTSDATA,    WF_WIRE_READRSP,
		WF_WIRE_EOR,	   WF_WIRE_ATOMRSP,    WF_WIRE_RECEIPT,
		WF_WIRE_READ_NACK, WF_WIRE_PEER_ERROR,
	};
	struct script *s = begin(true);
	struct wf_tx req = req_send(from, BYTES, 5);
	struct wf_rdm_peer *other;
	struct wf_rdm_tx *tx;
	uint32_t id;

	(void)state;
	net_greet(s->net);
	net_submit(s->net, 0, 1, &req);
	other = wf_rdm_peer_find(&script_node(s)->ep, &s->net->nodes[1].addr);
	AWAIT(s->net, s->net->nodes[1].ep.unexpected);
	tx = wf_container_of(other->flight.next, struct wf_rdm_tx, link);
	id = tx->named.id;
	for (size_t i = 0; i < sizeof(types); i++) {
		rejected(s, note(types[i], id), 0);
		rejected(s, note(types[i], id + 65536), 0);
		rejected(s, note(types[i], id + 1), 0);
		rejected(s, note(types[i], UINT32_MAX), 0);
	}
	assert_int_equal(wf_op_compq_count(&script_node(s)->txq), 0);
	assert_ptr_equal(other->flight.next, &tx->link);
	/* Of a send, but not what ends it. */
	submit(s, req_send(from, BYTES, 5));
	id = first_tx(s)->named.id;
	script_expect(s, WF_WIRE_LONGREAD_TAGRTM);
	rejected(s, note(WF_WIRE_CTS, id), 0);
	rejected(s, note(WF_WIRE_CTSDATA, id), 1);
	rejected(s, note(WF_WIRE_READRSP, id), 1);
	rejected(s, note(WF_WIRE_ATOMRSP, id), 1);
	rejected(s, note(WF_WIRE_RECEIPT, id), 0);
	script_send(s, note(WF_WIRE_EOR, id), NULL, 0);
	assert_int_equal(result(s), 0);
	script_close(s);
}

/* -- lives ------------------------------------------------------------------ */

/* Whoever forgets us makes everything end; the messages that follow are
 * numbered anew. */
static void test_new_life(void **state)
{
	struct script *s = begin(true);
	struct wf_tx req = req_send(from, BYTES, 5);
	struct wf_wire_packet rtm, got;
	uint32_t connid;

	(void)state;
	submit(s, req);
	rtm = script_expect(s, WF_WIRE_LONGREAD_TAGRTM);
	s->connid++;
	script_send(s, (struct wf_wire_packet){ .type = WF_WIRE_EAGER_RTW },
		    NULL, 0);
	assert_int_equal(result(s), FI_ECONNRESET);
	got = script_expect(s, WF_WIRE_HANDSHAKE);
	connid = got.connid;
	assert_int_not_equal(connid, rtm.connid);
	rejected(s, note(WF_WIRE_EOR, rtm.send_id), 0);
	submit(s, req_send(from, 1, 5));
	got = script_expect(s, WF_WIRE_EAGER_TAGRTM);
	assert_int_equal(got.msg_id, 0);
	assert_int_equal(got.connid, connid);
	assert_true(got.flags & WF_WIRE_RAW_ADDR);
	assert_int_equal(result(s), 0);
	script_idle(s);
	script_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_medium),
		cmocka_unit_test(test_longread),
		cmocka_unit_test(test_longcts),
		cmocka_unit_test(test_nack),
		cmocka_unit_test(test_receipts),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_peer_error),
		cmocka_unit_test(test_strange_ids),
		cmocka_unit_test(test_new_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
