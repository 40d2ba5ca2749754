/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint that is connected to sends without connecting, and no message is
 * lost when either side goes away while an offer stands. Bug: two processes that
 * sent to each other made two connections, and 64 processes took three times as
 * long as with libfabric's shm.
 */
#include "shm/offer.h"

#include "shm/sides_test.h"

/* The channel of side @i, which it has not connected. */
static void check_offered(struct world *w, int i)
{
	const struct wf_shm_out *out = out_of(w, i);

	assert_non_null(out);
	assert_int_equal(out->state, WF_SHM_OUT_OPEN);
	assert_int_equal(out->sock.fd, -1);
	assert_non_null(out->twin);
}

static void expect_messages(struct world *w, int i, uint32_t count)
{
	for (int k = 0; k < 10; k++)
		look(w, i);
	assert_int_equal(w->s[i].rxq.tagged.unexpected, count);
}

/* Answers bells, and reads the rings that it opened for them. */
static void progress(struct world *w, int i)
{
	wf_core_progress(&w->s[i].core);
	wf_core_progress(&w->s[i].core);
}

/* The first message goes at once, without a look of the receiver at its
 * sockets. */
static void test_answers_without_connecting(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	settle(w);
	assert_non_null(out_of(w, 0)->offer);
	assert_int_equal(w->s[0].ep.watch.count, 0);
	send_one(w, 1);
	check_offered(w, 1);
	progress(w, 0);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	assert_null(out_of(w, 0)->offer);
	settle(w);
	assert_int_equal(sockets(w, 0), 1);
	assert_int_equal(sockets(w, 1), 1);
	send_one(w, 1);
	send_one(w, 0);
	expect_messages(w, 0, 2);
	expect_messages(w, 1, 2);
}

/* The peer has connected, and nobody has looked since: also before it has our
 * welcome. */
static void test_accepts_before_connecting(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	send_one(w, 1);
	check_offered(w, 1);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_GREETED);
	progress(w, 0);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_OPEN);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	expect_messages(w, 1, 1);
}

/* Both connect: neither needs the other's offer. */
static void test_declined(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	send_blind(w, 1);
	settle(w);
	for (int i = 0; i < 2; i++) {
		assert_null(out_of(w, i)->offer);
		assert_int_equal(w->s[i].ep.watch.count, 1);
		assert_null(w->s[i].ep.watch.ins[0]->offer);
		assert_int_equal(w->s[i].rxq.tagged.unexpected, 1);
		for (int bell = 0; bell < 64; bell++)
			assert_null(w->s[i].ep.watch.offers[bell]);
	}
	assert_int_equal(sockets(w, 0), 1);
}

/* The side that offers removes the peer from its AV: before the peer has the
 * hello, before it has answered, and when the offer is used. */
static void test_offerer_leaves(void **state)
{
	(void)state;
	for (int when = 0; when < 4; when++) {
		struct world *w;

		open_world((void **)&w);
		send_one(w, 0);
		if (when == 1)
			look(w, 1);
		else if (when > 1)
			settle(w);
		if (when == 3)
			send_one(w, 1);
		leave(w, 0);
		if (when < 3)
			send_one(w, 1);
		check_offered(w, 1);
		expect_messages(w, 0, 1);
		settle(w);
		assert_null(out_of(w, 0));
		assert_true(wf_base_list_empty(&w->s[0].ep.all_outs));
		assert_int_equal(w->s[1].ep.watch.count, 0);
		assert_int_equal(w->s[0].ep.watch.count, 1);
		assert_int_equal(sockets(w, 0), 1);
		send_one(w, 1);
		expect_messages(w, 0, 2);
		/* And back by another channel. */
		send_one(w, 0);
		expect_messages(w, 1, 2);
		close_world((void **)&w);
	}
}

