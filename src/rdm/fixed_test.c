/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of peers whose ids do not change, as on an EFA device (life.h):
 * what is lost is told, so that neither side waits for ever.
 */
#include "rdm/script_test.h"

#include "base/log.h"
#include "rdm/crowd.h"
#include "rdm/lost.h"
#include "rdm/pkt.h"
#include "rdm/post.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"

#define BYTES 20000
#define PIECE 1000
#define KEY 9

static uint8_t from[BYTES], into[BYTES];

/* Both have greeted each other; from then on ids are fixed. */
static struct script *begin(void)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_rdm_peer *peer;
	struct script *s;

	attr.warn_ms = 40; /* probes come twice as often */
	s = script_open(&attr);
	script_greet(s);
	peer = script_peer(s);
	assert_true(peer->greeted_us);
	wf_rdm_life_fix(&peer->life, peer->life.ours, s->connid);
	script_node(s)->ep.connid = peer->life.ours;
	fill(from, BYTES, 1);
	memset(into, 0, BYTES);
	return s;
}

static struct wf_wire_packet medium(uint32_t msg_id, uint64_t tag)
{
	return (struct wf_wire_packet){ .type = WF_WIRE_MEDIUM_TAGRTM,
					.msg_id = msg_id,
					.msg_length = 2 * PIECE,
					.tag = tag };
}

static struct wf_wire_packet lost(uint32_t ref_kind, uint32_t msg_id)
{
	return (struct wf_wire_packet){ .type = WF_WIRE_PEER_ERROR,
					.ref_kind = ref_kind,
					.op_id = msg_id,
					.prov_errno = 7 };
}

static struct got sent(struct script *s)
{
	struct node *n = script_node(s);
	struct got got;

	SCRIPT_AWAIT(s, wf_op_compq_count(&n->txq));
	assert_true(pop(&n->txq, &got));
	return got;
}

/* As libfabric's efa sends it before it has our handshake. */
static void send_without_id(struct script *s, struct wf_wire_packet wire,
			    const void *data, size_t len)
{
	uint8_t *to = s->staging[s->sent % SCRIPT_BUFS];
	size_t header;

	wire.seg_length = len;
	header = wf_wire_packet_encode(&wire, to, SCRIPT_BYTES - len);
	assert_true(header);
	memcpy(to + header, data, len);
	script_bytes(s, header + len);
}

/* CTSDATA had no id and was taken for that of an unknown peer: it was dropped,
 * and the receive did not end. */
static void test_data_without_id(void **state)
{
	struct wf_wire_packet wire = { .type = WF_WIRE_LONGCTS_TAGRTM,
				       .send_id = 77,
				       .tag = 5,
				       .msg_length = BYTES };
	struct wf_wire_packet data = { .type = WF_WIRE_CTSDATA };
	struct script *s = begin();
	uint32_t peers = script_node(s)->ep.peer_count;

	(void)state;
	node_recv_buf(script_node(s), 5, into, BYTES);
	script_send(s, wire, from, PIECE);
	data.recv_id = script_expect(s, WF_WIRE_CTS).recv_id;
	for (uint64_t at = PIECE; at < BYTES; at += PIECE) {
		data.seg_offset = at;
		send_without_id(s, data, from + at, PIECE);
	}
	assert_int_equal(received(s).len, BYTES);
	assert_true(filled(into, BYTES, 1));
	assert_int_equal(script_bad(s), 0);
	assert_int_equal(script_node(s)->ep.peer_count, peers);
	script_idle(s);
	script_close(s);
}

/* A sender dies after the first packet of a message: its receive did not end.
 * A message that was delivered, and waits for one that was not, is received. */
static void test_dies_midway(void **state)
{
	struct script *s = begin();
	struct got got;

	(void)state;
	node_recv_buf(script_node(s), 5, into, 2 * PIECE);
	script_send(s, medium(0, 5), from, PIECE);
	script_send(s, eager(2, 6), from, 11);
	SCRIPT_AWAIT(s, script_peer(s)->order.held == 1);
	node_recv_buf(script_node(s), 6, into + PIECE, 11);
	wf_nic_qp_destroy(s->qp);
	s->qp = NULL;
	for (int i = 0; i < 2; i++) {
		got = received(s);
		if (got.context == into) {
			assert_int_equal(got.err, FI_ECONNRESET);
		} else {
			assert_int_equal(got.err, 0);
			assert_int_equal(got.len, 11);
		}
	}
	script_idle(s);
	/* There is nothing left to ask it for. */
	assert_true(script_peer(s)->gone);
	assert_false(script_peer(s)->owes_probe);
	script_close(s);
}

