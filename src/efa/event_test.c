/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels: one event for each time that a queue is armed, also while
 * nobody polls; events that nobody reads go with their queue.
 */
#include <poll.h>

#include "efa/pair_test.h"

static const struct kind events = { .events = true, .rnr_retry = -1 };

static bool readable(struct pair *pair, int ms)
{
	struct pollfd fd = { .fd = pair->channel->fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

static void test_event(void **state)
{
	struct pair pair = open_pair(&events);
	struct ibv_cq *to = ibv_cq_ex_to_cq(pair.end[1].cq), *cq;
	struct seen seen;
	void *context;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(receive(&pair.end[1], 1, 0, 100), 0);
		assert_int_equal(ibv_req_notify_cq(to, 0), 0);
		assert_false(readable(&pair, 0));
		assert_int_equal(send_to(&pair, 2, 0, 8), 0);
		/* Nobody polls: the device works by itself. */
		assert_true(readable(&pair, 20000));
		assert_int_equal(ibv_get_cq_event(pair.channel, &cq, &context),
				 0);
		assert_ptr_equal(cq, to);
		assert_ptr_equal(context, pair.pd);
		ibv_ack_cq_events(cq, 1);
		assert_true(poll_one(&pair.end[1], &seen));
		assert_int_equal(seen.len, 8);
		wait_one(&pair.end[0]);
	}
	/* Not armed: no event. */
	assert_int_equal(receive(&pair.end[1], 1, 0, 100), 0);
	assert_int_equal(send_to(&pair, 2, 0, 8), 0);
	wait_one(&pair.end[1]);
	assert_false(readable(&pair, 0));
	close_pair(&pair);
}

static void test_unread(void **state)
{
	struct pair pair = open_pair(&events);
	struct ibv_cq *cq[2], *got;
	void *context;

	(void)state;
	for (int i = 0; i < 2; i++) {
		cq[i] = ibv_cq_ex_to_cq(pair.end[i].cq);
		assert_int_equal(ibv_req_notify_cq(cq[i], 0), 0);
	}
	assert_int_equal(receive(&pair.end[1], 1, 0, 100), 0);
	assert_int_equal(send_to(&pair, 2, 0, 8), 0);
	wait_one(&pair.end[0]);
	wait_one(&pair.end[1]);
	/* Both wrote one. That of the first goes with it. */
	assert_int_equal(ibv_destroy_qp(pair.end[0].qp), 0);
	pair.end[0].qp = NULL;
	assert_int_equal(ibv_destroy_cq(cq[0]), 0);
	assert_int_equal(ibv_get_cq_event(pair.channel, &got, &context), 0);
	assert_ptr_equal(got, cq[1]);
	assert_false(readable(&pair, 0));
	ibv_ack_cq_events(got, 1);
	assert_int_equal(ibv_dereg_mr(pair.end[0].mr), 0);
	test_free(pair.end[0].buf);
	assert_int_equal(ibv_destroy_comp_channel(pair.channel), EBUSY);
	open_end(&pair, &pair.end[0], &events);
	close_pair(&pair);
}

static void test_none(void **state)
{
	struct pair pair = open_pair(&(struct kind){ .rnr_retry = -1 });

	(void)state;
	assert_int_equal(ibv_req_notify_cq(ibv_cq_ex_to_cq(pair.end[0].cq), 0),
			 EINVAL);
	close_pair(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event),
		cmocka_unit_test(test_unread),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
