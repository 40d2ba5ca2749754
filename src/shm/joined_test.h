/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For unit tests: a sending and a receiving end over one region, joined
 * directly in this process without a socket in between, and messages through
 * them whose bytes are checked.
 */
#ifndef WF_SHM_JOINED_TEST_H
#define WF_SHM_JOINED_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cmocka.h>

#include "core/core.h"
#include "shm/channels.h"
#include "shm/early.h"
#include "shm/ep.h"
#include "shm/tx.h"

#define JOINED_SLOTS_LOG2 4 /* 16 slots and ... */
#define JOINED_LINES_LOG2 8 /* ... 16 KiB: both wrap soon */
#define JOINED_SRC 3	    /* the sender's name at the receiver */

struct joined {
	struct wf_compq txq, rxcq;
	struct wf_rxq rxq, unused;
	struct wf_core from_core, to_core; /* drive these: */
	struct wf_shm_ep from, to;
	struct wf_regs regs; /* of the receiver */
	struct wf_shm_out *out;
	struct wf_shm_in *in;
};

static inline int joined_get(void *arg, uint64_t name, struct wf_addr *addr)
{
	(void)arg;
	(void)name;
	(void)addr;
	return -ENOENT;
}

static inline uint64_t joined_find(void *arg, const struct wf_addr *addr)
{
	(void)arg;
	(void)addr;
	return WF_MATCH_ANY;
}

static inline struct wf_shm_ep_attr joined_attr(void)
{
	return (struct wf_shm_ep_attr){
		.name_fd = -1,
		.eager_max = 16384,
		.cma_min = SIZE_MAX,
		.share_min = 65536,
		.chunk = 2048,
		.connect_timeout_ms = 1000,
		.dead_timeout_s = 1,
		.slots_log2 = JOINED_SLOTS_LOG2,
		.lines_log2 = JOINED_LINES_LOG2,
		.cma = true,
	};
}

static inline struct wf_host
joined_host(struct wf_compq *txq, struct wf_rxq *rxq, struct wf_regs *regs)
{
	return (struct wf_host){
		.tx_size = 64,
		.txq = txq,
		.rxq = rxq,
		.regs = regs,
		.is_target = true,
		.names = { .get = joined_get, .find = joined_find },
	};
}

/* A core with shared memory alone. */
static inline int joined_open_at(struct wf_core *core, struct wf_shm_ep *ep,
				 const struct wf_host *host,
				 const struct wf_shm_ep_attr *attr)
{
	struct wf_way *way;
	int err;

	wf_core_init(core, false);
	assert_int_equal(wf_core_open(core, host), 0);
	way = wf_core_add(core, &wf_shm_transport, ep);
	err = wf_shm_ep_open(ep, attr, &core->host, way);
	if (err) {
		core->way_count = 0;
		wf_core_close(core);
	}
	return err;
}

/* The core that drives @ep. */
static inline struct wf_core *joined_core(const struct wf_shm_ep *ep)
{
	return wf_container_of(ep->host, struct wf_core, host);
}

/* With any address whose name is free. */
static inline void joined_open_ep(struct wf_core *core, struct wf_shm_ep *ep,
				  struct wf_host host,
				  const struct wf_shm_ep_attr *attr)
{
	static uint16_t port;
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int err;

	do {
		sin.sin_addr.s_addr =
			htonl(INADDR_LOOPBACK + ((uint32_t)getpid() & 0xffff));
		sin.sin_port = htons(++port);
		wf_base_addr_set(&host.addr, &sin, sizeof(sin));
		err = joined_open_at(core, ep, &host, attr);
	} while (err == -EADDRINUSE);
	assert_int_equal(err, 0);
}

/* The next message to the peer 0 takes a ring, as if one had gone before. */
static inline void joined_meet(struct wf_shm_ep *ep)
{
	assert_null(ep->outs);
	ep->outs = calloc(1, sizeof(*ep->outs));
	ep->met = calloc(1, sizeof(*ep->met));
	assert_non_null(ep->outs);
	assert_non_null(ep->met);
	ep->out_count = 1;
	ep->met[0] = true;
}

/* Both ends are in this process: its own guard page stands for the peer's. */
static inline void joined_mover(struct wf_shm_mover *mover, enum wf_shm_way way)
{
	uint64_t addr, value;

	wf_shm_mover_own_probe(&addr, &value);
	wf_shm_mover_open(mover, getpid(), ~value, addr, value, true);
	mover->way = way;
}

