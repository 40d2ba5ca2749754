/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the receiving end: messages without a receive, what is kept
 * and what is lost when the sender goes, and slots that must not be taken for
 * what they are not.
 */
#include "shm/in.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "shm/joined_test.h"
#include "shm/put.h"

static void send_plain(struct joined *j, const struct joined_buf *b,
		       uint64_t tag, bool ack)
{
	struct wf_tx tx = joined_tx(b, tag);

	tx.delivery = ack;
	joined_fill(b, tag);
	assert_int_equal(wf_shm_out_send(j->out, &tx), 0);
}

static void expect_sent(struct joined *j, uint64_t tag)
{
	struct wf_comp comp = joined_wait(j, &j->txq);

	assert_int_equal(joined_err(&comp), 0);
	assert_ptr_equal(comp.context, (void *)(uintptr_t)tag);
}

static void discard(struct joined *j, uint64_t tag)
{
	struct wf_match *m = &j->rxq.tagged;
	struct wf_ux *ux = wf_match_find_ux(m, tag, 0, WF_MATCH_ANY);

	assert_non_null(ux);
	wf_match_unpark(m, ux);
	ux->ops->discard(ux);
}

/* -- stale markers (seed 002) ---------------------------------------------- */

/* Every slot is first used by messages whose slots hold all there is to hold;
 * later messages must not inherit anything from them. */
static void test_no_marker_survives(void **state)
{
	static const size_t lens[] = {
		0, 8, WF_SHM_INLINE_MAX, WF_SHM_INLINE_MAX + 1, 2048, 4096
	};
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_case loud[] = { { 30000, 3, 1, false, true },
				      { 5000, 1, 1, false, true },
				      { 40, 1, 1, false, true } };
	uint64_t tag = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint32_t replies;
		uint8_t buf[4096];

		for (int k = 0; k < 48; k++)
			joined_exchange(j, &loud[k % 3], ++tag);
		replies = j->in->replies.head;
		memset(buf, 0xff, sizeof(buf));
		/* By the fast path, unexpected, plain and without data. */
		for (int k = 0; k < 48; k++) {
			struct wf_ux *ux;

			assert_true(wf_shm_put(j->out, 0, 0, 0, buf, lens[i]));
			joined_drive(j);
			ux = wf_match_find_ux(&j->rxq.msg, 0, 0, WF_MATCH_ANY);
			assert_non_null(ux);
			assert_int_equal(ux->len, lens[i]);
			assert_int_equal(ux->flags, 0);
			assert_int_equal(ux->data, 0);
			wf_match_unpark(&j->rxq.msg, ux);
			ux->ops->discard(ux);
		}
		assert_int_equal(j->in->replies.head, replies);
		assert_int_equal(wf_op_compq_count(&j->txq), 0);
	}
	joined_close(j);
}

/* A trial of ways ends though no message finds its receive posted. */
static void test_trial_of_unexpected_ends(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	static uint8_t buf[2048];

	(void)state;
	j->in->pace.told = WF_SHM_WAYS_STAMP;
	j->in->pace.kind = (uint8_t)wf_shm_pace_kind(sizeof(buf));
	j->in->pace.used = WF_SHM_PACE_RING;
	for (int i = 0; i < 2048; i++) {
		struct wf_ux *ux;

		assert_true(wf_shm_put(j->out, 0, 0, 0, buf, sizeof(buf)));
		joined_drive(j);
		ux = wf_match_find_ux(&j->rxq.msg, 0, 0, WF_MATCH_ANY);
		assert_non_null(ux);
		wf_match_unpark(&j->rxq.msg, ux);
		ux->ops->discard(ux);
	}
	assert_false(j->in->pace.told & WF_SHM_WAYS_STAMP);
	joined_close(j);
}

