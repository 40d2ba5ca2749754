/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When one side goes quiet: a client that reads its completions late or never,
 * a device that was stopped (SIGSTOP) and goes on later. Nobody hangs, and
 * nobody else notices.
 */
#include "devd/rig_test.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "base/log.h"
#include "chan/core.h"

static struct rig rig;

static int setup(void **state)
{
	(void)state;
	rig_init(&rig);
	rig.config.workers = 1;
	rig_fork(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(rig.pid, SIGCONT);
	rig_kill(&rig);
	return 0;
}

/* -- the client ------------------------------------------------------------ */

/* A bug: the device ran out of room for completions and went to sleep; the
 * credit that made room did not wake it. */
static void test_late_reader(void **state)
{
	struct wf_drv_job job = { .alg = WF_DEVICE_NOP };
	struct wf_drv_device device;
	uint32_t depth;

	(void)state;
	assert_int_equal(rig_open(&device, "share-0", 0), 0);
	depth = device.mmio->depth;
	for (int round = 0; round < 3; round++) {
		/* Read, but not yet told. */
		for (uint32_t i = 0; i < depth / 4 - 1; i++)
			rig_nop(&device);
		for (uint32_t i = 0; i < depth; i++)
			assert_int_equal(
				wf_drv_device_submit(&device, &job, false), 0);
		usleep(20000);
		assert_int_equal(atomic_load(&device.mmio->device_sleeps), 1);
		for (uint32_t i = 0; i < depth; i++)
			assert_int_equal(rig_result(&device, round == 1).status,
					 0);
	}
	wf_drv_device_close(&device);
}

static void keep_quiet(enum wf_log_level level, const char *func, int line,
		       const char *text)
{
	(void)level;
	(void)func;
	(void)line;
	(void)text;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_late_reader),
	};

	wf_base_log_set_sink(keep_quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
