/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several sleepers behind one descriptor: a sleeper that stills it takes the
 * ring away from nobody else.
 */
#include "op/waker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>

static bool is_readable(const struct wf_waker *waker)
{
	struct pollfd fd = { .fd = waker->fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void test_alone(void **state)
{
	struct wf_waker waker;
	uint32_t entered;

	(void)state;
	assert_int_equal(wf_op_waker_open(&waker, true), 0);
	wf_op_waker_ring(&waker); /* nobody sleeps */
	assert_false(is_readable(&waker));
	entered = wf_op_waker_enter(&waker);
	wf_op_waker_doze(&waker);
	wf_op_waker_ring(&waker);
	assert_true(is_readable(&waker));
	wf_op_waker_leave(&waker, entered);
	wf_op_waker_still(&waker);
	assert_false(is_readable(&waker));
	wf_op_waker_ring(&waker);
	assert_false(is_readable(&waker));
	wf_op_waker_close(&waker);
}

/* Bug: it was stilled by another thread before the sleeper had woken. */
static void test_rung_stays(void **state)
{
	struct wf_waker waker;
	uint32_t first, second;

	(void)state;
	assert_int_equal(wf_op_waker_open(&waker, true), 0);
	first = wf_op_waker_enter(&waker);
	wf_op_waker_doze(&waker);
	wf_op_waker_ring(&waker);
	wf_op_waker_still(&waker);
	assert_true(is_readable(&waker));
	second = wf_op_waker_enter(&waker);
	wf_op_waker_doze(&waker);
	assert_true(is_readable(&waker));
	/* The second came after the ring: nothing is kept for it. */
	wf_op_waker_leave(&waker, first);
	wf_op_waker_still(&waker);
	assert_false(is_readable(&waker));
	wf_op_waker_ring(&waker);
	wf_op_waker_still(&waker);
	assert_true(is_readable(&waker));
	wf_op_waker_leave(&waker, second);
	wf_op_waker_still(&waker);
	assert_false(is_readable(&waker));
	wf_op_waker_close(&waker);
}

/* Bug: a thread that did not sleep after all turned the ring off for one that
 * did. */
static void test_asleep_stays(void **state)
{
	struct wf_waker waker;
	uint32_t entered;

	(void)state;
	assert_int_equal(wf_op_waker_open(&waker, true), 0);
	entered = wf_op_waker_enter(&waker);
	wf_op_waker_doze(&waker);
	wf_op_waker_still(&waker);
	wf_op_waker_ring(&waker);
	assert_true(is_readable(&waker));
	wf_op_waker_leave(&waker, entered);
	wf_op_waker_close(&waker);
}

/* The other threads are not there to leave. */
static void test_forked(void **state)
{
	struct wf_waker waker;

	(void)state;
	assert_int_equal(wf_op_waker_open(&waker, true), 0);
	wf_op_waker_enter(&waker);
	wf_op_waker_doze(&waker);
	wf_op_waker_ring(&waker);
	wf_op_waker_forked(&waker);
	wf_op_waker_still(&waker);
	assert_false(is_readable(&waker));
	wf_op_waker_close(&waker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_rung_stays),
		cmocka_unit_test(test_asleep_stays),
		cmocka_unit_test(test_forked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