/* The same, with nobody who receives: the message stays, and fails the receive
 * that takes it. Nobody asks a dead peer for ever. */
static void test_dies_unexpected(void **state)
{
	struct script *s = begin();

	(void)state;
	script_send(s, medium(0, 5), from, PIECE);
	SCRIPT_AWAIT(s, script_node(s)->ep.unexpected);
	wf_nic_qp_destroy(s->qp);
	s->qp = NULL;
	SCRIPT_AWAIT(s, wf_base_list_empty(&script_peer(s)->rxs));
	node_recv_buf(script_node(s), 5, into, 2 * PIECE);
	assert_int_equal(received(s).err, FI_ECONNRESET);
	script_idle(s);
	script_close(s);
}

/* A number that does not come: the messages that follow it are delivered. */
static void test_skip(void **state)
{
	struct script *s = begin();

	(void)state;
	node_recv_buf(script_node(s), 5, into, BYTES);
	script_send(s, eager(2, 5), from, 11);
	script_send(s, lost(WF_RDM_REF_SKIP, 1), NULL, 0);
	SCRIPT_AWAIT(s, script_peer(s)->order.held == 2);
	script_send(s, lost(WF_RDM_REF_SKIP, 0), NULL, 0);
	assert_int_equal(received(s).len, 11);
	/* Of one that has been received, and what means nothing. */
	script_send(s, lost(WF_RDM_REF_SKIP, 2), NULL, 0);
	script_send(s, lost(WF_RDM_REF_NUMBER, 1), NULL, 0);
	node_recv_buf(script_node(s), 5, into, BYTES);
	script_send(s, eager(3, 5), from, 12);
	assert_int_equal(received(s).len, 12);
	assert_int_equal(script_bad(s), 0);
	script_send(s, lost(WF_RDM_REF_SKIP + 1, 4), NULL, 0);
	SCRIPT_AWAIT(s, script_bad(s) == 1);
	script_send(s, lost(WF_RDM_REF_SKIP, 1u << 20), NULL, 0);
	SCRIPT_AWAIT(s, script_bad(s) == 2);
	script_idle(s);
	script_close(s);
}

/* A message of which a part has come, before and after its turn. */
static void test_rest_is_lost(void **state)
{
	struct script *s = begin();

	(void)state;
	node_recv_buf(script_node(s), 5, into, 2 * PIECE);
	script_send(s, medium(0, 5), from, PIECE);
	script_send(s, lost(WF_RDM_REF_NUMBER, 0), NULL, 0);
	assert_int_equal(received(s).err, FI_ECANCELED);
	node_recv_buf(script_node(s), 6, into, 2 * PIECE);
	script_send(s, medium(2, 6), from, PIECE);
	script_send(s, lost(WF_RDM_REF_NUMBER, 2), NULL, 0);
	SCRIPT_AWAIT(s, script_peer(s)->order.held == 2);
	script_send(s, lost(WF_RDM_REF_SKIP, 1), NULL, 0);
	assert_int_equal(received(s).err, FI_ECANCELED);
	assert_int_equal(script_peer(s)->order.expected, 3);
	script_idle(s);
	script_close(s);
}

static void submit(struct script *s, struct wf_tx req)
{
	net_submit(s->net, 0, SCRIPT_NAME, &req);
}

