/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines of nic/udp joined by a wire in memory, for unit tests: no socket, no
 * clock. Time is a number that jumps to whatever happens next. The wire loses,
 * delays and repeats packets as a test tells it.
 */
#ifndef WF_NIC_UDP_ENGINE_WIRE_TEST_H
#define WF_NIC_UDP_ENGINE_WIRE_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/udp/engine/inner.h"

#define WIRE_NODES 2u
#define WIRE_PACKETS 4096u
#define WIRE_BYTES 8400u
#define WIRE_MSGS 1024u
#define WIRE_MSG_BYTES 8192u
#define WIRE_START (1000 * WF_NS_PER_S)
#define WIRE_DELAY (20 * WF_NS_PER_US)

struct wire;

/* A send of @len bytes that begin with its number. */
struct wire_op {
	struct wf_udp_op op; /* first */
	struct wire_node *node;
	unsigned number;
	int ends;
	enum wf_nic_status status;
	uint64_t ended_at;
	uint8_t bytes[WIRE_MSG_BYTES];
};

struct wire_node {
	struct wf_udp_engine engine; /* first */
	struct wf_nic_counters counters;
	struct wf_addr addr;
	struct wire *wire;
	struct wf_udp_peer *peer; /* the other one */
	struct wf_list ops;
	unsigned got[WIRE_MSGS]; /* how often each message came */
	unsigned order[WIRE_MSGS];
	unsigned count; /* of order */
	unsigned rnr;	/* so many are refused for want of a receive */
	bool full;	/* the socket takes nothing */
	bool local;	/* all addresses are of this host */
	bool off;	/* it does not run, and what comes is lost */
	bool deaf;	/* the same, but its socket keeps what comes */
	bool unreadable;
	uint32_t mtu;
};

struct wire_packet {
	uint64_t at;
	uint64_t number;
	unsigned to;
	uint32_t len;
	uint8_t bytes[WIRE_BYTES];
};

struct wire {
	uint64_t now;
	uint64_t number;
	struct wire_node node[WIRE_NODES];
	struct wire_packet *packets[WIRE_PACKETS];
	unsigned count;
	/* When the packet arrives; 0: never. NULL: after WIRE_DELAY. */
	uint64_t (*fate)(struct wire *wire, unsigned from,
			 const struct wf_udp_common *head, uint32_t len);
	uint64_t random;
	unsigned sent[WIRE_NODES][WF_UDP_TYPES];
	unsigned narrow; /* longer packets vanish */
};

static inline uint64_t wire_random(struct wire *wire)
{
	wire->random ^= wire->random << 13;
	wire->random ^= wire->random >> 7;
	wire->random ^= wire->random << 17;
	return wire->random;
}

static inline struct wire_node *wire_node_of(struct wf_udp_engine *engine)
{
	return (struct wire_node *)engine;
}

/* -- the port --------------------------------------------------------------- */

static inline int wire_send(struct wf_udp_engine *engine,
			    const struct wf_udp_packet *packet)
{
	struct wire_node *node = wire_node_of(engine);
	struct wire *wire = node->wire;
	unsigned from = (unsigned)(node - wire->node);
	struct wire_packet *p;
	uint64_t at;

	if (node->full) {
		wf_udp_engine_later(engine);
		return -EAGAIN;
	}
	assert_true(packet->head_len <= WF_UDP_HEAD_MOST);
	assert_true(packet->head_len + packet->len <= WIRE_BYTES);
	p = malloc(sizeof(*p));
	assert_non_null(p);
	memcpy(p->bytes, packet->head, packet->head_len);
	p->len = packet->head_len;
	for (unsigned i = 0; i < packet->pieces; i++) {
		memcpy(p->bytes + p->len, packet->iov[i].iov_base,
		       packet->iov[i].iov_len);
		p->len += (uint32_t)packet->iov[i].iov_len;
	}
	assert_int_equal(p->len, packet->head_len + packet->len);
	wire->sent[from][((struct wf_udp_common *)p->bytes)->type]++;
	at = wire->fate ? wire->fate(wire, from,
				     (struct wf_udp_common *)p->bytes, p->len) :
			  wire->now + WIRE_DELAY;
	if (!at || (wire->narrow && p->len > wire->narrow)) {
		free(p);
		return 0;
	}
	assert_true(wire->count < WIRE_PACKETS);
	p->at = at;
	p->number = wire->number++;
	p->to = !from;
	assert_true(wf_base_addr_equal(packet->to, &wire->node[p->to].addr));
	wire->packets[wire->count++] = p;
	return 0;
}

