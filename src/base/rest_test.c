/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of base/rest: many processes that wait in vain must not take all of the
 * processors by falling asleep and waking up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rest.h"

#define NAPS 60

static uint64_t naps_take(struct wf_rest *rest)
{
	uint64_t begin = wf_base_clock_ns();

	rest->naps = NAPS;
	while (rest->naps)
		wf_base_rest(rest);
	return wf_base_clock_ns() - begin;
}

/* Bug: all were of 50 us. While one of 64 processes was stopped, those that
 * waited for it kept every other session from running, for up to 107 s. */
static void test_sleeps_grow(void **state)
{
	struct wf_rest rest = { .naps = 0 };

	(void)state;
	assert_true(naps_take(&rest) > 50 * WF_NS_PER_MS);
}

/* The first sleep of another wait is short again. */
static void test_begins_anew(void **state)
{
	struct wf_rest rest = { .naps = 0 };

	(void)state;
	naps_take(&rest);
	wf_base_rest_begin(&rest);
	rest.naps = 1;
	wf_base_rest(&rest);
	assert_true(rest.nap < 100 * WF_NS_PER_US);
}

/* A thread that goes round through many endpoints does not sleep for long in each
 * of them: one does so for all. */
static void test_many_in_a_thread(void **state)
{
	struct wf_rest rests[NAPS] = { { .naps = 0 } };
	uint64_t sum = 0;

	(void)state;
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < NAPS; i++) {
			rests[i].naps = 1;
			wf_base_rest(&rests[i]);
		}
	}
	for (int i = 0; i < NAPS; i++)
		sum += rests[i].nap;
	assert_true(sum < 20 * WF_NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeps_grow),
		cmocka_unit_test(test_begins_anew),
		cmocka_unit_test(test_many_in_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