/* Waits for the two packets that say that a message failed. */
static void expect_told(struct script *s, uint32_t msg_id)
{
	unsigned int seen = 0;

	while (seen != (1u << WF_RDM_REF_NUMBER | 1u << WF_RDM_REF_SKIP)) {
		struct wf_wire_packet packet = script_next(s);

		/* It may have arrived all the same. */
		if (packet.type == WF_WIRE_EAGER_TAGRTM ||
		    script_is_probe(&packet))
			continue;
		assert_int_equal(packet.type, WF_WIRE_PEER_ERROR);
		assert_int_equal(packet.op_id, msg_id);
		assert_int_equal(packet.connid, script_peer(s)->life.ours);
		seen |= 1u << packet.ref_kind;
	}
}

/* A request fails although the peer lives: the peer waited for its number, and
 * delivered nothing that followed. The number of one that was not posted is
 * used again. */
static void test_failed_request(void **state)
{
	struct script *s = begin();
	struct wf_tx req = req_send(from, 10, 6);
	struct wf_wire_packet packet;

	(void)state;
	submit(s, req_send(from, 10, 5));
	req.fence = true;
	submit(s, req);
	wf_rdm_peer_fail(script_peer(s), FI_EIO);
	assert_int_equal(sent(s).err, FI_EIO);
	assert_int_equal(sent(s).err, FI_EIO);
	expect_told(s, 0);
	submit(s, req_send(from, 10, 7));
	packet = script_expect(s, WF_WIRE_EAGER_TAGRTM);
	assert_int_equal(packet.msg_id, 1);
	assert_int_equal(packet.tag, 7);
	assert_int_equal(sent(s).err, 0);
	script_idle(s);
	script_close(s);
}

/* The device said that the peer is gone; it is not. The peer is told what it
 * missed when it is heard of again, and not before. */
static void test_back(void **state)
{
	struct script *s = begin();
	struct wf_rdm_peer *peer = script_peer(s);

	(void)state;
	peer->ask_at = UINT64_MAX;
	submit(s, req_send(from, 10, 5));
	wf_rdm_peer_gone(peer, FI_ETIMEDOUT);
	assert_int_equal(sent(s).err, FI_ETIMEDOUT);
	SCRIPT_AWAIT(s, !peer->barred);
	for (int i = 0; i < 100; i++) {
		struct wf_wire_packet packet;

		if (script_turn(s, &packet))
			assert_int_equal(packet.type, WF_WIRE_EAGER_TAGRTM);
	}
	assert_false(wf_base_list_empty(&peer->again));
	node_recv_buf(script_node(s), 5, into, BYTES);
	script_send(s, eager(0, 5), from, 10);
	assert_int_equal(received(s).len, 10);
	expect_told(s, 0);
	script_idle(s);
	script_close(s);
}

/* A peer that does not know of such packets (libfabric before 2.6): no message
 * is accepted that it would not deliver. Memory is still reached. */
static void test_cannot_be_told(void **state)
{
	struct script *s = begin();
	struct wf_rdm_peer *peer = script_peer(s);
	struct wf_tx req = req_send(from, 10, 5);

	(void)state;
	peer->features &= ~(uint64_t)WF_WIRE_FEATURE_PEER_ERROR;
	submit(s, req);
	wf_rdm_peer_fail(peer, FI_EIO);
	assert_int_equal(sent(s).err, FI_EIO);
	assert_int_equal(
		wf_rdm_ep_submit(&script_node(s)->ep, SCRIPT_NAME, &req),
		-ECONNRESET);
	req = req_of(WF_TX_WRITE, from, 10);
	req.remote->seg_count = 1;
	req.remote->segs[0] = (struct wf_remote_seg){ .len = 10, .key = 1 };
	submit(s, req);
	script_close(s);
}

/* Bug: nobody asked, and what the peer had missed was not told before it sent
 * something by itself. */
static void test_asks_whether_back(void **state)
{
	struct script *s = begin();

	(void)state;
	submit(s, req_send(from, 10, 5));
	wf_rdm_peer_gone(script_peer(s), FI_ETIMEDOUT);
	assert_int_equal(sent(s).err, FI_ETIMEDOUT);
	expect_told(s, 0);
	script_idle(s);
	assert_false(script_peer(s)->gone);
	script_close(s);
}

static int lost_lines;

static void take_line(enum wf_log_level level, const char *func, int line,
		      const char *text)
{
	(void)level;
	(void)func;
	(void)line;
	lost_lines += strstr(text, " is lost: ") ||
		      strstr(text, "more peers are lost");
}

