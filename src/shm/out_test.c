/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the sending end, with the receiving one beside it: every
 * protocol with every shape of buffers, the ring's wrap-around, credit, and
 * what happens when it is full.
 */
#include "shm/out.h"

#include <poll.h>
#include <pthread.h>

#include "shm/joined_test.h"
#include "shm/proto.h"
#include "shm/put.h"

/* -- the choice ------------------------------------------------------------ */

static void test_choice(void **state)
{
	static const struct {
		size_t len;
		const struct wf_shm_proto *plain, *ack;
	} cases[] = {
		{ 0, &wf_shm_proto_inline, &wf_shm_proto_eager },
		{ WF_SHM_INLINE_MAX, &wf_shm_proto_inline,
		  &wf_shm_proto_eager },
		{ WF_SHM_INLINE_MAX + 1, &wf_shm_proto_eager,
		  &wf_shm_proto_eager },
		{ 4096, &wf_shm_proto_eager, &wf_shm_proto_eager },
		{ 4097, &wf_shm_proto_chunked, &wf_shm_proto_chunked },
		{ 16384, &wf_shm_proto_chunked, &wf_shm_proto_chunked },
		{ 16385, &wf_shm_proto_parked, &wf_shm_proto_parked },
		{ (size_t)1 << 40, &wf_shm_proto_parked, &wf_shm_proto_parked },
	};
	struct joined *j = joined_open(WF_SHM_WAY_SELF);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wf_tx req = { .len = cases[i].len };
		struct wf_shm_tx tx;

		wf_shm_tx_init(&tx, &req);
		assert_ptr_equal(wf_shm_proto_choose(j->out, &tx),
				 cases[i].plain);
		req.delivery = true;
		wf_shm_tx_init(&tx, &req);
		assert_ptr_equal(wf_shm_proto_choose(j->out, &tx),
				 cases[i].ack);
		/* A peer that cannot acknowledge is not asked to. */
		j->out->features &= ~WF_SHM_FEATURE_ACK;
		assert_null(wf_shm_proto_choose(j->out, &tx));
		j->out->features |= WF_SHM_FEATURE_ACK;
	}
	joined_close(j);
}

/* -- every protocol -------------------------------------------------------- */

static const size_t lens[] = {
	0,
	1,
	2,
	3,
	7,
	8,
	15,
	16,
	31,
	32,
	33,
	39,
	40,
	41,
	63,
	64,
	65,
	WF_SHM_INLINE_MAX - 1,
	WF_SHM_INLINE_MAX,
	WF_SHM_INLINE_MAX + 1,
	2047,
	2048,
	2049,
	4095,
	4096,
	4097,
	8192,
	16383,
	16384,
	16385,
	40000,
};

static void every_shape(enum wf_shm_way way, size_t share_min)
{
	struct joined *j = joined_open(way);
	uint64_t tag = 0;

	j->to.attr.share_min = share_min;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (unsigned int shape = 0; shape < 64; shape++) {
			struct joined_case c = {
				.len = lens[i],
				.tx_parts = 1 + shape % 4,
				.rx_parts = 1 + shape / 4 % 4,
				.late = shape & 16,
				.ack = shape & 32,
			};

			joined_exchange(j, &c, ++tag);
		}
	}
	joined_close(j);
}

static void test_every_shape_same_process(void **state)
{
	(void)state;
	every_shape(WF_SHM_WAY_SELF, 0);
}

static void test_every_shape_cma(void **state)
{
	(void)state;
	every_shape(WF_SHM_WAY_CMA, SIZE_MAX);
}

static void test_every_shape_shared(void **state)
{
	(void)state;
	every_shape(WF_SHM_WAY_CMA, 1);
}

static void test_every_shape_streamed(void **state)
{
	(void)state;
	every_shape(WF_SHM_WAY_NONE, 0);
}