static inline void wire_flush(struct wf_udp_engine *engine)
{
	(void)engine;
}

static inline int wire_fetch(struct wf_udp_engine *engine,
			     const struct wf_udp_slot *slot, uint32_t off,
			     uint32_t len, struct wf_udp_data *head,
			     struct iovec iov[2])
{
	struct wire_op *op = (struct wire_op *)slot->op;

	head->imm = op->number;
	if (wire_node_of(engine)->unreadable)
		return -1;
	iov[0] = (struct iovec){ op->bytes + off, len };
	return len ? 1 : 0;
}

static inline enum wf_nic_status wire_place(struct wf_udp_engine *engine,
					    struct wf_udp_peer *peer,
					    const struct wf_udp_data *head,
					    const uint8_t *payload)
{
	struct wire_node *node = wire_node_of(engine);

	(void)peer;
	if (head->common.kind == WF_UDP_FILLER)
		return WF_NIC_OK;
	if (node->rnr) {
		node->rnr--;
		return WF_NIC_RNR;
	}
	/* A read is taken, and not answered. */
	assert_true(head->common.kind == WF_UDP_SEND ||
		    head->common.kind == WF_UDP_READ);
	assert_true(head->imm < WIRE_MSGS && node->count < WIRE_MSGS);
	for (uint32_t i = 0; i < head->len; i++)
		assert_int_equal(payload[i], (uint8_t)(head->imm + i));
	node->got[head->imm]++;
	node->order[node->count++] = head->imm;
	return WF_NIC_OK;
}

static inline void wire_ended(struct wf_udp_engine *engine,
			      struct wf_udp_op *op, enum wf_nic_status status)
{
	struct wire_op *mine = (struct wire_op *)op;

	mine->ends++;
	mine->status = status;
	mine->ended_at = wire_node_of(engine)->wire->now;
}

static inline uint32_t wire_mtu(struct wf_udp_engine *engine,
				const struct wf_addr *to)
{
	(void)to;
	return wire_node_of(engine)->mtu;
}

static inline bool wire_is_local(struct wf_udp_engine *engine,
				 const struct wf_addr *addr)
{
	(void)addr;
	return wire_node_of(engine)->local;
}

static const struct wf_udp_port wire_port = {
	.send = wire_send,
	.flush = wire_flush,
	.fetch = wire_fetch,
	.place = wire_place,
	.ended = wire_ended,
	.mtu = wire_mtu,
	.is_local = wire_is_local,
};

/* -- nodes ------------------------------------------------------------------ */

static inline void wire_start_node(struct wire *wire, unsigned at)
{
	struct wire_node *node = &wire->node[at];
	struct wf_udp_setup set = {
		.port = &wire_port,
		.counters = &node->counters,
		.secret = { wire_random(wire), wire_random(wire) },
		.dead_ns = 900 * WF_NS_PER_S,
		.connect_ns = 20 * WF_NS_PER_S,
		.max_peers = 16,
		.rcvbuf = 4u << 20,
	};

	memset(node, 0, sizeof(*node));
	node->wire = wire;
	node->mtu = 1472;
	node->addr.in.sin_family = AF_INET;
	node->addr.in.sin_addr.s_addr = htonl(0x0a000001u + at);
	node->addr.in.sin_port = htons(7000);
	wf_base_list_init(&node->ops);
	wf_udp_engine_init(&node->engine, wire->now, &set);
	node->engine.ready = true;
}

/* Each has a handle for the other. */
static inline void wire_join(struct wire *wire, unsigned at)
{
	struct wire_node *node = &wire->node[at];

	node->peer = wf_udp_engine_hold(&node->engine, wire->now,
					&wire->node[!at].addr);
	assert_non_null(node->peer);
}

