/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the order of messages: whatever order packets come in, numbers
 * have their turn one after the other, and nothing is kept without limit.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rdm/order.h"

/* As in.c does it: takes what is due, checks that the numbers go up by one. */
static uint32_t drain(struct wf_rdm_order *order)
{
	uint32_t taken = 0;

	while (order->held) {
		struct wf_rdm_saved *saved = wf_rdm_order_past(order);
		bool next = !saved;
		uint32_t due = order->expected - !next, number;

		if (next)
			saved = wf_rdm_order_first(order);
		if (!saved)
			break;
		assert_int_equal(saved->msg_id, due);
		assert_int_equal(saved->len, sizeof(number));
		memcpy(&number, saved->bytes, sizeof(number));
		assert_int_equal(number, saved->msg_id);
		wf_rdm_order_drop(order, saved);
		if (next)
			wf_rdm_order_advance(order);
		taken++;
	}
	return taken;
}

static int arrive(struct wf_rdm_order *order, uint32_t id)
{
	int turn = wf_rdm_order_arrive(order, id, &id, sizeof(id));

	if (turn == WF_RDM_TURN_NOW) {
		wf_rdm_order_advance(order);
		drain(order);
	}
	return turn;
}

static void test_in_order(void **state)
{
	struct wf_rdm_order order;

	(void)state;
	wf_rdm_order_init(&order);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(arrive(&order, i), WF_RDM_TURN_NOW);
	/* Nothing was early: nothing was allocated. */
	assert_null(order.slots);
	assert_int_equal(order.held_max, 0);
	wf_rdm_order_fini(&order);
}

static void test_out_of_order(void **state)
{
	struct wf_rdm_order order;

	(void)state;
	wf_rdm_order_init(&order);
	for (uint32_t i = 5; i > 0; i--)
		assert_int_equal(arrive(&order, i), WF_RDM_TURN_HELD);
	assert_int_equal(order.held, 5);
	assert_null(wf_rdm_order_first(&order));
	assert_int_equal(arrive(&order, 0), WF_RDM_TURN_NOW);
	assert_int_equal(order.expected, 6);
	assert_int_equal(order.held, 0);
	assert_int_equal(order.held_max, 5);
	assert_int_equal(arrive(&order, 3), WF_RDM_TURN_PAST);
	wf_rdm_order_fini(&order);
}

/* Beyond the window, up to the limit, from every place of the window. */
static void test_overflow(void **state)
{
	struct wf_rdm_order order;

	(void)state;
	for (uint32_t begin = 0; begin < 2 * WF_RDM_WINDOW + 3; begin++) {
		uint32_t end = begin + 5 * WF_RDM_WINDOW;

		wf_rdm_order_init(&order);
		order.expected = begin;
		for (uint32_t i = end - 1; i > begin; i--)
			assert_int_equal(arrive(&order, i), WF_RDM_TURN_HELD);
		assert_false(wf_base_list_empty(&order.overflow));
		assert_int_equal(arrive(&order, begin), WF_RDM_TURN_NOW);
		assert_int_equal(order.expected, end);
		assert_int_equal(order.held, 0);
		assert_true(wf_base_list_empty(&order.overflow));
		wf_rdm_order_fini(&order);
	}
}

static void test_limits(void **state)
{
	struct wf_rdm_order order;
	uint32_t i;

	(void)state;
	wf_rdm_order_init(&order);
	assert_int_equal(arrive(&order, WF_RDM_HELD_MAX + 1), -EPROTO);
	assert_int_equal(arrive(&order, WF_RDM_HELD_MAX), WF_RDM_TURN_HELD);
	assert_int_equal(arrive(&order, 0x7fffffff), -EPROTO);
	assert_int_equal(arrive(&order, 0x80000000), WF_RDM_TURN_PAST);
	for (i = 1; i < WF_RDM_HELD_MAX; i++)
		assert_int_equal(arrive(&order, i), WF_RDM_TURN_HELD);
	assert_int_equal(order.held, WF_RDM_HELD_MAX);
	assert_int_equal(arrive(&order, 7), -EPROTO);
	/* The limit does not stop the message that everyone waits for. */
	assert_int_equal(arrive(&order, 0), WF_RDM_TURN_NOW);
	assert_int_equal(order.expected, WF_RDM_HELD_MAX + 1);
	assert_int_equal(order.held, 0);
	wf_rdm_order_fini(&order);
}