static void test_large(void **state)
{
	static const enum wf_shm_way ways[] = { WF_SHM_WAY_SELF, WF_SHM_WAY_CMA,
						WF_SHM_WAY_NONE };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct joined *j = joined_open(ways[i]);
		struct joined_case c = { ((size_t)1 << 20) + 77, 2, 3, false,
					 false };

		joined_exchange(j, &c, 1);
		c.len = (size_t)9 << 20; /* beyond one budget of a share */
		joined_exchange(j, &c, 2);
		joined_close(j);
	}
}

/* -- the fast path --------------------------------------------------------- */

static void test_put(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf from, to;
	struct wf_comp comp;
	uint64_t tag = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		if (lens[i] > WF_SHM_PUT_MAX)
			continue;
		for (int round = 0; round < 20; round++) {
			joined_alloc(&from, lens[i], 1);
			joined_alloc(&to, lens[i], 1);
			joined_fill(&from, ++tag);
			joined_post(j, &to, tag);
			assert_true(wf_shm_put(
				j->out, WF_SHM_SLOT_TAGGED | WF_SHM_SLOT_DATA,
				tag, ~tag, from.iov[0].iov_base, lens[i]));
			/* The caller's buffer is free at once. */
			memset(from.memory, 0, lens[i]);
			comp = joined_wait(j, &j->rxcq);
			joined_check_comp(&comp, tag, lens[i]);
			joined_check(&to, lens[i], tag);
			free(from.memory);
			free(to.memory);
		}
	}
	assert_int_equal(wf_op_compq_count(&j->txq), 0);
	joined_close(j);
}

/* Until the ring is full, and again once it has been read. */
static void test_put_until_full(void **state)
{
	static const size_t sizes[] = { 8, WF_SHM_INLINE_MAX + 1, 2048, 4096 };
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	uint8_t buf[4096] = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int round = 0; round < 5; round++) {
			uint32_t sent = 0;

			while (wf_shm_put(j->out, 0, 0, 0, buf, sizes[i]))
				assert_true(++sent <= 16);
			assert_true(sent >= 2);
			assert_false(
				wf_shm_put(j->out, 0, 0, 0, buf, sizes[i]));
			wf_core_progress(&j->to_core);
			assert_int_equal(j->rxq.msg.unexpected, sent);
			wf_match_rxq_fini(&j->rxq);
			wf_match_rxq_init(&j->rxq, &j->rxcq);
		}
	}
	joined_close(j);
}

/* -- the ring -------------------------------------------------------------- */

/* Lengths that leave every kind of rest at the end of the data area. */
static void test_data_wraps(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);

	(void)state;
	for (uint64_t tag = 1; tag < 3000; tag++) {
		struct joined_case c = {
			.len = (size_t)(tag * 2654435761u >> 7) % 5000,
			.tx_parts = 1 + tag % 2,
			.rx_parts = 1,
			.late = tag % 3 == 0,
		};

		joined_exchange(j, &c, tag);
	}
	assert_true(j->out->line_lap.head > 20 * j->out->line_lap.size);
	joined_close(j);
}

static void test_sequence_wraps(void **state)
{
	const uint32_t start = UINT32_MAX - 100;
	struct joined *j = joined_open(WF_SHM_WAY_NONE);

	(void)state;
	j->out->slot_lap.head = start;
	j->out->slot_lap.start = start;
	j->out->slot_lap.before = start;
	j->out->slots_done = start;
	j->in->next = start;
	j->in->credited = start;
	j->out->line_lap.head = UINT32_MAX - 4095;
	j->out->line_lap.start = UINT32_MAX - 4095;
	j->out->line_lap.before = UINT32_MAX - 4095;
	j->out->lines_done = UINT32_MAX - 4095;
	j->in->lines = UINT32_MAX - 4095;
	j->in->credited_lines = UINT32_MAX - 4095;
	atomic_store(&j->out->region.header->credit,
		     (uint64_t)(UINT32_MAX - 4095) << 32 | start);
	for (uint64_t tag = 1; tag < 400; tag++) {
		struct joined_case c = {
			.len = tag % 5 ? tag * 7 % 3000 : 20000,
			.tx_parts = 1,
			.rx_parts = 1,
			.ack = tag & 1,
		};

		joined_exchange(j, &c, tag);
	}
	assert_true(j->in->next < start);
	assert_true(j->in->lines < start);
	joined_close(j);
}