/* Bugs: two packets were kept for each message to a peer that was dead; and each
 * message wrote a line to the log. */
static void test_sends_to_the_dead(void **state)
{
	struct script *s = begin();
	struct wf_rdm_ep *ep = &script_node(s)->ep;
	uint32_t used;
	size_t kept;

	(void)state;
	lost_lines = 0;
	wf_base_log_set_sink(take_line);
	wf_nic_qp_destroy(s->qp);
	s->qp = NULL;
	/* The device may say first that it has lost the peer, not that the peer
	 * is gone. */
	for (int i = 0; !script_peer(s)->gone; i++) {
		assert_true(i < 2);
		submit(s, req_send(from, 10, 5));
		assert_int_equal(sent(s).err, FI_ECONNRESET);
	}
	SCRIPT_AWAIT(s, !ep->outstanding);
	kept = ep->small_pkts.in_use;
	used = script_peer(s)->next_msg_id;
	for (int i = 0; i < 50; i++) {
		submit(s, req_send(from, 10, 5));
		submit(s, req_send(from, BYTES, 6));
		assert_int_equal(sent(s).err, FI_ECONNRESET);
		assert_int_equal(sent(s).err, FI_ECONNRESET);
	}
	SCRIPT_AWAIT(s, !ep->outstanding);
	assert_int_equal(ep->small_pkts.in_use, kept);
	assert_int_equal(ep->tx_pool.in_use, 0);
	assert_int_equal(script_peer(s)->next_msg_id, used);
	assert_in_range(lost_lines, 1, 2);
	wf_base_log_set_sink(NULL);
	script_close(s);
}

/* After an outage messages go on, with the number that is next. */
static void test_sends_when_back(void **state)
{
	struct script *s = begin();
	struct wf_rdm_peer *peer = script_peer(s);
	struct wf_wire_packet packet;

	(void)state;
	peer->ask_at = UINT64_MAX;
	submit(s, req_send(from, 10, 5));
	wf_rdm_peer_gone(peer, FI_ETIMEDOUT);
	assert_int_equal(sent(s).err, FI_ETIMEDOUT);
	for (uint64_t i = 0; i < 3; i++)
		submit(s, req_send(from, 10, 7 + i));
	expect_told(s, 0);
	for (uint64_t i = 0; i < 3; i++) {
		packet = script_expect(s, WF_WIRE_EAGER_TAGRTM);
		assert_int_equal(packet.msg_id, 1 + i);
		assert_int_equal(packet.tag, 7 + i);
		assert_int_equal(sent(s).err, 0);
	}
	script_idle(s);
	script_close(s);
}

/* Bug: after two losses in a row the receipt of a message that had come before
 * was not sent any more, and its sender waited for ever. */
static void test_receipt_after_outage(void **state)
{
	struct wf_wire_packet wire = { .type = WF_WIRE_DC_EAGER_TAGRTM,
				       .send_id = 77,
				       .tag = 5 };
	struct script *s = begin();
	struct wf_rdm_peer *peer = script_peer(s);

	(void)state;
	script_send(s, wire, from, 10);
	SCRIPT_AWAIT(s, script_node(s)->ep.unexpected);
	for (int i = 0; i < 2; i++) {
		wf_rdm_peer_gone(peer, FI_ETIMEDOUT);
		SCRIPT_AWAIT(s, !peer->barred);
	}
	node_recv_buf(script_node(s), 5, into, BYTES);
	assert_int_equal(received(s).len, 10);
	assert_int_equal(script_expect(s, WF_WIRE_RECEIPT).send_id, 77);
	script_idle(s);
	script_close(s);
}

static void keep(struct wf_rdm_peer *peer, struct wf_wire_packet wire)
{
	struct wf_rdm_pkt *pkt;

	wire.flags |= WF_WIRE_CONNID;
	wire.connid = peer->life.ours;
	pkt = wf_rdm_pkt_make(peer->ep, peer, &wire, 0);
	assert_non_null(pkt);
	pkt->repeats = true;
	wf_rdm_lost_keep(pkt);
}

