/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drivers that fail in every way that one can, with jobs of both directions, of a
 * caller that waits and asynchronous ones: each job is done by the next driver,
 * exactly once. A driver at fault is named in the log once and not asked again;
 * one whose device has failed is asked again, and nothing is said.
 */
#include "alg/faulty_test.h"

/* A channel without room is a fault where somebody waits for it; an asynchronous
 * job goes elsewhere at once. */
static const char *why_of(size_t i, bool async)
{
	return async && cases[i].fault == FULL ? NULL : cases[i].why;
}

static void try(size_t i, bool inflate, bool async)
{
	static char names[CASES][2][2][40];
	static struct wd_alg_comp drivers[CASES][2][2];
	struct wd_alg_comp *driver = &drivers[i][inflate][async];
	char *name = names[i][inflate][async];
	const char *why = why_of(i, async);
	/* These do one job before they are found out. */
	unsigned int good =
		cases[i].fault == TWICE || cases[i].fault == TWICE_AT_ONCE;

	snprintf(name, sizeof(names[0][0][0]), "%s, %s %s", cases[i].name,
		 async ? "asynchronous" : "waiting",
		 inflate ? "inflate" : "deflate");
	snprintf(dev->expected, sizeof(dev->expected), "driver %s (program) %s",
		 name, why ? why : "?");
	atomic_store(&dev->warnings, 0);
	atomic_store(&dev->right_ones, 0);
	*driver = driver_of(name, inflate);
	dev->fault = cases[i].fault;
	dev->inflate = inflate;
	dev->opened = dev->closed = dev->submits = 0;
	assert_int_equal(wd_alg_comp_register(driver), 0);
	(async ? run_async : run_waiting)(JOBS);
	assert_int_equal(check(JOBS, name), good);
	/* It is asked once about each, but for one who waits for room. */
	if (async || cases[i].fault != FULL)
		assert_true(dev->submits <= JOBS);
	assert_int_equal(atomic_load(&dev->warnings), why ? 1 : 0);
	/* It works again: but nobody asks it if it was its own fault. */
	dev->fault = NONE;
	dev->submits = 0;
	run_waiting(1);
	assert_int_equal(check(1, name), !why);
	run_async(1);
	assert_int_equal(check(1, name), !why);
	assert_int_equal(dev->submits, why ? 0 : 2);
	wd_alg_async_fini();
	assert_int_equal(wd_alg_comp_unregister(driver), 0);
	assert_int_equal(dev->opened, dev->closed);
	assert_int_equal(atomic_load(&dev->warnings), why ? 1 : 0);
	assert_int_equal(atomic_load(&dev->right_ones), why ? 1 : 0);
}

static void test_deflate(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		try(i, false, false);
}

static void test_inflate(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		try(i, true, false);
}

static void test_async_deflate(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		try(i, false, true);
}

static void test_async_inflate(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++)
		try(i, true, true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deflate),
		cmocka_unit_test(test_inflate),
		cmocka_unit_test(test_async_deflate),
		cmocka_unit_test(test_async_inflate),
	};

	if (faulty_begin())
		return 1;
	wf_base_log_set_sink(sink);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
