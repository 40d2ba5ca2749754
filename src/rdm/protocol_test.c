/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the choice of a protocol, and of the packets that each makes
 * before they go anywhere.
 */
#include "rdm/net_test.h"

#include <stdio.h>

#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/tx.h"
#include "wire/packet.h"

#define BYTES 300000u

static uint8_t from[BYTES];

struct choice {
	struct net *net;
	struct wf_rdm_ep *ep;
	struct wf_rdm_peer *peer;
};

static struct choice begin(size_t runt)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct choice c;
	int err;

	attr.runt_size = runt;
	c.net = net_open(&attr);
	c.ep = &c.net->nodes[0].ep;
	c.peer = wf_rdm_peer_get(c.ep, &c.net->nodes[1].addr, false, &err);
	assert_non_null(c.peer);
	c.peer->greeted_us = true;
	c.peer->features = WF_WIRE_FEATURE_RDMA_READ | WF_WIRE_FEATURE_RUNT;
	return c;
}

static struct wf_rdm_tx *tx_of(struct choice *c, const struct wf_tx *req)
{
	struct wf_rdm_tx *tx;

	assert_int_equal(wf_rdm_tx_new(c->ep, c->peer, req, &tx), 0);
	assert_int_equal(wf_rdm_protocol_select(c->ep, tx), 0);
	return tx;
}

static const char *chosen(struct choice *c, const struct wf_tx *req)
{
	struct wf_rdm_tx *tx = tx_of(c, req);
	const char *name = tx->protocol->name;

	wf_rdm_tx_free(c->ep, tx);
	return name;
}

static const char *for_send(struct choice *c, size_t len)
{
	struct wf_tx req = req_send(from, len, 5);

	return chosen(c, &req);
}

static size_t largest_eager(struct choice *c)
{
	struct wf_wire_packet wire = { .type = WF_WIRE_EAGER_TAGRTM,
				       .flags = WF_WIRE_CONNID };

	return c->peer->max_msg - wf_wire_packet_header(&wire);
}

static void test_by_size(void **state)
{
	struct choice c = begin(0);

	(void)state;
	assert_string_equal(for_send(&c, 0), "eager");
	assert_string_equal(for_send(&c, 8), "eager");
	assert_string_equal(for_send(&c, largest_eager(&c)), "eager");
	assert_string_equal(for_send(&c, largest_eager(&c) + 1), "medium");
	assert_string_equal(for_send(&c, 16384), "medium");
	assert_string_equal(for_send(&c, 65536), "medium");
	assert_string_equal(for_send(&c, 65537), "longread");
	assert_string_equal(for_send(&c, BYTES), "longread");
	net_close(c.net);
}

static void test_by_peer(void **state)
{
	struct choice c = begin(20000);

	(void)state;
	assert_string_equal(for_send(&c, BYTES), "runtread");
	c.ep->runting = 8 * 20000; /* all that may go unasked */
	assert_string_equal(for_send(&c, BYTES), "longread");
	c.ep->runting = 0;
	c.peer->features &= ~(uint64_t)WF_WIRE_FEATURE_RUNT;
	assert_string_equal(for_send(&c, BYTES), "longread");
	c.peer->features = WF_WIRE_FEATURE_RUNT;
	assert_string_equal(for_send(&c, BYTES), "longcts");
	c.peer->features = ~(uint64_t)0;
	c.peer->greeted_us = false; /* nothing is known of it yet */
	assert_string_equal(for_send(&c, BYTES), "longcts");
	c.peer->greeted_us = true;
	c.ep->attr.reads = false;
	assert_string_equal(for_send(&c, BYTES), "longcts");
	/* Small ones do not care. */
	assert_string_equal(for_send(&c, 8), "eager");
	assert_string_equal(for_send(&c, 16384), "medium");
	net_close(c.net);
}

/* Without a registration (injected, or none to be had) nobody can read. */
static void test_by_memory(void **state)
{
	struct choice c = begin(0);
	struct wf_tx req = req_send(from, BYTES, 5);
	static struct wf_nic_mr mrs[1 << 20];
	uint32_t count = 0;

	(void)state;
	req.inject = true;
	assert_string_equal(chosen(&c, &req), "longcts");
	req.inject = false;
	assert_string_equal(chosen(&c, &req), "longread");
	while (count < sizeof(mrs) / sizeof(mrs[0]) &&
	       !wf_nic_mr_reg(c.ep->nic, from, 1, 0, &mrs[count]))
		count++;
	assert_true(count < sizeof(mrs) / sizeof(mrs[0]));
	assert_string_equal(chosen(&c, &req), "longcts");
	while (count-- > 0)
		wf_nic_mr_dereg(c.ep->nic, mrs[count].lkey);
	assert_string_equal(chosen(&c, &req), "longread");
	net_close(c.net);
}

