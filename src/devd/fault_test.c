/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drivers that fail, in a device process, for a program that has nothing but the
 * driver `device`: each of its jobs is done exactly once. A driver at fault costs
 * the program nothing: the device process names it in its own log, once, and gives
 * its jobs to the next one. A driver that takes its process with it costs the
 * program the device.
 */
#include "alg/faulty_test.h"
#include "devd/rig_test.h"

static pid_t program;
static atomic_uint own_warnings;

/* The device's lines are what is tested; the program has nothing to say. */
static void sink_apart(enum wf_log_level level, const char *func, int line,
		       const char *text)
{
	if (getpid() != program)
		sink(level, func, line, text);
	else if (level == WF_LOG_WARN || level == WF_LOG_TELL)
		atomic_fetch_add(&own_warnings, 1);
}

/* A device process that has the driver; we do not. */
static void begin(struct rig *rig, const struct wd_alg_comp *driver,
		  enum fault fault, bool inflate)
{
	dev->fault = fault;
	dev->inflate = inflate;
	dev->queued = 0;
	dev->before = NULL;
	dev->submits = 0;
	atomic_store(&dev->warnings, 0);
	atomic_store(&dev->right_ones, 0);
	atomic_store(&own_warnings, 0);
	rig_init(rig);
	rig->config.workers = 1; /* the driver's calls come one by one */
	assert_int_equal(wd_alg_comp_register(driver), 0);
	rig_fork(rig);
	assert_int_equal(wd_alg_comp_unregister(driver), 0);
}

/* With all that the library has kept of it: an asynchronous job that goes to a
 * channel of a dead device is done by another driver. */
static void end(struct rig *rig)
{
	wd_alg_async_fini();
	rig_kill(rig);
	for (int inflate = 0; inflate < 2; inflate++) {
		dev->inflate = inflate;
		run_waiting(1);
		assert_int_equal(check(1, "device"), 0);
	}
}

static void run(unsigned int n, bool async, bool by_device)
{
	(async ? run_async : run_waiting)(n);
	assert_int_equal(check(n, "device"), by_device ? n : 0);
}

static void try(size_t i, bool inflate, bool async)
{
	struct wd_alg_comp driver = driver_of(cases[i].name, inflate);
	unsigned int why = cases[i].why ? 1 : 0, submits;
	struct rig rig;

	snprintf(dev->expected, sizeof(dev->expected), "driver %s (program) %s",
		 driver.name, why ? cases[i].why : "?");
	begin(&rig, &driver, cases[i].fault, inflate);
	run(JOBS, async, true);
	assert_true(dev->submits > 0);
	assert_int_equal(atomic_load(&dev->warnings), why);
	assert_int_equal(atomic_load(&dev->right_ones), why);
	/* It works again: but nobody asks it if it was its own fault. */
	dev->fault = NONE;
	submits = dev->submits;
	run(1, async, true);
	assert_int_equal(dev->submits - submits, !why);
	assert_int_equal(atomic_load(&dev->warnings), why);
	assert_int_equal(atomic_load(&own_warnings), 0);
	end(&rig);
}

static void try_all(bool inflate, bool async)
{
	for (size_t i = 0; i < CASES; i++)
		try(i, inflate, async);
}

static void test_deflate(void **state)
{
	(void)state;
	try_all(false, false);
}

static void test_inflate(void **state)
{
	(void)state;
	try_all(true, false);
}

static void test_async_deflate(void **state)
{
	(void)state;
	try_all(false, true);
}

static void test_async_inflate(void **state)
{
	(void)state;
	try_all(true, true);
}

/* The process has ended at the first job: that and all others are done here, and
 * those after them by the next device. */
static void test_crash(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		bool inflate = way & 1, async = way & 2;
		struct wd_alg_comp driver = driver_of("crashes", inflate);
		struct rig rig;

		begin(&rig, &driver, CRASHES, inflate);
		run(JOBS, async, false);
		assert_int_equal(dev->submits, 1);
		end(&rig);
		begin(&rig, &driver, NONE, inflate);
		run(JOBS, async, true);
		assert_int_equal(dev->submits, JOBS);
		end(&rig);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deflate),
		cmocka_unit_test(test_inflate),
		cmocka_unit_test(test_async_deflate),
		cmocka_unit_test(test_async_inflate),
		cmocka_unit_test(test_crash),
	};

	/* Before anything asks the registry. */
	setenv("WD_COMP_DRIVER", "device", 1);
	program = getpid();
	if (faulty_begin())
		return 1;
	dev->apart = true;
	wf_base_log_set_sink(sink_apart);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