/* Payload that looks like the slots to come lies where no slot is read. */
static void test_payload_is_no_slot(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct wf_shm_slot fake[2048 / sizeof(struct wf_shm_slot)];

	(void)state;
	for (int i = 0; i < 200; i++) {
		for (uint32_t k = 0; k < sizeof(fake) / sizeof(fake[0]); k++) {
			fake[k] = (struct wf_shm_slot){ .tag = 99 };
			atomic_store(&fake[k].word,
				     WF_SHM_WORD(j->out->slot_lap.head + 1 + k,
						 0, WF_SHM_KIND_PARKED, 0));
		}
		assert_true(wf_shm_put(j->out, 0, 0, 0, fake, sizeof(fake)));
		for (int k = 0; k < 3; k++)
			joined_drive(j);
		assert_false(j->in->broken);
		assert_int_equal(j->rxq.msg.unexpected, i + 1);
		assert_int_equal(j->in->next, i + 1);
	}
	joined_close(j);
}

/* -- unexpected messages --------------------------------------------------- */

/* Far more than the ring holds, and nobody receives: seed 002 lost such
 * messages, libfabric's shm stalled. */
static void test_flood_of_unexpected(void **state)
{
	enum { COUNT = 2000 };
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf to;

	(void)state;
	for (uint64_t tag = 1; tag <= COUNT; tag++) {
		struct joined_buf from;

		joined_alloc(&from, tag * 37 % 3000, 1);
		send_plain(j, &from, tag, false);
		expect_sent(j, tag);
		free(from.memory);
	}
	while (j->rxq.tagged.unexpected < COUNT)
		joined_drive(j);
	for (uint64_t tag = 1; tag <= COUNT; tag++) {
		struct wf_comp comp;

		joined_alloc(&to, tag * 37 % 3000, 1 + tag % 4);
		joined_post(j, &to, tag);
		assert_true(joined_pop(&j->rxcq, &comp));
		joined_check_comp(&comp, tag, to.len);
		joined_check(&to, to.len, tag);
		free(to.memory);
	}
	assert_int_equal(j->rxq.tagged.unexpected, 0);
	joined_close(j);
}

/* A receive is posted when a part of the message is there. */
static void test_matched_half_way(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf from, to;
	struct wf_comp comp;

	(void)state;
	joined_alloc(&from, 16000, 1);
	joined_alloc(&to, 16000, 3);
	send_plain(j, &from, 1, true);
	assert_int_equal(wf_shm_in_poll(j->in, 2), 2);
	joined_post(j, &to, 1);
	assert_int_equal(wf_op_compq_count(&j->rxcq), 0);
	comp = joined_wait(j, &j->rxcq);
	joined_check_comp(&comp, 1, 16000);
	joined_check(&to, 16000, 1);
	expect_sent(j, 1);
	free(from.memory);
	free(to.memory);
	joined_close(j);
}

/* A message is discarded when a part of it is there and the sender waits for
 * the word of its delivery: the rest of the message must come, or the channel
 * is out of step. (The sender once stopped in the middle.) */
static void test_discarded_half_way(void **state)
{
	struct joined_case next = { 5000, 1, 1, false, true };

	(void)state;
	for (int ack = 0; ack < 2; ack++) {
		struct joined *j = joined_open(WF_SHM_WAY_SELF);
		struct joined_buf small, large;

		joined_alloc(&small, WF_SHM_INLINE_MAX + 1, 1);
		joined_alloc(&large, 16384, 1);
		/* The small one takes the room of the last record. */
		send_plain(j, &small, 1, false);
		send_plain(j, &large, 2, ack);
		assert_int_equal(wf_shm_in_poll(j->in, 2), 2);
		assert_false(wf_base_list_empty(&j->out->pending));
		discard(j, 2);
		expect_sent(j, 1);
		expect_sent(j, 2);
		joined_exchange(j, &next, 3);
		assert_int_equal(j->rxq.tagged.unexpected, 1);
		free(small.memory);
		free(large.memory);
		joined_close(j);
	}
}