static void test_variants(void **state)
{
	static const struct {
		size_t len;
		uint8_t types[4]; /* msg, tagged, and both with receipt */
	} rows[] = {
		{ 8,
		  { WF_WIRE_EAGER_MSGRTM, WF_WIRE_EAGER_TAGRTM,
		    WF_WIRE_DC_EAGER_MSGRTM, WF_WIRE_DC_EAGER_TAGRTM } },
		{ 16384,
		  { WF_WIRE_MEDIUM_MSGRTM, WF_WIRE_MEDIUM_TAGRTM,
		    WF_WIRE_DC_MEDIUM_MSGRTM, WF_WIRE_DC_MEDIUM_TAGRTM } },
		/* Delivered when the receiver says so, always; a runt is not
		 * for those. */
		{ BYTES,
		  { WF_WIRE_RUNTREAD_MSGRTM, WF_WIRE_RUNTREAD_TAGRTM,
		    WF_WIRE_LONGREAD_MSGRTM, WF_WIRE_LONGREAD_TAGRTM } },
		{ BYTES,
		  { WF_WIRE_LONGCTS_MSGRTM, WF_WIRE_LONGCTS_TAGRTM,
		    WF_WIRE_DC_LONGCTS_MSGRTM, WF_WIRE_DC_LONGCTS_TAGRTM } },
	};
	struct choice c = begin(20000);

	(void)state;
	for (int i = 0; i < 16; i++) {
		struct wf_tx req = req_send(from, rows[i / 4].len, 5);
		struct wf_rdm_tx *tx;

		c.ep->attr.reads = i / 4 < 3;
		req.tagged = i & 1;
		req.delivery = i & 2;
		req.has_data = i & 2;
		tx = tx_of(&c, &req);
		assert_int_equal(tx->wire_type, rows[i / 4].types[i % 4]);
		assert_ptr_equal(wf_rdm_protocol_of(tx->wire_type),
				 tx->protocol);
		assert_int_equal(tx->wire_flags,
				 WF_WIRE_CONNID | WF_WIRE_MSG |
					 (i & 1 ? WF_WIRE_TAGGED : 0) |
					 (i & 2 ? WF_WIRE_CQ_DATA : 0));
		assert_true(tx->ordered);
		wf_rdm_tx_free(c.ep, tx);
		c.peer->greeted_us = false;
		tx = tx_of(&c, &req);
		assert_true(tx->wire_flags & WF_WIRE_RAW_ADDR);
		wf_rdm_tx_free(c.ep, tx);
		c.peer->greeted_us = true;
	}
	net_close(c.net);
}

static void test_remote(void **state)
{
	static const struct {
		enum wf_tx_kind kind;
		size_t len;
		const char *name;
	} rows[] = {
		{ WF_TX_WRITE, 0, "eager_write" },
		{ WF_TX_WRITE, 1000, "eager_write" },
		{ WF_TX_WRITE, 1400, "longcts_write" },
		{ WF_TX_WRITE, 65537, "longread_write" },
		{ WF_TX_READ, 0, "short_read" },
		{ WF_TX_READ, 1300, "short_read" },
		{ WF_TX_READ, 1400, "longcts_read" },
		{ WF_TX_READ, BYTES, "longcts_read" },
	};
	struct choice c = begin(0);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct wf_tx req = req_of(rows[i].kind, from, rows[i].len);
		struct wf_rdm_tx *tx;

		req.remote->seg_count = 1;
		tx = tx_of(&c, &req);
		assert_string_equal(tx->protocol->name, rows[i].name);
		assert_false(tx->ordered);
		wf_rdm_tx_free(c.ep, tx);
	}
	net_close(c.net);
}

/* -- packets ---------------------------------------------------------------- */

/* Makes all packets of @tx; gives them back. Returns how many, @last is the
 * last, decoded as far as its own bytes go. */
static int construct(struct choice *c, struct wf_rdm_tx *tx, int per_call,
		     uint64_t *payload)
{
	struct wf_rdm_pkt *pkts[32];
	int count = 0;

	*payload = 0;
	while (!tx->constructed) {
		int made = tx->protocol->construct_tx_packets(c->ep, tx, pkts,
							      per_call);

		assert_in_range(made, 1, per_call);
		for (int i = 0; i < made; i++) {
			assert_non_null(pkts[i]->completed);
			assert_ptr_equal(pkts[i]->owner, tx);
			assert_true(pkts[i]->len + pkts[i]->data.len <=
				    c->peer->max_msg);
			*payload += pkts[i]->payload;
			wf_rdm_pkt_put(c->ep, pkts[i]);
		}
		count += made;
	}
	assert_int_equal(tx->outstanding, count);
	assert_int_equal(tx->requests, count);
	return count;
}

