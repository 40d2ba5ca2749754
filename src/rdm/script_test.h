/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that says what a test wants it to say: a bare queue pair that knows
 * the protocol only as packets. It is name 2 of node 0.
 */
#ifndef WF_RDM_SCRIPT_TEST_H
#define WF_RDM_SCRIPT_TEST_H

#include "rdm/net_test.h"

#include "nic/nic.h"
#include "nic/open.h"
#include "wire/packet.h"

#define SCRIPT_BUFS 256u
#define SCRIPT_BYTES 2048u
#define SCRIPT_MEMORY (1u << 20)
#define SCRIPT_NAME 2

struct script {
	struct net *net;
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;	  /* NULL: a test has destroyed it */
	struct wf_nic_mr own, mr; /* buffers; memory that others may read */
	uint16_t ah;
	uint32_t connid;
	unsigned int sent;
	uint8_t bufs[SCRIPT_BUFS][SCRIPT_BYTES];
	uint8_t staging[SCRIPT_BUFS][SCRIPT_BYTES];
	uint8_t packet[SCRIPT_BYTES]; /* the last that came */
	uint8_t memory[SCRIPT_MEMORY];
};

static inline struct node *script_node(struct script *s)
{
	return &s->net->nodes[0];
}

static inline struct wf_rdm_peer *script_peer(struct script *s)
{
	return wf_rdm_peer_find(&script_node(s)->ep, wf_nic_socket(s->nic));
}

static inline void script_give(struct script *s, uint64_t i)
{
	struct wf_nic_sge sge = { s->bufs[i], SCRIPT_BYTES, s->own.lkey };

	assert_int_equal(wf_nic_post_recv(s->qp, i, &sge, false), 0);
}

static inline struct script *script_open(const struct wf_rdm_ep_attr *attr)
{
	struct wf_nic_attr udp = { .fd = -1, .mtu = 1500 };
	struct wf_nic_qp_attr qp = { .sq_entries = SCRIPT_BUFS,
				     .rq_entries = SCRIPT_BUFS,
				     .qkey = WF_RDM_QKEY,
				     .rnr_retry = WF_NIC_RNR_FOREVER };
	struct script *s = calloc(1, sizeof(*s));
	struct node *n;

	assert_non_null(s);
	s->net = net_open(attr);
	n = script_node(s);
	udp.addr.in.sin_family = AF_INET;
	udp.addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(wf_nic_open("udp", &udp, &s->nic), 0);
	assert_int_equal(wf_nic_cq_create(s->nic, 2 * SCRIPT_BUFS, &s->cq), 0);
	qp.send_cq = s->cq;
	qp.recv_cq = s->cq;
	assert_int_equal(wf_nic_qp_create(s->nic, &qp, &s->qp), 0);
	assert_int_equal(wf_nic_mr_reg(s->nic, NULL, SIZE_MAX,
				       WF_NIC_LOCAL_WRITE, &s->own),
			 0);
	assert_int_equal(wf_nic_mr_reg(s->nic, s->memory, SCRIPT_MEMORY,
				       WF_NIC_REMOTE_READ, &s->mr),
			 0);
	for (uint64_t i = 0; i < SCRIPT_BUFS; i++)
		script_give(s, i);
	assert_int_equal(wf_nic_ah_create_socket(s->nic, &n->addr, &s->ah), 0);
	n->names[SCRIPT_NAME] = *wf_nic_socket(s->nic);
	s->connid = 1000;
	return s;
}

static inline void script_close(struct script *s)
{
	net_close(s->net);
	if (s->qp)
		wf_nic_qp_destroy(s->qp);
	assert_int_equal(wf_nic_cq_destroy(s->cq), 0);
	wf_nic_close(s->nic);
	free(s);
}

/* One round. A packet that came is in @packet; its buffer is s->packet. */
static inline bool script_turn(struct script *s, struct wf_wire_packet *packet)
{
	struct wf_nic_wc wc;
	bool came = false;

	net_progress(s->net);
	wf_nic_progress(s->nic);
	while (!came && wf_nic_cq_poll(s->cq, &wc, 1)) {
		if (!(wc.flags & WF_NIC_WC_RECV) || wc.status)
			continue;
		memcpy(s->packet, s->bufs[wc.wr_id], wc.len);
		script_give(s, wc.wr_id);
		assert_int_equal(
			wf_wire_packet_decode(packet, s->packet, wc.len), 0);
		came = true;
	}
	return came;
}

static inline struct wf_wire_packet script_next(struct script *s)
{
	uint64_t end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct wf_wire_packet packet;

	while (!script_turn(s, &packet))
		assert_true(wf_base_clock_ns() < end);
	return packet;
}