/* Bug of libfabric's shm: a discarded message never completed at the sender. */
static void test_discarded_completes(void **state)
{
	static const size_t lens[] = { 0, 30, 1000, 5000, 20000, 1 << 20 };
	static const enum wf_shm_way ways[] = { WF_SHM_WAY_SELF,
						WF_SHM_WAY_NONE };

	(void)state;
	for (int w = 0; w < 2; w++) {
		struct joined *j = joined_open(ways[w]);

		for (uint64_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct joined_buf from;

			joined_alloc(&from, lens[i], 2);
			send_plain(j, &from, i + 1, true);
			for (int k = 0; k < 20; k++)
				joined_drive(j);
			assert_int_equal(wf_op_compq_count(&j->txq), 0);
			discard(j, i + 1);
			expect_sent(j, i + 1);
			free(from.memory);
		}
		joined_close(j);
	}
}

/* A full completion queue stops the ring; nothing is lost. */
static void test_full_queue_stops_the_ring(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct wf_comp filler = { .data = 1 }, comp;
	struct joined_buf from, to;

	(void)state;
	joined_alloc(&from, 100, 1);
	joined_alloc(&to, 100, 1);
	while (wf_op_compq_room(&j->rxcq))
		wf_op_compq_push(&j->rxcq, &filler);
	joined_post(j, &to, 1);
	send_plain(j, &from, 1, false);
	for (int i = 0; i < 20; i++)
		joined_drive(j);
	assert_int_equal(j->in->next, 0);
	for (int i = 0; i < 10; i++)
		joined_pop(&j->rxcq, &comp);
	joined_drive(j);
	assert_int_equal(j->in->next, 1);
	do
		assert_true(joined_pop(&j->rxcq, &comp));
	while (comp.data == 1);
	joined_check_comp(&comp, 1, 100);
	free(from.memory);
	free(to.memory);
	joined_close(j);
}

/* -- truncation ------------------------------------------------------------ */

static void test_truncation(void **state)
{
	static const size_t lens[] = { 1,    40,    41,	   2048,
				       2049, 16384, 16385, 300000 };
	static const enum wf_shm_way ways[] = { WF_SHM_WAY_SELF, WF_SHM_WAY_CMA,
						WF_SHM_WAY_NONE };
	uint64_t tag = 0;

	(void)state;
	for (int way = 0; way < 3; way++) {
		struct joined *j = joined_open(ways[way]);

		for (unsigned int i = 0; i < 8 * 3 * 2; i++) {
			size_t len = lens[i % 8];
			size_t room[] = { 0, len / 2, len - 1 };
			struct joined_buf from, to;
			struct wf_comp comp;

			joined_alloc(&from, len, 1);
			joined_alloc(&to, room[i / 8 % 3], 2);
			if (i < 24)
				joined_post(j, &to, ++tag);
			send_plain(j, &from, i < 24 ? tag : ++tag, false);
			for (int k = 0; k < 20; k++)
				joined_drive(j);
			if (i >= 24)
				joined_post(j, &to, tag);
			comp = joined_wait(j, &j->rxcq);
			assert_int_equal(comp.len, to.len);
			assert_int_equal(comp.tag, tag);
			assert_int_equal(wf_op_comp_olen(&comp), len - to.len);
			assert_int_equal(joined_err(&comp), FI_ETRUNC);
			joined_check(&to, to.len, tag);
			/* The sender has done nothing wrong. */
			expect_sent(j, tag);
			free(from.memory);
			free(to.memory);
		}
		joined_close(j);
	}
}

/* -- the sender goes ------------------------------------------------------- */

static void lose_sender(struct joined *j)
{
	j->in->ended = true;
	j->to.reap = true;
	for (int i = 0; i < 20; i++)
		wf_core_progress(&j->to_core);
	assert_int_equal(j->to.watch.count, 0);
	j->in = NULL;
}

