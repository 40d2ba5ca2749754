/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels: one event for each time that a queue is armed, also while
 * nobody polls; events that nobody reads go with their queue, also while a
 * thread of the program waits for events.
 */
#include <poll.h>

#include "efa/pair_test.h"

/* All events together fit into a pipe. */
#define ROUNDS 300
#define OTHERS 16

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

/* Takes events until there is one with a context. */
static void *reader(void *arg)
{
	struct ibv_comp_channel *channel = arg;
	struct ibv_cq *cq;
	void *context;

	do {
		if (ibv_get_cq_event(channel, &cq, &context))
			return channel;
		ibv_ack_cq_events(cq, 1);
	} while (!context);
	return NULL;
}

/* The thread may take an event that ibv_destroy_cq() is about to take back. Those
 * of another queue keep it busy. */
static void test_reader(void **state)
{
	struct pair pair = open_pair(&events);
	struct ibv_cq *last = ibv_cq_ex_to_cq(pair.end[0].cq), *other;
	pthread_t thread;
	void *failed;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, reader, pair.channel),
			 0);
	other = ibv_create_cq(pair.context, 1, NULL, pair.channel, 0);
	assert_non_null(other);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_cq *cq =
			ibv_create_cq(pair.context, 1, NULL, pair.channel, 0);

		assert_non_null(cq);
		wf_efa_channel_event(wf_efa_cq_of(cq));
		for (int k = 0; k < OTHERS; k++)
			wf_efa_channel_event(wf_efa_cq_of(other));
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	assert_non_null(last->cq_context);
	wf_efa_channel_event(wf_efa_cq_of(last));
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_int_equal(ibv_destroy_cq(other), 0);
	close_pair(&pair);
}

/* A queue that cannot be destroyed yet stays as it is, with its events. */
static void test_used(void **state)
{
	struct pair pair = open_pair(&events);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(pair.end[0].cq), *got;
	void *context;

	(void)state;
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(receive(&pair.end[1], 1, 0, 100), 0);
	assert_int_equal(send_to(&pair, 2, 0, 8), 0);
	wait_one(&pair.end[0]);
	assert_true(readable(&pair, 20000));
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_get_cq_event(pair.channel, &got, &context), 0);
	assert_ptr_equal(got, cq);
	ibv_ack_cq_events(got, 1);
	close_pair(&pair);
}

/* The event of one queue has no place in memory while another queue is
 * destroyed: it is lost, and the destruction of the first does not wait until it
 * is acknowledged. */
static bool no_memory;

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);

void *__wrap_realloc(void *at, size_t size)
{
	return no_memory ? NULL : __real_realloc(at, size);
}

static void test_lost(void **state)
{
	struct pair pair = open_pair(&events);
	struct ibv_cq *cq[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		cq[i] = ibv_create_cq(pair.context, 1, NULL, pair.channel, 0);
		assert_non_null(cq[i]);
		wf_efa_channel_event(wf_efa_cq_of(cq[i]));
	}
	no_memory = true;
	assert_int_equal(ibv_destroy_cq(cq[1]), 0);
	no_memory = false;
	assert_false(readable(&pair, 0));
	/* It would hang here. */
	assert_int_equal(ibv_destroy_cq(cq[0]), 0);
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
		cmocka_unit_test(test_event),  cmocka_unit_test(test_unread),
		cmocka_unit_test(test_reader), cmocka_unit_test(test_used),
		cmocka_unit_test(test_lost),   cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