/* A peer is forgotten while it is gone, and comes again. Bug: because there was
 * anything left to tell it, it was sent no message any more. */
static void test_forgotten(void **state)
{
	const struct wf_wire_packet all[] = {
		{ .type = WF_WIRE_HANDSHAKE },
		lost(WF_RDM_REF_NUMBER, 0),
		lost(WF_RDM_REF_SKIP, 0),
	};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct script *s = begin();
		struct wf_rdm_peer *peer = script_peer(s);
		struct wf_nic_memo memo;

		peer->gone = true;
		keep(peer, all[i]);
		wf_rdm_peer_remember(peer, &memo);
		wf_rdm_lost_free(peer);
		assert_int_equal(
			wf_nic_ah_leave(peer->ep->nic, peer->ah, &memo), 0);
		assert_int_equal(wf_rdm_crowd_rejoin(peer), 0);
		assert_int_equal(peer->stuck, i == 2);
		assert_int_equal(peer->sent_handshake, i != 0);
		script_close(s);
	}
}

/* The device refuses what says that a number does not come, for a reason that is
 * not the peer's: it would be refused again at once, so the peer stays without
 * it. */
static void test_refused(void **state)
{
	struct script *s = begin();
	struct wf_rdm_peer *peer = script_peer(s);
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_tx req = req_send(from, 10, 5);
	struct wf_nic_wc wc = { .status = WF_NIC_QP_INTERNAL };
	struct wf_rdm_pkt *pkt;

	(void)state;
	peer->ask_at = UINT64_MAX;
	peer->gone = true;
	for (uint32_t kind = WF_RDM_REF_NUMBER; kind <= WF_RDM_REF_SKIP;
	     kind++) {
		assert_false(peer->stuck);
		keep(peer, lost(kind, 0));
		pkt = wf_container_of(peer->again.next, struct wf_rdm_pkt,
				      link);
		wf_base_list_unlink(&pkt->link);
		wc.wr_id = (uint64_t)pkt->turn << 48 | (uintptr_t)pkt;
		peer->outstanding++;
		ep->outstanding++;
		peer->gone = false;
		wf_rdm_pkt_done(ep, &wc);
		assert_true(wf_base_list_empty(&peer->again));
	}
	assert_int_equal(wf_rdm_ep_submit(ep, SCRIPT_NAME, &req), -ECONNRESET);
	script_idle(s);
	script_close(s);
}

/* A read of 10 bytes. */
static struct wf_wire_packet read_by(uint64_t key)
{
	return (struct wf_wire_packet){ .type = WF_WIRE_SHORT_RTR,
					.recv_id = 77,
					.msg_length = 10,
					.recv_length = 10,
					.rma_iov_count = 1,
					.rma_iov = { { .addr = (uintptr_t)into,
						       .len = 10,
						       .key = key } } };
}

static uint64_t rejected(struct script *s)
{
	return stat_of(script_node(s), WF_RDM_STAT_keys_rejected);
}

/* Bug: libfabric before 2.6 got PEER_ERROR when we refused a request of it, does
 * not know that packet, and ends the process. Whether a peer knows it is in its
 * handshake. */
static void test_unknown_error(void **state)
{
	struct script *s = begin();
	struct wf_rdm_peer *peer = script_peer(s);
	uint64_t features = peer->features;
	struct wf_rdm_rx *rx;

	(void)state;
	peer->features &= ~(uint64_t)WF_WIRE_FEATURE_PEER_ERROR;
	/* No packet is made. */
	rx = wf_rdm_rx_new(peer, &wf_rdm_protocol_short_read, WF_RDM_RX_ANSWER);
	assert_non_null(rx);
	rx->over = true;
	wf_rdm_rx_owe(rx, WF_RDM_OWES_ERROR);
	assert_true(wf_rdm_rx_pay(rx));
	assert_true(wf_base_list_empty(&peer->again));
	script_send(s, read_by(KEY), NULL, 0);
	SCRIPT_AWAIT(s, rejected(s) == 1);
	script_quiet(s);
	assert_true(wf_base_list_empty(&peer->again));
	/* Before its handshake. */
	peer->features = features;
	peer->greeted_us = false;
	script_send(s, read_by(KEY), NULL, 0);
	SCRIPT_AWAIT(s, rejected(s) == 2);
	script_quiet(s);
	assert_false(wf_base_list_empty(&peer->again));
	peer->greeted_us = true;
	wf_rdm_post_activate(peer);
	assert_int_equal(script_expect(s, WF_WIRE_PEER_ERROR).op_id, 77);
	script_idle(s);
	script_close(s);
}