/* Names of operations go round, too. */
static void test_operation_names_wrap(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_case c = { 50, 1, 1, false, true };

	(void)state;
	j->out->waiting_turn = UINT32_MAX - 10;
	j->out->reply_tail = UINT32_MAX - 10;
	j->in->replies.head = UINT32_MAX - 10;
	j->in->replies.seen = UINT32_MAX - 10;
	j->out->region.header->replies_seen = UINT32_MAX - 10;
	for (uint64_t tag = 1; tag < 300; tag++)
		joined_exchange(j, &c, tag);
	joined_close(j);
}

/* As in a program that polls without a pause, however slow the machine is. */
static void poll_fast(struct wf_core *core)
{
	core->host.polls_per_clock = WF_HOST_POLLS_PER_CLOCK;
	core->host.rested = true;
}

/* The receiver tells of what it consumed now and then, not each time. */
static void test_credit_in_batches(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	_Atomic uint64_t *credit = &j->out->region.header->credit;
	struct joined_case c = { 8, 1, 1, false, false };
	uint64_t tag = 0, seen = 0;
	int returned = 0;

	(void)state;
	j->in->credit_slots = 4;
	j->to_core.host.polls = 0;
	for (int i = 0; i < 160; i++) {
		poll_fast(&j->to_core);
		joined_exchange(j, &c, ++tag);
		if (atomic_load(credit) == seen)
			continue;
		seen = atomic_load(credit);
		assert_in_range((uint32_t)seen, i / 2, i + 1);
		returned++;
	}
	assert_in_range(returned, 20, 80);
	/* Data lines count as well: three records of 2 KiB are a third. */
	c.len = 2048;
	joined_exchange(j, &c, ++tag);
	joined_exchange(j, &c, ++tag);
	joined_exchange(j, &c, ++tag);
	assert_int_not_equal(atomic_load(credit), seen);
	joined_close(j);
}

/* A receiver that claims to have consumed what was never sent. */
static void test_credit_is_checked(void **state)
{
	static const uint64_t lies[] = { 1, 1ull << 32, 17,
					 0x8000000080000000u };

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct joined *j = joined_open(WF_SHM_WAY_SELF);

		atomic_store(&j->out->region.header->credit, lies[i]);
		assert_false(wf_shm_out_refresh(j->out));
		assert_int_equal(j->out->state, WF_SHM_OUT_DEAD);
		assert_int_equal(j->out->err, EPROTO);
		assert_int_equal(j->out->slots_free, 0);
		joined_close(j);
	}
}

/* -- full ------------------------------------------------------------------ */

static void expect_in_order(struct joined *j, const struct joined_buf *bufs,
			    size_t count)
{
	struct wf_comp comp;

	for (size_t tag = 1; tag <= count; tag++) {
		comp = joined_wait(j, &j->rxcq);
		joined_check_comp(&comp, tag, bufs[tag].len);
		joined_check(&bufs[tag], bufs[tag].len, tag);
	}
	for (size_t tag = 1; tag <= count; tag++) {
		comp = joined_wait(j, &j->txq);
		assert_int_equal(joined_err(&comp), 0);
	}
}

