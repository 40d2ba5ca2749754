/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The gang: every piece is taken, worked on and put exactly once, taken and put
 * in order; and after a failure anywhere it ends, with that failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <string.h>

#include "tools/gzip/gang.h"

#define SLOTS 9

struct world {
	unsigned int pieces;
	unsigned int taken;
	unsigned int put;
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

static int put(void *arg, unsigned int slot)
{
	struct world *w = arg;

	if (w->slots[slot] != w->put || w->worked[slot] != 1)
		return -99;
	if ((int)w->put == w->fail_put)
		return -7;
	w->put++;
	return 0;
}

static int run(struct world *w, unsigned int threads)
{
	struct wf_gzip_gang gang = {
		.threads = threads,
		.slots = threads < 4 ? threads + 1 : SLOTS,
		.arg = w,
		.take = take,
		.work = work,
		.put = put,
	};

	return wf_tools_gzip_gang_run(&gang);
}

static void test_order(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 300; i++) {
		struct world w = { .pieces = i % 40,
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
		struct world w = { .pieces = 40,
				   .fail_take = i % 3 == 0 ? where : -1,
				   .fail_work = i % 3 == 1 ? where : -1,
				   .fail_put = i % 3 == 2 ? where : -1 };

		assert_int_equal(run(&w, 1 + i % 5), -5 - (int)(i % 3));
		/* Nothing from behind the failure is put. */
		assert_true((int)w.put <= where);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