/* @way: how the receiver gets at parked messages. */
static inline struct joined *joined_open_sized(enum wf_shm_way way,
					       unsigned int slots_log2,
					       unsigned int lines_log2)
{
	struct joined *j = calloc(1, sizeof(*j));
	const struct wf_shm_ep_attr attr = joined_attr();
	struct wf_addr nobody = { 0 };
	struct wf_shm_region region;
	int memfd;

	assert_non_null(j);
	assert_int_equal(wf_op_compq_init(&j->txq, 64, false), 0);
	assert_int_equal(wf_op_compq_init(&j->rxcq, 64, false), 0);
	wf_match_rxq_init(&j->rxq, &j->rxcq);
	wf_match_rxq_init(&j->unused, &j->txq);
	assert_int_equal(wf_op_regs_open(&j->regs, false), 0);
	joined_open_ep(&j->from_core, &j->from,
		       joined_host(&j->txq, &j->unused, &j->regs), &attr);
	joined_open_ep(&j->to_core, &j->to,
		       joined_host(&j->txq, &j->rxq, &j->regs), &attr);
	j->out = wf_shm_out_open(&j->from, 0, &nobody);
	assert_non_null(j->out);
	assert_int_equal(wf_shm_region_create(&j->out->region, slots_log2,
					      lines_log2, &memfd),
			 0);
	assert_int_equal(
		wf_shm_region_map(&region, memfd, slots_log2, lines_log2), 0);
	close(memfd);
	j->in = wf_shm_in_open(&j->to, &region, -1, &nobody, JOINED_SRC);
	assert_non_null(j->in);
	assert_int_equal(wf_shm_channels_add_in(&j->to, j->in), 0);
	joined_mover(&j->in->mover, way);
	j->out->mover = j->in->mover;
	j->out->features = WF_SHM_FEATURES;
	j->out->bell = j->in->bell;
	assert_int_equal(wf_shm_board_map(&j->out->board, j->to.board.memfd),
			 0);
	assert_int_equal(wf_op_reg_map(&j->out->regs.view, j->regs.memfd), 0);
	wf_shm_early_begin(j->out);
	wf_shm_out_opened(j->out);
	return j;
}

static inline struct joined *joined_open(enum wf_shm_way way)
{
	return joined_open_sized(way, JOINED_SLOTS_LOG2, JOINED_LINES_LOG2);
}

static inline void joined_close(struct joined *j)
{
	wf_core_close(&j->from_core);
	wf_core_close(&j->to_core);
	wf_op_regs_close(&j->regs);
	wf_match_rxq_fini(&j->rxq);
	wf_match_rxq_fini(&j->unused);
	wf_op_compq_fini(&j->txq);
	wf_op_compq_fini(&j->rxcq);
	free(j);
}

static inline void joined_drive(struct joined *j)
{
	wf_core_progress(&j->to_core);
	wf_core_progress(&j->from_core);
}

static inline bool joined_pop(struct wf_compq *q, struct wf_comp *comp)
{
	*comp = (struct wf_comp){ 0 };
	if (!wf_op_compq_count(q))
		return false;
	*comp = q->ring[q->tail & q->mask];
	q->tail++;
	return true;
}

/* Drives both ends until @q has a completion. */
static inline struct wf_comp joined_wait(struct joined *j, struct wf_compq *q)
{
	struct wf_comp comp = { 0 };

	for (int i = 0; i < 100000; i++) {
		if (joined_pop(q, &comp))
			return comp;
		joined_drive(j);
	}
	fail_msg("no completion");
	return comp;
}

/* The code of a failure, or 0. */
static inline int joined_err(const struct wf_comp *comp)
{
	return wf_op_comp_err(comp);
}

/* -- buffers --------------------------------------------------------------- */

/* A buffer in up to four parts that lie apart. */
struct joined_buf {
	uint8_t *memory;
	size_t len;
	struct iovec iov[WF_OP_IOV_MAX];
	uint32_t count;
};

/* The 8 bytes of @word. */
static inline struct joined_buf joined_word(uint64_t *word)
{
	return (struct joined_buf){
		.len = sizeof(*word),
		.count = 1,
		.iov[0] = { word, sizeof(*word) },
	};
}

#define JOINED_GAP 16
#define JOINED_GAP_BYTE 0xee

static inline void joined_alloc(struct joined_buf *b, size_t len,
				uint32_t count)
{
	size_t room = len + WF_OP_IOV_MAX * JOINED_GAP;
	size_t left = len, at = 0;

	b->memory = malloc(room);
	assert_non_null(b->memory);
	memset(b->memory, JOINED_GAP_BYTE, room);
	b->len = len;
	b->count = count;
	for (uint32_t i = 0; i < count; i++) {
		/* Parts of different sizes; some are empty. */
		size_t part = i + 1 == count ? left : left * (i + 1) / 5;

		b->iov[i] = (struct iovec){ b->memory + at, part };
		at += part + JOINED_GAP;
		left -= part;
	}
}