static void test_packets(void **state)
{
	static const struct {
		size_t len, runt;
		int least;
		uint64_t payload; /* 0: some */
		bool reads;
	} rows[] = {
		{ 8, 0, 1, 8, true },
		{ 16384, 0, 12, 16384, true },
		{ BYTES, 0, 1, 0, false },	   /* first bytes, then CTS */
		{ BYTES, 0, 1, 0, true },	   /* only where it lies */
		{ BYTES, 20000, 15, 20000, true }, /* the runt */
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		struct choice c = begin(rows[i / 2].runt);
		struct wf_tx req = req_send(from, rows[i / 2].len, 5);
		struct wf_rdm_tx *tx;
		uint64_t payload;
		int count;

		c.ep->attr.reads = rows[i / 2].reads;
		tx = tx_of(&c, &req);
		count = construct(&c, tx, i & 1 ? 1 : 32, &payload);
		assert_in_range(count, rows[i / 2].least,
				rows[i / 2].least + 1);
		if (rows[i / 2].payload)
			assert_int_equal(payload, rows[i / 2].payload);
		if (i / 2 == 2)
			assert_in_range(payload, 1000, 1408);
		if (i / 2 == 3)
			assert_int_equal(payload, 0);
		assert_int_equal(c.ep->runting, rows[i / 2].runt);
		wf_rdm_tx_free(c.ep, tx);
		assert_int_equal(c.ep->runting, 0);
		net_close(c.net);
	}
}

/* The registry: every request packet is somebody's, and only once. */
static void test_registry(void **state)
{
	(void)state;
	wf_rdm_protocol_init();
	for (int i = 0; i < WF_RDM_PROTOCOLS; i++) {
		const struct wf_rdm_protocol *p = wf_rdm_protocols[i];
		bool message = p->kind == WF_TX_SEND;

		assert_true(p->can_use_for_send && p->construct_tx_packets &&
			    p->request_completed && p->answered);
		/* A protocol that the device does alone sends nothing to
		 * receive. */
		assert_int_equal(!p->receive, p->no_packets);
		assert_int_equal(!!p->types.tagged, message);
		assert_true(message || (!p->has_more && !p->matched));
		/* Either the device's word is the last or the peer's. */
		assert_int_equal(p->ends_by_answer,
				 p->request_completed !=
						 wf_rdm_tx_is_delivered &&
					 !p->types.dc_msg && !p->no_packets);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(p->name,
						wf_rdm_protocols[j]->name);
	}
	for (unsigned int type = 1; type < 256; type++) {
		const struct wf_rdm_protocol *p =
			wf_rdm_protocol_of((uint8_t)type);
		bool request = wf_wire_packet_kind(type) & WF_WIRE_KIND_REQUEST;

		assert_int_equal(!!p, request);
		if (p)
			assert_ptr_equal(
				wf_rdm_protocols[wf_rdm_protocol_index(p)], p);
	}
}

/* Each answer belongs to some protocols; to others it means nothing, and must not
 * end an operation. */
static void test_answers(void **state)
{
	static const struct {
		uint8_t type;
		const char *names; /* of those that take it */
	} answers[] = {
		{ WF_WIRE_EOR, " runtread longread longread_write " },
		{ WF_WIRE_RECEIPT, " eager medium longcts eager_write "
				   "longcts_write write_atomic " },
		{ WF_WIRE_READRSP, " short_read longcts_read " },
		{ WF_WIRE_CTSDATA, " short_read longcts_read " },
		{ WF_WIRE_ATOMRSP, " fetch_atomic compare_atomic " },
		{ WF_WIRE_READ_NACK, " runtread longread " },
	};
	struct choice c = begin(0);

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		for (int k = 0; k < WF_RDM_PROTOCOLS; k++) {
			const struct wf_rdm_protocol *protocol =
				wf_rdm_protocols[k];
			const struct wf_wire_packet packet = {
				.type = answers[i].type,
			};
			/* One whose end is yet to come: it has bytes left. */
			struct wf_tx req = req_send(from, 8, 5);
			struct wf_rdm_tx *tx;
			char name[64];
			int err;

			req.delivery = true;
			assert_int_equal(wf_rdm_tx_new(c.ep, c.peer, &req, &tx),
					 0);
			tx->protocol = protocol;
			tx->constructed = answers[i].type == WF_WIRE_RECEIPT;
			tx->outstanding = 1; /* stays when it is over */
			snprintf(name, sizeof(name), " %s ", protocol->name);
			err = protocol->answered(c.peer, tx, &packet);
			/* An empty ATOMRSP is too short for it. */
			if (strstr(answers[i].names, name) &&
			    answers[i].type != WF_WIRE_ATOMRSP)
				assert_int_equal(err, 0);
			else
				assert_int_equal(err, -EPROTO);
			tx->outstanding = 0;
			wf_rdm_tx_free(c.ep, tx);
			while (pop(&c.net->nodes[0].txq, &(struct got){ 0 }))
				;
		}
	}
	net_close(c.net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_size),
		cmocka_unit_test(test_by_peer),
		cmocka_unit_test(test_by_memory),
		cmocka_unit_test(test_variants),
		cmocka_unit_test(test_remote),
		cmocka_unit_test(test_packets),
		cmocka_unit_test(test_registry),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