/* The side that used an offer goes away before its message was seen. */
static void test_user_leaves(void **state)
{
	(void)state;
	for (int how = 0; how < 2; how++) {
		struct world *w;

		open_world((void **)&w);
		send_one(w, 0);
		settle(w);
		send_one(w, 1);
		if (how)
			leave(w, 1);
		else
			wf_core_close(&w->s[1].core);
		/* Sockets first: the note, or the end, comes before the bell
		 * was looked at. */
		wf_core_look(&w->s[0].core, wf_base_clock_ns());
		expect_messages(w, 0, 1);
		assert_int_equal(w->s[0].ep.watch.count, 0);
		if (how) {
			settle(w);
			send_one(w, 1);
			expect_messages(w, 0, 2);
			close_world((void **)&w);
			continue;
		}
		assert_null(out_of(w, 0));
		wf_core_close(&w->s[0].core);
		for (int i = 0; i < 2; i++) {
			wf_match_rxq_fini(&w->s[i].rxq);
			wf_op_compq_fini(&w->s[i].cq);
		}
		wf_op_regs_close(&w->regs);
		free(w);
	}
}

/* An offer that nobody has used ends with its channel. */
static void test_unused_ends(void **state)
{
	struct world *w = *state;

	send_one(w, 0);
	settle(w);
	leave(w, 0);
	settle(w);
	assert_true(wf_base_list_empty(&w->s[0].ep.all_outs));
	assert_int_equal(w->s[0].ep.watch.count, 0);
	assert_int_equal(w->s[1].ep.watch.count, 0);
	assert_int_equal(sockets(w, 0) + sockets(w, 1), 0);
}

/* The process that made the offer has ended, and its place has another one: we
 * have not noticed. */
static void test_stale_is_not_used(void **state)
{
	struct world *w = *state;
	struct wf_host host = joined_host(&w->s[0].cq, &w->s[0].rxq, &w->regs);
	const struct wf_shm_ep_attr attr = joined_attr();

	send_one(w, 0);
	settle(w);
	host.names = w->s[0].core.host.names;
	host.addr = w->s[0].ep.host->addr;
	wf_core_close(&w->s[0].core);
	assert_int_equal(
		joined_open_at(&w->s[0].core, &w->s[0].ep, &host, &attr), 0);
	send_one(w, 1);
	assert_int_equal(out_of(w, 1)->state, WF_SHM_OUT_GREETED);
	settle(w);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
}

/* A process of another user may clear the bell of somebody who uses an offer. */
static void test_distrusted(void **state)
{
	struct world *w = *state;
	struct wf_shm_board *board = w->s[0].ep.board.board;

	send_one(w, 0);
	settle(w);
	w->s[0].ep.watch.distrusted = true;
	wf_shm_offer_open_all(&w->s[0].ep);
	assert_int_equal(w->s[0].ep.watch.count, 1);
	send_one(w, 1);
	check_offered(w, 1);
	memset(board->bells, 0, sizeof(board->bells));
	atomic_store(&board->rung, 0);
	for (int i = 0; i < 200; i++)
		look(w, 0);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	/* And none is made any more. */
	leave(w, 0);
	settle(w);
	send_one(w, 0);
	assert_null(out_of(w, 0)->offer);
}

/* Rings of the size that our user has chosen. */
static void test_other_size(void **state)
{
	struct world *w = *state;

	w->s[1].ep.attr.slots_log2++;
	send_one(w, 0);
	send_one(w, 1);
	assert_int_equal(out_of(w, 1)->region.slot_count,
			 2u << JOINED_SLOTS_LOG2);
	settle(w);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	assert_int_equal(w->s[1].rxq.tagged.unexpected, 1);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_answers_without_connecting),
		TEST(test_accepts_before_connecting),
		TEST(test_declined),
		cmocka_unit_test(test_offerer_leaves),
		cmocka_unit_test(test_user_leaves),
		TEST(test_unused_ends),
		TEST(test_stale_is_not_used),
		TEST(test_distrusted),
		TEST(test_other_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