static inline struct wire *wire_open(void)
{
	struct wire *wire = calloc(1, sizeof(*wire));

	assert_non_null(wire);
	wire->now = WIRE_START;
	wire->random = 88172645463325252ull;
	for (unsigned i = 0; i < WIRE_NODES; i++)
		wire_start_node(wire, i);
	for (unsigned i = 0; i < WIRE_NODES; i++)
		wire_join(wire, i);
	return wire;
}

static inline void wire_close(struct wire *wire)
{
	for (unsigned i = 0; i < WIRE_NODES; i++)
		wf_udp_engine_fini(&wire->node[i].engine);
	for (unsigned i = 0; i < wire->count; i++)
		free(wire->packets[i]);
	free(wire);
}

/* Message @number of @len bytes. */
static inline void wire_post(struct wire *wire, unsigned from,
			     struct wire_op *op, unsigned number, uint32_t len)
{
	struct wire_node *node = &wire->node[from];

	memset(op, 0, sizeof(*op));
	op->op.peer = node->peer;
	op->op.kind = WF_UDP_OP_SEND;
	op->op.rnr_retry = WF_NIC_RNR_FOREVER;
	op->op.len = len;
	op->number = number;
	for (uint32_t i = 0; i < len; i++)
		op->bytes[i] = (uint8_t)(number + i);
	wf_base_list_add_tail(&node->ops, &op->op.owner_link);
	wf_udp_engine_submit(&node->engine, wire->now, &op->op);
}

/* -- time ------------------------------------------------------------------- */

static inline struct wire_packet *wire_take(struct wire *wire)
{
	struct wire_packet *best = NULL;
	unsigned at = 0;

	for (unsigned i = 0; i < wire->count; i++) {
		struct wire_packet *p = wire->packets[i];

		if (p->at > wire->now || wire->node[p->to].deaf)
			continue;
		if (best && (best->at < p->at ||
			     (best->at == p->at && best->number < p->number)))
			continue;
		best = p;
		at = i;
	}
	if (best)
		wire->packets[at] = wire->packets[--wire->count];
	return best;
}

/* Does what happens now. */
static inline void wire_run(struct wire *wire)
{
	struct wire_packet *p;

	while ((p = wire_take(wire))) {
		struct wire_node *to = &wire->node[p->to];

		if (!to->off)
			wf_udp_engine_receive(&to->engine, wire->now,
					      &wire->node[!p->to].addr,
					      &to->addr, p->bytes, p->len);
		free(p);
	}
	for (unsigned i = 0; i < WIRE_NODES; i++) {
		if (!wire->node[i].off && !wire->node[i].deaf)
			wf_udp_engine_turn(&wire->node[i].engine, wire->now, 64,
					   64);
	}
}

static inline uint64_t wire_next(struct wire *wire)
{
	uint64_t next = WF_UDP_NEVER;

	for (unsigned i = 0; i < wire->count; i++) {
		if (wire->packets[i]->at < next &&
		    !wire->node[wire->packets[i]->to].deaf)
			next = wire->packets[i]->at;
	}
	for (unsigned i = 0; i < WIRE_NODES; i++) {
		uint64_t at = WF_UDP_NEVER;

		if (!wire->node[i].off && !wire->node[i].deaf)
			at = wf_udp_engine_next(&wire->node[i].engine,
						wire->now);
		if (at < next)
			next = at;
	}
	return next > wire->now ? next : wire->now + 1;
}

/* Until @op has ended, which it does before @until. */
static inline void wire_wait(struct wire *wire, const struct wire_op *op,
			     uint64_t until)
{
	while (!op->ends) {
		wire_run(wire);
		if (op->ends)
			break;
		wire->now = wire_next(wire);
		assert_true(wire->now <= until);
	}
	assert_int_equal(op->ends, 1);
}

/* Lets @ns pass. */
static inline void wire_pass(struct wire *wire, uint64_t ns)
{
	uint64_t until = wire->now + ns;

	while (wire->now < until) {
		uint64_t next;

		wire_run(wire);
		next = wire_next(wire);
		wire->now = next < until ? next : until;
	}
	wire_run(wire);
}

#define WIRE_COUNTED(node, name) wf_nic_counter(&(node)->counters.name)

#endif