static void test_wrap(void **state)
{
	struct wf_rdm_order order;
	const uint32_t begin = UINT32_MAX - 100;

	(void)state;
	wf_rdm_order_init(&order);
	order.expected = begin;
	for (uint32_t i = 1; i < 300; i++)
		assert_int_equal(arrive(&order, begin + i * 7 % 300),
				 WF_RDM_TURN_HELD);
	assert_int_equal(arrive(&order, begin), WF_RDM_TURN_NOW);
	assert_int_equal(order.expected, begin + 300);
	assert_int_equal(order.held, 0);
	wf_rdm_order_fini(&order);
}

/* Messages of several packets, all of which may be early. */
static void test_several_packets(void **state)
{
	struct wf_rdm_order order;

	(void)state;
	wf_rdm_order_init(&order);
	for (uint32_t packet = 0; packet < 3; packet++) {
		for (uint32_t i = 150; i > 0; i--)
			assert_int_equal(arrive(&order, i), WF_RDM_TURN_HELD);
	}
	assert_int_equal(order.held, 450);
	assert_int_equal(arrive(&order, 0), WF_RDM_TURN_NOW);
	assert_int_equal(order.expected, 151);
	assert_int_equal(order.held, 0);
	assert_int_equal(arrive(&order, 150), WF_RDM_TURN_PAST);
	wf_rdm_order_fini(&order);
}

/* A random walk within what a sender may be ahead. */
static void test_random(void **state)
{
	static uint8_t sent[20000];
	struct wf_rdm_order order;
	uint32_t low = 0;

	(void)state;
	wf_rdm_order_init(&order);
	order.expected = 0;
	srand(1);
	while (low < sizeof(sent)) {
		uint32_t id = low + (uint32_t)rand() % 400;

		if (id >= sizeof(sent) || sent[id])
			id = low;
		sent[id] = 1;
		assert_true(arrive(&order, id) >= 0);
		while (low < sizeof(sent) && sent[low])
			low++;
		assert_int_equal(order.expected, low);
	}
	assert_int_equal(order.held, 0);
	wf_rdm_order_fini(&order);
}

/* The rest is given back (the sanitizer would tell). */
/* Messages that never come are passed over, whether those that are kept stand in
 * the window, far behind it, or across the end of numbers. */
static void test_skip(void **state)
{
	static const uint32_t kept[] = { 3, 4, 40, 41, 41, 63, 64, 200, 3000 };
	const uint32_t count = sizeof(kept) / sizeof(kept[0]);
	struct wf_rdm_order order;

	(void)state;
	for (uint32_t from = 0; from < 2; from++) {
		uint32_t taken = 0;

		wf_rdm_order_init(&order);
		order.expected = from ? UINT32_MAX - 50 : 0;
		for (uint32_t i = count; i-- > 0;)
			assert_int_equal(
				arrive(&order, order.expected + kept[i]),
				WF_RDM_TURN_HELD);
		assert_int_equal(drain(&order), 0);
		while (order.held) {
			wf_rdm_order_skip(&order);
			taken += drain(&order);
		}
		assert_int_equal(taken, count);
		assert_int_equal(order.expected,
				 (from ? UINT32_MAX - 50 : 0) + 3001);
		wf_rdm_order_fini(&order);
	}
}

static void test_fini(void **state)
{
	struct wf_rdm_order order;

	(void)state;
	wf_rdm_order_init(&order);
	for (uint32_t i = 1; i < 200; i++)
		arrive(&order, i);
	wf_rdm_order_fini(&order);
	assert_int_equal(order.held, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_several_packets),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_fini),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
