/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check the counters of devices for `weft stat`: they count exactly
 * the work that was done, while it is done and after the channels are gone.
 */
#include "devd/rig_test.h"

#include <sys/mman.h>

#include "devd/server.h"

static struct rig rig;

static int setup(void **state)
{
	(void)state;
	rig_init(&rig);
	rig.config.devices[WD_IOMMU_NONE].instances = 1;
	rig_start(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_stop(&rig);
	return 0;
}

static uint64_t get(int device, enum wf_devd_stat item)
{
	return wf_base_stats_get(&rig.devd->devices[device].stats, item);
}

/* The manager adds up every so often. */
static void expect(int device, enum wf_devd_stat item, uint64_t value)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	while (get(device, item) != value && wf_base_clock_ns() < end)
		usleep(1000);
	assert_int_equal(get(device, item), value);
}

#define EXPECT(device, item, value) expect(device, WF_DEVD_STAT_##item, value)

static void test_page(void **state)
{
	const struct wf_stats_page *page =
		rig.devd->devices[WD_IOMMU_SVA].stats.page;
	char name[128];

	(void)state;
	snprintf(name, sizeof(name), "%s:sva-0", rig.socket);
	assert_string_equal(page->kind, "device");
	assert_string_equal(page->name, name);
	assert_int_equal(page->pid, getpid());
	assert_int_equal(page->count, WF_DEVD_STAT_COUNT);
	assert_string_equal(page->items[WF_DEVD_STAT_jobs].name, "jobs");
}

/* One more, for a client that says it sleeps. */
static void expect_interrupt(struct wf_drv_device *device, int type)
{
	uint64_t before = get(type, WF_DEVD_STAT_interrupts);
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };

	atomic_store(&device->mmio->user_sleeps, 1);
	assert_int_equal(wf_drv_device_submit(device, &job, false), 0);
	assert_int_equal(rig_result(device, false).status, 0);
	while (get(type, WF_DEVD_STAT_interrupts) <= before) {
		assert_true(wf_base_clock_ns() < end);
		usleep(1000);
	}
}

static void test_jobs(void **state)
{
	/* Not through the stage: the device copies, and counts it. */
	static uint8_t src[6000], dst[6000];
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = src,
				  .dst = dst,
				  .src_len = sizeof(src),
				  .dst_len = sizeof(dst) };

	(void)state;
	for (int type = WD_IOMMU_SVA; type <= WD_IOMMU_NONE; type++) {
		bool sva = type == WD_IOMMU_SVA;
		struct wf_drv_device device;
		unsigned int jobs = 0;

		assert_int_equal(rig_open(&device, rig_names[type], 1u << 17),
				 0);
		EXPECT(type, channels, 1);
		EXPECT(type, memory, 1u << 17);
		job.dst_len = sizeof(dst);
		for (int i = 0; i < 40; i++, jobs++)
			assert_int_equal(rig_run(&device, &job).status, 0);
		EXPECT(type, jobs, jobs);
		EXPECT(type, failed, 0);
		EXPECT(type, bytes_in, jobs * sizeof(src));
		EXPECT(type, bytes_out, jobs * sizeof(dst));
		EXPECT(type, copied_bytes, sva ? 2 * jobs * sizeof(src) : 0);
		job.dst_len = 1;
		for (int i = 0; i < 3; i++, jobs++)
			assert_int_equal(rig_run(&device, &job).status,
					 -ENOSPC);
		EXPECT(type, jobs, jobs);
		EXPECT(type, failed, 3);
		EXPECT(type, waiting, 0);
		expect_interrupt(&device, type);
		jobs++;
		wf_drv_device_close(&device);
		EXPECT(type, channels, 0);
		EXPECT(type, memory, 0);
		EXPECT(type, opened, 1);
		/* The counts stay. */
		EXPECT(type, jobs, jobs);
		EXPECT(type, bytes_in, 40 * sizeof(src));
	}
}