/* Bug: such packets were kept without bound for a peer that sends no handshake,
 * and because of them the peer itself. */
static void test_never_greets(void **state)
{
	enum { REQUESTS = 200 };
	struct script *s = begin();
	struct wf_rdm_peer *peer = script_peer(s);
	struct wf_rdm_ep *ep = peer->ep;

	(void)state;
	peer->greeted_us = false;
	for (uint64_t i = 1; i <= REQUESTS; i++) {
		script_send(s, read_by(KEY), NULL, 0);
		SCRIPT_AWAIT(s, rejected(s) == i);
	}
	script_quiet(s);
	assert_false(wf_base_list_empty(&peer->again));
	assert_in_range(ep->small_pkts.in_use, 1, 64);
	/* It is in no AV, and silent. A packet that says that a number does not
	 * come holds it. */
	keep(peer, lost(WF_RDM_REF_SKIP, 0));
	assert_true(wf_rdm_lost_holds(peer));
	wf_rdm_lost_free(peer);
	keep(peer, lost(WF_RDM_REF_OP, 77));
	ep->attr.idle_ms = 1;
	script_node(s)->known[SCRIPT_NAME] = false;
	wf_rdm_ep_removed(ep, SCRIPT_NAME);
	SCRIPT_AWAIT(s, !script_peer(s));
	script_idle(s);
	script_close(s);
}

/* Bug: all parts of an answer had been posted, and one had been delivered, when
 * another one was lost: the reader waited for that for ever. */
static void test_answer_is_lost(void **state)
{
	struct iovec iov = { into, BYTES };
	struct script *s = begin();
	struct wf_rdm_peer *peer = script_peer(s);
	struct wf_rdm_ep *ep = peer->ep;
	struct wf_rdm_pkt *pkt;
	struct wf_rdm_rx *rx;
	void (*done)(struct wf_rdm_ep *, struct wf_rdm_pkt *, int);

	(void)state;
	assert_int_equal(wf_op_regs_add(&script_node(s)->regs, KEY,
					FI_REMOTE_READ, 0, &iov, 1),
			 0);
	script_send(s, read_by(KEY), NULL, 0);
	script_expect(s, WF_WIRE_READRSP);
	script_idle(s);
	/* The last packet that came back, but for probes, was the answer. */
	pkt = ep->small_pkts.free;
	while (pkt->completed == wf_rdm_pkt_none)
		pkt = *(void **)pkt;
	done = pkt->completed;
	rx = wf_rdm_rx_new(peer, &wf_rdm_protocol_short_read, WF_RDM_RX_ANSWER);
	assert_non_null(rx);
	rx->send_id = 78;
	rx->over = true;
	rx->outstanding = 1;
	pkt = wf_rdm_pkt_get(ep, peer, 0);
	assert_non_null(pkt);
	pkt->owner = rx;
	done(ep, pkt, FI_ETIMEDOUT);
	wf_rdm_pkt_put(ep, pkt);
	assert_int_equal(script_expect(s, WF_WIRE_PEER_ERROR).op_id, 78);
	script_idle(s);
	script_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data_without_id),
		cmocka_unit_test(test_dies_midway),
		cmocka_unit_test(test_dies_unexpected),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_rest_is_lost),
		cmocka_unit_test(test_failed_request),
		cmocka_unit_test(test_back),
		cmocka_unit_test(test_cannot_be_told),
		cmocka_unit_test(test_asks_whether_back),
		cmocka_unit_test(test_sends_to_the_dead),
		cmocka_unit_test(test_sends_when_back),
		cmocka_unit_test(test_receipt_after_outage),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unknown_error),
		cmocka_unit_test(test_never_greets),
		cmocka_unit_test(test_answer_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
