/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another configuration while clients are there: they keep their channels, their
 * jobs and their memory, and what they ask for next is decided by the new one.
 */
#include "devd/rig_test.h"

#include <sys/stat.h>

#include "devd/server.h"

static struct rig rig;

static int setup(void **state)
{
	(void)state;
	rig_init(&rig);
	rig_start(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_stop(&rig);
	return 0;
}

static void reload(const struct wf_devd_config *config)
{
	void *result;

	wf_devd_interrupt(rig.devd);
	pthread_join(rig.thread, &result);
	assert_int_equal((intptr_t)result, 1);
	wf_devd_reload(rig.devd, config);
	assert_int_equal(pthread_create(&rig.thread, NULL, rig_thread, &rig),
			 0);
}

static struct wf_devd_config without_devices(void)
{
	struct wf_devd_config config = rig.config;

	config.n_devices = 0;
	return config;
}

static void test_clients_stay(void **state)
{
	struct wf_drv_device device, other;
	struct wf_devd_config config = rig.config;
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };

	(void)state;
	assert_int_equal(rig_open(&device, "share-0", 1u << 17), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(wf_drv_device_submit(&device, &job, i < 19),
				 0);
	config.client_channels = 1;
	config.client_memory = 1u << 16;
	reload(&config);
	for (int i = 0; i < 20; i++)
		assert_int_equal(rig_result(&device, true).status, 0);
	rig_check_crc(&device, device.ch.ss_va, 4096);
	/* One is what it may have now, and it has it. */
	assert_int_equal(rig_open(&other, "share-0", 0), -EBUSY);
	reload(&rig.config);
	assert_int_equal(rig_open(&other, "share-0", 0), 0);
	rig_nop(&other);
	rig_nop(&device);
	wf_drv_device_close(&other);
	wf_drv_device_close(&device);
	config.client_channels = 2;
	reload(&config);
	assert_int_equal(rig_open(&device, "share-0", 1u << 17), -ENOMEM);
	reload(&rig.config);
	assert_int_equal(rig_open(&device, "share-0", 1u << 17), 0);
	wf_drv_device_close(&device);
}

static int free_of(const char *name)
{
	struct uacce_dev_info *list;
	int count = wd_list_devices(NULL, &list), n = -1;

	for (int i = 0; i < count; i++) {
		if (!strcmp(list[i].name, name))
			n = list[i].available_instances;
	}
	wd_free_devices(list);
	return n;
}

static void test_devices(void **state)
{
	struct wf_devd_config config = without_devices();
	struct wf_drv_device old, fresh;

	(void)state;
	assert_int_equal(rig_open(&old, "share-0", 0), 0);
	assert_int_equal(rig_open(&fresh, "late-0", 0), -ENODEV);
	wf_devd_config_add(&config, "late-0", WD_IOMMU_SHARE_DOMAIN)
		->instances = 3;
	wf_devd_config_add(&config, "share-1", WD_IOMMU_SHARE_DOMAIN);
	reload(&config);
	/* A new one; one that is no longer named serves whom it serves. */
	assert_int_equal(free_of("late-0"), 3);
	assert_int_equal(rig_open(&fresh, "late-0", 1u << 16), 0);
	rig_nop(&fresh);
	rig_nop(&old);
	assert_int_equal(free_of("late-0"), 2);
	assert_int_equal(free_of("share-0"), 0);
	wf_drv_device_close(&old);
	assert_int_equal(rig_open(&old, "share-0", 0), -EBUSY);
	/* Back, and the other one goes while it is used. */
	reload(&rig.config);
	assert_int_equal(free_of("late-0"), 0);
	assert_int_equal(rig_open(&old, "share-0", 0), 0);
	rig_nop(&old);
	rig_nop(&fresh);
	wf_drv_device_close(&old);
	wf_drv_device_close(&fresh);
}

static void test_permissions(void **state)
{
	struct wf_devd_config config = rig.config;
	struct stat file;

	(void)state;
	config.allow_uid = "any";
	reload(&config);
	assert_int_equal(stat(rig.socket, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0666);
	reload(&rig.config);
	assert_int_equal(stat(rig.socket, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clients_stay),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_permissions),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	return cmocka_run_group_tests(tests, setup, teardown);
}