static void test_arrived_messages_kept(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_buf from, to;
	struct wf_comp comp;

	(void)state;
	joined_alloc(&from, 3000, 1);
	joined_alloc(&to, 3000, 1);
	send_plain(j, &from, 1, false);
	wf_core_progress(&j->to_core);
	/* Still in the ring when the end is seen. */
	send_plain(j, &from, 2, true);
	lose_sender(j);
	for (uint64_t tag = 1; tag <= 2; tag++) {
		joined_post(j, &to, tag);
		assert_true(joined_pop(&j->rxcq, &comp));
		joined_check_comp(&comp, tag, 3000);
		joined_check(&to, 3000, tag);
	}
	free(from.memory);
	free(to.memory);
	joined_close(j);
}

/* A sender gives up with a large message that was not received, and its buffer
 * is used for something else. Its process lives on. Bug: the buffer was still
 * read, and whatever it held was delivered. */
static void test_sender_that_left_is_not_read(void **state)
{
	static const enum wf_shm_way ways[] = { WF_SHM_WAY_SELF,
						WF_SHM_WAY_CMA };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct joined *j = joined_open(ways[i]);
		struct joined_buf from, to;
		struct wf_comp comp;

		joined_alloc(&from, 100000, 1);
		joined_alloc(&to, 100000, 1);
		send_plain(j, &from, 1, false);
		wf_core_progress(&j->to_core);
		assert_int_equal(j->rxq.tagged.unexpected, 1);
		wf_shm_out_fail_all(j->out, FI_ECANCELED);
		assert_true(joined_pop(&j->txq, &comp));
		assert_int_equal(joined_err(&comp), FI_ECANCELED);
		joined_post(j, &to, 1);
		assert_true(joined_pop(&j->rxcq, &comp));
		assert_int_equal(joined_err(&comp), FI_ECONNRESET);
		joined_check(&to, 0, 1);
		free(from.memory);
		free(to.memory);
		joined_close(j);
	}
}

struct leaver {
	struct wf_shm_out *out;
	atomic_bool has_left;
};

static void *leave(void *arg)
{
	struct leaver *leaver = arg;

	wf_shm_out_fail_all(leaver->out, FI_ECANCELED);
	atomic_store(&leaver->has_left, true);
	return NULL;
}

/* Both ends in one process, in two threads. Bug: the sender's buffer could be
 * unmapped while the receiver copied from it, and the process crashed. */
static void test_sender_waits_for_reader(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct leaver leaver = { .out = j->out };
	struct joined_buf from;
	pthread_t thread;

	(void)state;
	joined_alloc(&from, 100000, 1);
	send_plain(j, &from, 1, false);
	/* As in the middle of the copy. */
	atomic_store(&j->in->region.header->reading, 1);
	assert_int_equal(pthread_create(&thread, NULL, leave, &leaver), 0);
	usleep(50000);
	assert_false(atomic_load(&leaver.has_left));
	atomic_store(&j->in->region.header->reading, 0);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&leaver.has_left));
	free(from.memory);
	joined_close(j);
}

/* A sender leaves while its message is read: the bytes that were read last may
 * be anything. */
static void test_sender_that_leaves_is_not_believed(void **state)
{
	const size_t len = (size_t)20 << 20; /* beyond one budget of a share */
	struct joined *j = joined_open(WF_SHM_WAY_CMA);
	struct joined_buf from, to;
	struct wf_comp comp;

	(void)state;
	joined_alloc(&from, len, 1);
	joined_alloc(&to, len, 1);
	joined_post(j, &to, 1);
	send_plain(j, &from, 1, false);
	wf_core_progress(&j->to_core);
	assert_int_equal(j->to.busy_pulls, 1);
	wf_shm_out_fail_all(j->out, FI_ECANCELED);
	for (int i = 0; i < 10; i++)
		wf_core_progress(&j->to_core);
	assert_int_equal(j->to.busy_pulls, 0);
	assert_int_equal(wf_op_compq_count(&j->rxcq), 0);
	lose_sender(j); /* as the end of its socket tells */
	assert_true(joined_pop(&j->rxcq, &comp));
	assert_int_equal(joined_err(&comp), FI_ECONNRESET);
	free(from.memory);
	free(to.memory);
	joined_close(j);
}