static inline uint8_t joined_byte(uint64_t seed, size_t at)
{
	return (uint8_t)((seed * 0x9e3779b1u + at) * 0x85ebca6bu >> 24);
}

static inline void joined_fill(const struct joined_buf *b, uint64_t seed)
{
	size_t at = 0;

	for (uint32_t i = 0; i < b->count; i++) {
		uint8_t *bytes = b->iov[i].iov_base;

		for (size_t k = 0; k < b->iov[i].iov_len; k++)
			bytes[k] = joined_byte(seed, at++);
	}
}

/* The first @len bytes are those of @seed, and nothing else was touched. */
static inline void joined_check(const struct joined_buf *b, size_t len,
				uint64_t seed)
{
	size_t at = 0;

	for (uint32_t i = 0; i < b->count; i++) {
		const uint8_t *bytes = b->iov[i].iov_base;
		size_t end = b->iov[i].iov_len;

		for (size_t k = 0; k < end + JOINED_GAP; k++) {
			bool inside = k < end && at < len;
			uint8_t want = inside ? joined_byte(seed, at++) :
						JOINED_GAP_BYTE;

			if (bytes[k] != want)
				fail_msg("byte %zu of part %u (%zu in all)", k,
					 i, b->len);
		}
	}
}

/* -- messages -------------------------------------------------------------- */

static inline void joined_post(struct joined *j, const struct joined_buf *b,
			       uint64_t tag)
{
	struct wf_rx *rx = wf_base_pool_get(&j->rxq.pool);

	assert_non_null(rx);
	*rx = (struct wf_rx){
		.tag = tag,
		.src = WF_MATCH_ANY,
		.context = (void *)(uintptr_t)tag,
		.flags = FI_RECV | FI_TAGGED,
		.len = b->len,
		.iov_count = b->count,
		.plain = b->count == 1,
		.wants_comp = true,
		.tagged = true,
	};
	memcpy(rx->iov, b->iov, sizeof(rx->iov));
	wf_match_rxq_post(&j->rxq, rx);
}

static inline struct wf_tx joined_tx(const struct joined_buf *b, uint64_t tag)
{
	struct wf_tx tx = {
		.context = (void *)(uintptr_t)tag,
		.comp_flags = FI_SEND | FI_TAGGED,
		.tag = tag,
		.data = ~tag,
		.len = b->len,
		.tagged = true,
		.has_data = true,
		.wants_comp = true,
		.iov_count = b->count,
	};

	memcpy(tx.iov, b->iov, sizeof(tx.iov));
	return tx;
}

static inline void joined_check_comp(const struct wf_comp *comp, uint64_t tag,
				     size_t len)
{
	assert_int_equal(comp->failure, 0);
	assert_ptr_equal(comp->context, (void *)(uintptr_t)tag);
	assert_int_equal(comp->flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
	assert_int_equal(comp->tag, tag);
	assert_int_equal(comp->data, ~tag);
	assert_int_equal(comp->len, len);
	assert_int_equal(comp->src, JOINED_SRC);
}

/* How a message goes through in joined_exchange(). */
struct joined_case {
	size_t len;
	uint32_t tx_parts;
	uint32_t rx_parts;
	bool late; /* the receive is posted when the message is there */
	bool ack;  /* the sender wants to know of the delivery */
};

static inline void joined_exchange(struct joined *j,
				   const struct joined_case *c, uint64_t tag)
{
	struct joined_buf from, to;
	struct wf_tx tx;
	struct wf_comp comp;

	joined_alloc(&from, c->len, c->tx_parts);
	joined_alloc(&to, c->len, c->rx_parts);
	joined_fill(&from, tag);
	tx = joined_tx(&from, tag);
	if (c->ack)
		tx.delivery = true;
	if (!c->late)
		joined_post(j, &to, tag);
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	if (c->late) {
		for (int i = 0; i < 20; i++)
			joined_drive(j);
		assert_int_equal(wf_op_compq_count(&j->rxcq), 0);
		if (c->ack)
			assert_int_equal(wf_op_compq_count(&j->txq), 0);
		joined_post(j, &to, tag);
	}
	comp = joined_wait(j, &j->rxcq);
	joined_check_comp(&comp, tag, c->len);
	joined_check(&to, c->len, tag);
	comp = joined_wait(j, &j->txq);
	assert_int_equal(joined_err(&comp), 0);
	assert_ptr_equal(comp.context, (void *)(uintptr_t)tag);
	assert_int_equal(comp.flags, FI_SEND | FI_TAGGED);
	assert_false(j->in->broken);
	assert_int_equal(j->rxq.pool.in_use, 0);
	assert_int_equal(j->from.tx_pool.in_use, 0);
	free(from.memory);
	free(to.memory);
}

#endif
