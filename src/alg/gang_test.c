/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gang: every piece is taken, worked on and put exactly once, taken and put
 * in order, or placed in order and put by anyone; and after a failure anywhere
 * it ends, with that failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <weft/wd_comp.h>

#include "alg/gang.h"

#define SLOTS 9

struct world {
	unsigned int pieces;
	unsigned int taken;
	bool places;
	atomic_uint placed;
	atomic_uint put;
	unsigned int slots[SLOTS];
	unsigned int worked[SLOTS];
	int fail_take; /* at this piece, -1: never */
	int fail_work;
	int fail_put;
};

static int take(void *arg, unsigned int slot, int *none)
{
	struct world *w = arg;

	if (w->taken == w->pieces) {
		*none = 1;
		return 0;
	}
	if ((int)w->taken == w->fail_take)
		return -5;
	w->slots[slot] = w->taken++;
	w->worked[slot] = 0;
	return 0;
}

static int work(void *arg, unsigned int slot)
{
	struct world *w = arg;

	/* Some take longer, so that others overtake them. */
	for (unsigned int i = 0; i < w->slots[slot] * 7 % 5; i++)
		sched_yield();
	w->worked[slot]++;
	return (int)w->slots[slot] == w->fail_work ? -6 : 0;
}

static int place(void *arg, unsigned int slot)
{
	struct world *w = arg;

	if (w->slots[slot] != w->placed || w->worked[slot] != 1)
		return -99;
	w->placed++;
	return 0;
}

static int put(void *arg, unsigned int slot)
{
	struct world *w = arg;

	if (w->worked[slot] != 1 || (w->places ? w->slots[slot] >= w->placed :
						 w->slots[slot] != w->put))
		return -99;
	if ((int)w->slots[slot] == w->fail_put)
		return -7;
	w->worked[slot]++;
	w->put++;
	return 0;
}

static int run(struct world *w, unsigned int threads)
{
	struct wf_gang gang = {
		.threads = threads,
		.slots = threads < 4 ? threads + 1 : SLOTS,
		.arg = w,
		.take = take,
		.work = work,
		.place = w->places ? place : NULL,
		.put = put,
	};

	return wf_alg_gang_run(&gang);
}

static void test_order(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 300; i++) {
		struct world w = { .places = i / 2 % 2,
				   .pieces = i % 40,
				   .fail_take = -1,
				   .fail_work = -1,
				   .fail_put = -1 };

		assert_int_equal(run(&w, 1 + i % 5), 0);
		assert_int_equal(w.taken, w.pieces);
		assert_int_equal(w.put, w.pieces);
	}
}

static void test_failures(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 300; i++) {
		int where = (int)(i / 3 % 30);
		struct world w = { .places = i / 2 % 2,
				   .pieces = 40,
				   .fail_take = i % 3 == 0 ? where : -1,
				   .fail_work = i % 3 == 1 ? where : -1,
				   .fail_put = i % 3 == 2 ? where : -1 };

		assert_int_equal(run(&w, 1 + i % 5), -5 - (int)(i % 3));
		/* Nothing from behind the failure is put, where order counts. */
		assert_true(w.places || (int)w.put <= where);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_failures),
	};

	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	wd_alg_async_fini();
	return ret;
}