/* Half a message is an error of the receive that gets it, now or later. */
static void test_lost_message_is_reported(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct joined *j = joined_open(WF_SHM_WAY_SELF);
		struct joined_buf small, large, to;
		struct wf_comp comp;

		joined_alloc(&small, WF_SHM_INLINE_MAX + 1, 1);
		joined_alloc(&large, 16384, 1);
		joined_alloc(&to, 16384, 1);
		if (!late)
			joined_post(j, &to, 2);
		/* The small one takes the room of the last record. */
		send_plain(j, &small, 1, false);
		send_plain(j, &large, 2, false);
		assert_false(wf_base_list_empty(&j->out->pending));
		lose_sender(j);
		if (late) {
			assert_int_equal(wf_op_compq_count(&j->rxcq), 0);
			joined_post(j, &to, 2);
		}
		assert_true(joined_pop(&j->rxcq, &comp));
		assert_int_equal(comp.tag, 2);
		assert_int_equal(comp.src, JOINED_SRC);
		assert_int_equal(joined_err(&comp), FI_ECONNRESET);
		assert_int_equal(j->rxq.pool.in_use, 0);
		free(small.memory);
		free(large.memory);
		free(to.memory);
		joined_close(j);
	}
}

static void test_parked_is_lost(void **state)
{
	static const enum wf_shm_way ways[] = { WF_SHM_WAY_SELF,
						WF_SHM_WAY_NONE };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct joined *j = joined_open(ways[i % 2]);
		bool late = i / 2;
		struct joined_buf from, to;
		struct wf_comp comp;

		joined_alloc(&from, 50000, 1);
		joined_alloc(&to, 50000, 1);
		send_plain(j, &from, 1, false);
		if (!late)
			joined_post(j, &to, 1);
		/* With a way to read it would be done at once. */
		j->in->mover.way = WF_SHM_WAY_NONE;
		wf_core_progress(&j->to_core);
		assert_int_equal(wf_op_compq_count(&j->rxcq), 0);
		lose_sender(j);
		if (late)
			joined_post(j, &to, 1);
		assert_true(joined_pop(&j->rxcq, &comp));
		assert_int_equal(comp.tag, 1);
		assert_int_equal(joined_err(&comp), FI_ECONNRESET);
		assert_int_equal(j->rxq.pool.in_use, 0);
		free(from.memory);
		free(to.memory);
		joined_close(j);
	}
}

/* Bug: a sender that helped copying went on writing into the buffer after the
 * receiver had closed. */
static void test_closed_share_is_left_alone(void **state)
{
	const size_t len = (size_t)20 << 20; /* beyond one budget of a share */
	struct joined *j = joined_open(WF_SHM_WAY_CMA);
	struct joined_buf from, to;

	(void)state;
	joined_alloc(&from, len, 1);
	joined_alloc(&to, len, 1);
	joined_post(j, &to, 1);
	send_plain(j, &from, 1, false);
	wf_core_progress(&j->to_core);
	assert_int_equal(j->to.busy_pulls, 1);
	wf_shm_in_close(j->in, 0);
	j->to.watch.count = 0;
	assert_int_equal(j->to.busy_pulls, 0);
	memset(to.memory, JOINED_GAP_BYTE, len);
	for (int i = 0; i < 10; i++)
		wf_core_progress(&j->from_core);
	joined_check(&to, 0, 1);
	free(from.memory);
	free(to.memory);
	joined_close(j);
}

static void *count_late(void *arg)
{
	struct wf_shm_share *share = arg;

	usleep(300000);
	atomic_fetch_add(&share->sender_done, 1);
	return NULL;
}

/* Bug: a receiver that closed waited 50 ms for a chunk that its sender was just
 * copying. On a busy machine the sender was not run for longer than that, and
 * wrote into a buffer that was the application's again. A sender that has died
 * is not waited for. */