/* Memory is the device's that it was reserved for, whoever lets go last. */
static void test_shared_memory(void **state)
{
	struct wf_drv_device a, b;
	int share = WD_IOMMU_SHARE_DOMAIN, neighbour = 3;

	(void)state;
	assert_int_equal(rig_open(&a, "share-0", 1u << 16), 0);
	assert_int_equal(rig_open(&b, "share-1", 0), 0);
	assert_int_equal(wd_share_reserved_memory(&a.ch, &b.ch), 0);
	EXPECT(share, memory, 1u << 16);
	wf_drv_device_close(&a);
	EXPECT(share, channels, 0);
	EXPECT(share, memory, 1u << 16);
	EXPECT(neighbour, memory, 0);
	wf_drv_device_close(&b);
	EXPECT(share, memory, 0);
	EXPECT(neighbour, memory, 0);
}

static void test_refusals(void **state)
{
	struct wf_drv_device a, b;
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	int type = WD_IOMMU_NONE;
	uint64_t before = get(type, WF_DEVD_STAT_turned_away);
	uint64_t jobs = get(type, WF_DEVD_STAT_jobs);

	(void)state;
	assert_int_equal(rig_open(&a, "noiommu-0", 0), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_open(&b, "noiommu-0", 0), -EBUSY);
	EXPECT(type, turned_away, before + 3);
	/* Not read: they wait. */
	for (uint32_t i = 0; i < 2 * a.mmio->depth; i++) {
		if (wf_drv_device_submit(&a, &job, false))
			break;
	}
	EXPECT(type, jobs, jobs + a.mmio->depth);
	EXPECT(type, waiting, 0);
	atomic_store(&a.mmio->doorbell,
		     atomic_load(&a.mmio->doorbell) + a.mmio->depth / 2);
	wd_drv_kick(&a.ch);
	EXPECT(type, waiting, a.mmio->depth / 2);
	atomic_store(&a.mmio->doorbell, UINT32_MAX);
	wd_drv_kick(&a.ch);
	EXPECT(type, faults, 1);
	wf_drv_device_close(&a);
}

static struct wf_devd_user *user;

static uint64_t of_user(enum wf_devd_stat item)
{
	return wf_base_stats_get(&user->stats, item);
}

static void expect_user(enum wf_devd_stat item, uint64_t value)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	while (of_user(item) != value && wf_base_clock_ns() < end)
		usleep(1000);
	assert_int_equal(of_user(item), value);
}

/* The account of a user: of all devices, and still there when its clients are
 * gone. */
static void test_user(void **state)
{
	struct wf_drv_device one, two, refused;
	uint64_t jobs, in, opened, away;
	char name[128];

	(void)state;
	/* The tests before have used it. While there is no client, the manager
	 * does not touch its list. */
	rig_await_quiet(&rig);
	user = wf_container_of(rig.devd->users.next, struct wf_devd_user, link);
	snprintf(name, sizeof(name), "%s:uid %lu", rig.socket,
		 (unsigned long)geteuid());
	assert_string_equal(user->stats.page->kind, "user");
	assert_string_equal(user->stats.page->name, name);
	expect_user(WF_DEVD_STAT_channels, 0);
	jobs = of_user(WF_DEVD_STAT_jobs);
	in = of_user(WF_DEVD_STAT_bytes_in);
	opened = of_user(WF_DEVD_STAT_opened);
	away = of_user(WF_DEVD_STAT_turned_away);
	assert_true(jobs > 0);
	assert_int_equal(rig_open(&one, "share-0", 1u << 17), 0);
	assert_int_equal(rig_open(&two, "noiommu-0", 1u << 17), 0);
	assert_int_equal(rig_open(&refused, "noiommu-0", 0), -EBUSY);
	expect_user(WF_DEVD_STAT_channels, 2);
	expect_user(WF_DEVD_STAT_opened, opened + 2);
	expect_user(WF_DEVD_STAT_turned_away, away + 1);
	expect_user(WF_DEVD_STAT_memory, 2u << 17);
	rig_check_crc(&one, one.ch.ss_va, 1000);
	rig_check_crc(&two, two.ch.ss_va, 500);
	expect_user(WF_DEVD_STAT_jobs, jobs + 2);
	expect_user(WF_DEVD_STAT_bytes_in, in + 1500);
	wf_drv_device_close(&one);
	wf_drv_device_close(&two);
	expect_user(WF_DEVD_STAT_channels, 0);
	expect_user(WF_DEVD_STAT_memory, 0);
	expect_user(WF_DEVD_STAT_jobs, jobs + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_shared_memory),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_user),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