/* Messages wait for room, the small ones behind the large ones. */
static void test_full_queues_in_order(void **state)
{
	enum { COUNT = 60 };
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf from[COUNT + 1], to[COUNT + 1];

	(void)state;
	for (uint64_t tag = 1; tag <= COUNT; tag++) {
		size_t len = tag % 7 == 0 ? 9000 : tag * 3;
		struct wf_tx tx;

		joined_alloc(&from[tag], len, 1 + tag % 4);
		joined_alloc(&to[tag], len, 1);
		joined_fill(&from[tag], tag);
		joined_post(j, &to[tag], tag);
		tx = joined_tx(&from[tag], tag);
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	}
	assert_false(wf_base_list_empty(&j->out->pending));
	/* The fast path must not overtake. */
	assert_false(wf_shm_put(j->out, 0, 0, 0, "x", 1));
	expect_in_order(j, to, COUNT);
	assert_true(wf_shm_put(j->out, 0, 0, 0, "x", 1));
	for (uint64_t tag = 1; tag <= COUNT; tag++) {
		free(from[tag].memory);
		free(to[tag].memory);
	}
	assert_int_equal(j->from.tx_pool.in_use, 0);
	joined_close(j);
}

/* Bug: while the queue of completions was full, a reply that could not be taken
 * kept the endpoint awake. And what waited for room in that queue alone was not
 * tried again once the application had read. */
static void test_full_completions_sleep(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct pollfd p = {
		.fd = j->from_core.host.loop.epoll_fd,
		.events = POLLIN,
	};
	struct joined_buf from, to;
	struct wf_tx tx;

	(void)state;
	joined_alloc(&from, 100, 1);
	joined_alloc(&to, 100, 1);
	joined_fill(&from, 1);
	joined_post(j, &to, 1);
	tx = joined_tx(&from, 1);
	tx.delivery = true;
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	assert_int_equal(j->out->waiting.count, 1);
	while (wf_op_compq_room(&j->txq))
		wf_op_compq_push_sent(&j->txq, NULL, 0);
	joined_wait(j, &j->rxcq);
	for (int i = 0; i < 100; i++)
		joined_drive(j);
	assert_int_equal(j->out->waiting.count, 1);
	assert_true(wf_shm_out_has_work(j->out)); /* the reply is there */
	assert_true(wf_core_sleep(&j->from_core));
	j->txq.tail = j->txq.head;
	assert_int_equal(poll(&p, 1, 60000), 1);
	for (int i = 0; i < 100; i++)
		wf_core_progress(&j->from_core);
	assert_int_equal(j->out->waiting.count, 0);
	free(from.memory);
	free(to.memory);
	joined_close(j);
}

/* The transmit depth is a hard limit; a refused operation leaves no trace. */
static void test_full_depth(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf from;
	struct wf_comp comp;
	int sent = 0, ret;

	(void)state;
	joined_alloc(&from, 100, 1);
	do {
		struct wf_tx tx = joined_tx(&from, 1);

		ret = wf_shm_out_send(j->out, &tx);
		sent += !ret;
	} while (!ret && sent < 1000);
	assert_int_equal(ret, -EAGAIN);
	assert_in_range(sent, 64, 64 + 16);
	for (int i = 0; i < sent; i++) {
		comp = joined_wait(j, &j->txq);
		assert_int_equal(joined_err(&comp), 0);
	}
	for (int i = 0; i < 100; i++)
		joined_drive(j);
	assert_int_equal(j->rxq.tagged.unexpected, sent);
	assert_int_equal(wf_op_compq_count(&j->txq), 0);
	free(from.memory);
	joined_close(j);
}

/* An injected message is taken whole or refused: nothing keeps the buffer. A
 * message that finds no room is copied, up to the transmit depth. Bug of
 * libfabric's shm: INJECT with DELIVERY_COMPLETE kept it. */