static void test_close_waits_for_chunks(void **state)
{
	const size_t len = (size_t)20 << 20;

	(void)state;
	for (int dies = 0; dies < 2; dies++) {
		struct joined *j = joined_open(WF_SHM_WAY_CMA);
		struct joined_buf from, to;
		struct wf_shm_share *share;
		pthread_t thread;
		uint64_t begin;
		int sock[2];

		joined_alloc(&from, len, 1);
		joined_alloc(&to, len, 1);
		joined_post(j, &to, 1);
		send_plain(j, &from, 1, false);
		wf_core_progress(&j->to_core);
		assert_int_equal(j->to.busy_pulls, 1);
		/* The sender claims a chunk. */
		share = &j->out->region.shares[0];
		atomic_fetch_add(&share->claimed, 1);
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock),
				 0);
		j->in->sock.fd = sock[0];
		if (dies)
			close(sock[1]);
		else
			assert_int_equal(pthread_create(&thread, NULL,
							count_late, share),
					 0);
		begin = wf_base_clock_ns();
		wf_shm_in_close(j->in, 0);
		j->to.watch.count = 0;
		if (dies) {
			assert_true(wf_base_clock_ns() - begin <
				    60 * WF_NS_PER_S);
		} else {
			assert_int_equal(atomic_load(&share->sender_done), 1);
			pthread_join(thread, NULL);
			close(sock[1]);
		}
		free(from.memory);
		free(to.memory);
		joined_close(j);
	}
}

/* -- names ----------------------------------------------------------------- */

/* The sender is inserted into the AV after its messages came. */
static void test_rename(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_NONE);
	struct joined_buf from[2], to;
	struct wf_comp comp;

	(void)state;
	wf_shm_in_rename(j->in, WF_MATCH_ANY);
	joined_alloc(&from[0], 100, 1);
	joined_alloc(&from[1], 20000, 1);
	joined_alloc(&to, 20000, 1);
	send_plain(j, &from[0], 1, false);
	send_plain(j, &from[1], 2, false);
	wf_core_progress(&j->to_core);
	assert_null(wf_match_find_ux(&j->rxq.tagged, 1, 0, JOINED_SRC));
	wf_shm_in_rename(j->in, JOINED_SRC);
	for (uint64_t tag = 1; tag <= 2; tag++) {
		assert_non_null(
			wf_match_find_ux(&j->rxq.tagged, tag, 0, JOINED_SRC));
		joined_post(j, &to, tag);
		comp = joined_wait(j, &j->rxcq);
		joined_check_comp(&comp, tag, from[tag - 1].len);
	}
	for (int i = 0; i < 2; i++)
		free(from[i].memory);
	free(to.memory);
	joined_close(j);
}

/* -- slots that make no sense ---------------------------------------------- */

static void test_nonsense(void **state)
{
	static const uint64_t words[] = {
		WF_SHM_WORD(1, WF_SHM_INLINE_MAX + 1, WF_SHM_KIND_INLINE, 0),
		WF_SHM_WORD(1, 8193, WF_SHM_KIND_EAGER, 0),
		WF_SHM_WORD(1, 100, WF_SHM_KIND_FIRST, 0),
		WF_SHM_WORD(1, 100, WF_SHM_KIND_NEXT, 0),
		WF_SHM_WORD(1, 0, WF_SHM_KIND_PARKED, 0),
		WF_SHM_WORD(1, 100, WF_SHM_KIND_STREAM, 0),
		WF_SHM_WORD(1, 0, WF_SHM_KIND_MAX, 0),
		WF_SHM_WORD(1, 0, 0, 0),
		WF_SHM_WORD(1, 0, 255, 255),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct joined *j = joined_open(WF_SHM_WAY_SELF);

		atomic_store(&j->out->region.slots[0].word, words[i]);
		wf_core_progress(&j->to_core);
		wf_core_progress(&j->to_core);
		assert_int_equal(j->to.watch.count, 0);
		assert_int_equal(j->rxq.msg.unexpected, 0);
		joined_close(j);
	}
}