/* It asks whether we are there, when it has waited for a while. */
static inline bool script_is_probe(const struct wf_wire_packet *packet)
{
	return packet->type == WF_WIRE_HANDSHAKE ||
	       (packet->type == WF_WIRE_EAGER_RTW && !packet->rma_iov_count &&
		!packet->data_len);
}

/* The next packet is of this type; handshakes and probes are passed over. */
static inline struct wf_wire_packet script_expect(struct script *s,
						  uint8_t type)
{
	struct wf_wire_packet packet = script_next(s);

	while (packet.type != type && script_is_probe(&packet))
		packet = script_next(s);
	assert_string_equal(wf_wire_packet_name(packet.type),
			    wf_wire_packet_name(type));
	return packet;
}

/* Nothing comes, but for probes. */
static inline void script_quiet(struct script *s)
{
	struct wf_wire_packet packet;

	for (int i = 0; i < 200; i++) {
		if (script_turn(s, &packet) && !script_is_probe(&packet))
			assert_string_equal("nothing",
					    wf_wire_packet_name(packet.type));
	}
}

/* Waits until something is so. */
#define SCRIPT_AWAIT(s, condition)                                             \
	do {                                                                   \
		uint64_t end_ = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;   \
		while (!(condition)) {                                         \
			wf_nic_progress((s)->nic);                             \
			net_progress((s)->net);                                \
			assert_true(wf_base_clock_ns() < end_);                \
		}                                                              \
	} while (0)

static inline void script_bytes(struct script *s, size_t len)
{
	struct wf_nic_wr wr = { .qkey = WF_RDM_QKEY,
				.ah = s->ah,
				.qpn = WF_NIC_QPN_FIRST };
	struct wf_nic_sge sge = { s->staging[s->sent++ % SCRIPT_BUFS],
				  (uint32_t)len, s->own.lkey };

	assert_int_equal(wf_nic_post_send(s->qp, &wr, &sge, 1), 0);
}

/* Sends @wire, with our connection id and flags of its type, and @len bytes. */
static inline void script_send(struct script *s, struct wf_wire_packet wire,
			       const void *data, size_t len)
{
	unsigned int kind = wf_wire_packet_kind(wire.type);
	uint8_t *to = s->staging[s->sent % SCRIPT_BUFS];
	size_t header;

	wire.flags |= WF_WIRE_CONNID;
	if (kind & WF_WIRE_KIND_RTM)
		wire.flags |= WF_WIRE_MSG;
	if (kind & WF_WIRE_KIND_TAGGED)
		wire.flags |= WF_WIRE_TAGGED;
	if (kind & WF_WIRE_KIND_RTA)
		wire.flags |= WF_WIRE_ATOMIC;
	if (!wire.connid)
		wire.connid = s->connid;
	if (wire.type == WF_WIRE_CTSDATA || wire.type == WF_WIRE_READRSP ||
	    wire.type == WF_WIRE_ATOMRSP)
		wire.seg_length = len;
	header = wf_wire_packet_encode(&wire, to, SCRIPT_BYTES - len);
	assert_true(header);
	if (len)
		memcpy(to + header, data, len);
	script_bytes(s, header + len);
}

static inline void script_greet(struct script *s)
{
	struct wf_wire_packet hello = { .type = WF_WIRE_HANDSHAKE,
					.extra_count = 1,
					.extra = { 0x3ff } };

	script_send(s, hello, NULL, 0);
	script_expect(s, WF_WIRE_HANDSHAKE);
}

static inline struct wf_wire_packet eager(uint32_t msg_id, uint64_t tag)
{
	return (struct wf_wire_packet){ .type = WF_WIRE_EAGER_TAGRTM,
					.msg_id = msg_id,
					.tag = tag };
}

/* The node's next receive that has ended. */
static inline struct got received(struct script *s)
{
	struct node *n = script_node(s);
	struct got got;

	SCRIPT_AWAIT(s, wf_op_compq_count(&n->rxcq));
	assert_true(pop(&n->rxcq, &got));
	return got;
}

static inline uint64_t script_bad(struct script *s)
{
	return stat_of(script_node(s), WF_RDM_STAT_bad_packets);
}

/* Nothing of the node's is left. */
static inline void script_idle(struct script *s)
{
	struct node *n = script_node(s);

	SCRIPT_AWAIT(s, !n->ep.tx_pool.in_use && !node_rxs(n) &&
				!n->ep.outstanding);
	assert_int_equal(n->ep.small_pkts.in_use, 0);
	assert_int_equal(n->ep.large_pkts.in_use, 0);
	assert_int_equal(n->ep.names.count, 0);
	assert_int_equal(n->ep.runting, 0);
	assert_int_equal(wf_op_compq_count(&n->txq), 0);
	assert_int_equal(wf_op_compq_count(&n->rxcq), 0);
}

#endif