static void test_full_inject(void **state)
{
	for (int ack = 0; ack < 2; ack++) {
		struct joined *j = joined_open(WF_SHM_WAY_SELF);
		struct joined_buf from, to;
		uint64_t tag = 0;
		struct wf_comp comp;
		int ret = 0;

		(void)state;
		joined_alloc(&from, 4096, 3);
		while (!ret && tag < 100) {
			struct wf_tx tx = joined_tx(&from, tag + 1);

			tx.inject = true;
			tx.delivery = ack;
			joined_fill(&from, tag + 1);
			ret = wf_shm_out_send(j->out, &tx);
			memset(from.memory, 0, 4096 + 4 * JOINED_GAP);
			tag += !ret;
		}
		assert_int_equal(ret, -EAGAIN);
		assert_true(tag >= j->from.tx_pool.limit);
		assert_true(wf_shm_out_holds_copies(j->out));
		joined_alloc(&to, 4096, 1);
		for (uint64_t i = 1; i <= tag; i++) {
			memset(to.memory, JOINED_GAP_BYTE, 4096);
			joined_post(j, &to, i);
			comp = joined_wait(j, &j->rxcq);
			joined_check_comp(&comp, i, 4096);
			joined_check(&to, 4096, i);
			comp = joined_wait(j, &j->txq);
			assert_int_equal(joined_err(&comp), 0);
		}
		free(from.memory);
		free(to.memory);
		joined_close(j);
	}
}

/* Bug: copies of injected messages that waited for a peer which left were
 * dropped without a word. They have no completion, but their failure has. */
static void test_copies_of_a_lost_peer(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf from;
	struct wf_comp comp;
	uint32_t copies = 0;

	(void)state;
	joined_alloc(&from, 4096, 1);
	while (copies < 3) {
		struct wf_tx tx = joined_tx(&from, 1);

		tx.inject = true;
		tx.wants_comp = false;
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
		copies = j->from.tx_pool.in_use;
	}
	assert_int_equal(wf_op_compq_count(&j->txq), 0);
	wf_shm_out_fail_all(j->out, FI_ECONNRESET);
	for (uint32_t i = 0; i < copies; i++) {
		assert_true(joined_pop(&j->txq, &comp));
		assert_int_equal(joined_err(&comp), FI_ECONNRESET);
	}
	assert_int_equal(wf_op_compq_count(&j->txq), 0);
	assert_int_equal(j->from.tx_pool.in_use, 0);
	free(from.memory);
	joined_close(j);
}

/* A copy that waits when the endpoint is closed still goes if somebody reads;
 * if not, closing does not take for ever. */
static void *read_slowly(void *arg)
{
	struct joined *j = arg;

	for (int i = 0; i < 200; i++) {
		wf_core_progress(&j->to_core);
		usleep(500);
	}
	return NULL;
}

static void test_close_with_copies(void **state)
{
	const struct wf_shm_ep_attr attr = joined_attr();
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf from;
	pthread_t thread;

	(void)state;
	joined_alloc(&from, 64, 1);
	for (uint64_t tag = 1; tag <= 50; tag++) {
		struct wf_tx tx = joined_tx(&from, tag);

		tx.inject = true;
		tx.wants_comp = false;
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	}
	assert_true(wf_shm_out_holds_copies(j->out));
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, j), 0);
	wf_core_close(&j->from_core);
	pthread_join(thread, NULL);
	assert_int_equal(j->rxq.tagged.unexpected, 50);
	joined_open_ep(&j->from_core, &j->from,
		       joined_host(&j->txq, &j->unused, &j->regs), &attr);
	free(from.memory);
	joined_close(j);
}

/* More operations that wait than the ring of replies or the shares hold. */
static void test_many_parked(void **state)
{
	enum { COUNT = 200 };
	static const enum wf_shm_way ways[] = { WF_SHM_WAY_SELF, WF_SHM_WAY_CMA,
						WF_SHM_WAY_NONE };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct joined *j = joined_open(ways[i]);
		struct joined_buf from[COUNT + 1], to[COUNT + 1];

		j->to.attr.share_min = 1;
		j->from.tx_pool.limit = COUNT;
		for (uint64_t tag = 1; tag <= COUNT; tag++) {
			struct wf_tx tx;

			joined_alloc(&from[tag], 20000 + tag, 2);
			joined_alloc(&to[tag], 20000 + tag, 1);
			joined_fill(&from[tag], tag);
			tx = joined_tx(&from[tag], tag);
			assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
		}
		for (int k = 0; k < 100; k++)
			joined_drive(j);
		assert_int_equal(j->out->waiting.count, COUNT);
		assert_int_equal(wf_op_compq_count(&j->txq), 0);
		for (uint64_t tag = 1; tag <= COUNT; tag++)
			joined_post(j, &to[tag], tag);
		for (uint64_t tag = 1; tag <= 2 * COUNT; tag++) {
			struct wf_comp comp;

			comp = joined_wait(j,
					   tag <= COUNT ? &j->rxcq : &j->txq);
			assert_int_equal(joined_err(&comp), 0);
		}
		for (uint64_t tag = 1; tag <= COUNT; tag++) {
			joined_check(&to[tag], to[tag].len, tag);
			free(from[tag].memory);
			free(to[tag].memory);
		}
		assert_int_equal(j->out->waiting.count, 0);
		joined_close(j);
	}
}