/* Pieces of a stream that nobody asked for, or not these. */
static void test_wrong_streams(void **state)
{
	static const struct {
		uint64_t offset;
		uint32_t op, len;
	} wrong[] = { { 1, 0, 100 },	    { 0, 1, 100 }, { 0, 32, 100 },
		      { 0, UINT32_MAX, 1 }, { 0, 0, 0 },   { 0, 0, 201 } };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct joined *j = joined_open(WF_SHM_WAY_NONE);
		struct joined_buf from, to;
		struct wf_shm_slot *slot;
		struct wf_comp comp;

		joined_alloc(&from, 20000, 1);
		joined_alloc(&to, 200, 1);
		joined_post(j, &to, 1);
		send_plain(j, &from, 1, false);
		wf_core_progress(&j->to_core);
		slot = wf_shm_put_slot(j->out);
		slot->stream = (struct wf_shm_stream){ wrong[i].offset,
						       wrong[i].op, 0 };
		wf_shm_put_publish(j->out, slot, wrong[i].len,
				   WF_SHM_KIND_STREAM, 0);
		wf_core_progress(&j->to_core);
		wf_core_progress(&j->to_core);
		assert_int_equal(j->to.watch.count, 0);
		assert_true(joined_pop(&j->rxcq, &comp));
		assert_int_not_equal(joined_err(&comp), 0);
		free(from.memory);
		free(to.memory);
		joined_close(j);
	}
}

/* Bug: a slot that was never written was taken for the message whose sequence
 * is zero. */
static void test_sequence_zero(void **state)
{
	struct joined *j = joined_open(WF_SHM_WAY_SELF);
	struct joined_case c = { 8, 1, 1, false, false };
	struct joined_buf none;
	struct wf_comp comp;

	(void)state;
	j->out->slot_lap.head = UINT32_MAX;
	j->out->slot_lap.start = UINT32_MAX;
	j->out->slot_lap.before = UINT32_MAX;
	j->out->slots_done = UINT32_MAX;
	j->in->next = UINT32_MAX;
	j->in->credited = UINT32_MAX;
	atomic_store(&j->out->region.header->credit, UINT32_MAX);
	joined_alloc(&none, 0, 1);
	joined_post(j, &none, 0);
	for (int i = 0; i < 10; i++)
		joined_drive(j);
	assert_false(j->in->broken);
	assert_int_equal(wf_op_compq_count(&j->rxcq), 0);
	assert_int_equal(wf_match_rxq_cancel(&j->rxq, NULL), 0);
	assert_true(joined_pop(&j->rxcq, &comp));
	assert_int_equal(joined_err(&comp), FI_ECANCELED);
	for (uint64_t tag = 1; tag < 100; tag++)
		joined_exchange(j, &c, tag);
	free(none.memory);
	joined_close(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_marker_survives),
		cmocka_unit_test(test_trial_of_unexpected_ends),
		cmocka_unit_test(test_payload_is_no_slot),
		cmocka_unit_test(test_flood_of_unexpected),
		cmocka_unit_test(test_matched_half_way),
		cmocka_unit_test(test_discarded_half_way),
		cmocka_unit_test(test_discarded_completes),
		cmocka_unit_test(test_full_queue_stops_the_ring),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_arrived_messages_kept),
		cmocka_unit_test(test_sender_that_left_is_not_read),
		cmocka_unit_test(test_sender_waits_for_reader),
		cmocka_unit_test(test_sender_that_leaves_is_not_believed),
		cmocka_unit_test(test_lost_message_is_reported),
		cmocka_unit_test(test_parked_is_lost),
		cmocka_unit_test(test_closed_share_is_left_alone),
		cmocka_unit_test(test_close_waits_for_chunks),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_wrong_streams),
		cmocka_unit_test(test_sequence_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
