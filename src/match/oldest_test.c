/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oldest receives, wherever they hang.
 */
#include "match/oldest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MANY 600
#define ROOM 16

static void post(struct wf_match *m, struct wf_rx *rx, uint64_t tag,
		 uint64_t ignore, uint64_t src)
{
	*rx = (struct wf_rx){ .tag = tag, .ignore = ignore, .src = src };
	wf_match_post(m, rx);
}

static void test_none(void **state)
{
	const struct wf_rx *found[ROOM];
	struct wf_match m;

	(void)state;
	wf_match_init(&m);
	assert_int_equal(wf_match_oldest(&m, found, ROOM), 0);
	wf_match_fini(&m);
}

/* Exact ones in many chains, masked ones in their list and in lanes: the order
 * of posting, whatever was taken meanwhile. */
static void test_order(void **state)
{
	struct wf_rx *rx = calloc(MANY, sizeof(*rx));
	const struct wf_rx *found[ROOM];
	struct wf_match m;
	uint32_t next = 0;

	(void)state;
	wf_match_init(&m);
	for (uint32_t i = 0; i < MANY; i++)
		post(&m, &rx[i], i * 77, i % 3 ? 0 : 0xf,
		     i % 5 ? WF_MATCH_ANY : i);
	for (uint32_t first = 0; first + ROOM < MANY; first += ROOM) {
		assert_int_equal(wf_match_oldest(&m, found, ROOM), ROOM);
		for (uint32_t i = 0; i < ROOM; i++)
			assert_ptr_equal(found[i], &rx[next + i]);
		for (uint32_t i = 0; i < ROOM; i++)
			wf_match_unpost(&m, &rx[next++]);
	}
	while (next < MANY)
		wf_match_unpost(&m, &rx[next++]);
	assert_int_equal(wf_match_oldest(&m, found, ROOM), 0);
	wf_match_fini(&m);
	free(rx);
}

/* A buffer for many messages is no wait for one. */
static void test_multi(void **state)
{
	const struct wf_rx *found[ROOM];
	struct wf_match m;
	struct wf_rx rx[2];

	(void)state;
	wf_match_init(&m);
	post(&m, &rx[0], 0, 0, WF_MATCH_ANY);
	rx[0].multi = true;
	post(&m, &rx[1], 0, 0, WF_MATCH_ANY);
	assert_int_equal(wf_match_oldest(&m, found, ROOM), 1);
	assert_ptr_equal(found[0], &rx[1]);
	wf_match_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_multi),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