/* Bug: a sender that reads no replies while its messages are acknowledged one
 * by one lost those that had no room in the ring of replies. */
static void test_many_acked(void **state)
{
	enum { COUNT = 400 };
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf from, to;

	(void)state;
	joined_alloc(&from, 100, 1);
	joined_alloc(&to, 100, 1);
	joined_fill(&from, 1);
	j->from.tx_pool.limit = COUNT;
	for (uint64_t tag = 1; tag <= COUNT; tag++) {
		struct wf_tx tx = joined_tx(&from, tag);

		tx.delivery = true;
		joined_post(j, &to, tag);
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
		wf_core_progress(&j->to_core);
		wf_shm_out_push(j->out);
	}
	for (uint64_t tag = 1; tag <= 2 * COUNT; tag++) {
		struct wf_comp comp =
			joined_wait(j, tag <= COUNT ? &j->rxcq : &j->txq);

		assert_int_equal(joined_err(&comp), 0);
	}
	assert_int_equal(j->out->waiting.count, 0);
	assert_int_equal(j->out->state, WF_SHM_OUT_OPEN);
	free(from.memory);
	free(to.memory);
	joined_close(j);
}

/* -- the end --------------------------------------------------------------- */

static void test_fail_all(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf small, large;
	struct wf_comp comp;
	struct wf_tx tx;

	(void)state;
	joined_alloc(&small, 2000, 1);
	joined_alloc(&large, 30000, 1);
	tx = joined_tx(&large, 1);
	tx.wants_comp = false; /* failures are told all the same */
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	for (uint64_t tag = 2; tag < 20; tag++) {
		tx = joined_tx(&small, tag);
		assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
	}
	wf_shm_out_fail_all(j->out, ECONNRESET);
	for (uint64_t tag = 1; joined_pop(&j->txq, &comp); tag++) {
		int err = joined_err(&comp);

		assert_true(!err || err == ECONNRESET);
	}
	assert_int_equal(j->from.tx_pool.in_use, 0);
	assert_int_equal(j->out->waiting.count, 0);
	free(small.memory);
	free(large.memory);
	joined_close(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_every_shape_same_process),
		cmocka_unit_test(test_every_shape_cma),
		cmocka_unit_test(test_every_shape_shared),
		cmocka_unit_test(test_every_shape_streamed),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_put),
		cmocka_unit_test(test_put_until_full),
		cmocka_unit_test(test_data_wraps),
		cmocka_unit_test(test_sequence_wraps),
		cmocka_unit_test(test_operation_names_wrap),
		cmocka_unit_test(test_credit_in_batches),
		cmocka_unit_test(test_credit_is_checked),
		cmocka_unit_test(test_full_queues_in_order),
		cmocka_unit_test(test_full_completions_sleep),
		cmocka_unit_test(test_full_depth),
		cmocka_unit_test(test_full_inject),
		cmocka_unit_test(test_copies_of_a_lost_peer),
		cmocka_unit_test(test_close_with_copies),
		cmocka_unit_test(test_many_parked),
		cmocka_unit_test(test_many_acked),
		cmocka_unit_test(test_fail_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
